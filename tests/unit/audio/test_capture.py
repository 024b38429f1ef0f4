from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from voicestream.audio.capture import Capture, CodedFrame, as_samples
from voicestream.audio.codec import make_decoder
from voicestream.audio.speech import sample_speech
from voicestream.codepoints import CodecId
from voicestream.config import AudioConfig, Track
from voicestream.wire.opus_toc import frame_units, opus_channels

PCMU = Track(codec=CodecId.PCMU, clock_rate_hz=8000)


def blocks(pcm: np.ndarray, size: int) -> list[np.ndarray]:
    return [pcm[i : i + size] for i in range(0, len(pcm), size)]


def push_all(capture: Capture, pcm: np.ndarray, size: int) -> list[CodedFrame]:
    return [frame for block in blocks(pcm, size) for frame in capture.push(block)]


@pytest.mark.parametrize("size", [1, 7, 160, 333, 960, 5000])
def test_blocks_of_any_length_give_the_same_frames(size: int) -> None:
    pcm = sample_speech(0.5, 16000)[4000:]
    config = AudioConfig(sample_rate_hz=16000)
    whole = Capture(Track(), config).push(pcm)
    assert push_all(Capture(Track(), config), pcm, size) == whole
    assert len(whole) == len(pcm) // 320
    assert all(frame.units == 8 for frame in whole)


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 22050, 32000, 44100, 48000, 96000, 192000])
@pytest.mark.parametrize("track", [Track(), PCMU], ids=["opus", "pcmu"])
def test_pcm_of_any_rate_becomes_frames_of_the_same_duration(rate: int, track: Track) -> None:
    capture = Capture(track, AudioConfig(sample_rate_hz=rate))
    pcm = sample_speech(1.0, rate)
    frames = push_all(capture, pcm, rate // 100)
    # Resampling holds a few milliseconds back, never a frame more.
    assert 48 <= len(frames) <= 50
    frames += capture.flush()
    assert sum(frame.units for frame in frames) * 2.5 >= 1000
    assert 50 <= len(frames) <= 52
    assert all(frame.payload is not None and frame_units(track, frame.payload) == frame.units for frame in frames)


def test_nothing_that_was_said_is_lost_at_a_flush() -> None:
    rate = 44100
    capture, decoder = Capture(Track(), AudioConfig(sample_rate_hz=rate)), make_decoder(Track(), 48000)
    pcm = np.zeros(rate // 2 + 123, dtype=np.int16)
    pcm[-200:] = 12000
    frames = push_all(capture, pcm, 441) + capture.flush()
    heard = np.concatenate([decoder.decode(frame.payload) for frame in frames if frame.payload])
    # The click at the very end comes out whole, delayed by resampler and codec.
    assert np.abs(heard.astype(int)).max() > 3000
    assert capture.flush() == []
    assert capture.pending_s == 0


@pytest.mark.parametrize("track_channels", [1, 2])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("rate", [44100, 48000])
def test_mono_and_stereo_go_in_and_out_in_every_combination(channels: int, track_channels: int, rate: int) -> None:
    track = Track(channels=track_channels)
    capture = Capture(track, AudioConfig(sample_rate_hz=rate, channels=channels, bitrate_bps=64000, application="audio"))
    mono = (8000 * np.sin(2 * np.pi * 300 * np.arange(rate // 2) / rate)).astype(np.int16)
    pcm = mono if channels == 1 else np.stack((mono, mono), axis=1)
    frames = capture.push(pcm)
    decoder = make_decoder(track, 48000, 1)
    heard = np.concatenate([decoder.decode(frame.payload) for frame in frames if frame.payload])
    assert np.abs(heard[9600:].astype(int)).max() == pytest.approx(8000, rel=0.15)
    if track_channels == 1:
        assert all(opus_channels(frame.payload) == 1 for frame in frames if frame.payload)


def test_floats_bytes_and_int16_are_the_same_audio() -> None:
    pcm = sample_speech(0.2, 48000)
    config = AudioConfig()
    expected = Capture(Track(), config).push(pcm)
    data = pcm.tobytes()
    for same in (pcm.astype(np.float32) / 32768, data, bytearray(data), memoryview(data), pcm.astype(">i2"), pcm.reshape(-1, 1)):
        assert Capture(Track(), config).push(same) == expected


def test_floats_beyond_one_are_clipped_and_not_wrapped() -> None:
    capture = Capture(Track(codec=CodecId.L16, clock_rate_hz=8000), AudioConfig(sample_rate_hz=8000, frame_ms=10))
    loud = np.array([2.0, -3.0, 0.0, 1.0] * 20, dtype=np.float32)
    (frame,) = capture.push(loud)
    assert np.frombuffer(frame.payload or b"", dtype=">i2")[:4].tolist() == [32767, -32768, 0, 32767]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused_and_nothing_of_its_block_is_kept(bad: float) -> None:
    capture = Capture(Track(codec=CodecId.L16, clock_rate_hz=8000), AudioConfig(sample_rate_hz=8000, frame_ms=10))
    with pytest.raises(ValueError, match="NaN or infinity"):
        capture.push(np.array([0.5] * 79 + [bad], dtype=np.float32))
    assert capture.pending_s == 0


@pytest.mark.parametrize(
    ("pcm", "error", "words"),
    [
        ([1, 2, 3], TypeError, "numpy array of int16 or float32, or bytes of int16, not list"),
        ("text", TypeError, "not str"),
        (None, TypeError, "not NoneType"),
        (np.zeros(4), TypeError, "dtype int16 or float32, not float64"),
        (np.zeros(4, dtype=np.int32), TypeError, "not int32"),
        (np.zeros(4, dtype=np.uint16), TypeError, "not uint16"),
        (np.zeros((4, 2), dtype=np.int16), ValueError, r"shape \(n,\) or \(n, 1\), not \(4, 2\)"),
        (np.zeros((2, 2, 2), dtype=np.int16), ValueError, "shape"),
        (np.int16(3), TypeError, "not int16"),
        (np.zeros((), dtype=np.int16), ValueError, r"not \(\)"),
        (b"abc", ValueError, "a multiple of 2 bytes, not 3"),
    ],
)
def test_what_is_not_mono_pcm_is_refused_with_what_was_expected_and_what_came(pcm: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Capture(Track(), AudioConfig()).push(pcm)


@pytest.mark.parametrize(
    ("pcm", "words"),
    [
        (np.zeros(4, dtype=np.int16), r"shape \(n, 2\), not \(4,\)"),
        (np.zeros((4, 1), dtype=np.float32), r"shape \(n, 2\), not \(4, 1\)"),
        (bytes(6), "a multiple of 4 bytes, not 6"),
    ],
)
def test_what_is_not_stereo_pcm_is_refused(pcm: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        as_samples(pcm, 2)


def test_an_empty_block_gives_nothing() -> None:
    capture = Capture(Track(), AudioConfig())
    assert capture.push(np.zeros(0, dtype=np.int16)) == []
    assert capture.push(b"") == []
    assert capture.flush() == []


def test_the_applications_buffer_may_be_used_again_at_once() -> None:
    config = AudioConfig(sample_rate_hz=16000)
    pcm = sample_speech(0.4, 16000)
    expected = push_all(Capture(Track(), config), pcm, 100)
    capture, buffer, got = Capture(Track(), config), np.zeros(100, dtype=np.int16), []
    for block in blocks(pcm, 100):
        buffer[:] = block
        got += capture.push(buffer)
        buffer.fill(-1)
    assert got == expected


def test_a_new_frame_length_and_bitrate_hold_from_the_next_frame_on() -> None:
    capture = Capture(Track(), AudioConfig(frame_ms=20, bitrate_bps=64000))
    noise = np.random.default_rng(1).integers(-8000, 8000, 48000).astype(np.int16)
    large = capture.push(noise[:9700])
    capture.apply(8000, 60)
    small = capture.push(noise[9700:])
    assert {frame.units for frame in large} == {8}
    assert {frame.units for frame in small} == {24}
    assert max(len(frame.payload or b"") / frame.units for frame in small) < min(len(frame.payload or b"") / frame.units for frame in large)
    capture.apply(8000, 10)
    assert capture.push(noise[:960])[-1].units == 4


@pytest.mark.parametrize("frame_ms", [0, 5, 30, 120])
def test_a_frame_length_that_does_not_exist_is_refused(frame_ms: int) -> None:
    with pytest.raises(ValueError, match="10, 20, 40 or 60"):
        Capture(Track(), AudioConfig()).apply(24000, frame_ms)


def test_without_dtx_one_talkspurt_goes_from_the_first_frame_to_the_flush() -> None:
    capture = Capture(Track(), AudioConfig())
    frames = capture.push(np.zeros(96000, dtype=np.int16)) + capture.flush()
    assert [frame.talkspurt_start for frame in frames] == [True] + [False] * (len(frames) - 1)
    assert [frame.talkspurt_end for frame in frames] == [False] * (len(frames) - 1) + [True]
    assert capture.push(np.zeros(960, dtype=np.int16))[0].talkspurt_start


@pytest.mark.parametrize("track", [Track(), PCMU], ids=["opus", "pcmu"])
def test_a_flush_ends_the_talkspurt_even_when_the_last_frame_was_full(track: Track) -> None:
    capture = Capture(track, AudioConfig(sample_rate_hz=8000))
    capture.push(np.zeros(160, dtype=np.int16))
    assert [frame.talkspurt_end for frame in capture.flush()] == [True]


@pytest.mark.parametrize("track", [Track(), PCMU], ids=["opus", "pcmu"])
def test_under_dtx_talkspurts_end_with_a_frame_and_silence_is_only_time(track: Track) -> None:
    rate = 16000
    capture = Capture(track, AudioConfig(sample_rate_hz=rate, dtx=True, bitrate_bps=16000))
    talk = sample_speech(1.2, rate, seed=2)[3000:]
    silence = np.zeros(rate * 3, dtype=np.int16)
    frames = push_all(capture, np.concatenate((talk, silence, talk)), 320)
    # Time goes on through silence, up to what the resampler holds back.
    assert len(frames) >= (2 * len(talk) + len(silence)) // 320 - 2
    unsent = [frame for frame in frames if frame.payload is None]
    assert len(unsent) > 80
    assert not any(frame.talkspurt_start or frame.talkspurt_end for frame in unsent)
    talking = False
    starts = 0
    for frame in frames:
        if frame.payload is None:
            assert not talking, "silence inside a talkspurt"
            continue
        assert frame.talkspurt_start is not talking, "a talkspurt begins exactly where none was"
        starts += frame.talkspurt_start
        talking = not frame.talkspurt_end
    assert starts >= 2


def test_the_latency_is_that_of_codec_and_resampler() -> None:
    assert Capture(Track(), AudioConfig(sample_rate_hz=48000)).latency_s == pytest.approx(0.0065, abs=0.002)
    assert Capture(PCMU, AudioConfig(sample_rate_hz=48000)).latency_s == pytest.approx(0.003, abs=0.0005)
    assert Capture(PCMU, AudioConfig(sample_rate_hz=8000)).latency_s == 0
    assert Capture(Track(), AudioConfig(sample_rate_hz=44100)).latency_s < 0.015


def test_what_waits_for_its_frame_is_told() -> None:
    capture = Capture(Track(), AudioConfig())
    capture.push(np.zeros(1200, dtype=np.int16))
    assert capture.pending_s == 240 / 48000


@pytest.mark.parametrize("rate", [8000, 22050, 48000])
@pytest.mark.parametrize("track", [Track(), Track(codec=CodecId.PCMU, clock_rate_hz=8000)], ids=["opus", "pcmu"])
def test_after_a_drop_nothing_of_the_old_sounds_in_the_new(track: Track, rate: int) -> None:
    capture = Capture(track, AudioConfig(sample_rate_hz=rate))
    time = np.arange(rate) / rate
    capture.push((12000 * np.sin(2 * np.pi * 440 * time)).astype(np.int16)[: rate * 7 // 20])
    assert capture.pending_s > 0.005
    capture.drop()
    assert capture.pending_s == 0
    frames = capture.push(np.zeros(rate // 5, dtype=np.int16))
    assert frames[0].talkspurt_start
    decoder = make_decoder(track, 48000, 1)
    heard = np.concatenate([decoder.decode(frame.payload) for frame in frames if frame.payload])
    assert np.abs(heard).max() <= 8
