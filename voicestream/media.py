"""The unit that travels through every layer: one coded frame of media, keyed by its pts."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

__all__ = ["MediaFrame", "SourceKind"]


class SourceKind(enum.Enum):
    """By which means a frame reached the receiver."""

    AUDIO = "audio"
    RETRANSMISSION = "retransmission"
    REPAIR = "repair"
    COPY = "copy"


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class MediaFrame:
    """One coded frame. Nobody changes one that is made.

    It is not `frozen`, nor are the other values that are made for each frame or datagram: a frozen one takes thrice as long to make, and
    together they were a twentieth of what a call costs.

    Attributes:
        track: 0 to 3.
        pts: Full (unwrapped) media time of its first sample, in units of 2.5 ms.
        units: Its length in pts units.
        payload: The coded bytes, never empty.
        clear_number: How many clears the track had seen when it was sent (all bits here, modulo 4 on the wire).
        talkspurt_start: First frame of a talkspurt: nothing before it is waited for.
        talkspurt_end: Last frame of a talkspurt: silence follows.
        replayed: It was received before and is here once more, after a break, because this end asked for it.
    """

    track: int = 0
    pts: int
    units: int
    payload: bytes = field(repr=False)
    clear_number: int = 0
    talkspurt_start: bool = False
    talkspurt_end: bool = False
    replayed: bool = False
