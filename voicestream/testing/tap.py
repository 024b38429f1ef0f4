"""Parts of a call that are put in place of others to find out what recovery does.

What is here derives from what can be compiled, and is compiled with it: a class of Python cannot be derived from a compiled one.
"""

from __future__ import annotations

import dataclasses

from voicestream.config import PlayoutConfig
from voicestream.core.allocator import Allocator
from voicestream.core.playout import Conceal, Decision, Playout
from voicestream.core.recovery.choice import Choice
from voicestream.media import MediaFrame, SourceKind

__all__ = ["RetransmissionsOnly", "TappedPlayout"]


class TappedPlayout(Playout):
    """A playout that notes by which ways each frame came, and what so became of the frames that were lost.

    Attributes:
        came: (time, by which way) of every arrival, by pts.
        helped: Pts of the frames out of which the one before was decoded, if they carry it.
    """

    def __init__(self, config: PlayoutConfig | None = None, *, track: int = 0) -> None:
        super().__init__(config or PlayoutConfig(), track=track)
        self.came: dict[int, list[tuple[float, SourceKind]]] = {}
        self.helped: set[int] = set()

    def next(self, now: float, held_units: float) -> Decision:
        """See `Playout.next`."""
        decision = super().next(now, held_units)
        if isinstance(decision, Conceal) and decision.next_frame is not None:
            self.helped.add(decision.next_frame.pts)
        return decision

    def insert(self, frame: MediaFrame, now: float, *, kind: SourceKind = SourceKind.AUDIO, send_time: float | None = None) -> None:
        """See `Playout.insert`."""
        self.came.setdefault(frame.pts, []).append((now, kind))
        super().insert(frame, now, kind=kind, send_time=send_time)


class RetransmissionsOnly(Allocator):
    """Plans without repairs and copies, to compare with."""

    __slots__ = ()

    def _protect(self, choice: Choice) -> None:
        super()._protect(dataclasses.replace(choice, repair_interval=0, copy_bps=0, concealed=0.0))
