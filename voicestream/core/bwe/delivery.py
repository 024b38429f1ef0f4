"""Rate at which what was sent arrives."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from typing import Final

from voicestream.core.bwe.samples import Sample

__all__ = ["DeliveryRate"]

WINDOW: Final = 2.0
LEAST: Final = 5
"""Arrivals that tell a rate; where they are few, older ones are taken in."""

LEAST_SPAN: Final = 0.06
LOST_KEPT: Final = 256


class DeliveryRate:
    """Bytes on the wire that arrived, over the time in which they arrived.

    Where reports got lost, the fate of datagrams is unknown for ever. The time in which those may have arrived does not count: it would
    look as if nothing had.
    """

    __slots__ = ("_log", "_lost")

    def __init__(self) -> None:
        self._log: deque[Sample] = deque()
        self._lost: deque[int] = deque(maxlen=LOST_KEPT)

    def add(self, sample: Sample) -> None:
        """Take a datagram that arrived."""
        self._log.append(sample)
        while self._log[0].arrived_at < sample.arrived_at - WINDOW:
            self._log.popleft()

    def lost(self, numbers: Iterable[int]) -> None:
        """These did not arrive."""
        self._lost.extend(numbers)

    def rate_bps(self, window: float) -> float | None:
        """Bits per second over the last `window` seconds of arrivals (at most 2); None when there were too few."""
        if len(self._log) < 3:
            return None
        end = self._log[-1].arrived_at
        items = [item for item in self._log if item.arrived_at >= end - window]
        if len(items) < LEAST or end - items[0].arrived_at < LEAST_SPAN:
            items = list(self._log)[-LEAST:]
        span, size = self._known(items)
        if span < LEAST_SPAN and len(items) < len(self._log):
            span, size = self._known(list(self._log))
        return size * 8 / span if span > 0 else None

    def _known(self, items: list[Sample]) -> tuple[float, int]:
        """(seconds, bytes that arrived in them) of which all is known; the first one opens the interval and does not count."""
        span, size = 0.0, 0
        lost = set(self._lost)
        for before, item in itertools.pairwise(items):
            between = item.number - before.number - 1
            if between <= 0 or between == sum(number in lost for number in range(before.number + 1, item.number)):
                span += item.arrived_at - before.arrived_at
                size += item.wire_bytes
        return span, size
