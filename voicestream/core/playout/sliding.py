"""The least value of late, and what is expected by it."""

from __future__ import annotations

from collections import deque

__all__ = ["Expected", "SlidingMin"]


class SlidingMin:
    """Least value of the last `span` of a growing position."""

    __slots__ = ("_items", "_span")

    def __init__(self, span: float) -> None:
        self._span = span
        self._items: deque[tuple[float, float]] = deque()

    def push(self, position: float, value: float) -> float:
        """Add `value` at `position`; returns the least now."""
        items = self._items
        while items and items[-1][1] >= value:
            items.pop()
        items.append((position, value))
        since = position - self._span
        while items[0][0] < since:
            items.popleft()
        return items[0][1]

    def expire(self, position: float) -> None:
        """Forget what lies more than the span before `position`."""
        items, since = self._items, position - self._span
        while items and items[0][0] < since:
            items.popleft()

    def since(self, position: float) -> float | None:
        """The least at `position` and after it; what lies before is forgotten. None without any."""
        items = self._items
        while items and items[0][0] < position:
            items.popleft()
        return items[0][1] if items else None

    def shift(self, by: float) -> None:
        """Add to all values."""
        self._items = deque([(position, value + by) for position, value in self._items])

    def restart(self) -> None:
        """Forget all values."""
        self._items.clear()

    @property
    def value(self) -> float | None:
        """The least; None without any."""
        return self._items[0][1] if self._items else None


class Expected:
    """What was said last holds for long; what was said of late and was more holds for a while.

    Args:
        holds: How far the position moves until nothing is expected any more.
        settles: How far it moves until less than before is expected.
    """

    __slots__ = ("_holds", "_least", "_said", "_said_at", "_settles")

    def __init__(self, holds: float, settles: float) -> None:
        self._holds = holds
        self._settles = settles
        self._least = SlidingMin(settles)
        self._said_at = float("-inf")
        self._said = 0.0

    def push(self, position: float, value: float) -> None:
        """Expect `value`, at `position`."""
        self._least.push(position, -value)
        self._said_at, self._said = position, value

    def restart(self) -> None:
        """Expect nothing."""
        self._least.restart()
        self._said_at = float("-inf")

    def at(self, position: float) -> float | None:
        """What is expected at `position`; None when it is too long since anything was said."""
        if position - self._said_at > self._holds:
            return None
        least = self._least.since(position - self._settles)
        return self._said if least is None else -least
