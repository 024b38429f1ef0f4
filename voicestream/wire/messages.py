"""Wire form of control messages, and the parser of the control stream (specification sections 5.1 and 5.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from voicestream.codepoints import VERSION, ErrorCode, MessageType, ParameterId
from voicestream.errors import ProtocolError
from voicestream.wire.buffer import Reader, Writer, peek_varint
from voicestream.wire.message_values import (
    Accept,
    Clear,
    Cleared,
    Close,
    Confirm,
    Finish,
    Finished,
    GoingAway,
    Hello,
    Message,
    Progress,
    Reject,
    Resume,
    Resumed,
    Settings,
    UnknownMessage,
)
from voicestream.wire.parameters import Parameters, decode_parameters, encode_parameters

__all__ = [
    "MAX_HANDSHAKE_PAYLOAD",
    "MAX_PAYLOAD",
    "Accept",
    "Clear",
    "Cleared",
    "Close",
    "Confirm",
    "Finish",
    "Finished",
    "GoingAway",
    "Hello",
    "Message",
    "MessageParser",
    "Progress",
    "Reject",
    "Resume",
    "Resumed",
    "Settings",
    "UnknownMessage",
    "decode_message",
    "encode_message",
    "message_limit",
    "parameter_rules",
]

MAX_PAYLOAD: Final = 4096
MAX_HANDSHAKE_PAYLOAD: Final = 8192
MAX_REASON: Final = 1024

FROM_RECEIVER: Final = 0x01
MAY_RESUME: Final = 0x01

_P = ParameterId
_LIMITS: Final = frozenset({_P.MAX_DATAGRAM_SIZE, _P.MAX_EVENT_SIZE, _P.LOOKAHEAD_MS, _P.RETAIN_MS, _P.MAX_RATE_BPS})
_ELSEWHERE: Final = frozenset({_P.REASON, _P.URI, _P.ROUTE_TOKEN, _P.RETRY_AFTER_MS})
_RESUME: Final = frozenset(
    {_P.SESSION_ID, _P.RESUME_TOKEN, _P.GENERATION, _P.HELD, _P.NEXT_EVENT, _P.REPLAY_MS, _P.TOKEN, _P.AUTHORITY, _P.PATH}
)


class _ParameterRules(NamedTuple):
    """Parameters that a message defines, and the fields of those that it must have."""

    allowed: frozenset[int]
    required: tuple[str, ...] = ()


_PARAMETER_RULES: Final[dict[int, _ParameterRules]] = {
    MessageType.HELLO: _ParameterRules(
        frozenset({_P.AUTHORITY, _P.PATH, _P.TOKEN, _P.METADATA, _P.TRACK}) | _LIMITS,
        ("authority", "path", "tracks"),  # VS-5.2.1-1
    ),
    MessageType.ACCEPT: _ParameterRules(
        frozenset({_P.SESSION_ID, _P.RESUME_TOKEN, _P.GENERATION, _P.LIFETIME_MS, _P.METADATA, _P.TRACK}) | _LIMITS,
        ("session_id", "resume_token", "generation", "lifetime_ms", "tracks"),  # VS-5.2.2-1
    ),
    MessageType.REJECT: _ParameterRules(_ELSEWHERE),
    MessageType.RESUME: _ParameterRules(_RESUME, ("session_id", "resume_token", "generation")),  # VS-5.2.4-1
    MessageType.RESUMED: _ParameterRules(
        frozenset({_P.RESUME_TOKEN, _P.GENERATION, _P.HELD, _P.NEXT_EVENT, _P.METADATA}),
        ("resume_token", "generation"),  # VS-5.2.5-1
    ),
    MessageType.SETTINGS: _ParameterRules(frozenset({_P.LOOKAHEAD_MS, _P.MAX_RATE_BPS})),
    MessageType.GOING_AWAY: _ParameterRules(_ELSEWHERE),
}


def message_limit(message_type: int) -> int:
    """Most bytes that the payload of a message of this type may have. VS-5.1-3"""
    return MAX_HANDSHAKE_PAYLOAD if MessageType.HELLO <= message_type <= MessageType.RESUMED else MAX_PAYLOAD


def parameter_rules(message_type: int) -> tuple[frozenset[int], tuple[str, ...]]:
    """Ids of the parameters that a message defines, and the fields of those that it must have."""
    return _PARAMETER_RULES[message_type]


def _missing(message_type: int, parameters: Parameters) -> list[str]:
    return [field for field in _PARAMETER_RULES[message_type].required if getattr(parameters, field) in (None, ())]


def _write_parameters(writer: Writer, message_type: int, parameters: Parameters) -> None:
    missing = _missing(message_type, parameters)
    if missing:
        raise ValueError(f"{MessageType(message_type).name} needs {', '.join(missing)}")
    writer.bytes(encode_parameters(parameters, _PARAMETER_RULES[message_type].allowed))


def _read_parameters(reader: Reader, message_type: int) -> Parameters:
    parameters = decode_parameters(reader.rest(), _PARAMETER_RULES[message_type].allowed)
    missing = _missing(message_type, parameters)
    if missing:
        raise ProtocolError(ErrorCode.PARAMETER_ERROR, f"{MessageType(message_type).name} without {', '.join(missing)}")
    return parameters


def _versioned(message_type: int, build: type[Hello] | type[Accept] | type[Resume]) -> Callable[[Reader], Message]:
    def decode(reader: Reader) -> Message:
        version = reader.varint()
        if version != VERSION:  # its parameters may have another meaning: the version is all that can be read. VS-3.1-3
            reader.rest()
            return build(version=version, parameters=Parameters())
        return build(version=version, parameters=_read_parameters(reader, message_type))

    return decode


def _encode_versioned(message_type: int) -> Callable[[Any, Writer], None]:
    def encode(message: Hello | Accept | Resume, writer: Writer) -> None:
        writer.varint(message.version)
        if message.version == VERSION:
            _write_parameters(writer, message_type, message.parameters)

    return encode


def write_track(track: int, writer: Writer) -> None:
    """Append a track id as a variable-length integer."""
    if not 0 <= track <= 3:
        raise ValueError(f"track must be 0 to 3, not {track}")
    writer.varint(track)


def read_track(reader: Reader) -> int:
    """Take a track id. VS-5.2-1"""
    track = reader.varint()
    reader.require(track <= 3, f"track {track}")
    return track


def write_clear_body(message: Clear, writer: Writer) -> None:
    """Append the fields of a clear after its track; shared with the CLEAR frame."""
    if message.from_pts > message.to_pts:
        raise ValueError(f"from_pts {message.from_pts} lies after to_pts {message.to_pts}")
    writer.varint(message.number)
    writer.varint(FROM_RECEIVER if message.from_receiver else 0)
    writer.varint(message.from_pts)
    writer.varint(message.to_pts)


def read_clear_body(track: int, reader: Reader) -> Clear:
    """Take what `write_clear_body` wrote."""
    number, flags, from_pts, to_pts = reader.varint(), reader.varint(), reader.varint(), reader.varint()
    reader.require(from_pts <= to_pts, f"clear from {from_pts} to {to_pts}")  # VS-4.9-2, VS-5.2.8-1
    return Clear(track=track, number=number, from_receiver=bool(flags & FROM_RECEIVER), from_pts=from_pts, to_pts=to_pts)


def write_cleared_body(message: Cleared, writer: Writer) -> None:
    """Append the fields of a cleared after its track; shared with the CLEARED frame."""
    writer.varint(message.number)
    writer.varint(message.heard_pts)


def read_cleared_body(track: int, reader: Reader) -> Cleared:
    """Take what `write_cleared_body` wrote."""
    return Cleared(track=track, number=reader.varint(), heard_pts=reader.varint())


def _encode_reject(message: Reject, writer: Writer) -> None:
    writer.varint(message.code)
    _write_parameters(writer, MessageType.REJECT, message.parameters)


def _encode_confirm(message: Confirm, writer: Writer) -> None:
    writer.varint(message.generation)


def _encode_clear(message: Clear, writer: Writer) -> None:
    write_track(message.track, writer)
    write_clear_body(message, writer)


def _encode_cleared(message: Cleared, writer: Writer) -> None:
    write_track(message.track, writer)
    write_cleared_body(message, writer)


def _encode_played(message: Progress | Finished, writer: Writer) -> None:
    write_track(message.track, writer)
    writer.varint(message.played_pts)


def _encode_finish(message: Finish, writer: Writer) -> None:
    write_track(message.track, writer)
    writer.varint(message.pts)


def _encode_close(message: Close, writer: Writer) -> None:
    reason = message.reason.encode()
    if len(reason) > MAX_REASON:
        raise ValueError(f"a reason must have at most {MAX_REASON} bytes, not {len(reason)}")
    writer.varint(message.code)
    writer.varint(MAY_RESUME if message.may_resume else 0)
    writer.varint(len(reason))
    writer.bytes(reason)


def _decode_close(reader: Reader) -> Close:
    code, flags, size = reader.varint(), reader.varint(), reader.varint()
    reader.require(size <= MAX_REASON, f"reason of {size} bytes")  # VS-5.2.14-1
    try:
        reason = reader.bytes(size).decode()
    except UnicodeDecodeError as error:
        raise reader.error("reason is not UTF-8") from error
    return Close(code=code, reason=reason, may_resume=bool(flags & MAY_RESUME))


def _parameters_only(message_type: int) -> Callable[[Any, Writer], None]:
    def encode(message: Resumed | Settings | GoingAway, writer: Writer) -> None:
        _write_parameters(writer, message_type, message.parameters)

    return encode


_T = MessageType
_ENCODERS: Final[dict[type, tuple[int, Callable[[Any, Writer], None]]]] = {
    Hello: (_T.HELLO, _encode_versioned(_T.HELLO)),
    Accept: (_T.ACCEPT, _encode_versioned(_T.ACCEPT)),
    Reject: (_T.REJECT, _encode_reject),
    Resume: (_T.RESUME, _encode_versioned(_T.RESUME)),
    Resumed: (_T.RESUMED, _parameters_only(_T.RESUMED)),
    Confirm: (_T.CONFIRM, _encode_confirm),
    Settings: (_T.SETTINGS, _parameters_only(_T.SETTINGS)),
    Clear: (_T.CLEAR, _encode_clear),
    Cleared: (_T.CLEARED, _encode_cleared),
    Progress: (_T.PROGRESS, _encode_played),
    Finish: (_T.FINISH, _encode_finish),
    Finished: (_T.FINISHED, _encode_played),
    GoingAway: (_T.GOING_AWAY, _parameters_only(_T.GOING_AWAY)),
    Close: (_T.CLOSE, _encode_close),
}

_DECODERS: Final[dict[int, Callable[[Reader], Message]]] = {
    _T.HELLO: _versioned(_T.HELLO, Hello),
    _T.ACCEPT: _versioned(_T.ACCEPT, Accept),
    _T.REJECT: lambda reader: Reject(code=reader.varint(), parameters=_read_parameters(reader, _T.REJECT)),
    _T.RESUME: _versioned(_T.RESUME, Resume),
    _T.RESUMED: lambda reader: Resumed(parameters=_read_parameters(reader, _T.RESUMED)),
    _T.CONFIRM: lambda reader: Confirm(generation=reader.varint()),
    _T.SETTINGS: lambda reader: Settings(parameters=_read_parameters(reader, _T.SETTINGS)),
    _T.CLEAR: lambda reader: read_clear_body(read_track(reader), reader),
    _T.CLEARED: lambda reader: read_cleared_body(read_track(reader), reader),
    _T.PROGRESS: lambda reader: Progress(track=read_track(reader), played_pts=reader.varint()),
    _T.FINISH: lambda reader: Finish(track=read_track(reader), pts=reader.varint()),
    _T.FINISHED: lambda reader: Finished(track=read_track(reader), played_pts=reader.varint()),
    _T.GOING_AWAY: lambda reader: GoingAway(parameters=_read_parameters(reader, _T.GOING_AWAY)),
    _T.CLOSE: _decode_close,
}


def encode_message(message: Message) -> bytes:
    """A message in wire form, with its type and length.

    Raises:
        ValueError: A value is out of its range, a parameter is missing or does not belong here, or the payload is too large.
    """
    if isinstance(message, UnknownMessage):
        if message.type in _KNOWN_TYPES:
            raise ValueError(f"message type 0x{message.type:x} is not an unknown one")
        message_type, payload = message.type, message.payload
    else:
        message_type, encode = _ENCODERS[type(message)]
        body = Writer()
        encode(message, body)
        payload = body.data()
    limit = message_limit(message_type)
    if len(payload) > limit:
        raise ValueError(f"the payload of message type 0x{message_type:x} must have at most {limit} bytes, not {len(payload)}")
    writer = Writer()
    writer.varint(message_type)
    writer.varint(len(payload))
    writer.bytes(payload)
    return writer.data()


_KNOWN_TYPES: Final = frozenset(_DECODERS)


def decode_message(message_type: int, payload: bytes) -> Message:
    """The message of this type with this payload.

    Raises:
        ProtocolError: MESSAGE_ENCODING_ERROR, PARAMETER_ERROR or MESSAGE_TOO_LARGE.
    """
    _check_size(message_type, len(payload))
    decode = _DECODERS.get(message_type)
    if decode is None:
        return UnknownMessage(type=message_type, payload=payload)  # VS-5.1-2
    reader = Reader(payload, ErrorCode.MESSAGE_ENCODING_ERROR)
    message = decode(reader)
    reader.end(MessageType(message_type).name)  # VS-5.1-4
    return message


def _check_size(message_type: int, size: int) -> None:
    if size > message_limit(message_type):
        raise ProtocolError(ErrorCode.MESSAGE_TOO_LARGE, f"message type 0x{message_type:x} announces {size} bytes")


class MessageParser:
    """Cuts the control stream into messages. Holds at most one unfinished message.

    Attributes:
        in_message: Whether the bytes so far end inside a message, so that a FIN now would be an error.
    """

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def in_message(self) -> bool:
        return bool(self._buffer)

    def feed(self, data: bytes) -> list[Message]:
        """Take the next bytes of the stream; return the messages that they complete.

        After an error the stream is unusable; messages that the same bytes completed before the fault are lost with it.

        Raises:
            ProtocolError: As `decode_message`; a message that is too large is refused when its length is seen.
        """
        self._buffer += data
        messages: list[Message] = []
        position = 0
        while (header := self._header(position)) is not None:
            message_type, start, size = header
            if start + size > len(self._buffer):
                break
            position = start + size
            messages.append(decode_message(message_type, bytes(self._buffer[start:position])))
        del self._buffer[:position]
        return messages

    def _header(self, position: int) -> tuple[int, int, int] | None:
        """Type, start of the payload and its size, when all of the header has come."""
        message_type = peek_varint(self._buffer, position)
        if message_type is None:
            return None
        size = peek_varint(self._buffer, message_type[1])
        if size is None:
            return None
        _check_size(message_type[0], size[0])
        return message_type[0], size[1], size[0]
