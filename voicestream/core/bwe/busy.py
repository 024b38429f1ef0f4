"""What a link carries while a queue stands on it: what waits leaves without a pause."""

from __future__ import annotations

from collections import deque
from typing import Final

from voicestream.core.bwe.samples import Sample

__all__ = ["BusyRate"]

WAITED: Final = 0.012
"""Seconds above the base from which a datagram has waited, and so left right behind the one before it."""

KEPT: Final = 24
LEAST: Final = 2
LEAST_SPAN: Final = 0.04
STEP: Final = 0.004
"""Seconds by which a delay must grow to count as growing."""


class BusyRate:
    """Rate at which ours arrives while it has to wait, with or without others on the link.

    The rate of all that arrived in the last half second tells of the time before the queue as well; this one does not.

    Attributes:
        rises: Datagrams in a row that each arrived later than the one before, measured against when they were sent.
        risen: Seconds by which the delay has grown over them.
    """

    __slots__ = ("_delay", "_gaps", "_last", "_waits", "risen", "rises")

    def __init__(self) -> None:
        self._gaps: deque[tuple[float, float, int]] = deque(maxlen=KEPT)  # (arrival, seconds since the one before, bytes)
        self._last: Sample | None = None
        self._delay: float | None = None
        self._waits = False
        self.rises = 0
        self.risen = 0.0

    def add(self, sample: Sample, waited: float | None) -> None:
        """Take a datagram that arrived.

        Args:
            sample: It.
            waited: Seconds of its delay above the base, its own time on the link included; None for the second of a pair, which waits
                for the first whatever the queue.
        """
        last, self._last = self._last, sample
        gap = 0.0 if last is None else sample.arrived_at - last.arrived_at
        if waited is not None:
            # What has waited no longer than since the one before came may have found the link free.
            self._waits = waited > WAITED and waited > 0.9 * gap
            grown = 0.0 if self._delay is None else sample.delay - self._delay
            self._delay = sample.delay
            if grown > STEP:
                self.rises += 1
                self.risen += grown
            elif grown < -STEP:
                self.rises, self.risen = 0, 0.0
        if self._waits and last is not None and sample.number == last.number + 1:
            self._gaps.append((sample.arrived_at, gap, sample.wire_bytes))

    def rate_bps(self, window: float) -> float | None:
        """Bits per second over the busy moments of the last `window` seconds of arrivals; None when there were too few."""
        if self._last is None:
            return None
        since, span, size, count = self._last.arrived_at - window, 0.0, 0, 0
        for at, gap, wire_bytes in reversed(self._gaps):
            if at < since:
                break
            span += gap
            size += wire_bytes
            count += 1
        return size * 8 / span if count >= LEAST and span >= LEAST_SPAN else None

    def clear(self) -> None:
        """The path is another one."""
        self._gaps.clear()
        self._last = self._delay = None
        self._waits = False
        self.rises, self.risen = 0, 0.0
