"""The delay between two recordings is found wherever there is something to find."""

from __future__ import annotations

import numpy as np
import pytest

from voicestream.cli.demo.measure import delays_ms

RATE = 16000


def noise(seconds: float, seed: int = 1) -> np.ndarray:
    return (np.random.default_rng(seed).normal(0, 4000, round(seconds * RATE))).clip(-32000, 32000).astype(np.int16)


@pytest.mark.parametrize("offset_s", [0.25, 0.0, -0.25])
def test_the_delay_is_that_of_the_sound_whatever_the_recording_began_with(offset_s: float) -> None:
    said = noise(5)
    delay = round(0.090 * RATE)
    played = np.concatenate([np.zeros(delay, np.int16), said, np.zeros(RATE, np.int16)])
    first = round(offset_s * RATE)
    heard = played[first:] if first > 0 else np.concatenate([np.zeros(-first, np.int16), played])
    found = [delay for _, delay in delays_ms(said, heard, RATE, offset_s=offset_s)]
    # A recording that began late lacks the first second's beginning.
    assert len(found) >= 4
    assert found == pytest.approx([90.0] * len(found), abs=0.1)


def test_a_delay_that_changes_is_seen_second_by_second() -> None:
    said = noise(4)
    early, late = round(0.05 * RATE), round(0.20 * RATE)
    heard = np.zeros(6 * RATE, np.int16)
    heard[early : early + 2 * RATE] = said[: 2 * RATE]
    heard[2 * RATE + late : 4 * RATE + late] = said[2 * RATE :]
    found = delays_ms(said, heard, RATE, offset_s=0.0)
    assert [at for at, _ in found] == [0.5, 1.5, 2.5, 3.5]
    assert [delay for _, delay in found] == pytest.approx([50, 50, 200, 200], abs=0.1)


def test_silence_and_other_sound_give_no_delay() -> None:
    said = noise(3)
    assert delays_ms(np.zeros(3 * RATE, np.int16), said, RATE, offset_s=0.0) == []
    assert delays_ms(said, noise(3, seed=2), RATE, offset_s=0.0) == []
    assert delays_ms(said, np.zeros(0, np.int16), RATE, offset_s=0.0) == []
    assert delays_ms(np.zeros(0, np.int16), said, RATE, offset_s=0.0) == []
