"""Datagrams: header, several frames, limits."""

from __future__ import annotations

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.errors import ProtocolError
from voicestream.wire.datagram import Datagram, decode_datagram, encode_datagram
from voicestream.wire.frames import AnchorFrame, AudioFrame, PaddingFrame, ProbeFrame, ReportFrame

AUDIO = AudioFrame(pts=0x0304, payload=b"opus")


def test_a_datagram_of_one_audio_frame_costs_seven_bytes() -> None:
    encoded = encode_datagram(Datagram(number=0x0102, send_tick=0xFFFE, frames=(AUDIO,)))
    assert encoded == bytes.fromhex("0102 fffe 80 0304") + b"opus"
    assert decode_datagram(encoded) == Datagram(number=0x0102, send_tick=0xFFFE, frames=(AUDIO,))


@pytest.mark.parametrize("head", range(0x80, 0x100))
def test_every_audio_type_byte_is_read_alike_alone_and_after_another_frame(head: int) -> None:
    has_length = bool(head & 0x10)
    frame = bytes([head]) + b"\x00\x09" + (b"\x01" if has_length else b"") + b"p"
    expected = AudioFrame(
        track=head >> 5 & 3,
        pts=9,
        payload=b"p",
        clear_number=head & 3,
        talkspurt_start=bool(head & 8),
        talkspurt_end=bool(head & 4),
    )
    assert decode_datagram(bytes(4) + frame).frames == (expected,)
    assert decode_datagram(bytes(4) + b"\x1c\x02\x00\x09" + frame).frames == (AnchorFrame(pts=9), expected)


@pytest.mark.parametrize("pts", [0x8000, 0x8800, 0x9000, 0x6FFF, 0xFFFF])
def test_an_audio_frame_with_a_length_is_told_from_one_without_by_its_own_first_byte(pts: int) -> None:
    frames = (AudioFrame(pts=pts, payload=b"abc"), AudioFrame(pts=pts ^ 1, payload=b"defg"))
    assert decode_datagram(encode_datagram(Datagram(number=1, send_tick=2, frames=frames))).frames == frames


def test_a_datagram_without_frames_keeps_the_path_open() -> None:
    assert encode_datagram(Datagram(number=1, send_tick=2)) == bytes.fromhex("0001 0002")
    assert decode_datagram(bytes.fromhex("0001 0002")) == Datagram(number=1, send_tick=2)


def test_only_the_last_audio_frame_goes_without_length() -> None:
    frames = (AUDIO, AUDIO)
    encoded = encode_datagram(Datagram(number=0, send_tick=0, frames=frames))
    assert encoded == bytes(4) + bytes.fromhex("90 0304 04") + b"opus" + bytes.fromhex("80 0304") + b"opus"
    frames_reversed = (AUDIO, ReportFrame(newest=0, arrival=0))
    encoded = encode_datagram(Datagram(number=0, send_tick=0, frames=frames_reversed))
    assert encoded == bytes(4) + bytes.fromhex("90 0304 04") + b"opus" + bytes.fromhex("01 05 0000 0000 00")


def test_a_single_frame_of_another_type_is_written_and_read() -> None:
    datagram = Datagram(number=0, send_tick=0, frames=(AnchorFrame(pts=1),))
    assert decode_datagram(encode_datagram(datagram)) == datagram


def test_padding_before_and_behind_frames_is_one_frame_a_run() -> None:
    data = bytes(4) + bytes(2) + bytes.fromhex("1c 02 00 09") + bytes(3)
    assert decode_datagram(data).frames == (PaddingFrame(size=2), AnchorFrame(pts=9), PaddingFrame(size=3))


@pytest.mark.parametrize("size", [0, 3, 1201])
def test_a_datagram_too_short_or_too_long_is_an_error(size: int) -> None:
    with pytest.raises(ProtocolError, match=f"datagram of {size} bytes") as caught:
        decode_datagram(bytes(size))
    assert caught.value.code == ErrorCode.FRAME_ENCODING_ERROR


def test_a_datagram_of_the_largest_size_is_read_and_written() -> None:  # VS-3.2-3
    datagram = Datagram(number=0, send_tick=0, frames=(AudioFrame(pts=0, payload=bytes(1193)),))
    assert len(encode_datagram(datagram)) == 1200
    assert decode_datagram(encode_datagram(datagram)) == datagram
    with pytest.raises(ValueError, match="1200 bytes, not 1201"):
        encode_datagram(Datagram(number=0, send_tick=0, frames=(AudioFrame(pts=0, payload=bytes(1194)),)))


def test_64_frames_are_allowed_and_65_are_not() -> None:
    frames = (ProbeFrame(cluster=0),) * 64
    encoded = encode_datagram(Datagram(number=0, send_tick=0, frames=frames))
    assert decode_datagram(encoded).frames == frames
    with pytest.raises(ValueError, match="64 frames"):
        encode_datagram(Datagram(number=0, send_tick=0, frames=(*frames, *frames)))
    with pytest.raises(ProtocolError, match="64 frames"):
        decode_datagram(encoded + bytes(1))


@pytest.mark.parametrize(
    "frames",
    [
        "80",
        "80 0000",
        "90",
        "90 0000",
        "90 0000 00",
        "90 0000 02 aa",
        "90 0000 40",
        "1c 02 00 09 80 0000",
        "01",
        "01 05 0000",
        "01 40",
        "3d 01",
    ],
)
def test_a_frame_that_ends_too_early_is_an_error(frames: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_datagram(bytes(4) + bytes.fromhex(frames))
    assert caught.value.code == ErrorCode.FRAME_ENCODING_ERROR


@pytest.mark.parametrize(("number", "send_tick"), [(-1, 0), (65536, 0), (0, -1), (0, 65536)])
def test_a_header_out_of_range_is_refused(number: int, send_tick: int) -> None:
    with pytest.raises(ValueError, match="0 to 65535"):
        encode_datagram(Datagram(number=number, send_tick=send_tick))
