"""Integers and bytes: the examples of RFC 9000 appendix A.1, and every way to run out."""

from __future__ import annotations

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.errors import ProtocolError
from voicestream.wire.buffer import MAX_VARINT, Reader, Writer, encode_varint, peek_varint, varint_size

EXAMPLES = [
    ("c2197c5eff14e88c", 151288809941952652),
    ("9d7f3e7d", 494878333),
    ("7bbd", 15293),
    ("25", 37),
    ("00", 0),
]


@pytest.mark.parametrize(("encoded", "value"), EXAMPLES)
def test_the_examples_of_rfc_9000_and_zero_are_read_and_written(encoded: str, value: int) -> None:
    assert Reader(bytes.fromhex(encoded)).varint() == value
    assert encode_varint(value) == bytes.fromhex(encoded)
    assert varint_size(value) == len(encoded) // 2


def test_a_varint_in_a_longer_form_than_needed_is_read() -> None:
    assert Reader(bytes.fromhex("4025")).varint() == 37


@pytest.mark.parametrize("value", [-1, MAX_VARINT + 1])
def test_a_number_outside_62_bits_is_refused(value: int) -> None:
    for encode in (encode_varint, varint_size, Writer().varint):
        with pytest.raises(ValueError, match=r"0 to 2\^62-1"):
            encode(value)


@pytest.mark.parametrize("encoded", ["", "40", "800000", "c0000000000000"])
def test_a_varint_that_has_not_all_come_is_none_to_peek_and_an_error_to_read(encoded: str) -> None:
    assert peek_varint(bytes.fromhex(encoded), 0) is None
    with pytest.raises(ProtocolError, match="inside an integer"):
        Reader(bytes.fromhex(encoded)).varint()


def test_peek_gives_the_value_and_the_position_after_it() -> None:
    assert peek_varint(bytearray.fromhex("ff7bbdff"), 1) == (15293, 3)


def test_the_error_carries_the_code_that_the_reader_was_made_with() -> None:
    for code in (ErrorCode.FRAME_ENCODING_ERROR, ErrorCode.PARAMETER_ERROR):
        with pytest.raises(ProtocolError) as caught:
            Reader(b"", code).u8()
        assert caught.value.code == code
        assert Reader(b"", code).error("why").code == code
        with pytest.raises(ProtocolError, match="why"):
            Reader(b"", code).require(False, "why")


def test_values_are_taken_in_turn() -> None:
    reader = Reader(bytes.fromhex("01 0203 25 0405 060708"))
    assert (reader.u8(), reader.u16(), reader.varint(), reader.bytes(2)) == (1, 0x0203, 37, b"\x04\x05")
    assert (reader.remaining, reader.at_end) == (3, False)
    with pytest.raises(ProtocolError, match="3 bytes too many in a test"):
        reader.end("a test")
    assert reader.rest() == b"\x06\x07\x08"
    assert (reader.remaining, reader.at_end, reader.rest()) == (0, True, b"")
    reader.end("a test")
    reader.require(True, "never raised")


@pytest.mark.parametrize("size", [1, 2])
def test_taking_more_than_is_there_is_an_error(size: int) -> None:
    reader = Reader(bytes(size - 1))
    with pytest.raises(ProtocolError):
        reader.u8() if size == 1 else reader.u16()


def test_a_writer_writes_what_a_reader_reads() -> None:
    writer = Writer()
    writer.u8(255)
    writer.u16(0xABCD)
    writer.varint(64)
    writer.bytes(b"xyz")
    assert writer.data() == bytes.fromhex("ff abcd 4040") + b"xyz"


def test_a_writer_refuses_what_its_form_cannot_hold() -> None:
    for value in (-1, 256):
        with pytest.raises(ValueError, match="0 to 255"):
            Writer().u8(value)
    for value in (-1, 65536):
        with pytest.raises(ValueError, match="0 to 65535"):
            Writer().u16(value)
