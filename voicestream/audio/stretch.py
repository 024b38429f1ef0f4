"""Makes speech longer or shorter without changing its pitch: whole pitch periods are repeated or left out.

Two places of the signal that look alike are joined by a cross-fade (waveform-similarity overlap-add). Where the block is too
quiet for a join to be heard it may be made anywhere; where nothing looks alike the block stays as it is.
All functions take int16 of shape (n,) or (n, channels) and return new arrays of the same form.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

__all__ = ["accelerate", "best_lag", "crossfade", "expand", "fade", "merge", "mono"]

Pcm = NDArray[np.int16]
Floats = NDArray[np.float32]

MIN_PERIOD_MS: Final = 2.5
MAX_PERIOD_MS: Final = 15.0
HISTORY_MS: Final = 20.0
"""Audio before the block that `expand` can use."""

_SEARCH_RATE_HZ: Final = 8000
_WINDOW_MS: Final = 7.5
_SHORT_WINDOW_MS: Final = 4.0
_SHORTEST_WINDOW_MS: Final = 2.5
_SHORT_BLOCK_MS: Final = 15.0
_GOOD_MATCH: Final = 0.85
_NOISE_PERIODICITY: Final = 0.5
_QUIET: Final = 60.0
"""RMS of int16 (-55 dBFS) below which a join cannot be heard."""
_LAG_PENALTY: Final = 0.004
"""Loss of correlation, per millisecond, that is accepted to come nearer to the length asked for."""
_MAX_JOINS: Final = 3
_MAX_TRIES: Final = 4
_POSITION_STEP: Final = 2
_NEVER: Final = -9.0
_EVENT_MS: Final = 1.25
_EVENT_FACTOR: Final = 16.0
"""12 dB: what stands out from both ends of the piece by more is not left out or doubled with it."""
_CUT_SLACK_MS: Final = 2.5
_REPEAT_SLACK_MS: Final = 5.0
"""A period is seldom as long as asked for. Too much cut costs a gap later, too much repeated only delay."""


def mono(pcm: Pcm) -> Floats:
    """The mean of the channels as float32, for analysis."""
    if pcm.ndim == 1:
        return pcm.astype(np.float32)
    mixed: Floats = pcm.mean(axis=1, dtype=np.float32)
    return mixed


def _ramp(samples: int) -> Floats:
    """Rising half of a raised cosine, without its end points."""
    steps = (np.arange(samples, dtype=np.float32) + 0.5) / max(samples, 1)
    ramp: Floats = (0.5 - 0.5 * np.cos(np.pi * steps)).astype(np.float32)
    return ramp


def _to_pcm(values: NDArray[np.floating]) -> Pcm:
    clipped: Pcm = np.clip(np.rint(values), -32768, 32767).astype(np.int16)
    return clipped


def _as_column(ramp: Floats, pcm: Pcm) -> Floats:
    return ramp if pcm.ndim == 1 else ramp[:, np.newaxis]


def crossfade(a: Pcm, b: Pcm, *, likeness: float = 1.0) -> Pcm:
    """From `a` over to `b`.

    Args:
        a: What is left.
        b: What is gone over to, of the same shape.
        likeness: Their correlation, 0 to 1: the less alike, the more their sum is raised, so that its power does not dip.
    """
    if a.shape != b.shape:
        raise ValueError(f"crossfade needs two blocks of one shape, not {a.shape} and {b.shape}")
    rise = _ramp(len(a))
    fall = 1 - rise
    power = rise * rise + fall * fall + 2 * rise * fall * np.float32(min(max(likeness, 0.0), 1.0))
    gain = np.float32(1.0) / np.sqrt(power)
    mixed: Floats = a * _as_column(fall * gain, a) + b * _as_column(rise * gain, a)
    return _to_pcm(mixed)


def _likeness(a: Pcm, b: Pcm) -> float:
    first, second = mono(a), mono(b)
    return float(first @ second) / float(np.sqrt((first @ first) * (second @ second) + 1.0))


def fade(pcm: Pcm, start: float, end: float) -> Pcm:
    """`pcm` with a gain that runs linearly from `start` to `end` (0 to 1)."""
    if start == end == 1.0:
        return pcm.copy()
    gain = np.linspace(start, end, len(pcm), endpoint=False, dtype=np.float32)
    return _to_pcm(pcm * _as_column(gain, pcm))


def _join(a: Pcm, b: Pcm) -> Pcm:
    return crossfade(a, b, likeness=_likeness(a, b))


def _decimate(signal: Floats, factor: int) -> Floats:
    if factor == 1:
        return signal
    whole = len(signal) // factor * factor
    coarse: Floats = signal[:whole].reshape(-1, factor).mean(axis=1, dtype=np.float32)
    return coarse


def _running_sums(rows: Floats, width: int, step: int) -> Floats:
    """Sums of `width` neighbours along each row, at every `step`-th place."""
    sums = np.zeros((rows.shape[0], rows.shape[1] + 1))
    np.cumsum(rows, axis=1, out=sums[:, 1:])
    found: Floats = (sums[:, width::step] - sums[:, :-width:step]).astype(np.float32)
    return found


class _Joint:
    """Finds the two places of `signal` that are most alike, `lag` apart."""

    def __init__(self, signal: Floats, sample_rate_hz: int) -> None:
        self.signal = signal
        self.rate = sample_rate_hz
        self.factor = max(1, sample_rate_hz // _SEARCH_RATE_HZ)
        self.coarse = _decimate(signal, self.factor)
        self.per_ms = sample_rate_hz / self.factor / 1000

    def find(self, first_late: int, lags: tuple[int, int], wanted: int, window: int) -> tuple[int, int] | None:
        """The best pair (early, late) of positions, or None.

        Args:
            first_late: First position allowed for the late one.
            lags: Smallest and largest allowed distance.
            wanted: Distance that is asked for; a pair that cannot be heard gets it exactly.
            window: Samples that are compared and cross-faded.
        """
        k = self.factor
        width = max(window // k, 4)
        lag = np.arange(-(-lags[0] // k), lags[1] // k + 1)[:, np.newaxis]
        starts = len(self.coarse) - width + 1
        if not lag.size or starts < 2:
            return None
        early = np.arange(0, starts, _POSITION_STEP)[np.newaxis, :]
        late = early + lag
        # The window at the full rate may be longer than the coarse one, by less than a coarse step.
        allowed = (late >= first_late / k) & (late < starts) & (late * k + window <= len(self.signal))
        likeness, power = self._compare(lag[:, 0], width)
        off = (np.abs(lag - wanted / k) / self.per_ms).astype(np.float32)
        score = np.where(allowed, likeness - _LAG_PENALTY * off, _NEVER)
        # Where a join is not heard, only the length counts.
        inaudible = power <= _QUIET * _QUIET * width
        if score.max() < _GOOD_MATCH and self._is_steady_noise():
            inaudible = np.ones_like(allowed)
        score = np.where(inaudible & allowed, 2.0 - off, score)
        for _ in range(_MAX_TRIES):
            i, j = divmod(int(score.argmax()), early.shape[1])
            if score[i, j] == _NEVER or (likeness[i, j] < _GOOD_MATCH and not inaudible[i, j]):
                return None
            first, second = int(early[0, j]), int(late[i, j])
            event = self._event(first, second, width)
            if event is None:
                pair = (first * k, second * k)
                return pair if inaudible[i, j] else self._refine(*pair, first_late, lags, window)
            score[(early <= event) & (late + width > event)] = _NEVER
        return None

    def _compare(self, lag: NDArray[np.intp], width: int) -> tuple[Floats, Floats]:
        """For each lag (row) and early position (column): correlation of the two windows, and the larger of their energies.

        By running sums, so that the window's length costs nothing; a matrix product would also wake other threads.
        """
        signal = self.coarse
        beyond = np.zeros(int(lag[-1]), dtype=np.float32)
        shifted = sliding_window_view(np.concatenate((signal, beyond)), len(signal))[lag]
        products = _running_sums(signal * shifted, width, _POSITION_STEP)
        energies = _running_sums(np.square(signal)[np.newaxis, :], width, 1)[0]
        earlier = np.maximum(energies[::_POSITION_STEP], _QUIET * _QUIET * width)
        later = sliding_window_view(np.concatenate((energies, beyond)), len(energies))[lag, ::_POSITION_STEP]
        later = np.maximum(later, _QUIET * _QUIET * width)
        return products / np.sqrt(earlier * later), np.maximum(earlier, later)

    def _event(self, early: int, late: int, width: int) -> int | None:
        """Where something happens between two places that are like each other, and would get lost or be doubled; or None."""
        piece = max(1, int(_EVENT_MS * self.per_ms))
        powers = np.convolve(np.square(self.coarse[early : late + width]), np.ones(piece, dtype=np.float32), mode="valid")
        ends = max(float(powers[: width - piece + 1].max()), float(powers[late - early :].max()), _QUIET * _QUIET * piece)
        loudest = int(powers.argmax())
        return early + loudest + piece // 2 if powers[loudest] > _EVENT_FACTOR * ends else None

    def _is_steady_noise(self) -> bool:
        """Whether nothing repeats, at any lag that a voice can have, and the power stays within 6 dB from one 5 ms to the next."""
        signal = self.coarse
        if len(signal) < _SHORT_BLOCK_MS * self.per_ms:
            return False
        piece = int(5 * self.per_ms)
        whole = len(signal) // piece * piece
        powers = np.square(signal[len(signal) - whole :]).reshape(-1, piece).sum(axis=1)
        if powers.max() >= 4 * powers.min():
            return False
        lags = np.arange(int(MIN_PERIOD_MS * self.per_ms), min(int(MAX_PERIOD_MS * self.per_ms), len(signal) - piece) + 1)
        products = np.correlate(signal, signal, mode="full")[len(signal) - 1 + lags]
        sums = np.concatenate((np.zeros(1), np.cumsum(np.square(signal, dtype=np.float64))))
        energies = np.sqrt(sums[len(signal) - lags] * (sums[-1] - sums[lags]))
        return bool((products < _NOISE_PERIODICITY * energies).all())

    def _refine(self, early: int, late: int, first_late: int, lags: tuple[int, int], window: int) -> tuple[int, int]:
        """Move the late place by less than one coarse step to where the full-rate signal fits best."""
        if self.factor == 1:
            return early, late
        first = max(late - self.factor, first_late, early + lags[0])
        last = min(late + self.factor, early + lags[1], len(self.signal) - window)
        if last < first:
            return early, late
        windows = sliding_window_view(self.signal[first : last + window], window)
        products = np.einsum("ij,j->i", windows, self.signal[early : early + window])
        energies = np.einsum("ij,ij->i", windows, windows)
        return early, first + int((products / np.sqrt(energies + 1.0)).argmax())


def _limits(sample_rate_hz: int, wanted: int, slack_ms: float) -> tuple[int, int]:
    """Smallest and largest step for one join when `wanted` samples, and up to `slack_ms` more, may be made."""
    smallest = int(MIN_PERIOD_MS * sample_rate_hz / 1000)
    largest = int(MAX_PERIOD_MS * sample_rate_hz / 1000)
    return smallest, min(largest, wanted + int(slack_ms * sample_rate_hz / 1000))


def _windows(samples: int, sample_rate_hz: int) -> tuple[int, int]:
    """Lengths to compare and cross-fade: the longer is the safer; a long period in a short block leaves room only for the other."""
    short = _SHORT_WINDOW_MS if samples * 1000 >= _SHORT_BLOCK_MS * sample_rate_hz else _SHORTEST_WINDOW_MS
    return int(_WINDOW_MS * sample_rate_hz / 1000), int(short * sample_rate_hz / 1000)


def accelerate(pcm: Pcm, fewer_samples: int, *, sample_rate_hz: int) -> Pcm:
    """`pcm` without one or more whole pitch periods, about `fewer_samples` in all; unchanged where no join would be good."""
    smallest, _ = _limits(sample_rate_hz, fewer_samples, _CUT_SLACK_MS)
    out = pcm
    left = fewer_samples
    for _ in range(_MAX_JOINS):
        if left < smallest:
            break
        shorter = _cut_once(out, left, sample_rate_hz)
        if shorter is None:
            break
        left -= len(out) - len(shorter)
        out = shorter
    return out.copy() if out is pcm else out


def _cut_once(pcm: Pcm, fewer: int, rate: int) -> Pcm | None:
    n = len(pcm)
    lags = _limits(rate, fewer, _CUT_SLACK_MS)
    signal = mono(pcm)
    joint = _Joint(signal, rate)
    for window in _windows(n, rate):
        pair = joint.find(lags[0], lags, fewer, window)
        if pair is not None:
            early, late = pair
            joined = _join(pcm[early : early + window], pcm[late : late + window])
            return np.concatenate((pcm[:early], joined, pcm[late + window :]))
    return None


def expand(pcm: Pcm, more_samples: int, *, sample_rate_hz: int, history: Pcm | None = None) -> Pcm:
    """`pcm` with one or more pitch periods repeated, about `more_samples` in all; unchanged where no join would be good.

    Args:
        pcm: The block.
        more_samples: How much longer it should become.
        sample_rate_hz: Rate of `pcm`.
        history: What was played just before; with it a period longer than half the block can be repeated too.
    """
    smallest, _ = _limits(sample_rate_hz, more_samples, _REPEAT_SLACK_MS)
    before = pcm[:0] if history is None else history[-int(HISTORY_MS * sample_rate_hz / 1000) :]
    out = pcm
    left = more_samples
    for _ in range(_MAX_JOINS):
        if left < smallest:
            break
        longer = _repeat_once(before, out, left, sample_rate_hz)
        if longer is None:
            break
        left -= len(longer) - len(out)
        out = longer
    return out.copy() if out is pcm else out


def _repeat_once(before: Pcm, pcm: Pcm, more: int, rate: int) -> Pcm | None:
    lags = _limits(rate, more, _REPEAT_SLACK_MS)
    before = before[max(0, len(before) - lags[1]) :]
    whole = np.concatenate((before, pcm)) if len(before) else pcm
    skip = len(before)
    joint = _Joint(mono(whole), rate)
    for window in _windows(len(pcm), rate):
        pair = joint.find(max(skip, lags[0]), lags, more, window)
        if pair is not None:
            early, late = pair
            joined = _join(whole[late : late + window], whole[early : early + window])
            return np.concatenate((whole[skip:late], joined, whole[early + window :]))
    return None


def best_lag(signal: Floats, sample_rate_hz: int, *, window_ms: float = 10.0) -> tuple[int, float]:
    """Pitch period at the end of `signal`.

    Returns:
        The period in samples, 2.5 to 15 ms, and the normalised correlation of the last two periods, -1 to 1.
    """
    factor = max(1, sample_rate_hz // _SEARCH_RATE_HZ)
    coarse = _decimate(signal[len(signal) % factor :], factor)
    rate = sample_rate_hz / factor
    width = int(window_ms * rate / 1000)
    shortest, longest = int(MIN_PERIOD_MS * rate / 1000), int(MAX_PERIOD_MS * rate / 1000)
    longest = min(longest, len(coarse) - width)
    if longest < shortest:
        return max(1, int(MIN_PERIOD_MS * sample_rate_hz / 1000)), 0.0
    windows = sliding_window_view(coarse[-width - longest :], width)[: longest - shortest + 1][::-1]
    last = coarse[-width:]
    energies = np.einsum("ij,ij->i", windows, windows)
    likeness = np.einsum("ij,j->i", windows, last) / np.sqrt(energies * float(last @ last) + 1.0)
    # The period and its multiples fit equally well; the shortest that is nearly as good is the period.
    best = float(likeness.max())
    index = int(np.argmax(likeness >= best - 0.02)) if best > 0 else int(likeness.argmax())
    while index + 1 < len(likeness) and likeness[index + 1] > likeness[index]:
        index += 1
    lag = (shortest + index) * factor
    if factor > 1:
        lag = _refine_lag(signal, lag, factor, int(window_ms * sample_rate_hz / 1000))
    return lag, float(likeness[index])


def _refine_lag(signal: Floats, lag: int, factor: int, width: int) -> int:
    longest = min(lag + factor, len(signal) - width)
    shortest = max(lag - factor, 1)
    if longest < shortest:
        return lag
    windows = sliding_window_view(signal[-width - longest : len(signal) - shortest], width)[::-1]
    energies = np.einsum("ij,ij->i", windows, windows)
    return shortest + int((np.einsum("ij,j->i", windows, signal[-width:]) / np.sqrt(energies + 1.0)).argmax())


def merge(tail: Pcm, fresh: Pcm, *, sample_rate_hz: int) -> Pcm:
    """Go over from `tail`, the continuation of a concealment, to `fresh`, in phase.

    The start of `fresh` is laid where it fits best into `tail`, and cross-faded there. The result is as much longer than
    `fresh` as it was laid later.

    Args:
        tail: What the concealment would play next, at least 2.5 ms; 20 ms leaves room for any period.
        fresh: Decoded audio.
        sample_rate_hz: Rate of both.
    """
    overlap = min(int(5.0 * sample_rate_hz / 1000), len(tail), len(fresh))
    room = min(len(tail) - overlap, int(MAX_PERIOD_MS * sample_rate_hz / 1000))
    offset = 0
    if room > 0 and overlap > 0:
        windows = sliding_window_view(mono(tail[: room + overlap]), overlap)
        start = mono(fresh[:overlap])
        energies = np.einsum("ij,ij->i", windows, windows)
        floor = _QUIET * _QUIET * overlap
        likeness = np.einsum("ij,j->i", windows, start) / np.sqrt(np.maximum(energies, floor) * max(float(start @ start), floor))
        # The earliest of equals: every sample later is delay.
        offset = int(np.argmax(likeness >= likeness.max() - 0.05)) if likeness.max() > 0.3 else 0
    joined = _join(tail[offset : offset + overlap], fresh[:overlap])
    return np.concatenate((tail[:offset], joined, fresh[overlap:]))
