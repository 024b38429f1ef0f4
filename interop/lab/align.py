"""Where in a recording is what was said? Segment by segment, whatever the delay does."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["RATE", "ROW", "Signal", "best_lag", "best_row", "level_of", "realign", "segment_lags", "spectra"]

Signal = npt.NDArray[np.floating]
RATE: Final = 16000
SEGMENT: Final = RATE
HOP: Final = RATE // 2
ROW: Final = RATE // 200
"""5 ms, the step of a mel spectrogram."""

WAVE_MATCH: Final = 0.45
SPECTRUM_MATCH: Final = 0.8
QUIET: Final = 0.2
"""A segment with less than this part of the mean level is no speech."""


def level_of(signal: Signal) -> float:
    """Root mean square, never 0."""
    return float(np.sqrt(np.mean(signal**2) + 1e-12))


def best_lag(segment: Signal, window: Signal) -> tuple[int, float]:
    """Offset of the best match of `segment` in `window`, and its normalised correlation."""
    n = len(segment)
    if len(window) < n:
        return 0, 0.0
    size = 1 << int(np.ceil(np.log2(len(window) + n)))
    dot = np.fft.irfft(np.fft.rfft(window, size) * np.conj(np.fft.rfft(segment, size)), size)[: len(window) - n + 1]
    sums = np.concatenate([[0.0], np.cumsum(window.astype(np.float64) ** 2)])
    own = float(np.dot(segment, segment))
    value = dot / np.sqrt(np.maximum(sums[n:] - sums[:-n], own * 1e-3) * own)
    at = int(np.argmax(value))
    return at, float(value[at])


def _mel_power(signal: Signal, bands: int = 20, low: int = 100, high: int = 4000, window: int = RATE // 40) -> Signal:
    """Power in mel bands, one row every 5 ms, each of 25 ms around it."""
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(signal, window // 2), window)[::ROW] * np.hanning(window).astype(np.float32)
    power = np.abs(np.fft.rfft(frames, 512)) ** 2
    edges = 700 * np.expm1(np.linspace(np.log1p(low / 700), np.log1p(high / 700), bands + 2))[:, None]
    f = np.fft.rfftfreq(512, 1 / RATE)[None, :]
    rise, fall = (f - edges[:-2]) / (edges[1:-1] - edges[:-2]), (edges[2:] - f) / (edges[2:] - edges[1:-1])
    shapes = np.clip(np.minimum(rise, fall), 0, None)
    return np.asarray(power @ shapes.T)


def spectra(ref: Signal, heard: Signal) -> tuple[Signal, Signal]:
    """Mel spectrograms of both in dB at the same loudness, less the mean of the reference's speech."""
    a, b = _mel_power(ref), _mel_power(heard * (level_of(ref) / level_of(heard)))
    floor = np.mean(a) * 10**-3.5
    mean = np.mean(10 * np.log10(a[a.sum(axis=1) > 0.01 * np.mean(a.sum(axis=1))] + floor), axis=0)
    return 10 * np.log10(a + floor) - mean, 10 * np.log10(b + floor) - mean


def best_row(piece: Signal, rows: Signal) -> tuple[int, float]:
    """Row at which `piece`, a cut of a spectrogram, matches `rows` best, and its correlation."""
    if len(rows) < len(piece):
        return 0, 0.0
    views = np.lib.stride_tricks.sliding_window_view(rows, len(piece), axis=0)  # type: ignore[call-overload]
    dot = np.einsum("tbk,kb->t", views, piece, optimize=True)
    sums = np.concatenate([[0.0], np.cumsum(np.sum(rows**2, axis=1))])
    value = dot / np.sqrt((sums[len(piece) :] - sums[: -len(piece)]) * np.sum(piece**2) + 1e-9)
    at = int(np.argmax(value))
    return at, float(value[at])


def segment_lags(ref: Signal, heard: Signal, offset: int, *, skip: float, max_delay: float) -> tuple[list[tuple[int, int]], int]:
    """Delays of the seconds of speech that can be found.

    Args:
        ref: What was said.
        heard: What was played.
        offset: When heard[0] was played, in samples after ref[0] was spoken; may be negative.
        skip: Seconds of warm-up.
        max_delay: Seconds to search.

    Returns:
        (start in ref, delay) in samples of each segment found, and how many segments have speech.
    """
    level = np.sqrt(np.mean(ref**2))
    said, played = spectra(ref, heard)
    found, total = [], 0
    for start in range(int(skip * RATE), len(ref) - SEGMENT + 1, HOP):
        segment = ref[start : start + SEGMENT]
        if np.sqrt(np.mean(segment**2)) < QUIET * level:
            continue
        total += 1
        low = start - offset
        begin = max(0, low)
        window = heard[begin : max(begin, low + int(max_delay * RATE) + SEGMENT)]
        at, value = best_lag(segment, window)
        good = value > WAVE_MATCH
        if not good:  # time-stretched or recoded, perhaps
            row = begin // ROW
            at, value = best_row(said[start // ROW : (start + SEGMENT) // ROW], played[row : row + len(window) // ROW])
            at, good = row * ROW + at * ROW - begin, value > SPECTRUM_MATCH
        if good:
            found.append((start, begin + at - low))
    return found, total


def realign(ref: Signal, heard: Signal, offset: int, lags: list[tuple[int, int]], *, skip: float) -> Signal:
    """The recording laid beside the reference second by second, from `skip` on.

    Each second lies at its own lag (an unmatched one at that of the nearest), with 10 ms of cross-fade at the seams.
    """
    fade = RATE // 100
    ramp = np.linspace(0, 1, fade, dtype=np.float32)
    out = np.zeros(len(ref) + SEGMENT, np.float32)
    starts = np.array([start for start, _ in lags])
    first = int(skip * RATE)
    for start in range(first, len(ref), SEGMENT):
        at = start + lags[int(np.argmin(np.abs(starts - start)))][1] - offset
        piece = np.zeros(SEGMENT + fade, np.float32)
        source = heard[max(0, at) : max(0, at + SEGMENT + fade)]
        lead = max(0, -at)
        piece[lead : lead + len(source)] = source[: len(piece) - lead]
        if start > first:
            piece[:fade] = piece[:fade] * ramp + out[start : start + fade] * (1 - ramp)
        out[start : start + SEGMENT + fade] = piece[: len(out) - start]
    return out[first : len(ref)]
