"""Hypothesis strategies for every value of the wire, for tests of VoiceStream and of what is built on it.

They need the extra ``voicestream[testing]``. Every value drawn can be encoded, and decoding gives it back. `frames`, `messages`,
`parameters` and `event_headers` draw of all kinds, a strategy such as `audio_frames` of one; `datagrams` and `control_streams` give what a
peer sends, and `mutated` makes hostile bytes of valid ones:

    @given(strategies.mutated(strategies.control_streams().map(lambda drawn: drawn[1])))
    def test_my_proxy_forwards_whatever_comes(data: bytes) -> None: ...

There are no limits but those of the specification, so draw from narrower ones where yours are tighter: `audio_frames().filter(...)`, or
`st.builds` of the values of `voicestream.wire` itself. Calls in any order are in `voicestream.testing.stateful`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from voicestream.codepoints import AUDIO_BIT, FrameType
from voicestream.testing.strategies_control import (
    accept_messages,
    clear_messages,
    cleared_messages,
    close_messages,
    confirm_messages,
    finish_messages,
    finished_messages,
    going_away_messages,
    held_entries,
    hello_messages,
    messages,
    parameters,
    payloads,
    progress_messages,
    reject_messages,
    resume_messages,
    resumed_messages,
    settings_messages,
    texts,
    track_ids,
    tracks,
    u16,
    unknown_messages,
    unknown_parameters,
    varints,
)
from voicestream.wire import (
    AnchorFrame,
    AudioFrame,
    ClearedFrame,
    ClearFrame,
    CopyFrame,
    Datagram,
    EventHeader,
    Frame,
    Message,
    MissingFrame,
    PaddingFrame,
    PlayoutEntry,
    ProbeFrame,
    ProgressFrame,
    RepairFrame,
    ReportFrame,
    RetransmissionFrame,
    UnknownFrame,
    encode_message,
    frame_size,
)

__all__ = [
    "accept_messages",
    "anchor_frames",
    "audio_frames",
    "clear_frames",
    "clear_messages",
    "cleared_frames",
    "cleared_messages",
    "close_messages",
    "confirm_messages",
    "control_streams",
    "copy_frames",
    "datagrams",
    "event_headers",
    "finish_messages",
    "finished_messages",
    "frames",
    "going_away_messages",
    "held_entries",
    "hello_messages",
    "messages",
    "missing_frames",
    "mutated",
    "padding_frames",
    "parameters",
    "payloads",
    "playout_entries",
    "probe_frames",
    "progress_frames",
    "progress_messages",
    "reject_messages",
    "repair_frames",
    "repair_runs",
    "report_frames",
    "resume_messages",
    "resumed_messages",
    "retransmission_frames",
    "settings_messages",
    "texts",
    "track_ids",
    "tracks",
    "u16",
    "unknown_frames",
    "unknown_messages",
    "unknown_parameters",
    "varints",
]

_T = TypeVar("_T")

# ----------------------------------------------------------------------------- frames


def _media(build: Callable[..., _T]) -> SearchStrategy[_T]:
    return st.builds(
        build,
        track=track_ids(),
        pts=u16(),
        payload=payloads(),
        clear_number=st.integers(0, 3),
        talkspurt_start=st.booleans(),
        talkspurt_end=st.booleans(),
    )


def audio_frames() -> SearchStrategy[AudioFrame]:
    """AUDIO frames."""
    return _media(AudioFrame)


def copy_frames() -> SearchStrategy[CopyFrame]:
    """COPY frames."""
    return _media(CopyFrame)


def retransmission_frames() -> SearchStrategy[RetransmissionFrame]:
    """RETRANSMISSION frames."""
    return _media(RetransmissionFrame)


def padding_frames() -> SearchStrategy[PaddingFrame]:
    """Runs of padding. Two in a row are one when decoded."""
    return st.builds(PaddingFrame, size=st.integers(1, 100))


def playout_entries() -> SearchStrategy[PlayoutEntry]:
    """Entries of a REPORT frame."""
    return st.builds(PlayoutEntry, track=track_ids(), playhead=u16(), level_units=varints(), target_units=varints())


def report_frames() -> SearchStrategy[ReportFrame]:
    """REPORT frames."""
    statuses = st.none() | st.integers(-0x8000, 0x7FFF) | st.integers(-20, 20)
    return st.builds(
        ReportFrame,
        newest=u16(),
        arrival=u16(),
        statuses=st.lists(statuses, max_size=255).map(tuple),
        playout=st.lists(playout_entries(), max_size=4, unique_by=lambda entry: entry.track).map(tuple),
    )


def probe_frames() -> SearchStrategy[ProbeFrame]:
    """PROBE frames."""
    return st.builds(ProbeFrame, cluster=varints(), size=st.integers(0, 200))


def repair_runs() -> SearchStrategy[tuple[tuple[int, int], ...]]:
    """Runs of a repair window within its limits of 64 sources and 32767 units."""

    def within_limits(runs: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        kept: list[tuple[int, int]] = []
        for count, step in runs:
            longer = [*kept, (count, step)]
            if 1 + sum(c for c, _ in longer) <= 64 and sum(c * s for c, s in longer) <= 0x7FFF:
                kept = longer
        return tuple(kept)

    return st.lists(st.tuples(st.integers(1, 63), st.integers(1, 1000)), max_size=8).map(within_limits)


def repair_frames() -> SearchStrategy[RepairFrame]:
    """REPAIR frames."""
    symbols = st.binary(min_size=4, max_size=200)
    return st.builds(RepairFrame, track=track_ids(), key=st.integers(0, 255), newest_pts=u16(), runs=repair_runs(), symbol=symbols)


def anchor_frames() -> SearchStrategy[AnchorFrame]:
    """ANCHOR frames."""
    return st.builds(AnchorFrame, track=track_ids(), pts=varints(), ahead=st.booleans())


def clear_frames() -> SearchStrategy[ClearFrame]:
    """CLEAR frames."""
    return st.builds(ClearFrame, message=clear_messages())


def cleared_frames() -> SearchStrategy[ClearedFrame]:
    """CLEARED frames."""
    return st.builds(ClearedFrame, message=cleared_messages())


def progress_frames() -> SearchStrategy[ProgressFrame]:
    """PROGRESS frames."""
    return st.builds(ProgressFrame, message=progress_messages())


def missing_frames() -> SearchStrategy[MissingFrame]:
    """MISSING frames."""
    ranges = st.lists(st.tuples(u16(), st.integers(1, 0x7FFF)), min_size=1, max_size=32).map(tuple)
    return st.builds(MissingFrame, track=track_ids(), ranges=ranges)


def unknown_frames() -> SearchStrategy[UnknownFrame]:
    """Frames of types that are not defined, reserved ones among them."""
    per_track = {base + track for base in FrameType if base >= FrameType.REPAIR for track in range(4)}
    known = {FrameType.PADDING, FrameType.REPORT, FrameType.PROBE} | per_track
    types = st.sampled_from([number for number in range(AUDIO_BIT) if number not in known])
    return st.builds(UnknownFrame, type=types, payload=st.binary(max_size=100))


def frames() -> SearchStrategy[Frame]:
    """Frames of every type."""
    return st.one_of(
        audio_frames(),
        copy_frames(),
        retransmission_frames(),
        padding_frames(),
        report_frames(),
        probe_frames(),
        repair_frames(),
        anchor_frames(),
        clear_frames(),
        cleared_frames(),
        progress_frames(),
        missing_frames(),
        unknown_frames(),
    )


def datagrams(max_size: int = 1200) -> SearchStrategy[Datagram]:
    """Datagrams of at most `max_size` bytes with any frames."""

    def within_limits(number: int, send_tick: int, drawn: list[Frame]) -> Datagram:
        kept: list[Frame] = []
        room = max_size - 4
        for frame in drawn:
            size = frame_size(frame)
            merges = isinstance(frame, PaddingFrame) and bool(kept) and isinstance(kept[-1], PaddingFrame)
            if size <= room and not merges:
                kept.append(frame)
                room -= size
        return Datagram(number=number, send_tick=send_tick, frames=tuple(kept))

    return st.builds(within_limits, u16(), u16(), st.lists(frames(), max_size=8))


# ----------------------------------------------------------------------------- streams and bytes


def control_streams() -> SearchStrategy[tuple[list[Message], bytes]]:
    """Messages, and the bytes of a control stream that carries them."""
    return st.lists(messages(), max_size=6).map(lambda drawn: (drawn, b"".join(map(encode_message, drawn))))


def event_headers() -> SearchStrategy[EventHeader]:
    """Headers of events, aligned with audio or not."""
    common = {"kind": varints(), "event_id": varints(), "order": varints()}
    return st.builds(EventHeader, **common) | st.builds(EventHeader, **common, track=track_ids(), pts=varints())


def _mutate(data: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for kind, where, piece in changes:
        position = where % (len(data) + 1)
        if kind == 0:  # overwrite
            data = data[:position] + piece + data[position + len(piece) :]
        elif kind == 1:  # insert
            data = data[:position] + piece + data[position:]
        elif kind == 2:  # remove
            data = data[:position] + data[position + len(piece) :]
        elif kind == 3:  # cut off
            data = data[:position]
        else:  # flip one bit
            flipped = bytearray(data)
            if position < len(data):
                flipped[position] ^= 1 << (piece[0] & 7)
            data = bytes(flipped)
    return data


def mutated(valid: SearchStrategy[bytes]) -> SearchStrategy[bytes]:
    """Bytes drawn from `valid` after one to four changes: overwritten, inserted, removed, cut off or flipped."""
    changes = st.tuples(st.integers(0, 4), st.integers(0, 10000), st.binary(min_size=1, max_size=4))
    return st.builds(_mutate, valid, st.lists(changes, min_size=1, max_size=4))
