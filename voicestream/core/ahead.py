"""How much a sender that is faster than real time may send (specification section 8.5): until the far end holds its lookahead."""

from __future__ import annotations

from collections import deque
from typing import Final

from voicestream.config import UNITS_PER_SECOND

__all__ = ["AheadBudget"]

_MAX_TRACKED: Final = 2000


class AheadBudget:
    """Keeps an estimate of the moment at which the far end's playout runs dry.

    Between reports the far end is taken to play in real time; a report of its playhead sets the estimate right.

    Attributes:
        lookahead: Seconds of media that the far end wants to hold.
    """

    __slots__ = ("_dry_at", "_sent", "_units", "lookahead")

    def __init__(self, lookahead: float) -> None:
        self.lookahead = lookahead
        self._dry_at = 0.0
        self._sent: deque[tuple[int, int]] = deque()  # (end pts, units) of what the playhead has not passed
        self._units = 0

    def sent(self, end_pts: int, units: int, now: float, rtt: float | None) -> None:
        """A frame that ends at `end_pts` was handed over; it arrives half a round trip from now."""
        self._dry_at = max(self._dry_at, now + _one_way(rtt)) + units / UNITS_PER_SECOND
        self._sent.append((end_pts, units))
        self._units += units
        if len(self._sent) > _MAX_TRACKED:
            self._units -= self._sent.popleft()[1]

    def playhead(self, pts: int, now: float, rtt: float | None) -> None:
        """A report says that the far end's playhead was at `pts` when it was sent, half a round trip ago."""
        while self._sent and self._sent[0][0] <= pts:
            self._units -= self._sent.popleft()[1]
        part = max(0, pts - (self._sent[0][0] - self._sent[0][1])) if self._sent else 0
        self._dry_at = now - _one_way(rtt) + (self._units - part) / UNITS_PER_SECOND

    def clear(self, now: float) -> None:
        """What was sent is void: the far end holds nothing."""
        self._sent.clear()
        self._units = 0
        self._dry_at = now

    def level(self, now: float, rtt: float | None) -> float:
        """Seconds of media that the far end will hold when something sent now arrives."""
        return max(0.0, self._dry_at - now - _one_way(rtt))

    def allowance(self, now: float, rtt: float | None) -> float:
        """Seconds of media that may be sent now. VS-8.5-1"""
        return max(0.0, self.lookahead - self.level(now, rtt))


def _one_way(rtt: float | None) -> float:
    return 0.0 if rtt is None else rtt / 2
