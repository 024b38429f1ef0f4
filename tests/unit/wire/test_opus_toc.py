"""Durations of coded frames: RFC 6716's table and its rules R1 to R7, and PCM."""

from __future__ import annotations

import pytest

from voicestream.codepoints import CodecId, ErrorCode
from voicestream.config import Track
from voicestream.errors import ProtocolError
from voicestream.wire.opus_toc import frame_units, opus_channels, opus_duration_units, opus_is_celt

# Milliseconds of one frame by configuration number, from RFC 6716 table 2.
TABLE_2_MS = [10, 20, 40, 60] * 3 + [10, 20] * 2 + [2.5, 5, 10, 20] * 4


@pytest.mark.parametrize("config", range(32))
def test_the_duration_of_each_configuration_is_that_of_rfc_6716(config: int) -> None:
    toc = config << 3
    one = TABLE_2_MS[config] / 2.5
    assert opus_duration_units(bytes([toc, 1, 2])) == one
    assert opus_duration_units(bytes([toc | 1, 1, 2])) == 2 * one
    assert opus_duration_units(bytes([toc | 2, 1, 2])) == 2 * one
    most = int(48 // one)
    assert opus_duration_units(bytes([toc | 3, most])) == most * one
    with pytest.raises(ProtocolError, match="frames of"):
        opus_duration_units(bytes([toc | 3, most + 1]))


@pytest.mark.parametrize("config", range(32))
def test_mode_and_channels_are_in_the_first_byte(config: int) -> None:
    assert opus_is_celt(bytes([config << 3])) == (config >= 16)
    assert opus_channels(bytes([config << 3])) == 1
    assert opus_channels(bytes([config << 3 | 4])) == 2


VALID = [
    ("48", 8, "a frame of no bytes, as in DTX"),
    ("48" + "00" * 1275, 8, "R2: the largest frame"),
    ("49" + "00" * 2550, 16, "R2, R3: two of the largest"),
    ("4a 00", 16, "code 2 with two empty frames"),
    ("4a 01 aa bb", 16, "code 2"),
    ("4a fc 00" + "00" * 252, 16, "code 2 with a length of two bytes (252)"),
    ("4a ff ff" + "00" * 1275, 16, "code 2 with the largest length"),
    ("4b 03", 24, "code 3, equal empty frames"),
    ("4b 02 aabb ccdd", 16, "code 3, two equal frames"),
    ("4b 42 02 aabb ccdd 0000", 16, "code 3 with padding"),
    ("4b 41 ff 00" + "00" * 254, 8, "code 3 with padding of 254 bytes"),
    ("4b 83 01 02 aa bbbb cccccc", 24, "code 3, frames of different lengths"),
    ("4b c2 01 01 aa bb 00", 16, "code 3, different lengths and padding"),
    ("4b 81 aa", 8, "code 3, one frame"),
    ("e3 30" + "00" * 48, 48, "48 frames of 2.5 ms"),
]


@pytest.mark.parametrize(("packet", "units", "why"), VALID, ids=[why for _, _, why in VALID])
def test_a_well_formed_packet_has_a_duration(packet: str, units: int, why: str) -> None:
    assert opus_duration_units(bytes.fromhex(packet)) == units


BAD = [
    ("", "R1"),
    ("48" + "00" * 1276, "R2 code 0"),
    ("49" + "00" * 2552, "R2 code 1"),
    ("4a 00" + "00" * 1276, "R2 code 2"),
    ("4b 01" + "00" * 1276, "R2 code 3, equal"),
    ("4b 81" + "00" * 1276, "R2 code 3, different"),
    ("49 00", "R3"),
    ("4a", "R4: no length"),
    ("4a fc", "R4: half a length"),
    ("4a 02 aa", "R4: frame too short"),
    ("4b", "no frame count"),
    ("4b 00", "R5: no frame"),
    ("4b 07", "R5: 140 ms"),
    ("e3 31", "R5: 122.5 ms"),
    ("4b 02 aabb cc", "R6"),
    ("4b 42 02 aabb cc 0000", "R6 with padding"),
    ("4b 41", "padding length not there"),
    ("4b 41 ff", "padding length not all there"),
    ("4b 41 03 0000", "padding larger than the packet"),
    ("4b 82", "R7: no length"),
    ("4b 82 fd", "R7: half a length"),
    ("4b 82 02 aa", "R7: frame too short"),
    ("4b c2 01 02 aa bb 00", None),
    ("4b c2 01 02 00", "R7: length inside the padding"),
]


@pytest.mark.parametrize(("packet", "why"), BAD, ids=[str(why) for _, why in BAD])
def test_a_malformed_packet_is_a_media_error(packet: str, why: str | None) -> None:
    data = bytes.fromhex(packet)
    if why is None:
        assert opus_duration_units(data) == 16
        return
    with pytest.raises(ProtocolError) as caught:
        opus_duration_units(data)
    assert caught.value.code == ErrorCode.MEDIA_ERROR


def test_an_empty_packet_has_no_mode_and_no_channels() -> None:
    for question in (opus_is_celt, opus_channels):
        with pytest.raises(ProtocolError):
            question(b"")


@pytest.mark.parametrize(
    ("track", "size", "units"),
    [
        (Track(codec=CodecId.PCMU, clock_rate_hz=8000), 160, 8),
        (Track(codec=CodecId.PCMA, clock_rate_hz=8000, channels=2), 40, 1),
        (Track(codec=CodecId.L16, clock_rate_hz=16000), 640, 8),
        (Track(codec=CodecId.L16, clock_rate_hz=48000, channels=2), 4 * 48 * 120, 48),
        (Track(codec=CodecId.L16, clock_rate_hz=16000, frame_units=8), 640, 8),
        (Track(codec=CodecId.PRIVATE, frame_units=24), 1, 24),
        (Track(codec=0x1234, frame_units=1), 1, 1),
    ],
)
def test_the_units_of_a_frame_follow_from_its_track_and_size(track: Track, size: int, units: int) -> None:
    assert frame_units(track, bytes(size)) == units


def test_an_opus_frame_may_have_other_channels_than_its_track() -> None:
    stereo = b"\x4cx"
    assert opus_channels(stereo) == 2
    assert frame_units(Track(channels=1), stereo) == 8  # VS-6.4-2


def test_the_units_of_an_opus_frame_are_in_it() -> None:
    assert frame_units(Track(), b"\x48x") == 8
    assert frame_units(Track(frame_units=8), b"\x48x") == 8


@pytest.mark.parametrize(
    ("track", "size"),
    [
        (Track(codec=CodecId.PCMU, clock_rate_hz=8000), 0),
        (Track(codec=CodecId.PCMU, clock_rate_hz=8000), 161),
        (Track(codec=CodecId.PCMU, clock_rate_hz=8000), 980),
        (Track(codec=CodecId.L16, clock_rate_hz=8000), 161),
        (Track(codec=CodecId.L16, clock_rate_hz=44100), 441),
        (Track(codec=CodecId.L16, clock_rate_hz=16000, frame_units=4), 640),
        (Track(frame_units=4), 0),
        (Track(codec=0x1234), 10),
    ],
)
def test_a_payload_that_does_not_fit_its_track_is_a_media_error(track: Track, size: int) -> None:
    with pytest.raises(ProtocolError) as caught:
        frame_units(track, bytes(size))
    assert caught.value.code == ErrorCode.MEDIA_ERROR


def test_opus_of_another_length_than_agreed_is_a_media_error() -> None:
    with pytest.raises(ProtocolError, match="8 units on a track of 4"):
        frame_units(Track(frame_units=4), b"\x48x")
