"""The least value of late."""

from __future__ import annotations

from collections import deque

__all__ = ["SlidingMin"]


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
