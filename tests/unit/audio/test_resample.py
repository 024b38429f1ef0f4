from __future__ import annotations

import numpy as np
import pytest

from voicestream.audio.resample import Resampler, resample, to_channels, to_float, to_int16

PAIRS = [
    (8000, 48000), (16000, 48000), (24000, 48000), (48000, 8000), (48000, 16000), (44100, 48000), (48000, 44100), (32000, 48000),
    (16000, 24000), (24000, 16000), (22050, 48000), (8000, 44100), (44100, 8000), (11025, 16000), (192000, 48000), (48000, 192000),
    (8000, 192000), (192000, 8000), (48001, 48000), (48000, 48000),
]  # fmt: skip


def convert(pcm: np.ndarray, have: int, want: int, block: int) -> tuple[np.ndarray, Resampler]:
    resampler = Resampler(have, want, 1 if pcm.ndim == 1 else pcm.shape[1])
    parts = [resampler.push(pcm[i : i + block]) for i in range(0, len(pcm), block)]
    return np.concatenate([*parts, resampler.flush()]), resampler


@pytest.mark.parametrize(("have", "want"), PAIRS)
def test_a_tone_keeps_its_height_strength_and_place(have: int, want: int) -> None:
    hz = 0.3 * min(have, want)
    tone = (0.5 * np.sin(2 * np.pi * hz * np.arange(have // 2) / have)).astype(np.float32)
    out, _ = convert(tone, have, want, have // 50)
    middle = slice(want // 8, want * 3 // 8)
    expected = 0.5 * np.sin(2 * np.pi * hz * np.arange(len(out)) / want)
    assert np.abs(out[middle] - expected[middle]).max() < 0.001


@pytest.mark.parametrize(("have", "want"), PAIRS)
def test_the_length_is_right_to_one_sample_and_nothing_stays_inside(have: int, want: int) -> None:
    out, _ = convert(np.zeros(have // 10 + 37, dtype=np.float32), have, want, 333)
    assert abs(len(out) - (have // 10 + 37) * want / have) <= 1


@pytest.mark.parametrize(("have", "want"), PAIRS)
def test_the_latency_is_what_is_reported_and_short(have: int, want: int) -> None:
    resampler = Resampler(have, want)
    pending = [0.0]
    fed = got = 0
    for _ in range(50):
        got += len(resampler.push(np.zeros(have // 100, dtype=np.float32)))
        fed += have // 100
        pending.append(fed * want / have - got)
    assert max(pending[5:]) <= resampler.latency + 2
    assert resampler.latency / want <= 0.0031
    # Even from block to block: a device that asks for 10 ms gets them.
    assert max(pending[5:]) - min(pending[5:]) <= max(2, want / have + 1)


@pytest.mark.parametrize(("have", "want"), [(48000, 8000), (48000, 16000), (44100, 8000), (192000, 48000), (48000, 44100)])
def test_what_the_lower_rate_cannot_hold_is_removed(have: int, want: int) -> None:
    hz = min(0.56 * want, 0.49 * have)
    tone = (0.5 * np.sin(2 * np.pi * hz * np.arange(have // 2) / have)).astype(np.float32)
    out, _ = convert(tone, have, want, 1000)
    assert np.sqrt(np.mean(out[want // 8 : want * 3 // 8] ** 2)) < 0.5 * 10 ** (-55 / 20)


@pytest.mark.parametrize(("have", "want"), [(16000, 48000), (44100, 48000), (48000, 8000), (22050, 16000), (48001, 48000)])
def test_the_block_length_does_not_change_the_result(have: int, want: int) -> None:
    noise = np.random.default_rng(3).standard_normal(have // 10).astype(np.float32)
    whole, _ = convert(noise, have, want, len(noise))
    for block in (1, 7, 160, 441):
        if block == 1 and have > 40000:
            continue
        parts, _ = convert(noise, have, want, block)
        assert len(parts) == len(whole)
        assert np.abs(parts - whole).max() < 1e-4


@pytest.mark.parametrize(("have", "want"), [(16000, 48000), (44100, 48000), (48000, 16000)])
def test_channels_do_not_mix(have: int, want: int) -> None:
    left = np.random.default_rng(4).standard_normal(have // 10).astype(np.float32)
    both, _ = convert(np.stack((left, np.zeros_like(left)), axis=1), have, want, 500)
    alone, _ = convert(left, have, want, 500)
    assert both.shape == (len(alone), 2)
    assert np.abs(both[:, 0] - alone).max() < 1e-5
    assert np.abs(both[:, 1]).max() == 0


def test_after_a_flush_a_new_signal_begins() -> None:
    resampler = Resampler(16000, 48000)
    tone = np.sin(np.arange(1600) / 5).astype(np.float32)
    first = np.concatenate((resampler.push(tone), resampler.flush()))
    second = np.concatenate((resampler.push(tone), resampler.flush()))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("channels", [1, 2])
def test_a_recording_is_converted_as_a_whole(channels: int) -> None:
    tone = (0.5 * np.sin(2 * np.pi * 1000 * np.arange(44100) / 44100)).astype(np.float32)
    out = resample(tone if channels == 1 else np.stack((tone, tone), axis=1), 44100, 16000)
    assert out.shape == ((16000,) if channels == 1 else (16000, 2))
    expected = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(16000) / 16000)
    assert np.abs(out.reshape(16000, -1)[2000:14000, 0] - expected[2000:14000]).max() < 0.001


@pytest.mark.parametrize(("have", "want", "name"), [(7999, 48000, "in_rate_hz"), (48000, 192001, "out_rate_hz")])
def test_a_rate_out_of_range_is_refused(have: int, want: int, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be 8000 to 192000"):
        Resampler(have, want)


def test_floats_are_clipped_and_what_is_no_number_becomes_silence() -> None:
    values = np.array([0.0, 0.5, 1.0, -1.0, 7.0, -7.0, np.nan, np.inf, -np.inf], dtype=np.float32)
    assert to_int16(values).tolist() == [0, 16384, 32767, -32768, 32767, -32768, 0, 32767, -32768]
    assert to_float(values).tolist() == [0.0, 0.5, 1.0, -1.0, 1.0, -1.0, 0.0, 1.0, -1.0]


def test_int16_survives_the_way_over_floats() -> None:
    everything = np.arange(-32768, 32768).astype(np.int16)
    assert np.array_equal(to_int16(to_float(everything)), everything)


def test_channels_are_mixed_and_copied() -> None:
    mono = np.array([10, -20], dtype=np.int16)
    stereo = np.array([[10, 20], [-3, -5]], dtype=np.int16)
    assert to_channels(mono, 1) is not None
    assert to_channels(mono, 2).tolist() == [[10, 10], [-20, -20]]
    assert to_channels(stereo, 1).tolist() == [15, -4]
    assert to_channels(stereo, 2) is stereo
    assert to_channels(mono.reshape(-1, 1), 1).shape == (2,)
    assert to_channels(np.array([[3, 6, 9]], dtype=np.int16), 2).tolist() == [[6, 6]]
    assert to_channels(stereo, 1).dtype == np.int16


def test_mixing_two_full_scale_channels_does_not_overflow() -> None:
    loud = np.full((4, 2), 32767, dtype=np.int16)
    assert to_channels(loud, 1).tolist() == [32767] * 4
