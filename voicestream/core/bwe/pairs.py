"""Packet pairs: how far apart two datagrams arrive that left together tells the rate of the bottleneck, shared or not."""

from __future__ import annotations

from collections import deque
from typing import Final

from voicestream.core.bwe.samples import Sample

__all__ = ["LUMPY", "PacketPairs"]

MAX_AGE: Final = 4.0
"""Seconds for which a pair counts."""

LEAST: Final = 3

TOGETHER: Final = 0.0015
"""Seconds within which two datagrams left together."""

FASTEST: Final = 2e6
"""Bits per second; what is faster than this is all the same to speech, and pairs do not tell it apart."""

APART: Final = 0.01
"""Seconds from which two datagrams left apart."""

AT_ONCE: Final = 0.001
"""Seconds within which they came at once all the same: the link serves in lumps."""

LUMPY: Final = 0.4
"""Share of such datagrams from which pairs tell of the lumps, and nothing of the link's rate."""

_LUMPS_GAIN: Final = 1 / 24
_TICK: Final = 0.00025
_KEPT: Final = 24


class PacketPairs:
    """Rates told by pairs, newest last.

    Attributes:
        lumps: Share of the datagrams that came at once with the one before, though they had left apart.
    """

    __slots__ = ("_capacity", "_fast", "_found", "_last", "lumps")

    def __init__(self) -> None:
        self.lumps = 0.0
        self._last: Sample | None = None
        self._found: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        # The last answers and their moments, which are asked for again and again.
        self._capacity: tuple[float, float | None] | None = None
        self._fast: tuple[float, float | None] | None = None

    def add(self, sample: Sample, now: float) -> bool:
        """Take a datagram that arrived; whether it is the second of a pair, whose delay tells nothing of the queue."""
        last, self._last = self._last, sample
        if last is None or sample.number != last.number + 1:
            return False
        left, gap = sample.sent_at - last.sent_at, max(sample.arrived_at - last.arrived_at, _TICK)
        if left > TOGETHER:
            if left > APART:
                self.lumps += _LUMPS_GAIN * ((gap < AT_ONCE) - self.lumps)
            return False
        if self.lumps > LUMPY:
            return True
        self._found.append((now, min(FASTEST, sample.wire_bytes * 8 / gap)))
        self._capacity = self._fast = None
        return True

    def capacity_bps(self, now: float) -> float | None:
        """Median of the newest pairs of the last 4 s, None with fewer than three: jitter moves single pairs both ways."""
        known = self._capacity
        if known is None or known[0] != now:
            since = now - MAX_AGE
            rates = sorted([rate for at, rate in self._found if at >= since])
            self._capacity = known = (now, rates[len(rates) // 2] if len(rates) >= LEAST else None)
        return known[1]

    def newest_bps(self, now: float, *, age: float = 1.5, least: int = 2) -> float | None:
        """The lower one of the two newest pairs, if they are at most `age` seconds old: quick to see that a link is faster."""
        found = self._found
        if len(found) < least or found[-least][0] < now - age:
            return None
        rate = found[-1][1]
        for back in range(2, least + 1):
            earlier = found[-back][1]
            if earlier < rate:
                rate = earlier
        return rate

    def fast_bps(self, now: float) -> float | None:
        """The higher one of the two: what the newest pairs say, if it is more."""
        known = self._fast
        if known is None or known[0] != now:
            self._fast = known = (now, max(self.capacity_bps(now) or 0.0, self.newest_bps(now) or 0.0) or None)
        return known[1]

    def forget(self) -> None:
        """The path is another one."""
        self._found.clear()
        self.lumps = 0.0
        self._capacity = self._fast = None
