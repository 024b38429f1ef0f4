"""The first look at a packet."""

from __future__ import annotations

import pytest
from aioquic.quic.packet import QuicErrorCode
from hypothesis import given
from hypothesis import strategies as st

from voicestream.quic.packets import Preamble, encode_initial_close, initial_token, read_preamble


def test_a_short_header_tells_only_the_connection_id() -> None:
    assert read_preamble(b"\x40abcdefgh and more", 8) == Preamble(None, b"abcdefgh", b"")
    assert read_preamble(b"\x40ab", 2) == Preamble(None, b"ab", b"")
    assert read_preamble(b"\x40abcdefg", 8) is None


def test_a_long_header_tells_version_and_both_ids() -> None:
    packet = b"\xc3\x00\x00\x00\x01\x03abc\x02de rest of it"
    assert read_preamble(packet, 8) == Preamble(1, b"abc", b"de")
    assert read_preamble(packet[:11], 1) is None
    assert read_preamble(packet[:12], 1) == Preamble(1, b"abc", b"de")


@given(st.binary(max_size=60), st.integers(1, 20))
def test_no_bytes_make_the_first_look_fail(data: bytes, id_length: int) -> None:
    preamble = read_preamble(data, id_length)
    if preamble is not None:
        assert preamble.destination_id in data
    assert initial_token(data) in (None, b"") or initial_token(data) in data


def test_a_refusal_is_an_initial_of_the_server() -> None:
    packet = encode_initial_close(
        version=1, destination_id=b"12345678", source_id=b"abcd", code=QuicErrorCode.CONNECTION_REFUSED, reason="é" * 200
    )
    assert read_preamble(packet, 8) == Preamble(1, b"abcd", b"12345678")
    assert initial_token(packet) == b""
    assert len(packet) < 300


@pytest.mark.parametrize("data", [b"", b"\xc0", b"\x40" + bytes(50), b"\xe0\x00\x00\x00\x01\x00\x00" + bytes(50)])
def test_other_packets_have_no_token(data: bytes) -> None:
    assert initial_token(data) is None
