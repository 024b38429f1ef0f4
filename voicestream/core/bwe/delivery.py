"""Rate at which what was sent arrives."""

from __future__ import annotations

from collections import deque
from typing import Final

from voicestream.core.bwe.samples import Sample

__all__ = ["DeliveryRate"]

WINDOW: Final = 2.0
LEAST: Final = 5
"""Arrivals that tell a rate; where they are few, older ones are taken in."""

LEAST_SPAN: Final = 0.06


class DeliveryRate:
    """Bytes on the wire that arrived, over the time in which they arrived."""

    __slots__ = ("_log",)

    def __init__(self) -> None:
        self._log: deque[tuple[float, int]] = deque()

    def add(self, sample: Sample) -> None:
        """Take a datagram that arrived."""
        self._log.append((sample.arrived_at, sample.wire_bytes))
        while self._log[0][0] < sample.arrived_at - WINDOW:
            self._log.popleft()

    def rate_bps(self, window: float) -> float | None:
        """Bits per second over the last `window` seconds of arrivals (at most 2); None when there were too few."""
        if len(self._log) < 3:
            return None
        end = self._log[-1][0]
        items = [item for item in self._log if item[0] >= end - window]
        if len(items) < LEAST or items[-1][0] - items[0][0] < LEAST_SPAN:
            items = list(self._log)[-LEAST:]
        span = items[-1][0] - items[0][0]
        # The first one opens the interval and does not count.
        return sum(size for _, size in items[1:]) * 8 / span if span > 0 else None
