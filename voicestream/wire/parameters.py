"""The parameter lists of control messages (specification sections 5.3 and 5.4)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from voicestream.codepoints import CodecId, ErrorCode, ParameterId
from voicestream.config import Track
from voicestream.wire.buffer import MAX_VARINT, Reader, Writer

__all__ = [
    "ALL_PARAMETERS",
    "MAX_ROUTE_TOKEN",
    "MIN_ROUTE_TOKEN",
    "Held",
    "Parameters",
    "decode_parameters",
    "encode_parameters",
]

MIN_ROUTE_TOKEN: Final = 8
MAX_ROUTE_TOKEN: Final = 20
"""Bytes of a client's first destination connection id (RFC 9000 section 7.2)."""

PRIVATE_CODECS: Final = range(CodecId.PRIVATE, 0x80)
"""Codec numbers used by agreement between the two sides."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """What one side already holds of a track when a session resumes.

    Attributes:
        track: 0 to 3.
        next_pts: First pts not yet held without a hole before it.
        ranges: (first pts, units) of what is held beyond, ascending and not overlapping.
    """

    track: int = 0
    next_pts: int
    ranges: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """One parameter list. A parameter that is absent is None (or an empty tuple).

    Attributes:
        authority: Host and optional port that the client calls, at most 255 bytes of UTF-8.
        path: What it calls there, beginning with "/", at most 2048 bytes of UTF-8.
        token: Credential of the application, at most 2048 bytes.
        metadata: Bytes of the application, at most 4096.
        tracks: Tracks that the sender of the list offers or takes.
        max_datagram_size: Largest VoiceStream datagram that the sender takes, at least 256 bytes.
        max_event_size: Largest event payload that it takes, in bytes.
        lookahead_ms: Its playout lookahead, 0 to 500.
        retain_ms: How long it keeps what it sent.
        max_rate_bps: Most that it wants to receive, on the wire.
        session_id: 16 random bytes.
        resume_token: Sealed by the server, 1 to 512 bytes.
        generation: Generation of the session to which the resume token belongs.
        lifetime_ms: How long a broken session can be resumed.
        held: What the sender holds, one entry a track.
        next_event: First ordered event not yet received.
        replay_ms: How much played media is wanted again, 0 to 2000.
        reason: For people, at most 1024 bytes of UTF-8.
        uri: Where to call instead, at most 2048 bytes of UTF-8.
        route_token: Connection id for that call, 8 to 20 bytes.
        retry_after_ms: How long to wait before it.
        unknown: (id, value) of every other parameter, in the order of the list.
    """

    authority: str | None = None
    path: str | None = None
    token: bytes | None = dataclasses.field(default=None, repr=False)
    metadata: bytes | None = dataclasses.field(default=None, repr=False)
    tracks: tuple[Track, ...] = ()
    max_datagram_size: int | None = None
    max_event_size: int | None = None
    lookahead_ms: int | None = None
    retain_ms: int | None = None
    max_rate_bps: int | None = None
    session_id: bytes | None = None
    resume_token: bytes | None = dataclasses.field(default=None, repr=False)
    generation: int | None = None
    lifetime_ms: int | None = None
    held: tuple[Held, ...] = ()
    next_event: int | None = None
    replay_ms: int | None = None
    reason: str | None = None
    uri: str | None = None
    route_token: bytes | None = dataclasses.field(default=None, repr=False)
    retry_after_ms: int | None = None
    unknown: tuple[tuple[int, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class _Form:
    """Form of one parameter: its field, how a value is written and read, and the bounds of its number or length."""

    field: str
    encode: Callable[[Any, Writer], None]
    decode: Callable[[Reader], Any]
    low: int = 0
    high: int = MAX_VARINT
    repeats: bool = False


def _encode_text(value: str, writer: Writer) -> None:
    writer.bytes(value.encode())


def _decode_text(reader: Reader) -> str:
    try:
        return reader.rest().decode()
    except UnicodeDecodeError as error:
        raise reader.error("text is not UTF-8") from error  # VS-5.4-2


def _encode_path(value: str, writer: Writer) -> None:
    if not value.startswith("/"):
        raise ValueError(f'a path must begin with "/", not {value[:20]!r}')
    writer.bytes(value.encode())


def _decode_path(reader: Reader) -> str:
    path = _decode_text(reader)
    reader.require(path.startswith("/"), 'path does not begin with "/"')
    return path


def _encode_bytes(value: bytes, writer: Writer) -> None:
    writer.bytes(value)


def _encode_number(value: int, writer: Writer) -> None:
    writer.varint(value)


def _encode_track(track: Track, writer: Writer) -> None:
    if track.codec in PRIVATE_CODECS and not track.frame_units:
        raise ValueError("a track of a private codec must say its frame_units")
    direction = (1 if track.send else 0) | (2 if track.receive else 0)
    for number in (track.track_id, track.codec, track.clock_rate_hz, track.channels, direction, track.frame_units):
        writer.varint(number)


def _decode_track(reader: Reader) -> Track:
    track_id, codec, clock_rate_hz, channels, direction, frame_units = (reader.varint() for _ in range(6))
    reader.require(1 <= direction <= 3, f"track direction {direction}")
    reader.require(codec not in PRIVATE_CODECS or frame_units > 0, "track of a private codec without frame units")  # VS-5.4-4
    try:
        track = Track(
            track_id=track_id,
            codec=codec,
            clock_rate_hz=clock_rate_hz,
            channels=channels,
            send=bool(direction & 1),
            receive=bool(direction & 2),
            frame_units=frame_units,
        )
    except ValueError as error:
        raise reader.error(str(error)) from error  # VS-5.4-5
    reader.rest()  # room for fields of later versions. VS-5.4-6
    return track


def _encode_held(held: Held, writer: Writer) -> None:
    if not 0 <= held.track <= 3:
        raise ValueError(f"track must be 0 to 3, not {held.track}")
    for number in (held.track, held.next_pts, len(held.ranges)):
        writer.varint(number)
    end = held.next_pts
    for first, units in held.ranges:
        if first < end or units < 1:
            raise ValueError("ranges held must be ascending, not overlapping and not empty")
        writer.varint(first)
        writer.varint(units)
        end = first + units


def _decode_held(reader: Reader) -> Held:
    track = reader.varint()
    reader.require(track <= 3, f"track {track}")
    next_pts = reader.varint()
    count = reader.varint()
    reader.require(count * 2 <= reader.remaining, f"{count} ranges announced, {reader.remaining} bytes there")
    ranges = []
    end = next_pts
    for _ in range(count):
        first = reader.varint()
        units = reader.varint()
        reader.require(first >= end and units >= 1, "ranges held overlap, go back or are empty")  # VS-5.4-7
        ranges.append((first, units))
        end = first + units
    return Held(track=track, next_pts=next_pts, ranges=tuple(ranges))


def _text(field: str, high: int) -> _Form:
    return _Form(field, _encode_text, _decode_text, 0, high)


def _blob(field: str, low: int, high: int) -> _Form:
    return _Form(field, _encode_bytes, Reader.rest, low, high)


def _number(field: str, low: int = 0, high: int = MAX_VARINT) -> _Form:
    return _Form(field, _encode_number, Reader.varint, low, high)


_FORMS: Final[dict[int, _Form]] = {
    ParameterId.AUTHORITY: _text("authority", 255),
    ParameterId.PATH: _Form("path", _encode_path, _decode_path, 1, 2048),
    ParameterId.TOKEN: _blob("token", 0, 2048),
    ParameterId.METADATA: _blob("metadata", 0, 4096),
    ParameterId.TRACK: _Form("tracks", _encode_track, _decode_track, repeats=True),
    ParameterId.MAX_DATAGRAM_SIZE: _number("max_datagram_size", low=256),
    ParameterId.MAX_EVENT_SIZE: _number("max_event_size"),
    ParameterId.LOOKAHEAD_MS: _number("lookahead_ms", high=500),
    ParameterId.RETAIN_MS: _number("retain_ms"),
    ParameterId.MAX_RATE_BPS: _number("max_rate_bps"),
    ParameterId.SESSION_ID: _blob("session_id", 16, 16),
    ParameterId.RESUME_TOKEN: _blob("resume_token", 1, 512),
    ParameterId.GENERATION: _number("generation"),
    ParameterId.LIFETIME_MS: _number("lifetime_ms"),
    ParameterId.HELD: _Form("held", _encode_held, _decode_held, repeats=True),
    ParameterId.NEXT_EVENT: _number("next_event"),
    ParameterId.REPLAY_MS: _number("replay_ms", high=2000),
    ParameterId.REASON: _text("reason", 1024),
    ParameterId.URI: _text("uri", 2048),
    ParameterId.ROUTE_TOKEN: _blob("route_token", MIN_ROUTE_TOKEN, MAX_ROUTE_TOKEN),
    ParameterId.RETRY_AFTER_MS: _number("retry_after_ms"),
}

ALL_PARAMETERS: Final = frozenset(_FORMS)
"""Ids of every parameter that this version defines."""


def _measure(form: _Form, value: object, encoded_size: int) -> int:
    """What the bounds of a form apply to: the number itself, or else the length in bytes."""
    return value if isinstance(value, int) else encoded_size


def _append(writer: Writer, parameter_id: int, value: bytes) -> None:
    writer.varint(parameter_id)
    writer.varint(len(value))
    writer.bytes(value)


def encode_parameters(parameters: Parameters, allowed: frozenset[int] = ALL_PARAMETERS) -> bytes:
    """The list in wire form, ids ascending and unknown ones last.

    Args:
        parameters: The list.
        allowed: Ids that the message defines.

    Raises:
        ValueError: A value is out of its range, a track comes twice, or a parameter does not belong here.
    """
    writer = Writer()
    for parameter_id, form in _FORMS.items():
        content = getattr(parameters, form.field)
        values = content if form.repeats else () if content is None else (content,)
        if values and parameter_id not in allowed:
            raise ValueError(f"{form.field} is not a parameter of this message")  # VS-5.3-3
        for value in values:
            value_writer = Writer()
            form.encode(value, value_writer)
            encoded = value_writer.data()
            if not form.low <= _measure(form, value, len(encoded)) <= form.high:
                raise ValueError(f"{form.field} is out of its range")
            _append(writer, parameter_id, encoded)
    _require_distinct(parameters)
    for parameter_id, unknown_value in parameters.unknown:
        if parameter_id in allowed:
            raise ValueError(f"parameter {parameter_id} is not an unknown one")
        _append(writer, parameter_id, unknown_value)
    return writer.data()


def _require_distinct(parameters: Parameters) -> None:
    for ids in ([track.track_id for track in parameters.tracks], [held.track for held in parameters.held]):
        if len(set(ids)) != len(ids):
            raise ValueError(f"a track may come only once, not {ids}")


def decode_parameters(data: bytes, allowed: frozenset[int] = ALL_PARAMETERS) -> Parameters:
    """Read a list that fills `data`. A parameter that is not `allowed` is kept as unknown (VS-5.3-1, VS-5.3-2).

    Raises:
        ProtocolError: PARAMETER_ERROR, for a duplicate, a bad value or bytes that end too early.
    """
    reader = Reader(data, ErrorCode.PARAMETER_ERROR)
    found: dict[str, Any] = {}
    unknown: list[tuple[int, bytes]] = []
    while not reader.at_end:
        parameter_id = reader.varint()
        encoded = reader.bytes(reader.varint())
        form = _FORMS.get(parameter_id) if parameter_id in allowed else None
        if form is None:
            unknown.append((parameter_id, encoded))
            continue
        value_reader = Reader(encoded, ErrorCode.PARAMETER_ERROR)
        value = form.decode(value_reader)
        value_reader.end(form.field)  # VS-5.3-5
        measure = _measure(form, value, len(encoded))
        reader.require(form.low <= measure <= form.high, f"{form.field} is out of its range ({measure})")  # VS-5.4-1
        if form.repeats:
            found[form.field] = (*found.get(form.field, ()), value)
            reader.require(len(found[form.field]) <= 4, "more than four tracks")
        else:
            reader.require(form.field not in found, f"{form.field} comes twice")  # VS-5.3-4
            found[form.field] = value
    parameters = Parameters(**found, unknown=tuple(unknown))
    try:
        _require_distinct(parameters)
    except ValueError as error:
        raise reader.error(str(error)) from error
    return parameters
