from __future__ import annotations

import numpy as np
import pytest

from voicestream.audio.conceal import FADE_END_MS, FADE_START_MS, Continuation, loss_gain


def voice(rate: int, samples: int, hz: float = 140.0) -> np.ndarray:
    t = np.arange(samples) / rate
    harmonics = [k for k in range(1, 20) if k * hz < 0.45 * rate]
    return np.asarray(sum(4000 / k * np.sin(2 * np.pi * k * hz * t + 0.1 * k * k) for k in harmonics)).astype(np.int16)


def largest_jump(pcm: np.ndarray) -> int:
    return int(np.abs(np.diff(pcm.astype(int))).max())


@pytest.mark.parametrize("rate", [8000, 16000, 24000, 48000])
@pytest.mark.parametrize("hz", [90.0, 140.0, 250.0])
def test_a_voice_goes_on_without_a_click_and_at_its_pitch(rate: int, hz: float) -> None:
    known = voice(rate, rate // 10, hz)
    going_on = Continuation(known, rate).take(rate // 20)
    joined = np.concatenate((known, going_on))
    assert largest_jump(joined) <= 1.3 * largest_jump(known)
    expected = voice(rate, rate // 10 + rate // 100, hz)[rate // 10 :]
    first = going_on[: rate // 100].astype(float)
    assert first @ expected / np.sqrt((first @ first) * (expected.astype(float) @ expected)) > 0.95


def test_pieces_of_any_length_are_one_continuation() -> None:
    known = voice(16000, 1600)
    whole = Continuation(known, 16000).take(1000)
    parts = Continuation(known, 16000)
    assert np.array_equal(np.concatenate([parts.take(n) for n in (1, 0, 99, 400, 500)]), whole)


def test_noise_goes_on_as_noise_of_the_same_level_without_a_tone() -> None:
    noise = (np.random.default_rng(3).standard_normal(1600) * 2000).astype(np.int16)
    going_on = Continuation(noise, 16000).take(1600).astype(float)
    assert np.sqrt(np.mean(going_on**2)) == pytest.approx(2000, rel=0.25)
    spectrum = np.abs(np.fft.rfft(going_on * np.hanning(1600)))
    assert spectrum.max() < 12 * np.median(spectrum)


@pytest.mark.parametrize("samples", [0, 10, 300])
def test_too_little_memory_gives_silence(samples: int) -> None:
    assert not Continuation(voice(16000, samples) if samples else np.zeros(0, dtype=np.int16), 16000).take(100).any()


def test_stereo_goes_on_in_both_channels() -> None:
    known = np.stack((voice(16000, 1600), voice(16000, 1600) // 2), axis=1)
    going_on = Continuation(known, 16000).take(320)
    assert going_on.shape == (320, 2)
    assert np.abs(going_on[:, 0] / 2 - going_on[:, 1]).max() <= 2


def test_concealment_is_full_at_first_and_silent_at_the_end() -> None:
    assert loss_gain(0) == loss_gain(FADE_START_MS) == 1.0
    assert loss_gain(FADE_END_MS) == loss_gain(10_000) == 0.0
    assert 0.4 < loss_gain((FADE_START_MS + FADE_END_MS) / 2) < 0.6
