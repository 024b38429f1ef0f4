"""What the playout tells its executor to do next. The executor makes the audio and answers with ``Playout.done``."""

from __future__ import annotations

from dataclasses import dataclass

from voicestream.media import MediaFrame, SourceKind

__all__ = ["Accelerate", "Conceal", "Decision", "Decode", "Expand", "Merge", "Repair", "Silence"]


@dataclass(slots=True)
class Decode:
    """Decode `frame` and append it."""

    frame: MediaFrame


@dataclass(frozen=True, slots=True)
class Merge:
    """Decode `frame` and cross-fade into it from the concealment that was made before it."""

    frame: MediaFrame


@dataclass(frozen=True, slots=True)
class Repair:
    """Decode a low-rate copy in the place of its frame.

    Attributes:
        frame: The copy.
        kind: How it came.
        warmup: Copies of the frames directly before it, oldest first, for the copy decoder's state; may be empty.
    """

    frame: MediaFrame
    kind: SourceKind
    warmup: tuple[MediaFrame, ...] = ()


@dataclass(frozen=True, slots=True)
class Conceal:
    """Make `units` of concealment in the place of missing audio; media time advances.

    Attributes:
        units: Length in pts units.
        next_frame: The frame that begins where this piece ends, if it is here: its in-band redundancy may describe the piece.
    """

    units: int
    next_frame: MediaFrame | None = None


@dataclass(frozen=True, slots=True)
class Expand:
    """Lengthen. Media time advances by the frame only.

    Attributes:
        frame: Decode it and make it longer by about `units`; None: nothing is there, make `units` of concealment.
        units: Length to add, in pts units.
        urgent: Do it in the middle of a word if need be; otherwise only where nobody speaks.
    """

    frame: MediaFrame | None
    units: int
    urgent: bool = True


@dataclass(frozen=True, slots=True)
class Accelerate:
    """Decode `frame` and make it shorter by about `units` pts units, rather less than more; nothing if it does not match.

    Unless it is `urgent`, do so only where nobody speaks.
    """

    frame: MediaFrame
    units: int
    urgent: bool = True


@dataclass(frozen=True, slots=True)
class Silence:
    """Make `units` of silence or comfort noise; media time stands still."""

    units: int


Decision = Decode | Merge | Repair | Conceal | Expand | Accelerate | Silence
