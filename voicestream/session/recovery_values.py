"""What a session's recovery keeps: by track that is sent, by track that is received, and what it has done."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from voicestream.config import UNITS_PER_SECOND
from voicestream.core.recovery.copies import CopyQueue
from voicestream.core.recovery.fec import RepairDecoder, RepairEncoder
from voicestream.core.recovery.missing import MissingTracker
from voicestream.core.recovery.overdue import OverdueWatch
from voicestream.core.recovery.resend import ResendQueue
from voicestream.core.recovery.retain import RetainedMedia
from voicestream.core.recovery.waiting import LossWatch, Waiting, waiting_for
from voicestream.media import MediaFrame
from voicestream.wire.frame_values import AudioFrame
from voicestream.wire.frames import encode_media_flags

__all__ = ["ASSUMED_RTT", "REPAIR_SPAN_UNITS", "IncomingRecovery", "OutgoingRecovery", "RecoveryCounts", "flags_of"]

REPAIR_SPAN_UNITS: Final = 52
"""How far back a repair reaches (130 ms): what is older is past its playout time behind a lookahead of 150 ms."""

MENDED: Final = 32
"""Frames of which it is remembered that they came another way than plain."""

ASSUMED_RTT: Final = 0.1
"""Seconds, before the first report."""


@dataclass(slots=True)
class RecoveryCounts:
    """What recovery did."""

    repairs_sent: int = 0
    retransmissions_sent: int = 0
    copies_sent: int = 0
    copies_received: int = 0
    repairs_received: int = 0
    frames_repaired: int = 0
    repairs_invalid: int = 0


@dataclass(slots=True)
class OutgoingRecovery:
    """What is kept of one track for those who miss something."""

    encoder: RepairEncoder
    retained: RetainedMedia
    resends: ResendQueue
    copies: CopyQueue = field(default_factory=CopyQueue)
    frames_since_repair: int = 0
    newest_pts: int = 0


@dataclass(slots=True)
class IncomingRecovery:
    """What is known of one track's holes.

    Attributes:
        plain_end: End of the latest media that came the plain way, or that a clear has voided.
        mended: pts of the latest frames that came another way.
    """

    decoder: RepairDecoder = field(default_factory=RepairDecoder)
    missing: MissingTracker = field(default_factory=MissingTracker)
    loss: LossWatch = field(default_factory=LossWatch)
    overdue: OverdueWatch = field(default_factory=OverdueWatch)
    plain_end: int = 0
    mended: deque[int] = field(default_factory=lambda: deque(maxlen=MENDED))

    def waiting(self, units: int, rtt: float, lookahead: float) -> Waiting | None:
        """How long what is missing is worth waiting for, with frames of so many units; None where it comes by itself, if later."""
        loss = self.loss
        if not loss.is_real:
            return None
        frame = units / UNITS_PER_SECOND
        slack = self.overdue.slack if self.overdue.is_of_use else None
        return waiting_for(
            loss=loss.share, burst=loss.burst, rtt=rtt, frame=frame, lookahead=lookahead, repairs=loss.repairs, overdue=slack
        )


def flags_of(frame: MediaFrame | AudioFrame) -> int:
    """The flags that a repair restores."""
    return encode_media_flags(frame.talkspurt_start, frame.talkspurt_end, frame.clear_number & 3)
