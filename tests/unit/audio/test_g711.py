from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from voicestream.audio.g711 import alaw_decode, alaw_encode, ulaw_decode, ulaw_encode

ALL_PCM = np.arange(-32768, 32768).astype(np.int16)
LAWS = [pytest.param(ulaw_encode, ulaw_decode, id="ulaw"), pytest.param(alaw_encode, alaw_decode, id="alaw")]
Encode = Callable[[np.ndarray], bytes]
Decode = Callable[[bytes], np.ndarray]


@pytest.mark.parametrize(
    ("sample", "code"), [(0, 0xFF), (-4, 0x7F), (-8, 0x7E), (8, 0xFE), (32767, 0x80), (-32768, 0x00), (1000, 0xCE), (-1000, 0x4E)]
)
def test_ulaw_codes_of_known_samples(sample: int, code: int) -> None:
    assert ulaw_encode(np.array([sample], dtype=np.int16)) == bytes([code])


@pytest.mark.parametrize(("sample", "code"), [(0, 0xD5), (-1, 0x55), (32767, 0xAA), (-32768, 0x2A), (1000, 0xFA), (-1000, 0x7A)])
def test_alaw_codes_of_known_samples(sample: int, code: int) -> None:
    assert alaw_encode(np.array([sample], dtype=np.int16)) == bytes([code])


def test_the_loudest_codes_decode_to_the_values_of_the_recommendation() -> None:
    assert ulaw_decode(b"\x80\x00\xff\x7f").tolist() == [32124, -32124, 0, 0]
    assert alaw_decode(b"\xaa\x2a\xd5\x55").tolist() == [32256, -32256, 8, -8]


@pytest.mark.parametrize(("encode", "decode"), LAWS)
def test_every_code_survives_a_round_trip(encode: Encode, decode: Decode) -> None:
    codes = bytes(range(256))
    pcm = decode(codes)
    assert np.array_equal(decode(encode(pcm)), pcm)
    # µ-law has two codes for zero; all others come back as they were.
    assert sum(a != b for a, b in zip(codes, encode(pcm), strict=True)) <= 1


@pytest.mark.parametrize(("encode", "decode"), LAWS)
def test_every_sample_comes_back_within_half_a_step(encode: Encode, decode: Decode) -> None:
    error = np.abs(decode(encode(ALL_PCM)).astype(int) - ALL_PCM)
    size = np.abs(ALL_PCM.astype(int))
    inside = size <= 32000
    assert (error[inside] <= np.maximum(size[inside] / 23, 8)).all()


@pytest.mark.parametrize(("encode", "decode"), LAWS)
def test_louder_never_decodes_to_softer(encode: Encode, decode: Decode) -> None:
    assert (np.diff(decode(encode(ALL_PCM)).astype(int)) >= 0).all()


def test_stereo_is_interleaved() -> None:
    stereo = np.array([[1000, -1000], [0, 8]], dtype=np.int16)
    assert ulaw_encode(stereo) == ulaw_encode(np.array([1000, -1000, 0, 8], dtype=np.int16))
