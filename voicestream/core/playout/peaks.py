"""How late the latest came, for as long as that says something of what is to come."""

from __future__ import annotations

from collections import deque

__all__ = ["Peaks"]

BLOCK_UNITS = 200.0
"""Peaks are kept by half seconds."""

FRESH_UNITS = 1500.0
"""So long whatever happened counts (3.75 s)."""

KEPT_UNITS = 3200.0
"""So long what came more than once within the span (8 s)."""

QUIET_BLOCKS = 2
QUIET_PART = 0.4
"""What came before and after more than a second below this part of a peak are two disturbances, not one."""

AGAIN_PART = 0.75
"""A disturbance that reached this part of a peak is another of its kind."""


class Peaks:
    """Largest delay of late: of the last 3.75 s whatever it was, and of the whole span what came more than once.

    A queue that builds up and drains is one disturbance: once it is over it says little of the next. What disturbs again and
    again does so within the span, and is kept as long.

    Args:
        span: How far back, in units.
    """

    __slots__ = ("_blocks", "_span")

    def __init__(self, span: float) -> None:
        self._span = span
        self._blocks: deque[list[float]] = deque()  # [number, largest]; those in which nothing was late are left out

    def push(self, position: float, delay: float) -> None:
        """A frame at `position` came `delay` behind the quickest."""
        if delay <= 0:
            return
        blocks, number = self._blocks, position // BLOCK_UNITS
        if blocks and blocks[-1][0] >= number:
            if delay > blocks[-1][1]:
                blocks[-1][1] = delay
        else:
            blocks.append([number, delay])

    def largest(self, position: float, latest: float = 0.0) -> float:
        """The largest at `position`, given what was not pushed yet."""
        blocks, now = self._blocks, position // BLOCK_UNITS
        first = (position - self._span) // BLOCK_UNITS
        while blocks and blocks[0][0] < first:
            blocks.popleft()
        fresh = (position - FRESH_UNITS) // BLOCK_UNITS
        largest = latest
        for number, delay in blocks:
            if number >= fresh and delay > largest:
                largest = delay
        kept = (position - KEPT_UNITS) // BLOCK_UNITS
        higher = [block[1] for block in blocks if block[1] > largest and block[0] >= kept]
        if not higher:
            return largest
        seen = [*blocks, [now, latest]] if latest > 0 else [*blocks]
        for delay in sorted(higher, reverse=True):
            if _comes_again(seen, delay):
                return delay
        return largest


def _comes_again(blocks: list[list[float]], peak: float) -> bool:
    """Whether two disturbances of this size are among them."""
    high, again, last = QUIET_PART * peak, AGAIN_PART * peak, float("-inf")
    reached = 0.0  # by the disturbance under way
    found = 0
    for number, delay in blocks:
        if delay < high:
            continue
        if number - last > QUIET_BLOCKS:
            found += reached >= again
            reached = 0.0
        if delay > reached:
            reached = delay
        last = number
    return found + (reached >= again) >= 2
