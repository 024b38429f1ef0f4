"""Continues a signal that has stopped coming: its last pitch periods are repeated and fade out.

For codecs without a concealment of their own (G.711, L16), and for audio that is late: a codec's concealment would move the
decoder past the frame that is still expected.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from voicestream.audio.stretch import best_lag, mono

__all__ = ["FADE_END_MS", "FADE_START_MS", "Continuation", "loss_gain"]

Pcm = NDArray[np.int16]

FADE_START_MS: Final = 40.0
"""Concealment longer than this becomes softer."""

FADE_END_MS: Final = 120.0
"""Concealment longer than this is silence: guessed speech that goes on longer is worse than none."""

MEMORY_MS: Final = 50.0
"""Audio before the loss that is looked at: two periods of the lowest voice and a window to compare."""

_VOICED: Final = 0.6
_NOISE_PERIOD_MS: Final = 15.0


def loss_gain(concealed_ms: float) -> float:
    """Gain (0 to 1) of concealment after `concealed_ms` milliseconds of it."""
    return min(1.0, max(0.0, (FADE_END_MS - concealed_ms) / (FADE_END_MS - FADE_START_MS)))


class Continuation:
    """An endless continuation of one piece of audio, without fade (see `loss_gain`).

    Args:
        memory: What was played last, int16 (n,) or (n, channels); the last 50 ms are used.
        sample_rate_hz: Rate of it.
    """

    def __init__(self, memory: Pcm, sample_rate_hz: int) -> None:
        memory = memory[-int(MEMORY_MS * sample_rate_hz / 1000) :]
        shortest = int(5 * sample_rate_hz / 1000)
        self._position = 0
        if len(memory) < 4 * shortest:
            self._cycle: NDArray[np.float32] = np.zeros((1, *memory.shape[1:]), dtype=np.float32)
            return
        signal = mono(memory)
        lag, likeness = best_lag(signal - signal.mean(), sample_rate_hz)
        if likeness < _VOICED:
            # Noise repeated at a short period would hum; a long piece played there and back has no audible period.
            piece = memory[-int(_NOISE_PERIOD_MS * sample_rate_hz / 1000) :].astype(np.float32)
            self._cycle = np.concatenate((piece[-2:0:-1], piece))
            return
        self._cycle = _closed_cycle(memory.astype(np.float32), lag)

    def take(self, samples: int) -> Pcm:
        """The next `samples` of the continuation."""
        index = (self._position + np.arange(samples)) % len(self._cycle)
        self._position = (self._position + samples) % len(self._cycle)
        return np.clip(np.rint(self._cycle[index]), -32768, 32767).astype(np.int16)


def _closed_cycle(memory: NDArray[np.float32], lag: int) -> NDArray[np.float32]:
    """The last period, its end bent so that the repetition joins without a step."""
    cycle = memory[-lag:].copy()
    overlap = min(lag // 4, len(memory) - lag)
    if overlap > 0:
        # The samples one period before the cycle's end lead into the cycle's first sample as they did in the memory.
        rise = (np.arange(overlap, dtype=np.float32) + 1) / (overlap + 1)
        if cycle.ndim == 2:
            rise = rise[:, np.newaxis]
        before = memory[len(memory) - lag - overlap : len(memory) - lag]
        cycle[-overlap:] += (before - cycle[-overlap:]) * rise
    return cycle
