from __future__ import annotations

import numpy as np
import pytest

from voicestream.audio.level import level_dbfs, peak_dbfs
from voicestream.audio.speech import sample_speech


def active_level(pcm: np.ndarray, rate: int) -> float:
    blocks = [pcm[i : i + rate // 50] for i in range(0, len(pcm) - rate // 50, rate // 50)]
    loud = [block for block in blocks if level_dbfs(block) > -40]
    return level_dbfs(np.concatenate(loud))


def likeness_of(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b) / float(np.sqrt((a @ a) * (b @ b) + 1))


@pytest.mark.parametrize("rate", [8000, 16000, 24000, 44100, 48000])
@pytest.mark.parametrize("seconds", [0.0, 0.05, 1.0, 3.21])
def test_the_length_is_exact_at_every_rate(seconds: float, rate: int) -> None:
    pcm = sample_speech(seconds, rate)
    assert pcm.dtype == np.int16
    assert pcm.shape == (round(seconds * rate),)


def test_the_same_seed_says_the_same_and_another_seed_something_else() -> None:
    assert np.array_equal(sample_speech(2.0, 16000, seed=3), sample_speech(2.0, 16000, seed=3))
    assert not np.array_equal(sample_speech(2.0, 16000, seed=3), sample_speech(2.0, 16000, seed=4))


def test_a_longer_speech_begins_with_the_shorter_one() -> None:
    assert np.array_equal(sample_speech(6.0, 16000)[:48000], sample_speech(3.0, 16000))


@pytest.mark.parametrize("seed", range(4))
def test_it_speaks_at_minus_twenty_dbfs_without_clipping(seed: int) -> None:
    pcm = sample_speech(8.0, 16000, seed)
    assert active_level(pcm, 16000) == pytest.approx(-20, abs=2)
    assert peak_dbfs(pcm) < -1


@pytest.mark.parametrize("seed", range(4))
def test_it_has_pauses_voiced_and_unvoiced_sounds(seed: int) -> None:
    pcm = sample_speech(8.0, 16000, seed).astype(float)
    quiet = voiced = unvoiced = 0
    for start in range(0, len(pcm) - 640, 320):
        block = pcm[start : start + 640]
        energy = block @ block
        if energy / 640 < 30**2:
            quiet += 1
            continue
        likeness = max(likeness_of(block[:400], block[lag : lag + 400]) for lag in range(60, 240))
        voiced += likeness > 0.85
        unvoiced += likeness < 0.5
    assert quiet > 20
    assert voiced > 100
    assert unvoiced > 10


def test_the_pitch_moves() -> None:
    pcm = sample_speech(6.0, 16000, seed=1).astype(float)
    periods = []
    for start in range(0, len(pcm) - 1000, 400):
        block = pcm[start : start + 1000]
        if block @ block / 1000 < 500**2:
            continue
        scores = [float(block[:600] @ block[lag : lag + 600]) for lag in range(60, 200)]
        periods.append(60 + int(np.argmax(scores)))
    assert np.percentile(periods, 90) / np.percentile(periods, 10) > 1.1


def test_the_same_words_are_said_at_every_rate() -> None:
    low, high = sample_speech(3.0, 8000, seed=2), sample_speech(3.0, 48000, seed=2)
    envelope_low = np.abs(low.astype(float)).reshape(-1, 160).mean(axis=1)
    envelope_high = np.abs(high.astype(float)).reshape(-1, 960).mean(axis=1)
    assert np.corrcoef(envelope_low, envelope_high)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("seconds", "rate", "words"), [(-1.0, 48000, "seconds"), (1.0, 7999, "sample_rate_hz"), (1.0, 192001, "sample_rate_hz")]
)
def test_bad_arguments_are_refused(seconds: float, rate: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sample_speech(seconds, rate)
