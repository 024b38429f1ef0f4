"""Frames of a datagram as values (specification sections 4.2 to 4.11). Their wire form is in `voicestream.wire.frames`.

Every pts here that is not said to be full is the 16 low bits of one; `voicestream.wire.sequence.unwrap` makes it full.
"""

from __future__ import annotations

from dataclasses import dataclass

from voicestream.wire.message_values import Clear, Cleared, Progress

__all__ = [
    "AnchorFrame",
    "AudioFrame",
    "ClearFrame",
    "ClearedFrame",
    "CopyFrame",
    "Frame",
    "MissingFrame",
    "PaddingFrame",
    "PlayoutEntry",
    "ProbeFrame",
    "ProgressFrame",
    "RepairFrame",
    "ReportFrame",
    "RetransmissionFrame",
    "UnknownFrame",
]


@dataclass(kw_only=True, slots=True, unsafe_hash=True)
class AudioFrame:
    """One coded frame of a track, sent for the first time.

    Attributes:
        track: 0 to 3.
        pts: 16 low bits of the pts.
        payload: The coded bytes, never empty.
        clear_number: Clears that the track had seen, modulo 4.
        talkspurt_start: First frame of a talkspurt.
        talkspurt_end: Last frame of a talkspurt.
    """

    track: int = 0
    pts: int
    payload: bytes
    clear_number: int = 0
    talkspurt_start: bool = False
    talkspurt_end: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyFrame:
    """A second encoding of a frame sent before, at a lower bitrate. Attributes as `AudioFrame`."""

    track: int = 0
    pts: int
    payload: bytes
    clear_number: int = 0
    talkspurt_start: bool = False
    talkspurt_end: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RetransmissionFrame:
    """A frame sent before, once more. Attributes as `AudioFrame`."""

    track: int = 0
    pts: int
    payload: bytes
    clear_number: int = 0
    talkspurt_start: bool = False
    talkspurt_end: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PaddingFrame:
    """A run of `size` bytes that mean nothing, at least 1."""

    size: int


@dataclass(kw_only=True, slots=True, unsafe_hash=True)
class PlayoutEntry:
    """State of one track's playout at the receiver.

    Attributes:
        track: 0 to 3.
        playhead: 16 low bits of the pts that the device plays.
        level_units: Media held, in pts units.
        target_units: Media that the receiver wants to hold, in pts units.
    """

    track: int = 0
    playhead: int
    level_units: int
    target_units: int


@dataclass(kw_only=True, slots=True, unsafe_hash=True)
class ReportFrame:
    """What arrived, and when.

    Attributes:
        newest: Highest datagram number received.
        arrival: The receiver's tick when it arrived.
        statuses: Entry i describes datagram newest-1-i: None when it has not been received, else by how many ticks its one-way delay
            exceeds that of the next newer datagram received, -32768 to 32767. At most 255 entries.
        playout: At most one entry a track.
    """

    newest: int
    arrival: int
    statuses: tuple[int | None, ...] = ()
    playout: tuple[PlayoutEntry, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeFrame:
    """`size` bytes of filler that measure the path, as part of probe `cluster`."""

    cluster: int
    size: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairFrame:
    """A linear combination of frames sent before (specification section 10).

    Attributes:
        track: 0 to 3.
        key: 0 to 255; the coefficients follow from it and the pts of each source.
        newest_pts: 16 low bits of the pts of the newest source.
        runs: (count, step): `count` more sources, each `step` units older than the one before. With the newest at most 64 sources, over at
            most 32767 units.
        symbol: The combination of the source symbols, at least 4 bytes.
    """

    track: int = 0
    key: int
    newest_pts: int
    runs: tuple[tuple[int, int], ...] = ()
    symbol: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class AnchorFrame:
    """The full pts near which the 16-bit ones of `track` lie from here on.

    Attributes:
        track: 0 to 3.
        pts: Full pts.
        ahead: The talkspurt from `pts` on is sent faster than real time.
    """

    track: int = 0
    pts: int
    ahead: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ClearFrame:
    """A repeat of a CLEAR message."""

    message: Clear


@dataclass(frozen=True, kw_only=True, slots=True)
class ClearedFrame:
    """A repeat of a CLEARED message."""

    message: Cleared


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgressFrame:
    """A PROGRESS message in a datagram."""

    message: Progress


@dataclass(frozen=True, kw_only=True, slots=True)
class MissingFrame:
    """Media of `track` that is still wanted: 1 to 32 pairs of (16 low bits of the first pts, 1 to 32767 units)."""

    track: int = 0
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class UnknownFrame:
    """A frame of a type that this version does not define; to be skipped."""

    type: int
    payload: bytes


Frame = (
    AudioFrame
    | PaddingFrame
    | ReportFrame
    | ProbeFrame
    | RepairFrame
    | CopyFrame
    | RetransmissionFrame
    | AnchorFrame
    | ClearFrame
    | ClearedFrame
    | ProgressFrame
    | MissingFrame
    | UnknownFrame
)
