"""Datagrams and their frames in words (specification section 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from voicestream.codepoints import ErrorCode, FrameType, is_grease
from voicestream.config import Track
from voicestream.errors import ProtocolError
from voicestream.observe.words_walk import Walk, milliseconds, pts16_words, pts_words, shown, units_words
from voicestream.wire.datagram import HEADER_SIZE, MAX_FRAMES, MAX_SIZE
from voicestream.wire.opus_toc import frame_units, opus_channels, opus_duration_units
from voicestream.wire.sequence import TICKS_PER_SECOND

__all__ = ["SECTIONS", "walk_datagram"]

SECTIONS: Final[dict[str, str]] = {
    "AUDIO": "4.2",
    "PADDING": "4.3",
    "REPORT": "4.4",
    "PROBE": "4.5",
    "REPAIR": "4.6",
    "COPY": "4.7",
    "RETRANSMISSION": "4.7",
    "ANCHOR": "4.8",
    "CLEAR": "4.9",
    "CLEARED": "4.9",
    "PROGRESS": "4.9",
    "MISSING": "4.10",
}
"""Where each type of frame is specified."""

_PER_TRACK: Final = range(FrameType.REPAIR, FrameType.MISSING + 4)


def _tick_words(tick: int) -> str:
    return f"{tick} ticks ({tick * 1000 / TICKS_PER_SECOND:g} ms, modulo 16.384 s)"


def _difference_words(ticks: int) -> str:
    if not ticks:
        return "arrived, with the same delay"
    return f"arrived, {abs(ticks) * 1000 / TICKS_PER_SECOND:g} ms {'slower' if ticks > 0 else 'quicker'}"


def walk_datagram(walk: Walk, tracks: dict[int, Track] | None = None) -> None:
    """Say a whole datagram; payloads are checked where `tracks` tells their codec."""
    if not HEADER_SIZE <= walk.left <= MAX_SIZE:
        at = walk.end if walk.left < HEADER_SIZE else MAX_SIZE
        raise walk.fail(f"a datagram has {HEADER_SIZE} to {MAX_SIZE} bytes, this one {walk.left}", "VS-4.1-2", at=at)
    walk.fixed(2, "Number")
    walk.fixed(2, "Send Time", _tick_words)
    if not walk.left:
        walk.say(walk.at, "no frame", "keeps the path open")
    count = 0
    while walk.left:
        start = walk.at
        head = walk.data[start]
        if head >= 0x80:
            _audio(walk, head, tracks)
        elif head:
            _typed(walk, head, tracks)
        else:
            _padding(walk)
        count += 1
        if count > MAX_FRAMES:
            raise walk.fail(f"more than {MAX_FRAMES} frames", "VS-4.1-2", at=start)


def _padding(walk: Walk) -> None:
    start = walk.at
    while walk.left and not walk.data[walk.at]:
        walk.at += 1
    walk.say(start, "PADDING", shown(bytes(walk.at - start)).split(":")[0], SECTIONS["PADDING"])


def _flag_words(flags: int) -> str:
    words = ["start of a talkspurt"] if flags & 8 else []
    words += ["end of a talkspurt"] if flags & 4 else []
    return ", ".join([*words, f"clear number {flags & 3} modulo 4"])


def _payload_words(payload: bytes, track: Track | None) -> str:
    if track is None:
        try:
            units, channels = opus_duration_units(payload), opus_channels(payload)
        except ProtocolError:
            return f"{shown(payload)}; no packet of Opus"
        return f"{shown(payload)}; if Opus, {milliseconds(units)}, {'mono' if channels == 1 else 'stereo'}"
    return f"{shown(payload)}; {units_words(frame_units(track, payload))}"


def _media(walk: Walk, size: int, track: int, tracks: dict[int, Track] | None) -> None:
    """The payload; a frame that breaks its codec's rules is found here."""
    start = walk.at
    try:
        walk.bytes(size, "Payload", lambda payload: _payload_words(payload, (tracks or {}).get(track)))
    except ProtocolError as error:
        if error.code is ErrorCode.MEDIA_ERROR:
            rule = "VS-6.4-1" if error.reason.startswith("Opus") else "VS-6.4-4" if "on a track" in error.reason else "VS-6.4-3"
            raise walk.fail(error.reason, rule, at=start, code=error.code) from error
        raise


def _audio(walk: Walk, head: int, tracks: dict[int, Track] | None) -> None:
    start = walk.at
    track, with_length = head >> 5 & 3, bool(head & 0x10)
    walk.at += 1
    walk.say(start, "AUDIO", f"(0x{head:02x}) track {track}, {_flag_words(head)}", SECTIONS["AUDIO"])
    with walk.inside(cut="VS-4.1-3"):
        walk.fixed(2, "Pts", pts16_words)
        length = walk.varint("Length", lambda size: f"{size} bytes") if with_length else walk.left
        if length > walk.left:
            raise walk.fail(f"the frame has {length} bytes of payload and its datagram {walk.left} more", "VS-4.1-3")
        if not length:
            raise walk.fail("audio frame without payload", "VS-4.2-1")
        _media(walk, length, track, tracks)


def _typed(walk: Walk, head: int, tracks: dict[int, Track] | None) -> None:
    start = walk.at
    base = head & ~3 if head in _PER_TRACK else head
    track = head & 3
    name = FrameType(base).name if base in set(FrameType) else ""
    walk.at += 1
    with walk.inside(cut="VS-4.1-3"):
        length = walk.varint("Length", None)
    kind = f"(0x{head:02x}) " + (f"track {track}, " if name and head in _PER_TRACK else "")
    if not name:
        kind += "reserved for greasing (section 12.1), skipped, " if is_grease(head) else "of an unknown type, skipped, "
    walk.say(start, name or "frame", f"{kind}{length} bytes", SECTIONS.get(name, "4.11"))
    if length > walk.left:
        raise walk.fail(f"the frame has {length} bytes and its datagram {walk.left} more", "VS-4.1-3")
    with walk.inside(length, cut="VS-4.1-4"):
        if not name:
            walk.bytes(length, "Body", shown)
        elif base in (FrameType.COPY, FrameType.RETRANSMISSION):
            _again(walk, track, tracks)
        else:
            _BODIES[base](walk)
        walk.close(f"the {name} frame")


def _again(walk: Walk, track: int, tracks: dict[int, Track] | None) -> None:
    walk.fixed(1, "Flags", _flag_words)
    walk.fixed(2, "Pts", pts16_words)
    if not walk.left:
        raise walk.fail("frame without payload", "VS-4.7-1")
    _media(walk, walk.left, track, tracks)


def _report(walk: Walk) -> None:
    newest = walk.fixed(2, "Newest", lambda number: f"datagram {number}")
    walk.fixed(2, "Arrival", _tick_words)
    start = walk.at
    count = walk.varint("Status Count")
    if count > 255:
        raise walk.fail(f"report of {count} statuses, of at most 255", "VS-4.4-1", at=start)
    for index in range(count):
        start = walk.at
        value = walk.varint("Status", None)
        if value > 0x10000:
            raise walk.fail(f"status {value}, of at most 65536", "VS-4.4-1", at=start)
        zigzag = value - 1
        words = _difference_words(zigzag >> 1 ^ -(zigzag & 1)) if value else "not received"
        walk.say(start, "Status", f"datagram {newest - 1 - index & 0xFFFF} {words}")
    seen: set[int] = set()
    while walk.left:
        start = walk.at
        track = walk.fixed(1, "Playout Entry", lambda number: f"track {number}")
        if track > 3:
            raise walk.fail(f"playout entry of track {track}", "VS-4.4-2", at=start)
        with walk.inside():
            walk.fixed(2, "Playhead Pts", pts16_words)
            walk.varint("Level", units_words)
            walk.varint("Target", units_words)
        if track in seen:
            raise walk.fail(f"two playout entries of track {track}", "VS-4.4-2", at=start)
        seen.add(track)


def _probe(walk: Walk) -> None:
    walk.varint("Cluster")
    walk.bytes(walk.left, "Filler", lambda filler: f"{len(filler)} bytes")


def _repair(walk: Walk) -> None:
    walk.fixed(1, "Key")
    newest = walk.fixed(2, "Newest Pts", pts16_words)
    start = walk.at
    count = walk.varint("Run Count")
    if count >= 64:
        raise walk.fail(f"repair window of {count} runs", "VS-4.6-2", at=start)
    sources, span = [newest], 0
    runs = []
    for _ in range(count):
        run_at = walk.at
        number, step = walk.varint("Count", None), walk.varint("Step", None)
        runs.append((run_at, number, step))
        walk.say(run_at, "Run", f"{number} more, each {units_words(step)} older")
    # The rules are on all runs together, and the first of them that is broken names the fault.
    for run_at, number, step in runs:
        if not number or not step:
            raise walk.fail("repair run without sources or step", "VS-4.6-1", at=run_at)
    if 1 + sum(number for _, number, _ in runs) > 64:
        raise walk.fail("repair window of more than 64 sources", "VS-4.6-2", at=start)
    span = sum(number * step for _, number, step in runs)
    if span > 0x7FFF:
        raise walk.fail(f"repair window of {span} units, of at most 32767", "VS-4.6-3", at=start)
    for _, number, step in runs:
        sources += [(sources[-1] - step * (index + 1)) & 0xFFFF for index in range(number)]
    walk.say(walk.at, "sources", f"{len(sources)}: pts {', '.join(map(str, sources))}", "10.1")
    if walk.left < 4:
        raise walk.fail(f"repair symbol of {walk.left} bytes, of at least 4", "VS-4.6-4")
    walk.bytes(walk.left, "Symbol", shown)


def _anchor(walk: Walk) -> None:
    walk.fixed(1, "Flags", lambda flags: f"0x{flags:02x}: the audio from here on is " + ("sent ahead" if flags & 1 else "live"))
    walk.varint("Pts", pts_words)


def _clear(walk: Walk) -> None:
    clear_fields(walk, "VS-4.9-2")


def clear_fields(walk: Walk, rule: str) -> None:
    """The fields of a clear after its track, of message or frame."""
    walk.varint("Number")
    walk.varint("Flags", lambda flags: f"0x{flags:02x}: from the {'receiver' if flags & 1 else 'sender'} of the audio")
    start = walk.at
    first = walk.varint("From Pts", pts_words)
    last = walk.varint("To Pts", pts_words)
    if first > last:
        raise walk.fail(f"From Pts {first} exceeds To Pts {last}", rule, at=start)


def _cleared(walk: Walk) -> None:
    walk.varint("Number")
    walk.varint("Heard Pts", pts_words)


def _progress(walk: Walk) -> None:
    walk.varint("Played Pts", pts_words)


def _missing(walk: Walk) -> None:
    start = walk.at
    count = 0
    while walk.left:
        at = walk.at
        first = walk.fixed(2, "First Pts", pts16_words)
        units_at = walk.at
        units = walk.varint("Units", None)
        if not 1 <= units <= 0x7FFF:
            raise walk.fail(f"range of {units} units, of 1 to 32767", "VS-4.10-2", at=units_at)
        walk.items.pop()  # said together with its length
        walk.say(at, "Range", f"from pts {pts16_words(first)}, {units_words(units)}")
        count += 1
    if not 1 <= count <= 32:
        raise walk.fail(f"{count} ranges, of 1 to 32", "VS-4.10-1", at=start)


_BODIES: Final[dict[int, Callable[[Walk], None]]] = {
    FrameType.REPORT: _report,
    FrameType.PROBE: _probe,
    FrameType.REPAIR: _repair,
    FrameType.ANCHOR: _anchor,
    FrameType.CLEAR: _clear,
    FrameType.CLEARED: _cleared,
    FrameType.PROGRESS: _progress,
    FrameType.MISSING: _missing,
}
