"""What was on the wire, in words: a line for each thing."""

from __future__ import annotations

from voicestream.codepoints import EventKind
from voicestream.observe import words
from voicestream.wire import Message, encode_message

__all__ = ["control_words", "datagram_words", "event_words", "message_words"]


def datagram_words(data: bytes) -> str:
    """A datagram, also one that is malformed: then with the requirement that it breaks."""
    return f"({len(data)} bytes) datagram: {words.datagram_words(data).brief()}"


def message_words(message: Message) -> str:
    """A control message."""
    return f"message: {words.control_words(encode_message(message)).brief()}"


def control_words(data: bytes, fin: bool = False) -> str:
    """Bytes of the control stream."""
    told = words.control_words(data).brief() if data else "nothing"
    return f"control stream, {len(data)} bytes: {told}{', then its end' if fin else ''}"


def event_words(kind: int, event_id: int, order: int, size: int) -> str:
    """An event."""
    name = EventKind(kind).name if kind in tuple(EventKind) else f"kind 0x{kind:02x}"
    return f"event {event_id}, {name}, {f'order {order}' if order else 'without order'}, {size} bytes"
