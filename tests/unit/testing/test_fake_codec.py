from __future__ import annotations

import pytest

from voicestream.testing.fake_codec import FakeCodec


def test_a_packet_tells_its_media_time() -> None:
    codec = FakeCodec()
    payload = codec.encode(800, 8)
    assert codec.is_own(payload, 800, 8)
    assert not codec.is_own(payload, 808, 8)
    assert not codec.is_own(payload, 800, 8, track=1)
    assert not FakeCodec(seed=1).is_own(payload, 800, 8)
    assert not codec.is_own(payload[:8], 800, 8)


def test_the_size_follows_from_the_bitrate() -> None:
    assert len(FakeCodec(bitrate_bps=24000).encode(0, 8)) == 60
    assert len(FakeCodec(bitrate_bps=24000).encode(0, 24)) == 180
    assert len(FakeCodec(bitrate_bps=510000).encode(0, 24)) == 1276  # the most that one Opus frame holds
    assert len(FakeCodec().encode(0, 8, size_bytes=33)) == 33


def test_a_variable_bitrate_keeps_its_mean() -> None:
    codec = FakeCodec(bitrate_bps=24000, size_jitter=0.2)
    sizes = [len(codec.encode(pts, 8)) for pts in range(0, 16000, 8)]
    assert len(set(sizes)) > 10
    assert sum(sizes) / len(sizes) == pytest.approx(60, rel=0.03)


@pytest.mark.parametrize(
    ("units", "celt", "config"),
    [(4, True, 30), (8, True, 31), (4, False, 8), (8, False, 9), (16, False, 10), (24, True, 11)],
)
def test_the_first_byte_is_opus_for_the_length(units: int, celt: bool, config: int) -> None:
    assert FakeCodec(celt=celt).encode(0, units)[0] == config << 3


def test_what_no_codec_could_do_is_refused() -> None:
    with pytest.raises(ValueError, match="Opus frame lasts"):
        FakeCodec().encode(0, 7)
    with pytest.raises(ValueError, match="bitrate_bps"):
        FakeCodec(bitrate_bps=5999)
