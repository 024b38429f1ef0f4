"""Application events, one unidirectional stream each (specification section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from voicestream.codepoints import ErrorCode, EventKind, StreamType
from voicestream.errors import ProtocolError
from voicestream.wire.buffer import Writer, peek_varint

__all__ = ["EventHeader", "EventParser", "encode_event_header"]

ALIGNED: Final = 0x01
# Of other kinds, known or not, the bytes are the application's. VS-7.2-3
_TEXT_KINDS: Final = frozenset({EventKind.TEXT, EventKind.JSON})


@dataclass(frozen=True, kw_only=True, slots=True)
class EventHeader:
    """What precedes the payload of an event.

    Attributes:
        kind: An `EventKind`, or a number that this version does not know.
        event_id: Number that the sender gave it.
        order: 0 for an event without order; the ordered ones count 1, 2, 3 and so on.
        track: Track with which it is aligned, 0 to 3, or None.
        pts: Full pts with which it is aligned; present exactly when `track` is.
    """

    kind: int
    event_id: int
    order: int = 0
    track: int | None = None
    pts: int | None = None


def encode_event_header(header: EventHeader) -> bytes:
    """The stream type and the header in wire form; the payload follows up to the FIN.

    Raises:
        ValueError: A value is out of its range, or only one of track and pts is there.
    """
    if (header.track is None) != (header.pts is None):
        raise ValueError("an event has both track and pts or neither")
    writer = Writer()
    for number in (StreamType.EVENT, header.kind, header.event_id, header.order):
        writer.varint(number)
    if header.track is None or header.pts is None:
        writer.varint(0)
        return writer.data()
    if not 0 <= header.track <= 3:
        raise ValueError(f"track must be 0 to 3, not {header.track}")
    for number in (ALIGNED, header.track, header.pts):
        writer.varint(number)
    return writer.data()


class EventParser:
    """Reads one unidirectional stream of the peer. Holds at most `max_size` bytes and a header.

    Attributes:
        ignored: The stream is of an unknown type: nothing of it is kept, and its owner asks the peer to stop.
    """

    __slots__ = ("_buffer", "_done", "_header", "_max_size", "ignored")

    def __init__(self, max_size: int) -> None:
        """Make a parser.

        Args:
            max_size: Most bytes that the payload may have.
        """
        self._max_size = max_size
        self._buffer = bytearray()
        self._header: EventHeader | None = None
        self._done = False
        self.ignored = False

    def feed(self, data: bytes, fin: bool) -> tuple[EventHeader, bytes] | None:
        """Take the next bytes of the stream.

        Args:
            data: The bytes, possibly none.
            fin: No more follow.

        Returns:
            The event once, when all of it has come.

        Raises:
            ProtocolError: EVENT_ENCODING_ERROR or EVENT_TOO_LARGE.
        """
        if self._done or self.ignored:
            return None
        self._buffer += data
        if self._header is None:
            self._header = self._take_header()
            if self._header is None:
                self._check_header_end(fin)
                return None
        if len(self._buffer) > self._max_size:
            raise ProtocolError(ErrorCode.EVENT_TOO_LARGE, f"event of more than {self._max_size} bytes")  # VS-7.1-4
        if not fin:
            return None
        payload = bytes(self._buffer)
        self._buffer.clear()
        self._done = True
        if self._header.kind in _TEXT_KINDS:
            _require_utf8(payload)
        return self._header, payload

    def _check_header_end(self, fin: bool) -> None:
        """A stream that ends before its type is known is nobody's error (VS-3.3-4); one that ends in an event's header is (VS-7.1-2)."""
        if fin and not self.ignored and peek_varint(self._buffer, 0) is not None:
            raise ProtocolError(ErrorCode.EVENT_ENCODING_ERROR, "event ends inside its header")
        self._done = fin

    def _take_header(self) -> EventHeader | None:
        """Remove the header from the buffer when all of it has come."""
        stream_type = peek_varint(self._buffer, 0)
        if stream_type is None:
            return None
        if stream_type[0] != StreamType.EVENT:  # VS-3.3-2
            self.ignored = True
            self._buffer.clear()
            return None
        position = stream_type[1]
        numbers: list[int] = []
        wanted = 4
        while len(numbers) < wanted:
            taken = peek_varint(self._buffer, position)
            if taken is None:
                return None
            numbers.append(taken[0])
            position = taken[1]
            if len(numbers) == 4 and numbers[3] & ALIGNED:
                wanted = 6
        del self._buffer[:position]
        kind, event_id, order = numbers[:3]
        if wanted == 4:
            return EventHeader(kind=kind, event_id=event_id, order=order)
        if numbers[4] > 3:
            raise ProtocolError(ErrorCode.EVENT_ENCODING_ERROR, f"event of track {numbers[4]}")  # VS-7.1-2
        return EventHeader(kind=kind, event_id=event_id, order=order, track=numbers[4], pts=numbers[5])


def _require_utf8(payload: bytes) -> None:
    try:
        payload.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(ErrorCode.EVENT_ENCODING_ERROR, "text is not UTF-8") from error  # VS-7.2-1
