from __future__ import annotations

import numpy as np
import pytest

from voicestream.audio.speech import sample_speech
from voicestream.audio.stretch import accelerate, best_lag, crossfade, expand, fade, merge, mono

RATES = (8000, 16000, 24000, 48000)
KINDS = ("tone 100", "tone 220", "tone 440", "tone 1000", "voice", "onset", "silence", "noise")


def signal(kind: str, rate: int, samples: int) -> np.ndarray:
    t = np.arange(samples) / rate
    if kind.startswith("tone"):
        wave = 8000 * np.sin(2 * np.pi * float(kind.split()[1]) * t + 0.3)
    elif kind == "voice":
        wave = sum(5000 / k * np.sin(2 * np.pi * k * 117 * t + 0.1 * k * k) for k in range(1, 25) if k * 117 < 0.45 * rate)
    elif kind == "onset":
        wave = np.where(t < t[-1] / 2, 0.0, 8000 * np.sin(2 * np.pi * 220 * (t - t[-1] / 2)))
    elif kind == "noise":
        wave = 2000 * np.random.default_rng(7).standard_normal(samples)
    else:
        wave = np.zeros(samples)
    return np.asarray(wave).astype(np.int16)


def largest_jump(pcm: np.ndarray) -> int:
    return int(np.abs(np.diff(pcm.astype(int))).max())


def peak_hz(pcm: np.ndarray, rate: int) -> float:
    spectrum = np.abs(np.fft.rfft(pcm * np.hanning(len(pcm)), 1 << 17))
    return float(spectrum.argmax()) * rate / (1 << 17)


@pytest.mark.parametrize("frame_ms", [20, 40, 60])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("kind", KINDS)
def test_stretching_makes_no_click_and_comes_near_the_length_asked_for(kind: str, rate: int, frame_ms: int) -> None:
    n = rate * frame_ms // 1000
    whole = signal(kind, rate, 3 * n)
    before, block, after = whole[:n], whole[n : 2 * n], whole[2 * n :]
    wanted = rate // 100
    shorter = accelerate(block, wanted, sample_rate_hz=rate)
    longer = expand(block, wanted, sample_rate_hz=rate, history=before)
    margin = 1.25 if kind == "noise" else 1.05
    for stretched in (shorter, longer):
        assert stretched.dtype == np.int16
        assert largest_jump(np.concatenate((before, stretched, after))) <= margin * largest_jump(whole) + 2
    assert 0.5 * wanted <= n - len(shorter) <= 1.25 * wanted
    assert 0.5 * wanted <= len(longer) - n <= 1.5 * wanted


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("hz", [100, 220, 440, 1000])
@pytest.mark.parametrize("direction", [-1, 1])
def test_a_tone_keeps_its_pitch_and_level_at_ten_percent(rate: int, hz: int, direction: int) -> None:
    n = rate // 50
    tone = signal(f"tone {hz}", rate, rate)
    out: list[np.ndarray] = []
    debt = 0.0
    for start in range(0, rate - n + 1, n):
        block = tone[start : start + n]
        debt += n * 0.1
        if debt >= rate // 200:
            history = out[-1] if out else None
            step = rate // 100
            longer = expand(block, step, sample_rate_hz=rate, history=history)
            new = longer if direction > 0 else accelerate(block, step, sample_rate_hz=rate)
            debt -= abs(len(new) - n)
            block = new
        out.append(block)
    result = np.concatenate(out)
    assert len(result) / rate == pytest.approx(1 + 0.1 * direction, abs=0.02)
    assert peak_hz(result, rate) == pytest.approx(hz, rel=0.01)
    rms = np.sqrt(np.mean(result.astype(float) ** 2))
    assert rms == pytest.approx(8000 / np.sqrt(2), rel=0.02)
    assert largest_jump(result) <= 1.05 * largest_jump(tone) + 2


@pytest.mark.parametrize("rate", RATES)
def test_silence_is_cut_and_lengthened_by_exactly_what_is_asked(rate: int) -> None:
    quiet = np.zeros(rate // 50, dtype=np.int16)
    factor = max(1, rate // 8000)
    wanted = rate // 100 // factor * factor
    assert len(quiet) - len(accelerate(quiet, wanted, sample_rate_hz=rate)) == wanted
    assert len(expand(quiet, wanted, sample_rate_hz=rate)) - len(quiet) == wanted


def test_a_burst_that_dies_away_matches_nowhere_and_stays_as_it_is() -> None:
    burst = np.random.default_rng(2).standard_normal(960) * 9000 * np.exp(-np.arange(960) / 250)
    pcm = burst.astype(np.int16)
    assert np.array_equal(accelerate(pcm, 480, sample_rate_hz=48000), pcm)


def test_a_click_in_quiet_noise_survives() -> None:
    noise = np.random.default_rng(3).standard_normal(960) * 150
    noise[300:340] += np.random.default_rng(2).standard_normal(40) * 9000
    pcm = noise.astype(np.int16)
    assert np.abs(accelerate(pcm, 480, sample_rate_hz=48000)).max() == np.abs(pcm).max()


def test_a_step_smaller_than_the_shortest_period_changes_nothing() -> None:
    voice = signal("voice", 48000, 960)
    assert np.array_equal(accelerate(voice, 100, sample_rate_hz=48000), voice)
    assert np.array_equal(expand(voice, 100, sample_rate_hz=48000), voice)


def test_a_large_step_takes_several_periods_of_a_long_frame() -> None:
    voice = signal("voice", 16000, 960)
    assert 960 - len(accelerate(voice, 400, sample_rate_hz=16000)) >= 250
    assert len(expand(voice, 400, sample_rate_hz=16000)) - 960 >= 250


@pytest.mark.parametrize("samples", [0, 1, 7, 40, 119])
def test_tiny_blocks_are_left_alone(samples: int) -> None:
    block = signal("voice", 48000, samples) if samples else np.zeros(0, dtype=np.int16)
    assert np.array_equal(accelerate(block, 480, sample_rate_hz=48000), block)
    assert len(expand(block, 480, sample_rate_hz=48000)) >= samples


def test_the_input_is_not_changed_and_the_result_is_not_part_of_it() -> None:
    voice = signal("voice", 16000, 320)
    kept = voice.copy()
    for result in (accelerate(voice, 160, sample_rate_hz=16000), accelerate(voice, 10, sample_rate_hz=16000)):
        assert not np.shares_memory(result, voice)
    assert np.array_equal(voice, kept)


def test_both_channels_are_joined_at_the_same_place() -> None:
    voice = signal("voice", 16000, 320)
    stereo = np.stack((voice, voice // 2), axis=1)
    shorter = accelerate(stereo, 160, sample_rate_hz=16000)
    assert shorter.shape[1] == 2
    assert len(shorter) < 320
    assert np.abs(shorter[:, 0] / 2 - shorter[:, 1]).max() <= 1.5


def test_ten_percent_of_speech_leaves_its_loudness_over_time() -> None:
    pcm = sample_speech(6.0, 16000, seed=1)
    out: list[np.ndarray] = []
    debt = 0.0
    for start in range(0, len(pcm) - 319, 320):
        block = pcm[start : start + 320]
        debt += 32
        if debt >= 80:
            new = accelerate(block, 160, sample_rate_hz=16000)
            debt -= 320 - len(new)
            block = new
        out.append(block)
    result = np.concatenate(out)
    assert len(result) / len(pcm) == pytest.approx(0.9, abs=0.01)

    def envelope(x: np.ndarray, points: int) -> np.ndarray:
        return np.array([np.sqrt(np.mean(part.astype(float) ** 2)) for part in np.array_split(x, points)])

    assert np.corrcoef(envelope(pcm, 150), envelope(result, 150))[0, 1] > 0.95
    assert largest_jump(result) <= 1.3 * largest_jump(pcm)


def test_a_crossfade_of_equals_changes_nothing_and_of_strangers_keeps_the_power() -> None:
    voice = signal("voice", 16000, 200)
    assert np.abs(crossfade(voice, voice).astype(int) - voice).max() <= 1
    random = np.random.default_rng(5)
    powers = []
    for _ in range(200):
        a, b = (random.standard_normal((2, 100)) * 3000).astype(np.int16)
        powers.append(np.mean(crossfade(a, b, likeness=0.0)[40:60].astype(float) ** 2))
    assert np.mean(powers) == pytest.approx(3000**2, rel=0.05)


def test_a_crossfade_begins_with_one_and_ends_with_the_other() -> None:
    a, b = np.full(100, 1000, dtype=np.int16), np.full(100, -1000, dtype=np.int16)
    faded = crossfade(a, b)
    assert faded[0] > 990
    assert faded[-1] < -990
    assert (np.diff(faded.astype(int)) <= 0).all()


def test_a_crossfade_of_unlike_shapes_is_refused() -> None:
    with pytest.raises(ValueError, match="one shape"):
        crossfade(np.zeros(3, dtype=np.int16), np.zeros(4, dtype=np.int16))


def test_a_fade_runs_from_one_gain_to_the_other() -> None:
    flat = np.full(1000, 10000, dtype=np.int16)
    down = fade(flat, 1.0, 0.0)
    assert (down[0], down[500]) == (10000, 5000)
    assert down[-1] == 10
    same = fade(flat, 1.0, 1.0)
    assert np.array_equal(same, flat)
    assert same is not flat
    assert fade(np.stack((flat, flat), axis=1), 0.5, 0.5).tolist()[3] == [5000, 5000]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("hz", [80, 120, 200, 330])
def test_the_pitch_period_of_a_voice_is_found(rate: int, hz: int) -> None:
    t = np.arange(rate // 20) / rate
    voice = sum(3000 / k * np.sin(2 * np.pi * k * hz * t + k) for k in range(1, 12) if k * hz < 0.45 * rate)
    lag, likeness = best_lag(np.asarray(voice, dtype=np.float32), rate)
    assert lag == pytest.approx(rate / hz, abs=max(1.0, rate / 16000))
    assert likeness > 0.95


def test_noise_has_no_pitch_period() -> None:
    noise = np.random.default_rng(1).standard_normal(800).astype(np.float32) * 1000
    assert best_lag(noise, 16000)[1] < 0.6
    assert best_lag(np.zeros(5, dtype=np.float32), 16000)[1] == 0.0


@pytest.mark.parametrize("shift", [0, 10, 37, 60, 100, 135])
def test_merging_lays_the_fresh_audio_in_phase(shift: int) -> None:
    rate = 16000
    voice = signal("voice", rate, 2000)
    tail, fresh = voice[500:840], voice[500 + shift : 820 + shift]
    merged = merge(tail, fresh, sample_rate_hz=rate)
    assert len(merged) >= len(fresh)
    assert len(merged) - len(fresh) <= rate * 15 // 1000
    assert largest_jump(np.concatenate((voice[:500], merged))) <= 1.1 * largest_jump(voice)
    offset = len(merged) - len(fresh)
    assert np.array_equal(merged[offset + 80 :], fresh[80:])


def test_merging_from_silence_adds_no_delay() -> None:
    fresh = signal("voice", 16000, 320)
    assert len(merge(np.zeros(320, dtype=np.int16), fresh, sample_rate_hz=16000)) == 320
    assert len(merge(np.zeros(0, dtype=np.int16), fresh, sample_rate_hz=16000)) == 320


def test_mono_is_the_mean_of_the_channels() -> None:
    assert mono(np.array([[10, 20], [0, -4]], dtype=np.int16)).tolist() == [15.0, -2.0]


def test_the_last_place_of_a_tiny_block_at_an_odd_rate_is_not_taken_beyond_its_end() -> None:
    pcm = np.zeros(57, dtype=np.int16)
    for step in range(55, 90):
        for samples in range(55, 120):
            longer = expand(pcm[:1].repeat(samples), step, sample_rate_hz=22050)
            assert len(longer) >= samples
