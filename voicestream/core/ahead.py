"""How much a sender that is faster than real time may send (specification section 8.5): until the far end holds its lookahead."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from voicestream.config import UNITS_PER_SECOND

__all__ = ["AheadBudget"]

_MAX_TRACKED: Final = 2000

_LOOK: Final = 0.15
"""Seconds between two looks at the far end's playhead that tell its speed: several blocks of its device."""

_OLD_LOOK: Final = 0.4
"""After so many seconds without news it is not known when in between it went on."""

_NORMAL_SPEED: Final = 0.75
"""From here on it is taken to play in real time, for it does so by blocks."""

_LEAST_HELD: Final = 16
"""With less than this (40 ms) on hand a far end that does not go on may have run dry, which says nothing about its speed."""


class _Sent(NamedTuple):
    end_pts: int
    units: int
    at: float


class AheadBudget:
    """Keeps an estimate of what the far end's playout holds.

    A report of its playhead, or its PROGRESS, sets the estimate right. In between the far end is taken to play as fast as it was last
    seen to, at most in real time: one that has stopped reading gets nothing more.

    Attributes:
        lookahead: Seconds of media that the far end wants to hold.
    """

    __slots__ = ("_at", "_held", "_known", "_rtt", "_seen_at", "_sent", "_speed", "_units", "_units_seen", "lookahead")

    def __init__(self, lookahead: float) -> None:
        self.lookahead = lookahead
        self._sent: deque[_Sent] = deque()  # what the playhead has not passed
        self._units = 0
        # Seconds of media at the far end at a moment of its own.
        self._held = 0.0
        self._at = 0.0
        self._speed = 1.0
        self._rtt: float | None = None
        self._known = 0  # the latest playhead
        self._seen_at: float | None = None
        self._units_seen = 0  # of what was there at the last report, and came since

    def sent(self, end_pts: int, units: int, now: float, rtt: float | None) -> None:
        """A frame that ends at `end_pts` was handed over; it arrives half a round trip from now."""
        self._rtt = rtt
        self._held = self.level(now, rtt) + units / UNITS_PER_SECOND
        self._at = now + _one_way(rtt)
        self._sent.append(_Sent(end_pts, units, now))
        self._units += units
        self._units_seen += units
        if len(self._sent) > _MAX_TRACKED:
            self._units -= self._sent.popleft().units

    def playhead(self, pts: int, now: float, rtt: float | None = None) -> None:
        """The far end's playhead was at `pts` when it said so, half a round trip ago: the one given last, if this is not known."""
        rtt = self._rtt if rtt is None else rtt
        if pts < self._known:
            return  # overtaken by newer news
        self._known = pts
        while self._sent and self._sent[0].end_pts <= pts:
            self._units -= self._sent.popleft().units
        part = max(0, pts - (self._sent[0].end_pts - self._sent[0].units)) if self._sent else 0
        # What was sent less than a round trip ago had not arrived then: it is played from its arrival on, not before.
        under_way = [frame for frame in self._sent if frame.at > now - (rtt or 0.0)]
        left = self._units - part
        held = left - sum(frame.units for frame in under_way)
        self._observe(left, held, now)
        self._held = max(0, held) / UNITS_PER_SECOND
        self._at = now - _one_way(rtt)
        for frame in under_way:
            self._held = self.level(frame.at, rtt) + frame.units / UNITS_PER_SECOND
            self._at = frame.at + _one_way(rtt)

    def clear(self, now: float) -> None:
        """What was sent is void: the far end holds nothing."""
        self._sent.clear()
        self._units = 0
        self._held = 0.0
        self._at = now
        self._speed = 1.0
        self._seen_at = None

    def level(self, now: float, rtt: float | None) -> float:
        """Seconds of media that the far end will hold when something sent now arrives."""
        passed = now + (0.0 if rtt is None else rtt / 2) - self._at
        if passed <= 0.0:
            return self._held
        held = self._held - self._speed * passed
        return held if held > 0.0 else 0.0

    def allowance(self, now: float, rtt: float | None) -> float:
        """Seconds of media that may be sent now. VS-8.5-1"""
        return max(0.0, self.lookahead - self.level(now, rtt))

    def _observe(self, left: int, held: int, now: float) -> None:
        """How fast the far end plays, from two looks at what it has left."""
        before, consumed = self._seen_at, self._units_seen - left
        if before is None or held < _LEAST_HELD or (consumed > 0 and now - before > _OLD_LOOK):
            self._speed = 1.0
        elif now - before < _LOOK:
            return
        else:
            speed = consumed / UNITS_PER_SECOND / (now - before)
            self._speed = 1.0 if speed >= _NORMAL_SPEED else max(0.0, speed)
        self._seen_at, self._units_seen = now, left


def _one_way(rtt: float | None) -> float:
    return 0.0 if rtt is None else rtt / 2
