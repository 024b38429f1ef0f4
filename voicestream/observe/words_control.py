"""Control messages, their parameters, and event streams in words (specification sections 5 and 7)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, Literal

from voicestream.codepoints import VERSION, CodecId, ErrorCode, EventKind, MessageType, ParameterId, StreamType
from voicestream.observe.words_frames import clear_fields
from voicestream.observe.words_walk import Walk, code_words, named, pts_words, quoted, shown, units_words
from voicestream.wire.buffer import MAX_VARINT, peek_varint
from voicestream.wire.messages import message_limit, parameter_rules
from voicestream.wire.parameters import MAX_ROUTE_TOKEN, MIN_ROUTE_TOKEN

__all__ = ["MESSAGE_SECTIONS", "Sender", "walk_control", "walk_event", "walk_parameters"]

Sender = Literal["client", "server"]

MESSAGE_SECTIONS: Final[dict[str, str]] = {member.name: f"5.2.{member.value}" for member in MessageType}
"""Where each message is specified."""

_FROM_ONE_SIDE: Final[dict[int, Sender]] = {
    MessageType.HELLO: "client",
    MessageType.RESUME: "client",
    MessageType.CONFIRM: "client",
    MessageType.ACCEPT: "server",
    MessageType.REJECT: "server",
    MessageType.RESUMED: "server",
}

_MAX_REASON: Final = 1024


def walk_control(walk: Walk, sender: Sender | None = None) -> bool:
    """Say the messages of a control stream; returns whether the bytes end inside one, which is left unread.

    Args:
        walk: The bytes.
        sender: Who sent them, so that messages of the other side are found.
    """
    while walk.left:
        start = walk.at
        kind = peek_varint(walk.data, start)
        size = None if kind is None else peek_varint(walk.data, kind[1])
        if kind is None or size is None:
            return True
        number, length = kind[0], size[0]
        limit = message_limit(number)
        if length > limit:
            reason = f"message type 0x{number:02x} announces {length} bytes, of at most {limit}"
            raise walk.fail(reason, "VS-5.1-3", at=kind[1], code=ErrorCode.MESSAGE_TOO_LARGE)
        if size[1] + length > walk.end:
            return True
        name = MessageType(number).name if number in set(MessageType) else ""
        walk.at = size[1]
        words = f"(0x{number:02x}) {length} bytes" if name else f"{named(number, None, 'skipped')}, {length} bytes"
        walk.say(start, name or "message", words, MESSAGE_SECTIONS.get(name, "5.1"))
        owner = _FROM_ONE_SIDE.get(number)
        if owner is not None and sender is not None and owner != sender:
            raise walk.fail(f"{name} from the {sender}", "VS-5.5-1", at=start, code=ErrorCode.UNEXPECTED_MESSAGE)
        with walk.inside(length, code=ErrorCode.MESSAGE_ENCODING_ERROR, cut="VS-5.1-4"):
            if name:
                _BODIES[number](walk)
                walk.close(name)
            else:
                walk.bytes(length, "Payload", shown)
    return False


def _track(walk: Walk) -> None:
    start = walk.at
    track = walk.varint("Track")
    if track > 3:
        raise walk.fail(f"track {track}, of 0 to 3", "VS-5.2-1", at=start)


def _versioned(kind: MessageType) -> Callable[[Walk], None]:
    def read(walk: Walk) -> None:
        version = walk.varint("Version", lambda number: str(number) if number == VERSION else f"{number}, not spoken here")
        if version == VERSION:
            walk_parameters(walk, kind)
        else:
            walk.bytes(walk.left, "rest", lambda rest: f"{shown(rest)}; means nothing in an unknown version (VS-3.1-3)")

    return read


def _listed(kind: MessageType) -> Callable[[Walk], None]:
    return lambda walk: walk_parameters(walk, kind)


def _reject(walk: Walk) -> None:
    walk.varint("Code", code_words)
    walk_parameters(walk, MessageType.REJECT)


def _confirm(walk: Walk) -> None:
    walk.varint("Generation")


def _clear(walk: Walk) -> None:
    _track(walk)
    clear_fields(walk, "VS-5.2.8-1")


def _cleared(walk: Walk) -> None:
    _track(walk)
    walk.varint("Number")
    walk.varint("Heard Pts", pts_words)


def _played(walk: Walk) -> None:
    _track(walk)
    walk.varint("Played Pts", pts_words)


def _finish(walk: Walk) -> None:
    _track(walk)
    walk.varint("Pts", pts_words)


def _close(walk: Walk) -> None:
    walk.varint("Code", code_words)
    walk.varint("Flags", lambda flags: f"0x{flags:02x}: the session {'can be resumed' if flags & 1 else 'is over'}")
    start = walk.at
    size = walk.varint("Reason Length", lambda count: f"{count} bytes")
    if size > _MAX_REASON:
        raise walk.fail(f"reason of {size} bytes, of at most {_MAX_REASON}", "VS-5.2.14-1", at=start)
    walk.text(size, "Reason", "VS-5.2.14-1")


_BODIES: Final[dict[int, Callable[[Walk], None]]] = {
    MessageType.HELLO: _versioned(MessageType.HELLO),
    MessageType.ACCEPT: _versioned(MessageType.ACCEPT),
    MessageType.REJECT: _reject,
    MessageType.RESUME: _versioned(MessageType.RESUME),
    MessageType.RESUMED: _listed(MessageType.RESUMED),
    MessageType.CONFIRM: _confirm,
    MessageType.SETTINGS: _listed(MessageType.SETTINGS),
    MessageType.CLEAR: _clear,
    MessageType.CLEARED: _cleared,
    MessageType.PROGRESS: _played,
    MessageType.FINISH: _finish,
    MessageType.FINISHED: _played,
    MessageType.GOING_AWAY: _listed(MessageType.GOING_AWAY),
    MessageType.CLOSE: _close,
}

# ----------------------------------------------------------------------------- parameters

_TEXT: Final = {ParameterId.AUTHORITY: (0, 255), ParameterId.PATH: (1, 2048), ParameterId.REASON: (0, 1024), ParameterId.URI: (0, 2048)}
_BLOBS: Final = {
    ParameterId.TOKEN: (0, 2048),
    ParameterId.METADATA: (0, 4096),
    ParameterId.SESSION_ID: (16, 16),
    ParameterId.RESUME_TOKEN: (1, 512),
    ParameterId.ROUTE_TOKEN: (MIN_ROUTE_TOKEN, MAX_ROUTE_TOKEN),
}
_NUMBERS: Final = {
    ParameterId.MAX_DATAGRAM_SIZE: (256, MAX_VARINT),
    ParameterId.LOOKAHEAD_MS: (0, 500),
    ParameterId.REPLAY_MS: (0, 2000),
}


def walk_parameters(walk: Walk, kind: MessageType | None = None) -> None:
    """Say a list of parameters that reaches to the end of the structure; without `kind` all are allowed and none is needed."""
    allowed, required = (frozenset(ParameterId), ()) if kind is None else parameter_rules(kind)
    start = walk.at
    seen: dict[int, set[int]] = {}
    with walk.inside(code=ErrorCode.PARAMETER_ERROR, cut="VS-5.3-5"):
        while walk.left:
            _parameter(walk, allowed, seen)
        names = {ParameterId(number).name.lower() for number in seen}
        missing = [field for field in required if field.removesuffix("s") not in names and field not in names]
        if missing and kind is not None:
            rule = {1: "VS-5.2.1-1", 2: "VS-5.2.2-1", 4: "VS-5.2.4-1", 5: "VS-5.2.5-1"}[kind]
            raise walk.fail(f"{kind.name} without {', '.join(missing)}", rule, at=start)


def _parameter(walk: Walk, allowed: frozenset[int], seen: dict[int, set[int]]) -> None:
    start = walk.at
    number = walk.varint("Id", None)
    length = walk.varint("Length", None)
    if length > walk.left:
        raise walk.fail(f"parameter 0x{number:02x} has {length} bytes and its list {walk.left} more", "VS-5.3-5")
    if number not in allowed:
        defined = number in set(ParameterId)
        words = f"0x{number:02x} {ParameterId(number).name}, not of this message: skipped" if defined else named(number, None, "skipped")
        walk.bytes(length, "parameter", lambda value: f"{words}, {shown(value)}")
        return
    known = ParameterId(number)
    if known in seen and known not in (ParameterId.TRACK, ParameterId.HELD):
        raise walk.fail(f"{known.name} comes twice", "VS-5.3-4", at=start)
    with walk.inside(length):
        if known in (ParameterId.TRACK, ParameterId.HELD):
            walk.say(start, known.name, f"(0x{number:02x})", "5.4")
            track = _track_value(walk) if known is ParameterId.TRACK else _held_value(walk)
            if track in seen.get(known, set()):
                raise walk.fail(f"{known.name} of track {track} comes twice", "VS-5.4-1", at=start)
            seen.setdefault(known, set()).add(track)
        else:
            _value(walk, known, length, start)
            seen[known] = set()
        walk.close(known.name)


def _value(walk: Walk, known: ParameterId, length: int, start: int) -> None:
    """A text, bytes or a number, as one item from the id on."""
    begins = walk.at
    if known in _TEXT:
        words = quoted(walk.text(length, known.name, "VS-5.4-2"))
        walk.items.pop()
        low, high = _TEXT[known]
        measure, what = length, "bytes"
        if known is ParameterId.PATH and not walk.data[begins : begins + 1] == b"/":
            raise walk.fail('PATH does not begin with "/"', "VS-5.4-1", at=begins)
    elif known in _BLOBS:
        low, high = _BLOBS[known]
        measure, what = length, "bytes"
        value = walk.bytes(length, known.name, shown)
        walk.items.pop()
        # What opens sessions or is the application's is not shown.
        words = value.hex() if known is ParameterId.SESSION_ID else f"{length} bytes"
    else:
        low, high = _NUMBERS.get(known, (0, MAX_VARINT))
        measure, what = walk.varint(known.name, None), ""
        unit = known.name.rsplit("_", 1)[-1]
        words = f"{measure}{ {'MS': ' ms', 'BPS': ' bits per second', 'SIZE': ' bytes'}.get(unit, '')}"
    if not low <= measure <= high:
        raise walk.fail(f"{known.name} of {measure}{what and ' ' + what}, of {low} to {high}", "VS-5.4-1", at=begins)
    walk.say(start, known.name, words, "5.4")


def _bounded(walk: Walk, name: str, low: int, high: int, words: Callable[[int], str] = str, rule: str = "VS-5.4-5") -> int:
    start = walk.at
    value = walk.varint(name, words)
    if not low <= value <= high:
        raise walk.fail(f"{name} {value}, of {low} to {high}", rule, at=start)
    return value


def _codec_words(number: int) -> str:
    known = CodecId(number).name if number in set(CodecId) else None
    return named(number, known, "for private use" if 0x40 <= number < 0x80 else "the track is not taken")


def _track_value(walk: Walk) -> int:
    with walk.inside():
        track = _bounded(walk, "Track", 0, 3)
        codec = walk.varint("Codec", _codec_words)
        _bounded(walk, "Clock Rate", 1, 384000, lambda rate: f"{rate} Hz")
        _bounded(walk, "Channels", 1, 8)
        directions = {1: "sends", 2: "receives", 3: "sends and receives"}
        _bounded(walk, "Direction", 1, 3, lambda n: f"{n}: this side {directions.get(n, 'does nothing that is known')}")
        start = walk.at
        units = _bounded(walk, "Frame Units", 0, 48, lambda n: units_words(n) if n else "0, as the payload tells")
        if 0x40 <= codec < 0x80 and not units:
            raise walk.fail("track of a private codec without frame units", "VS-5.4-4", at=start)
        if walk.left:
            walk.bytes(walk.left, "later fields", lambda rest: f"{shown(rest)}, ignored (VS-5.4-6)")
    return track


def _held_value(walk: Walk) -> int:
    with walk.inside():
        track = _bounded(walk, "Track", 0, 3, rule="VS-5.4-1")
        end = walk.varint("Next Pts", pts_words)
        count = walk.varint("Count")
        for _ in range(count):
            start = walk.at
            first = walk.varint("First Pts", None)
            units = walk.varint("Units", None)
            if first < end or not units:
                raise walk.fail("ranges held overlap, go back or are empty", "VS-5.4-7", at=start)
            end = first + units
            walk.say(start, "Range", f"from pts {pts_words(first)}, {units_words(units)}")
    return track


# ----------------------------------------------------------------------------- events


def walk_event(walk: Walk, *, fin: bool = True, max_size: int | None = None) -> None:
    """Say a unidirectional stream.

    Args:
        walk: Its bytes.
        fin: It ends with them.
        max_size: MAX_EVENT_SIZE of the receiver, if it is to be checked.
    """
    taken = peek_varint(walk.data, 0)
    if taken is None:
        walk.at = walk.end
        walk.say(0, "stream", "ends before its type is known: ignored (VS-3.3-4)", "3.3")
        return
    known = StreamType(taken[0]).name if taken[0] in set(StreamType) else None
    walk.varint("Stream Type", lambda number: named(number, known, "not read (VS-3.3-2)"))
    if known is None:
        walk.bytes(walk.left, "rest", shown)
        return
    if not fin and _header_is_cut(walk):
        return
    kind = walk.varint("Kind", lambda n: named(n, EventKind(n).name if n in set(EventKind) else None, "bytes for the application"))
    walk.varint("Event Id")
    walk.varint("Order", lambda n: str(n) if n else "0, without order")
    if walk.varint("Flags", lambda n: f"0x{n:02x}: {'aligned with audio' if n & 1 else 'not aligned'}") & 1:
        start = walk.at
        track = walk.varint("Track")
        pts_at = walk.at
        if track > 3 and peek_varint(walk.data, pts_at) is not None:
            raise walk.fail(f"event of track {track}", "VS-7.1-2", at=start)
        walk.varint("Pts", pts_words)
    if max_size is not None and walk.left > max_size:
        reason = f"event of {walk.left} bytes, of at most {max_size}"
        raise walk.fail(reason, "VS-7.1-4", at=walk.at + max_size, code=ErrorCode.EVENT_TOO_LARGE)
    if kind in (EventKind.TEXT, EventKind.JSON) and fin:
        start = walk.at
        text = walk.text(walk.left, "Payload", "VS-7.2-1")
        if kind == EventKind.JSON:
            _require_json(walk, text, start)
    else:
        walk.bytes(walk.left, "Payload", shown)


def _require_json(walk: Walk, text: str, start: int) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise walk.fail(f"no JSON: {error.msg}", "VS-7.2-2", at=start + len(text[: error.pos].encode())) from error
    except RecursionError as error:
        raise walk.fail("JSON that is nested too deeply", "VS-7.2-2", at=start) from error


def _header_is_cut(walk: Walk) -> bool:
    """Whether more of the header has to come."""
    at, wanted, index = walk.at, 4, 0
    while index < wanted:
        taken = peek_varint(walk.data, at)
        if taken is None:
            return True
        index += 1
        at = taken[1]
        if index == 4 and taken[0] & 1:
            wanted = 6
    return False

