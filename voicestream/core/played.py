"""What this end has played of a received track, and what the far end is told of it (specification sections 8.2 and 8.3)."""

from __future__ import annotations

from typing import Final, NamedTuple

from voicestream.wire.message_values import Cleared, Finished, Progress

__all__ = ["CLEARED_GRACE", "PROGRESS_INTERVAL", "PlayedLog"]

PROGRESS_INTERVAL: Final = 0.25  # VS-8.3-1
"""Seconds between PROGRESS messages while audio plays."""

CLEARED_GRACE: Final = 0.1
"""Seconds that the player has to say how far it came before a clear; then the best estimate is sent."""


class _PendingClear(NamedTuple):
    number: int
    to_pts: int
    estimate: int
    deadline: float


class PlayedLog:
    """Turns the player's reports into PROGRESS, CLEARED and FINISHED, each once (VS-8.2-1, VS-8.6-2).

    Attributes:
        played_pts: Pts up to which the device has played, in pts units; None before the first report.
        finish_pts: End of the track, once the far end named it.
        finished: FINISHED has been said.
    """

    __slots__ = ("_pending", "_progress_at", "_progress_pts", "_settled", "_told", "finish_pts", "finished", "played_pts", "track")

    def __init__(self, track: int) -> None:
        self.track = track
        self.played_pts: int | None = None
        self.finish_pts: int | None = None
        self.finished = False
        self._pending: _PendingClear | None = None
        self._settled = 0
        self._told: Cleared | None = None
        self._progress_at: float | None = None
        self._progress_pts = 0

    def restore(self, settled: int, played_pts: int | None, finish_pts: int | None) -> None:
        """Another server had come this far; `settled` is the newest clear of which it has told."""
        self._settled = settled
        self.played_pts = played_pts
        self._progress_pts = played_pts or 0
        self.finish_pts = finish_pts
        self.finished = finish_pts is not None and played_pts is not None and played_pts >= finish_pts

    def clear(self, number: int, to_pts: int, estimate: int | None, now: float, *, exact: bool = False) -> list[Cleared]:
        """A clear was done here; returns what to tell the far end at once: what the device had played by then, if that is known.

        Args:
            number: Its number.
            to_pts: Its end; audio from there on is another utterance.
            estimate: What the playout believes that was heard, or None when there is no playout.
            now: Monotonic seconds.
            exact: The estimate is the player's own count, so that its next report would tell nothing more.
        """
        if number <= self._settled:
            return []  # the far end knows already; only the clear's end has moved
        if self._pending is not None and self._pending.number == number:
            self._pending = self._pending._replace(to_pts=to_pts)
            return []
        heard = max(self.played_pts or 0, estimate or 0)
        deadline = now + CLEARED_GRACE if self._pending is None else self._pending.deadline
        self._pending = _PendingClear(number, to_pts, min(heard, to_pts), deadline)
        return [self._settle(self._pending.estimate)] if exact else []

    def played(self, pts: int, now: float) -> list[Progress | Cleared | Finished]:
        """The player reports the pts of the sample that leaves the device; returns what to tell the far end."""
        messages: list[Progress | Cleared | Finished] = []
        if self._pending is not None:
            messages.append(self._settle(pts))
        self.played_pts = max(pts, self.played_pts or 0)  # VS-8.3-2
        if self.finish_pts is not None and self.played_pts >= self.finish_pts:
            if not self.finished:
                self.finished = True
                messages.append(Finished(track=self.track, played_pts=self.played_pts))
            return messages
        waited = self._progress_at is None or now - self._progress_at >= PROGRESS_INTERVAL
        if waited and self.played_pts > self._progress_pts:
            self._progress_at = now
            self._progress_pts = self.played_pts
            messages.append(Progress(track=self.track, played_pts=self.played_pts))
        return messages

    def due(self, now: float) -> list[Cleared]:
        """CLEARED without the player's word, when it has kept silent for too long."""
        if self._pending is None or now < self._pending.deadline:
            return []
        return [self._settle(self._pending.estimate)]

    def restate(self) -> list[Cleared | Finished]:
        """What the far end may not know, on a new connection. It takes a repetition for what it is."""
        messages: list[Cleared | Finished] = [] if self._told is None else [self._told]
        if self.finished:
            messages.append(Finished(track=self.track, played_pts=self.played_pts or 0))
        return messages

    def next_timer(self) -> float | None:
        """When `due` has something to say, or None."""
        return None if self._pending is None else self._pending.deadline

    def _settle(self, pts: int) -> Cleared:
        """A pts from the clear's end on was reported after the jump and says nothing about what was heard before."""
        pending = self._pending
        assert pending is not None  # both callers have looked
        self._pending = None
        self._settled = pending.number
        heard = max(pts, min(self.played_pts or 0, pending.to_pts)) if pts < pending.to_pts else pending.estimate  # VS-8.2-2, VS-8.2-3
        self._told = Cleared(track=self.track, number=pending.number, heard_pts=heard)
        return self._told
