from __future__ import annotations

import numpy as np
import pytest

from voicestream.audio.level import SILENCE_DBFS, LoudPart, VoiceDetector, level_dbfs, peak_dbfs
from voicestream.audio.speech import sample_speech


def noise(level: float, samples: int = 320, seed: int = 1) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(samples) * 32768 * 10 ** (level / 20)).clip(-32768, 32767).astype(np.int16)


def test_a_full_scale_sine_has_minus_three_dbfs_rms_and_a_peak_of_zero() -> None:
    sine = np.sin(2 * np.pi * np.arange(48000) / 48)
    assert level_dbfs(sine.astype(np.float32)) == pytest.approx(-3.01, abs=0.01)
    assert level_dbfs((sine * 32767).astype(np.int16)) == pytest.approx(-3.01, abs=0.01)
    assert peak_dbfs((sine * 32767).astype(np.int16)) == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("pcm", [np.zeros(10, dtype=np.int16), np.zeros(0, dtype=np.int16), np.zeros((0, 2), dtype=np.float32)])
def test_silence_has_the_lowest_level(pcm: np.ndarray) -> None:
    assert level_dbfs(pcm) == SILENCE_DBFS
    assert peak_dbfs(pcm) == SILENCE_DBFS


def test_stereo_is_measured_as_a_whole() -> None:
    mono = noise(-20)
    assert level_dbfs(np.stack((mono, mono), axis=1)) == pytest.approx(level_dbfs(mono))


def test_speech_is_told_from_the_pauses_between_phrases() -> None:
    pcm = sample_speech(8.0, 16000, seed=1)
    background = noise(-65, len(pcm))
    detector = VoiceDetector()
    blocks = [(pcm[i : i + 320], (pcm + background)[i : i + 320]) for i in range(0, len(pcm) - 319, 320)]
    heard = [detector.push(mixed, 20.0) for _, mixed in blocks]
    loud = [level_dbfs(clean) > -40 for clean, _ in blocks]
    assert all(said for said, is_loud in zip(heard[10:], loud[10:], strict=True) if is_loud)
    assert sum(heard) < len(heard)


def test_steady_noise_becomes_background_and_speech_above_it_is_still_found() -> None:
    detector = VoiceDetector()
    heard = [detector.push(noise(-45, seed=i), 20.0) for i in range(1000)]
    assert not any(heard[-100:])
    assert detector.noise_dbfs == pytest.approx(-45, abs=2)
    assert detector.push(noise(-25), 20.0)


def test_speech_goes_on_through_the_hangover_and_then_ends() -> None:
    detector = VoiceDetector(hangover_ms=100.0)
    assert detector.push(noise(-20), 20.0)
    quiet = np.zeros(320, dtype=np.int16)
    assert [detector.push(quiet, 20.0) for _ in range(7)] == [True] * 5 + [False] * 2


def test_of_frames_a_certain_part_is_loud_whatever_their_level() -> None:
    random = np.random.default_rng(3)
    for gain in (1.0, 0.02):
        loud = LoudPart(0.6)
        levels, chosen = [], []
        for _ in range(600):
            size = gain * 10 ** random.uniform(1.5, 4)
            frame = np.full(320, size, np.float32) / np.float32(32768)
            levels.append(size)
            chosen.append(loud.push(frame))
        settled = np.array(chosen[200:])
        assert 0.55 < settled.mean() < 0.65
        assert np.mean(np.log(np.array(levels[200:])[settled])) > np.mean(np.log(np.array(levels[200:])[~settled])) + 1
