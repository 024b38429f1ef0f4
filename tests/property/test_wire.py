"""What holds for all bytes and all values of the wire."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeVar

from hypothesis import example, given
from hypothesis import strategies as st

from voicestream.codepoints import ErrorCode as E
from voicestream.codepoints import EventKind, MessageType
from voicestream.config import Track
from voicestream.errors import ProtocolError
from voicestream.testing import strategies as wire
from voicestream.wire import (
    MAX_VARINT,
    AudioFrame,
    CopyFrame,
    Datagram,
    EventHeader,
    EventParser,
    Frame,
    Message,
    MessageParser,
    Parameters,
    Reader,
    decode_datagram,
    decode_message,
    decode_parameters,
    encode_datagram,
    encode_event_header,
    encode_frame,
    encode_message,
    encode_parameters,
    encode_varint,
    frame_size,
    frame_units,
    opus_channels,
    opus_duration_units,
    opus_is_celt,
    tick_delta,
    ticks,
    unwrap,
    varint_size,
)

T = TypeVar("T")

CODES_OF_MESSAGES = {E.MESSAGE_ENCODING_ERROR, E.PARAMETER_ERROR, E.MESSAGE_TOO_LARGE}
CODES_OF_EVENTS = {E.EVENT_ENCODING_ERROR, E.EVENT_TOO_LARGE}


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    bounds = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[first:last] for first, last in itertools.pairwise(bounds)]


def value_or_error(codes: set[E], decode: Callable[[], T]) -> T | None:
    """What `decode` gives, or None when it raises ProtocolError with one of `codes`; any other exception fails the test."""
    try:
        return decode()
    except ProtocolError as error:
        code = error.code
    assert code in codes
    return None


def check_datagram(data: bytes) -> None:
    datagram = value_or_error({E.FRAME_ENCODING_ERROR}, lambda: decode_datagram(data))
    if datagram is not None:
        again = encode_datagram(datagram)
        assert len(again) <= len(data)
        assert decode_datagram(again) == datagram


def check_message(message_type: int, payload: bytes) -> None:
    message = value_or_error(CODES_OF_MESSAGES, lambda: decode_message(message_type, payload))
    if message is not None:
        assert MessageParser().feed(encode_message(message)) == [message]


# ----------------------------------------------------------------------------- integers


@given(wire.varints())
def test_a_varint_comes_back_in_its_shortest_form(value: int) -> None:
    encoded = encode_varint(value)
    assert len(encoded) == varint_size(value)
    assert Reader(encoded).varint() == value
    assert all(value >> (8 * size - 2) for size in (1, 2, 4) if size < len(encoded)), "a shorter form would hold it"


@given(wire.varints(high=63))
def test_every_longer_form_of_a_varint_is_accepted(value: int) -> None:
    for size, prefix in ((2, 0x40), (4, 0x80), (8, 0xC0)):
        assert Reader(bytes([prefix]) + value.to_bytes(size - 1, "big")).varint() == value


@given(st.integers(0, MAX_VARINT), st.integers(-0x8000, 0x7FFF))
def test_unwrap_finds_every_number_within_half_the_space(reference: int, distance: int) -> None:
    full = reference + distance
    if full >= 0 and distance > -0x8000:
        assert unwrap(full & 0xFFFF, reference) == full
    found = unwrap(full & 0xFFFF, reference)
    assert found >= 0
    assert found & 0xFFFF == full & 0xFFFF
    assert abs(found - reference) <= 0x8000 or reference < 0x8000


@given(wire.u16(), st.integers(-0x8000, 0x7FFF))
def test_the_difference_of_two_ticks_is_signed(earlier: int, distance: int) -> None:
    assert tick_delta((earlier + distance) & 0xFFFF, earlier) == distance


@given(st.floats(0, 1e6), st.floats(0, 8))
def test_ticks_measure_time(now: float, later: float) -> None:
    assert abs(tick_delta(ticks(now + later), ticks(now)) - later * 4000) <= 1.001


# ----------------------------------------------------------------------------- frames and datagrams


@given(wire.frames())
def test_every_frame_comes_back(frame: Frame) -> None:
    for others in ((), (AudioFrame(pts=0, payload=b"x"),)):
        datagram = Datagram(number=1, send_tick=2, frames=(frame, *others))
        encoded = encode_datagram(datagram)
        assert decode_datagram(encoded) == datagram
        assert len(encoded) == 4 + frame_size(frame, last=not others) + (4 if others else 0)


@given(wire.frames(), st.booleans())
def test_the_size_of_a_frame_is_what_it_takes(frame: Frame, last: bool) -> None:
    assert frame_size(frame, last) == len(encode_frame(frame, last))


@given(wire.datagrams())
def test_every_datagram_comes_back(datagram: Datagram) -> None:
    assert decode_datagram(encode_datagram(datagram)) == datagram


@given(wire.datagrams(), st.data())
def test_a_datagram_cut_anywhere_is_a_value_or_an_error(datagram: Datagram, data: st.DataObject) -> None:
    encoded = encode_datagram(datagram)
    check_datagram(encoded[: data.draw(st.integers(0, len(encoded)))])


@given(st.binary(max_size=1300))
@example(b"")
@example(bytes(4) + b"\x80\x00\x00")
@example(bytes(4) + b"\x90\x00\x00\x00")
@example(bytes(4) + b"\x01\xff" + b"\xff" * 7)
def test_any_bytes_are_a_datagram_or_an_error(data: bytes) -> None:  # VS-15-4
    check_datagram(data)


@given(wire.mutated(wire.datagrams().map(encode_datagram)))
def test_a_damaged_datagram_is_a_value_or_an_error(data: bytes) -> None:
    check_datagram(data)


@given(st.integers(0x01, 0x7F), st.binary(max_size=80))
def test_any_body_of_any_frame_type_is_a_value_or_an_error(frame_type: int, body: bytes) -> None:
    check_datagram(bytes(4) + bytes([frame_type]) + encode_varint(len(body)) + body)


@given(wire.copy_frames())
def test_the_flags_of_a_copy_and_of_audio_are_the_same(copy: CopyFrame) -> None:
    audio = AudioFrame(
        track=copy.track,
        pts=copy.pts,
        payload=copy.payload,
        clear_number=copy.clear_number,
        talkspurt_start=copy.talkspurt_start,
        talkspurt_end=copy.talkspurt_end,
    )
    length = varint_size(3 + len(copy.payload))
    assert encode_frame(copy)[1 + length] == encode_frame(audio, last=True)[0] & 0x0F


# ----------------------------------------------------------------------------- parameters and messages


@given(wire.parameters())
def test_every_parameter_list_comes_back(parameters: Parameters) -> None:
    assert decode_parameters(encode_parameters(parameters)) == parameters


@given(st.binary(max_size=300) | wire.mutated(wire.parameters().map(encode_parameters)))
def test_any_bytes_are_a_parameter_list_or_an_error(data: bytes) -> None:
    parameters = value_or_error({E.PARAMETER_ERROR}, lambda: decode_parameters(data))
    if parameters is not None:
        assert decode_parameters(encode_parameters(parameters)) == parameters


@given(wire.control_streams(), st.lists(st.integers(0, 100000), max_size=8))
def test_messages_come_back_however_the_stream_is_cut(stream: tuple[list[Message], bytes], cuts: list[int]) -> None:
    messages, data = stream
    parser = MessageParser()
    found = [message for piece in pieces(data, cuts) for message in parser.feed(piece)]
    assert found == messages
    assert not parser.in_message


@given(wire.messages(), st.data())
def test_a_message_not_all_there_is_being_waited_for(message: Message, data: st.DataObject) -> None:
    encoded = encode_message(message)
    parser = MessageParser()
    assert parser.feed(encoded[: data.draw(st.integers(1, len(encoded) - 1))]) == []
    assert parser.in_message


@given(st.sampled_from(list(MessageType)) | wire.varints(), st.binary(max_size=300))
def test_any_payload_of_any_message_type_is_a_value_or_an_error(message_type: int, payload: bytes) -> None:
    check_message(message_type, payload)


@given(st.data())
def test_a_damaged_message_is_a_value_or_an_error(data: st.DataObject) -> None:
    encoded = data.draw(wire.messages().map(encode_message))
    reader = Reader(encoded)
    message_type, _ = reader.varint(), reader.varint()
    check_message(message_type, data.draw(wire.mutated(st.just(reader.rest()))))


@given(st.binary(max_size=300) | wire.mutated(wire.control_streams().map(lambda stream: stream[1])))
def test_any_bytes_on_the_control_stream_are_messages_or_an_error(data: bytes) -> None:  # VS-15-4
    for message in value_or_error(CODES_OF_MESSAGES, lambda: MessageParser().feed(data)) or ():
        assert MessageParser().feed(encode_message(message)) == [message]


# ----------------------------------------------------------------------------- events


@given(wire.event_headers(), st.binary(max_size=300), st.lists(st.integers(0, 100000), max_size=5))
def test_events_come_back_however_the_stream_is_cut(header: EventHeader, payload: bytes, cuts: list[int]) -> None:
    if header.kind in (EventKind.TEXT, EventKind.JSON):
        payload = payload.decode("latin-1").encode()
    parser = EventParser(max_size=len(payload))
    parts = pieces(encode_event_header(header) + payload, cuts)
    found = [parser.feed(part, fin=index == len(parts) - 1) for index, part in enumerate(parts)]
    assert found == [None] * (len(parts) - 1) + [(header, payload)]


@given(st.binary(max_size=100) | wire.mutated(wire.event_headers().map(encode_event_header)), st.integers(0, 60))
def test_any_bytes_on_an_event_stream_are_an_event_or_an_error(data: bytes, max_size: int) -> None:
    found = value_or_error(CODES_OF_EVENTS, lambda: EventParser(max_size).feed(data, fin=True))
    if found is not None:
        header, payload = found
        assert EventParser(max_size).feed(encode_event_header(header) + payload, fin=True) == found


# ----------------------------------------------------------------------------- media


@given(st.binary(max_size=1400) | st.integers(0, 255).flatmap(lambda toc: st.binary(max_size=30).map(lambda rest: bytes([toc]) + rest)))
def test_any_bytes_are_an_opus_packet_of_1_to_48_units_or_an_error(packet: bytes) -> None:
    units = value_or_error({E.MEDIA_ERROR}, lambda: opus_duration_units(packet))
    if units is not None:
        assert 1 <= units <= 48
        assert opus_channels(packet) in (1, 2)
        assert opus_is_celt(packet) or units >= 4


@given(wire.tracks(), st.binary(max_size=2000))
def test_any_payload_of_any_track_has_1_to_48_units_or_is_an_error(track: Track, payload: bytes) -> None:
    units = value_or_error({E.MEDIA_ERROR}, lambda: frame_units(track, payload))
    assert units is None or 1 <= units <= 48
