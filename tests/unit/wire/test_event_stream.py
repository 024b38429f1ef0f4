"""Event streams: header by hand, text, limits, streams of other types."""

from __future__ import annotations

import pytest

from voicestream.codepoints import ErrorCode, EventKind
from voicestream.errors import ProtocolError
from voicestream.wire.event_stream import EventHeader, EventParser, encode_event_header

BY_HAND = [
    ("01 00 00 00 00", EventHeader(kind=EventKind.BYTES, event_id=0)),
    ("01 02 07 03 00", EventHeader(kind=EventKind.JSON, event_id=7, order=3)),
    ("01 01 4040 01 01 03 4064", EventHeader(kind=EventKind.TEXT, event_id=64, order=1, track=3, pts=100)),
    ("01 7fff 01 00 00", EventHeader(kind=0x3FFF, event_id=1)),
]


@pytest.mark.parametrize(("encoded", "header"), BY_HAND)
def test_a_header_is_written_and_read_as_by_hand(encoded: str, header: EventHeader) -> None:
    data = bytes.fromhex(encoded)
    assert encode_event_header(header) == data
    assert EventParser(10).feed(data + b"payload", fin=True) == (header, b"payload")
    assert EventParser(0).feed(data, fin=True) == (header, b"")


def test_unknown_flags_are_ignored() -> None:
    assert EventParser(0).feed(bytes.fromhex("01 00 00 00 02"), fin=True) == (EventHeader(kind=0, event_id=0), b"")


def test_an_event_is_given_once() -> None:
    parser = EventParser(10)
    assert parser.feed(bytes.fromhex("01 00 00 00 00"), fin=False) is None
    assert parser.feed(b"ab", fin=False) is None
    assert parser.feed(b"", fin=True) == (EventHeader(kind=0, event_id=0), b"ab")
    assert parser.feed(b"more", fin=True) is None


def test_a_payload_too_large_is_refused_before_it_has_ended() -> None:
    parser = EventParser(3)
    assert parser.feed(bytes.fromhex("01 00 00 00 00") + b"abc", fin=False) is None
    with pytest.raises(ProtocolError, match="more than 3 bytes") as caught:
        parser.feed(b"d", fin=False)
    assert caught.value.code == ErrorCode.EVENT_TOO_LARGE


@pytest.mark.parametrize("encoded", ["01", "01 00", "01 00 00 00", "01 00 00 00 01", "01 00 00 00 01 00", "01 00 00 00 01 00 40"])
def test_a_stream_that_ends_inside_the_header_is_an_error(encoded: str) -> None:
    with pytest.raises(ProtocolError, match="inside its header") as caught:
        EventParser(10).feed(bytes.fromhex(encoded), fin=True)
    assert caught.value.code == ErrorCode.EVENT_ENCODING_ERROR


@pytest.mark.parametrize("encoded", ["", "40"])
def test_a_stream_that_ends_before_its_type_is_no_error(encoded: str) -> None:
    parser = EventParser(10)
    assert parser.feed(bytes.fromhex(encoded), fin=True) is None
    assert not parser.ignored
    assert parser.feed(b"\x01", fin=True) is None


def test_an_event_of_a_track_that_cannot_be_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="track 4") as caught:
        EventParser(10).feed(bytes.fromhex("01 00 00 00 01 04 00"), fin=False)
    assert caught.value.code == ErrorCode.EVENT_ENCODING_ERROR


@pytest.mark.parametrize("kind", [EventKind.TEXT, EventKind.JSON])
def test_text_must_be_utf8(kind: EventKind) -> None:
    header = encode_event_header(EventHeader(kind=kind, event_id=1))
    assert EventParser(10).feed(header + "é".encode(), fin=True) == (EventHeader(kind=kind, event_id=1), "é".encode())
    with pytest.raises(ProtocolError, match="not UTF-8") as caught:
        EventParser(10).feed(header + b"\xc3\x28", fin=True)
    assert caught.value.code == ErrorCode.EVENT_ENCODING_ERROR


def test_a_stream_of_another_type_is_ignored_from_its_first_bytes_on() -> None:
    for fin in (False, True):
        parser = EventParser(1)
        assert parser.feed(bytes.fromhex("3d ff ff ff"), fin=fin) is None
        assert parser.ignored
        assert parser.feed(bytes(10), fin=True) is None


@pytest.mark.parametrize(
    "header",
    [
        EventHeader(kind=-1, event_id=0),
        EventHeader(kind=0, event_id=1 << 62),
        EventHeader(kind=0, event_id=0, order=-1),
        EventHeader(kind=0, event_id=0, track=0),
        EventHeader(kind=0, event_id=0, pts=0),
        EventHeader(kind=0, event_id=0, track=4, pts=0),
        EventHeader(kind=0, event_id=0, track=0, pts=-1),
    ],
)
def test_a_header_that_the_format_does_not_allow_is_refused(header: EventHeader) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the reason differs by case
        encode_event_header(header)
