"""The judge of stretching: what it asks PESQ about."""

from __future__ import annotations

import numpy as np
import pytest

from interop.lab.stretching import stretched
from voicestream.audio.speech import sample_speech


@pytest.mark.parametrize("share", [0.1, -0.1])
def test_speech_gets_a_tenth_longer_or_shorter_and_its_length_back(share: float) -> None:
    pcm = sample_speech(4.0, 16000, seed=3)
    there = stretched(pcm, share, 16000)
    assert len(there) / len(pcm) == pytest.approx(1 + share, abs=0.01)
    back = stretched(there, len(pcm) / len(there) - 1, 16000)
    assert len(back) / len(pcm) == pytest.approx(1, abs=0.01)
    assert not np.array_equal(back[:16000], pcm[:16000])


def test_no_change_is_no_change() -> None:
    pcm = sample_speech(1.0, 16000, seed=3)
    assert np.array_equal(stretched(pcm, 0.0, 16000), pcm)
