"""Every decision of a playout as a trace record with its reason, and the frames that were not played. Only made when observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from voicestream.config import PTS_UNIT_MS
from voicestream.core.playout.account import PlayoutAccount
from voicestream.core.playout.decision import Accelerate, Conceal, Decode, Expand, Merge, Repair, Silence
from voicestream.media import MediaFrame, SourceKind
from voicestream.trace import Observer

if TYPE_CHECKING:
    from voicestream.core.playout.director import Pending

__all__ = ["DecisionTrace"]


class DecisionTrace:
    """Turns decisions and the fates of frames into records.

    Attributes:
        now: When the last decision was made, in seconds.

    Args:
        observer: Takes them.
        track: Named in each.
        account: The books of the playout: what they count up says what became of a frame.
    """

    __slots__ = ("_account", "_discarded", "_duplicate", "_late", "_observer", "_silence", "_silent_units", "_track", "now")

    def __init__(self, observer: Observer, track: int, account: PlayoutAccount) -> None:
        self.now = 0.0
        self._observer = observer
        self._track = track
        self._account = account
        self._late = self._duplicate = self._discarded = 0
        self._silence = ""
        self._silent_units = 0.0

    def inserted(self, frame: MediaFrame, now: float, kind: SourceKind, playhead: int) -> None:
        """A frame has come: one that will not be played is told of."""
        account = self._account
        data = {"track": self._track, "pts": frame.pts, "by": kind.name.lower()}
        if account.frames_late != self._late:
            late_ms = (playhead - frame.pts) * PTS_UNIT_MS
            self._observer.record(now, "playout:late", {**data, "late_ms": late_ms, "reason": "its time has passed"})
        elif account.frames_duplicate != self._duplicate:
            self._observer.record(now, "playout:duplicate", {**data, "reason": "came before"})
        elif account.frames_discarded != self._discarded:
            self._observer.record(now, "playout:refused", {**data, "reason": "cleared, behind the end, or no room"})
        self._late, self._duplicate, self._discarded = account.frames_late, account.frames_duplicate, account.frames_discarded

    def decided(self, pending: Pending, made_units: float, level_units: float, target_units: float) -> None:
        """A decision was carried out; the executor made so much of it."""
        if self._account.frames_discarded != self._discarded:
            frames, self._discarded = self._account.frames_discarded - self._discarded, self._account.frames_discarded
            self._record("playout:dropped", {"frames": frames, "reason": "cleared or decided before"})
        if isinstance(pending.decision, Silence):
            self._silent(pending, made_units)
            return
        self._end_silence(pending.from_pts)
        name, reason = _described(pending)
        data: dict[str, object] = {"pts": pending.from_pts, "units": pending.to_pts - pending.from_pts, "made_units": round(made_units, 2)}
        if isinstance(pending.decision, Expand | Accelerate):
            data["asked_units"] = round(pending.units, 2)
            data["urgent"] = pending.decision.urgent
        data["level_ms"] = round(level_units * PTS_UNIT_MS, 1)
        data["target_ms"] = round(target_units * PTS_UNIT_MS, 1)
        data["reason"] = reason
        self._record(name, data)

    def _silent(self, pending: Pending, made_units: float) -> None:
        """Silence is decided piece by piece and told of as a whole."""
        if pending.reason != self._silence:
            self._end_silence(pending.from_pts)
            self._silence = pending.reason
            self._record("playout:silence", {"pts": pending.from_pts, "reason": pending.reason})
        self._silent_units += made_units

    def _end_silence(self, pts: int) -> None:
        if self._silence:
            self._record("playout:silence_end", {"pts": pts, "made_units": round(self._silent_units, 2), "reason": self._silence})
            self._silence, self._silent_units = "", 0.0

    def _record(self, name: str, data: dict[str, object]) -> None:
        self._observer.record(self.now, name, {"track": self._track, **data})


def _described(pending: Pending) -> tuple[str, str]:
    """Name of the record and the reason."""
    match pending.decision:
        case Decode():
            return "playout:decode", "due"
        case Merge():
            return "playout:merge", "after concealment"
        case Repair():
            return "playout:copy", "only the copy has come"
        case Conceal():
            return "playout:conceal", pending.reason
        case Expand(frame=None):
            return "playout:wait", pending.reason
        case Expand():
            return "playout:expand", "delay below its target"
        case Accelerate():
            return "playout:accelerate", "delay above its target"
        case _:
            raise TypeError(f"not a decision that is told of by itself: {pending.decision!r}")
