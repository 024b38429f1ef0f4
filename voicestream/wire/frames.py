"""Wire form of the frames of a datagram (specification sections 4.2 to 4.11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from voicestream.codepoints import AUDIO_BIT, ErrorCode, FrameType
from voicestream.errors import ProtocolError
from voicestream.wire.buffer import Reader, Writer, encode_varint, peek_varint, varint_size
from voicestream.wire.frame_values import (
    AnchorFrame,
    AudioFrame,
    ClearedFrame,
    ClearFrame,
    CopyFrame,
    Frame,
    MissingFrame,
    PaddingFrame,
    PlayoutEntry,
    ProbeFrame,
    ProgressFrame,
    RepairFrame,
    ReportFrame,
    RetransmissionFrame,
    UnknownFrame,
)
from voicestream.wire.message_values import Progress
from voicestream.wire.messages import read_clear_body, read_cleared_body, write_clear_body, write_cleared_body

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
    "decode_media_flags",
    "decode_typed_frame",
    "encode_frame",
    "encode_media_flags",
    "frame_size",
]

MAX_STATUSES: Final = 255
MAX_SOURCES: Final = 64
MAX_RANGES: Final = 32
MAX_SPAN_UNITS: Final = 0x7FFF
"""Half of the 16-bit pts space: what lies within it can be named by 16 bits."""

MIN_SYMBOL: Final = 4
LENGTH_BIT: Final = 0x10
AHEAD: Final = 0x01


def encode_media_flags(talkspurt_start: bool, talkspurt_end: bool, clear_number: int) -> int:
    """The low nibble of an AUDIO type byte without its length bit: start, end, two bits of clear number.

    Raises:
        ValueError: `clear_number` is not 0 to 3.
    """
    if clear_number >> 2:
        raise ValueError(f"clear_number must be 0 to 3 in a frame, not {clear_number}")
    return (8 if talkspurt_start else 0) | (4 if talkspurt_end else 0) | clear_number


def decode_media_flags(flags: int) -> tuple[bool, bool, int]:
    """(talkspurt_start, talkspurt_end, clear_number) of a flags byte; its upper bits are ignored. VS-1.3-4"""
    return bool(flags & 8), bool(flags & 4), flags & 3


def encode_audio(frame: AudioFrame, last: bool) -> bytes:
    """An AUDIO frame; without length when it is the `last` of its datagram."""
    track, pts, payload, clear_number = frame.track, frame.pts, frame.payload, frame.clear_number
    if track >> 2 or clear_number >> 2 or pts >> 16 or not payload:
        raise ValueError(f"an audio frame needs track and clear_number 0 to 3, a 16-bit pts and a payload: {frame}")
    head = AUDIO_BIT | track << 5 | clear_number
    if frame.talkspurt_start:
        head |= 8
    if frame.talkspurt_end:
        head |= 4
    if last:
        return bytes((head, pts >> 8, pts & 0xFF)) + payload
    return bytes((head | LENGTH_BIT, pts >> 8, pts & 0xFF)) + encode_varint(len(payload)) + payload


def _track_type(base: int, track: int) -> int:
    if not 0 <= track <= 3:
        raise ValueError(f"track must be 0 to 3, not {track}")
    return base | track


def _write_media(frame: CopyFrame | RetransmissionFrame, writer: Writer) -> int:
    if not frame.payload:
        raise ValueError("a payload must not be empty")
    writer.u8(encode_media_flags(frame.talkspurt_start, frame.talkspurt_end, frame.clear_number))
    writer.u16(frame.pts)
    writer.bytes(frame.payload)
    return _track_type(FrameType.COPY if isinstance(frame, CopyFrame) else FrameType.RETRANSMISSION, frame.track)


def _read_media(build: type[CopyFrame] | type[RetransmissionFrame]) -> Callable[[int, Reader], Frame]:
    def read(track: int, reader: Reader) -> Frame:
        start, end, clear_number = decode_media_flags(reader.u8())
        pts = reader.u16()
        payload = reader.rest()
        reader.require(bool(payload), "frame without payload")  # VS-4.7-1
        return build(track=track, pts=pts, payload=payload, clear_number=clear_number, talkspurt_start=start, talkspurt_end=end)

    return read


def _write_report(frame: ReportFrame, writer: Writer) -> int:
    if len(frame.statuses) > MAX_STATUSES:
        raise ValueError(f"a report must have at most {MAX_STATUSES} statuses, not {len(frame.statuses)}")
    if len(frame.playout) > 1 and len({entry.track for entry in frame.playout}) != len(frame.playout):
        raise ValueError("a report must have at most one playout entry a track")
    writer.u16(frame.newest)
    writer.u16(frame.arrival)
    writer.varint(len(frame.statuses))
    for status in frame.statuses:
        if status is None:
            writer.varint(0)
            continue
        if not -0x8000 <= status <= 0x7FFF:
            raise ValueError(f"a status must be -32768 to 32767 ticks, not {status}")
        writer.varint((status << 1 ^ status >> 15) + 1)  # zigzag, so that small differences take one byte
    for entry in frame.playout:
        writer.u8(_track_type(0, entry.track))
        writer.u16(entry.playhead)
        writer.varint(entry.level_units)
        writer.varint(entry.target_units)
    return FrameType.REPORT


def _read_playout_entry(reader: Reader) -> PlayoutEntry:
    track = reader.u8()
    reader.require(track <= 3, f"playout entry of track {track}")  # VS-4.4-2
    return PlayoutEntry(track=track, playhead=reader.u16(), level_units=reader.varint(), target_units=reader.varint())


def _read_report(track: int, reader: Reader) -> Frame:
    newest, arrival, count = reader.u16(), reader.u16(), reader.varint()
    reader.require(count <= MAX_STATUSES, f"report of {count} statuses")  # VS-4.4-1
    statuses: list[int | None] = []
    for _ in range(count):
        value = reader.varint()
        if value > 0x10000:
            raise reader.error(f"status {value}")  # VS-4.4-1
        zigzag = value - 1
        statuses.append(zigzag >> 1 ^ -(zigzag & 1) if value else None)
    playout: list[PlayoutEntry] = []
    while not reader.at_end:
        entry = _read_playout_entry(reader)
        if playout and any(entry.track == other.track for other in playout):
            raise reader.error(f"two playout entries of track {entry.track}")  # VS-4.4-2
        playout.append(entry)
    return ReportFrame(newest=newest, arrival=arrival, statuses=tuple(statuses), playout=tuple(playout))


def _write_probe(frame: ProbeFrame, writer: Writer) -> int:
    if frame.size < 0:
        raise ValueError(f"size must not be negative, not {frame.size}")
    writer.varint(frame.cluster)
    writer.bytes(bytes(frame.size))
    return FrameType.PROBE


def _read_probe(track: int, reader: Reader) -> Frame:
    return ProbeFrame(cluster=reader.varint(), size=len(reader.rest()))  # VS-4.5-1


def _window_fault(runs: tuple[tuple[int, int], ...]) -> str | None:
    """What is wrong with the runs of a repair window, if anything."""
    if any(count < 1 or step < 1 for count, step in runs):  # VS-4.6-1
        return "repair run without sources or step"
    if 1 + sum(count for count, _ in runs) > MAX_SOURCES:  # VS-4.6-2
        return f"repair window of more than {MAX_SOURCES} sources"
    if sum(count * step for count, step in runs) > MAX_SPAN_UNITS:  # VS-4.6-3
        return f"repair window of more than {MAX_SPAN_UNITS} units"
    return None


def _write_repair(frame: RepairFrame, writer: Writer) -> int:
    fault = _window_fault(frame.runs)
    if fault is not None:
        raise ValueError(fault)
    if len(frame.symbol) < MIN_SYMBOL:
        raise ValueError(f"a symbol must have at least {MIN_SYMBOL} bytes, not {len(frame.symbol)}")
    writer.u8(frame.key)
    writer.u16(frame.newest_pts)
    writer.varint(len(frame.runs))
    for count, step in frame.runs:
        writer.varint(count)
        writer.varint(step)
    writer.bytes(frame.symbol)
    return _track_type(FrameType.REPAIR, frame.track)


def _read_repair(track: int, reader: Reader) -> Frame:
    key, newest_pts, run_count = reader.u8(), reader.u16(), reader.varint()
    reader.require(run_count < MAX_SOURCES, f"repair window of {run_count} runs")
    runs = tuple((reader.varint(), reader.varint()) for _ in range(run_count))
    fault = _window_fault(runs)
    if fault is not None:
        raise reader.error(fault)  # VS-4.6-5
    symbol = reader.rest()
    reader.require(len(symbol) >= MIN_SYMBOL, f"repair symbol of {len(symbol)} bytes")  # VS-4.6-4
    return RepairFrame(track=track, key=key, newest_pts=newest_pts, runs=runs, symbol=symbol)


def _write_anchor(frame: AnchorFrame, writer: Writer) -> int:
    writer.u8(AHEAD if frame.ahead else 0)  # VS-1.3-3
    writer.varint(frame.pts)
    return _track_type(FrameType.ANCHOR, frame.track)


def _read_anchor(track: int, reader: Reader) -> Frame:
    flags = reader.u8()
    return AnchorFrame(track=track, pts=reader.varint(), ahead=bool(flags & AHEAD))


def _write_clear(frame: ClearFrame, writer: Writer) -> int:
    write_clear_body(frame.message, writer)
    return _track_type(FrameType.CLEAR, frame.message.track)


def _read_clear(track: int, reader: Reader) -> Frame:
    return ClearFrame(message=read_clear_body(track, reader))


def _write_cleared(frame: ClearedFrame, writer: Writer) -> int:
    write_cleared_body(frame.message, writer)
    return _track_type(FrameType.CLEARED, frame.message.track)


def _read_cleared(track: int, reader: Reader) -> Frame:
    return ClearedFrame(message=read_cleared_body(track, reader))


def _write_progress(frame: ProgressFrame, writer: Writer) -> int:
    writer.varint(frame.message.played_pts)
    return _track_type(FrameType.PROGRESS, frame.message.track)


def _read_progress(track: int, reader: Reader) -> Frame:
    return ProgressFrame(message=Progress(track=track, played_pts=reader.varint()))


def _write_missing(frame: MissingFrame, writer: Writer) -> int:
    if not 1 <= len(frame.ranges) <= MAX_RANGES:
        raise ValueError(f"a missing frame must have 1 to {MAX_RANGES} ranges, not {len(frame.ranges)}")
    for first, units in frame.ranges:
        if not 1 <= units <= MAX_SPAN_UNITS:
            raise ValueError(f"a range must have 1 to {MAX_SPAN_UNITS} units, not {units}")
        writer.u16(first)
        writer.varint(units)
    return _track_type(FrameType.MISSING, frame.track)


def _read_missing(track: int, reader: Reader) -> Frame:
    ranges: list[tuple[int, int]] = []
    while not reader.at_end:
        first, units = reader.u16(), reader.varint()
        reader.require(1 <= units <= MAX_SPAN_UNITS, f"missing range of {units} units")  # VS-4.10-2
        ranges.append((first, units))
    reader.require(1 <= len(ranges) <= MAX_RANGES, f"{len(ranges)} missing ranges")  # VS-4.10-1 VS-4.10-3
    return MissingFrame(track=track, ranges=tuple(ranges))


def _write_unknown(frame: UnknownFrame, writer: Writer) -> int:
    if not 0 < frame.type < AUDIO_BIT or _READERS[frame.type] is not None:
        raise ValueError(f"frame type 0x{frame.type:x} is not an unknown one")
    writer.bytes(frame.payload)
    return frame.type


_WRITERS: Final[dict[type, Callable[[Any, Writer], int]]] = {
    ReportFrame: _write_report,
    ProbeFrame: _write_probe,
    RepairFrame: _write_repair,
    CopyFrame: _write_media,
    RetransmissionFrame: _write_media,
    AnchorFrame: _write_anchor,
    ClearFrame: _write_clear,
    ClearedFrame: _write_cleared,
    ProgressFrame: _write_progress,
    MissingFrame: _write_missing,
    UnknownFrame: _write_unknown,
}


def _reader_table() -> list[Callable[[int, Reader], Frame] | None]:
    table: list[Callable[[int, Reader], Frame] | None] = [None] * AUDIO_BIT
    table[FrameType.REPORT] = _read_report
    table[FrameType.PROBE] = _read_probe
    per_track = {
        FrameType.REPAIR: _read_repair,
        FrameType.COPY: _read_media(CopyFrame),
        FrameType.RETRANSMISSION: _read_media(RetransmissionFrame),
        FrameType.ANCHOR: _read_anchor,
        FrameType.CLEAR: _read_clear,
        FrameType.CLEARED: _read_cleared,
        FrameType.PROGRESS: _read_progress,
        FrameType.MISSING: _read_missing,
    }
    for base, read in per_track.items():
        table[base : base + 4] = [read] * 4
    return table


_READERS: Final = _reader_table()


def encode_frame(frame: Frame, last: bool = False) -> bytes:
    """A frame in wire form.

    Args:
        frame: The frame.
        last: It is the last one of its datagram, so that an AUDIO frame needs no length.

    Raises:
        ValueError: A value is out of its range.
    """
    if isinstance(frame, AudioFrame):
        return encode_audio(frame, last)
    if isinstance(frame, PaddingFrame):
        if frame.size < 1:
            raise ValueError(f"size must be at least 1, not {frame.size}")
        return bytes(frame.size)
    writer = Writer()
    frame_type = _WRITERS[type(frame)](frame, writer)
    body = writer.data()
    return bytes((frame_type,)) + encode_varint(len(body)) + body


def frame_size(frame: Frame, last: bool = False) -> int:
    """Bytes that `encode_frame` makes of a frame that it takes."""
    if isinstance(frame, AudioFrame):
        size = len(frame.payload)
        return 3 + size if last else 3 + varint_size(size) + size
    if isinstance(frame, ReportFrame):
        body = 4 + varint_size(len(frame.statuses))
        for status in frame.statuses:
            body += 1 if status is None or -32 < status < 31 else varint_size((status << 1 ^ status >> 15) + 1)
        for entry in frame.playout:
            body += 3 + varint_size(entry.level_units) + varint_size(entry.target_units)
        return 1 + varint_size(body) + body
    return len(encode_frame(frame, last))


def decode_typed_frame(data: bytes, position: int) -> tuple[Frame, int]:
    """The frame with type and length at `position`, and the position after it.

    Raises:
        ProtocolError: FRAME_ENCODING_ERROR.
    """
    frame_type = data[position]
    length = peek_varint(data, position + 1)
    if length is None or length[1] + length[0] > len(data):
        raise ProtocolError(ErrorCode.FRAME_ENCODING_ERROR, f"frame type 0x{frame_type:x} ends after its datagram")  # VS-4.1-3
    start = length[1]
    end = start + length[0]
    body = data[start:end]
    read = _READERS[frame_type]
    if read is None:
        return UnknownFrame(type=frame_type, payload=body), end  # VS-4.11-1 VS-12.1-3
    reader = Reader(body)
    frame = read(frame_type & 3, reader)
    if not reader.at_end:
        reader.end(f"frame type 0x{frame_type:x}")  # VS-4.1-4
    return frame, end
