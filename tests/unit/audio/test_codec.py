from __future__ import annotations

import itertools

import numpy as np
import pytest

from voicestream.audio.codec import Encoder, make_decoder, make_encoder
from voicestream.audio.library import PacketError
from voicestream.audio.speech import sample_speech
from voicestream.codepoints import CodecId
from voicestream.config import AudioConfig, Track
from voicestream.errors import AudioError
from voicestream.wire.opus_toc import frame_units, has_inband_copy, opus_is_celt

PCM_CODECS = [CodecId.PCMU, CodecId.PCMA, CodecId.L16]


def sine(samples: int, channels: int) -> np.ndarray:
    mono = (9000 * np.sin(np.arange(samples) / 9)).astype(np.int16)
    return mono if channels == 1 else np.stack([mono // (i + 1) for i in range(channels)], axis=1)


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("codec", PCM_CODECS)
def test_pcm_codecs_give_back_what_they_took(codec: CodecId, channels: int) -> None:
    track = Track(codec=codec, clock_rate_hz=8000, channels=channels)
    encoder, decoder = make_encoder(track, AudioConfig(sample_rate_hz=8000)), make_decoder(track, 48000, channels)
    pcm = sine(160, channels)
    payload, silent = encoder.encode(pcm)
    assert not silent
    assert frame_units(track, payload) == 8
    out = decoder.decode(payload)
    assert (decoder.sample_rate_hz, decoder.channels) == (8000, channels)
    assert out.shape == pcm.shape
    assert np.abs(out.astype(int) - pcm).max() <= (0 if codec == CodecId.L16 else 300)


def test_l16_is_in_network_byte_order() -> None:
    encoder = make_encoder(Track(codec=CodecId.L16, clock_rate_hz=8000), AudioConfig(sample_rate_hz=8000))
    assert encoder.encode(np.array([0x0102, -2], dtype=np.int16))[0] == b"\x01\x02\xff\xfe"


@pytest.mark.parametrize(
    ("rate", "channels", "frame_ms", "units"),
    [(8000, 1, 20, 8), (8000, 1, 60, 24), (48000, 1, 20, 4), (16000, 1, 40, 13), (44100, 1, 20, 4), (48000, 2, 60, 2), (22050, 1, 20, 8)],
)
def test_frames_of_l16_fit_a_datagram_and_hold_whole_samples(rate: int, channels: int, frame_ms: int, units: int) -> None:
    track = Track(codec=CodecId.L16, clock_rate_hz=rate, channels=channels)
    encoder = make_encoder(track, AudioConfig())
    assert encoder.frame_units(frame_ms) == units
    payload, _ = encoder.encode(sine(rate * units // 400, channels))
    assert len(payload) <= 1100
    assert frame_units(track, payload) == units


def test_a_form_of_l16_that_fits_no_datagram_is_refused_when_the_encoder_is_made() -> None:
    with pytest.raises(ValueError, match="fits a datagram"):
        make_encoder(Track(codec=CodecId.L16, clock_rate_hz=192000, channels=2), AudioConfig())


def test_a_track_with_a_fixed_frame_length_gets_it() -> None:
    encoder = make_encoder(Track(codec=CodecId.PCMU, clock_rate_hz=8000, frame_units=12), AudioConfig())
    assert encoder.frame_units(20) == 12


@pytest.mark.parametrize(("frame_ms", "units"), [(10, 4), (20, 8), (40, 16), (60, 24)])
def test_opus_takes_all_four_frame_lengths(frame_ms: int, units: int) -> None:
    assert make_encoder(Track(), AudioConfig()).frame_units(frame_ms) == units


@pytest.mark.parametrize(("rate", "coded"), [(8000, 8000), (16000, 16000), (44100, 48000), (48000, 48000), (96000, 48000)])
def test_opus_works_at_the_applications_rate_where_it_can(rate: int, coded: int) -> None:
    assert make_encoder(Track(), AudioConfig(sample_rate_hz=rate)).sample_rate_hz == coded
    assert make_decoder(Track(), rate).sample_rate_hz == coded


def test_opus_settings_are_applied() -> None:
    encoder = make_encoder(Track(), AudioConfig(sample_rate_hz=16000, bitrate_bps=64000))
    noise = np.random.default_rng(1).integers(-5000, 5000, 320).astype(np.int16)
    large = [len(encoder.encode(noise)[0]) for _ in range(5)]
    encoder.apply(8000, 0)
    small = [len(encoder.encode(noise)[0]) for _ in range(5)]
    assert max(small) < min(large)


def test_pcm_ignores_bitrates() -> None:
    encoder = make_encoder(Track(codec=CodecId.PCMA, clock_rate_hz=8000), AudioConfig())
    encoder.apply(8000, 10)
    assert len(encoder.encode(sine(160, 1))[0]) == 160
    assert encoder.lookahead == 0


@pytest.mark.parametrize("codec", PCM_CODECS)
@pytest.mark.parametrize("payload", [b"", b"abc"])
def test_a_payload_of_broken_samples_is_a_packet_error(codec: CodecId, payload: bytes) -> None:
    decoder = make_decoder(Track(codec=codec, clock_rate_hz=8000, channels=2))
    with pytest.raises(PacketError, match="whole number of samples"):
        decoder.decode(payload)


def test_pcm_decoders_have_no_concealment_and_no_copy() -> None:
    decoder = make_decoder(Track(codec=CodecId.PCMU, clock_rate_hz=8000))
    assert decoder.conceal(80) is None
    assert not decoder.has_inband_copy(b"abc")
    with pytest.raises(PacketError):
        decoder.decode_fec(b"abc", 80)
    decoder.mark()
    decoder.back_to_mark()
    decoder.reset()
    assert decoder.new().sample_rate_hz == 8000


def test_dtx_of_pcm_is_decided_by_the_level() -> None:
    encoder = make_encoder(Track(codec=CodecId.PCMU, clock_rate_hz=8000), AudioConfig(dtx=True))
    assert not encoder.encode(sine(160, 1))[1]
    assert [encoder.encode(np.zeros(160, dtype=np.int16))[1] for _ in range(20)][-1]


@pytest.mark.parametrize("codec", [CodecId.PRIVATE, 0x77])
def test_a_codec_that_is_not_built_in_is_told(codec: int) -> None:
    track = Track(codec=codec, frame_units=8)
    with pytest.raises(AudioError, match=f"codec {int(codec)} has no built-in"):
        make_encoder(track, AudioConfig())
    with pytest.raises(AudioError, match="send and take its coded frames yourself"):
        make_decoder(track)


def test_a_channel_count_that_cannot_be_played_is_refused() -> None:
    with pytest.raises(ValueError, match="channels must be 1 or 2"):
        make_decoder(Track(), 48000, 3)


@pytest.mark.parametrize(("coded", "played"), [(2, 1), (1, 2), (6, 1), (6, 2)])
def test_pcm_of_any_channel_count_is_mixed_to_what_is_played(coded: int, played: int) -> None:
    track = Track(codec=CodecId.L16, clock_rate_hz=8000, channels=coded)
    payload = np.full(80 * coded, 1000, dtype=">i2").tobytes()
    out = make_decoder(track, 8000, played).decode(payload)
    assert out.shape == ((80,) if played == 1 else (80, 2))
    assert (out == 1000).all()


def test_a_decoder_goes_back_to_its_mark_as_if_nothing_had_happened() -> None:
    encoder = make_encoder(Track(), AudioConfig(sample_rate_hz=16000))
    packets = [encoder.encode(sine(320 * 12, 1)[i * 320 : (i + 1) * 320])[0] for i in range(12)]
    straight, disturbed = make_decoder(Track(), 16000), make_decoder(Track(), 16000)
    for packet in packets[:10]:
        straight.decode(packet)
        disturbed.decode(packet)
    disturbed.mark()
    disturbed.conceal(700)
    disturbed.decode(packets[0])
    disturbed.back_to_mark()
    for packet in packets[10:]:
        assert np.array_equal(straight.decode(packet), disturbed.decode(packet))


def test_copies_are_made_when_asked_for_small_and_of_the_same_length() -> None:
    encoder, decoder = make_encoder(Track(), AudioConfig(bitrate_bps=40000)), make_decoder(Track(), 48000, 1)
    pcm = sine(960, 1)
    assert encoder.encode_copy(pcm) is None
    encoder.apply(40000, 0, 8000)
    for _ in range(5):
        payload, _ = encoder.encode(pcm)
        copy = encoder.encode_copy(pcm)
    assert copy is not None
    assert len(copy) < len(payload) / 2
    assert len(decoder.new().decode(copy)) == 960
    assert copy[0] >> 3 in range(8, 12)  # SILK, wide-band
    encoder.apply(40000, 0, 0)
    assert encoder.encode_copy(pcm) is None


def test_codecs_of_a_fixed_rate_make_no_copies() -> None:
    encoder = make_encoder(Track(codec=CodecId.PCMU, clock_rate_hz=8000), AudioConfig(sample_rate_hz=8000))
    encoder.apply(8000, 0, 8000)
    assert encoder.encode_copy(sine(160, 1)) is None


def bands(encoder: Encoder, frames: int) -> set[bool]:
    """Whether frames of 60 ms are coded as 8 kHz of audio (SILK, RFC 6716, table 2)."""
    return {encoder.encode(sine(2880, 1))[0][0] >> 3 in (8, 9, 10, 11) for _ in range(frames)}


def test_speech_keeps_its_band_for_ten_seconds_when_bits_become_few() -> None:
    encoder = make_encoder(Track(), AudioConfig(bitrate_bps=24000))
    forced = []
    encoder._opus.set_bandwidth = forced.append
    encoder._opus.free_bandwidth = lambda: forced.append("free")
    encoder.apply(9000, 0)
    assert forced == []
    encoder.apply(8000, 0)
    bands(encoder, 166)
    assert forced == ["wide"]
    bands(encoder, 1)
    assert forced == ["wide", "free"]
    encoder.apply(24000, 0)
    encoder.apply(8000, 0)
    encoder.apply(24000, 0)
    assert forced == ["wide", "free", "wide", "free"]


def test_few_bits_for_a_moment_are_no_narrower_speech() -> None:
    encoder = make_encoder(Track(), AudioConfig(bitrate_bps=24000))
    bands(encoder, 10)
    encoder.apply(8000, 0)
    assert bands(encoder, 20) == {True}
    low = make_encoder(Track(), AudioConfig(bitrate_bps=8000))
    assert True not in bands(low, 20)


@pytest.mark.parametrize("part", [0.5, 1.0])
def test_in_band_copies_are_made_for_a_part_of_the_frames(part: float) -> None:
    encoder = make_encoder(Track(), AudioConfig(sample_rate_hz=16000, bitrate_bps=30000))
    encoder.apply(30000, 5, 0, part)
    speech = sample_speech(6.0, 16000)
    packets = [encoder.encode(speech[at : at + 320])[0] for at in range(0, len(speech) - 319, 320)]
    with_copy = sum(has_inband_copy(packet) for packet in packets) / len(packets)
    assert 0.3 < with_copy < 0.6 if part == 0.5 else with_copy > 0.65
    modes = [opus_is_celt(packet) for packet in packets]
    assert sum(mode != before for before, mode in itertools.pairwise(modes)) <= 4, "the coding mode does not change with the copies"
