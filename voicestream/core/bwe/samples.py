"""What the estimators are fed with, and the window they have in common."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

__all__ = ["Sample", "WindowedMin"]


class Sample(NamedTuple):
    """One datagram that a report showed to have arrived.

    Attributes:
        number: Full number of the datagram.
        sent_at: Seconds, on our clock.
        arrived_at: Seconds, with an unknown constant (the far end's clock).
        wire_bytes: Bytes with all headers.
    """

    number: int
    sent_at: float
    arrived_at: float
    wire_bytes: int

    @property
    def delay(self) -> float:
        """One-way delay in seconds, with an unknown constant."""
        return self.arrived_at - self.sent_at


class WindowedMin:
    """Least value of a sliding window.

    Args:
        window: Seconds.
    """

    __slots__ = ("_queue", "window")

    def __init__(self, window: float) -> None:
        self.window = window
        self._queue: deque[tuple[float, float]] = deque()

    def add(self, now: float, value: float) -> None:
        """Take a value."""
        queue = self._queue
        while queue and queue[-1][1] >= value:
            queue.pop()
        queue.append((now, value))
        while queue[0][0] < now - self.window:
            queue.popleft()

    @property
    def value(self) -> float | None:
        """The least value, or None before the first."""
        return self._queue[0][1] if self._queue else None

    def clear(self) -> None:
        """Forget everything."""
        self._queue.clear()
