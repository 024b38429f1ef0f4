"""What two recordings tell about a call: how late the one is against the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["delays_ms"]

Pcm = NDArray[np.int16]


def delays_ms(said: Pcm, heard: Pcm, sample_rate_hz: int, *, offset_s: float, longest_s: float = 1.0) -> list[tuple[float, float]]:
    """Mouth-to-ear delay of each second of speech.

    Args:
        said: What was spoken.
        heard: What was played, at the same rate.
        sample_rate_hz: That rate.
        offset_s: When the first sample of `heard` was played, in seconds after the first of `said` was spoken.
        longest_s: Delays are searched up to here.

    Returns:
        (middle of the second in `said`, milliseconds) of each second in which there was speech that can be found again.
    """
    size, reach = sample_rate_hz, round(longest_s * sample_rate_hz)
    first = round(offset_s * sample_rate_hz)
    speech = said.astype(np.float64)
    loud = 0.3 * float(np.sqrt(np.mean(speech**2))) if len(said) else 0.0
    # Zeros before and after, so that every window can be cut out whole.
    played = np.concatenate([np.zeros(max(0, first)), heard[max(0, -first) :].astype(np.float64), np.zeros(size + reach)])
    result = []
    for start in range(0, len(said) - size + 1, size):
        piece = speech[start : start + size]
        window = played[start : start + size + reach]
        if len(window) < size + reach or float(np.sqrt(np.mean(piece**2))) <= max(loud, 1.0):
            continue
        lag, likeness = _best_lag(piece, window)
        if likeness > 0.5:
            result.append((start / sample_rate_hz + 0.5, 1e3 * lag / sample_rate_hz))
    return result


def _best_lag(piece: NDArray[np.float64], window: NDArray[np.float64]) -> tuple[int, float]:
    """Where `piece` matches `window` best, and the normalised correlation there."""
    size = 1 << (len(window) + len(piece)).bit_length()
    spectrum = np.fft.rfft(window, size) * np.conj(np.fft.rfft(piece, size))
    products = np.fft.irfft(spectrum, size)[: len(window) - len(piece) + 1]
    squares = np.concatenate([[0.0], np.cumsum(window**2)])
    energy = squares[len(piece) :] - squares[: -len(piece)]
    own = float(np.dot(piece, piece))
    # A nearly silent stretch must not match by chance.
    values = products / np.sqrt(np.maximum(energy, 1e-3 * own) * own)
    best = int(np.argmax(values))
    return best, float(values[best])
