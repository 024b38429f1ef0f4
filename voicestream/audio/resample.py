"""Conversion of the sampling rate and of the number of channels.

A whole recording is converted by soxr. A stream is not: soxr hands out the result of a stream in blocks of 10 to 170 ms, and
a call cannot wait for them. The streaming filter here gives every sample as soon as it can be known, which is 24 samples of the
lower rate later (3 ms at 8 kHz), or 40 from 32 kHz on (0.9 ms at 44.1 kHz).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import soxr
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

__all__ = ["Resampler", "resample", "to_channels", "to_float", "to_int16"]

Floats = NDArray[np.float32]
Pcm = NDArray[np.int16]

_MAX_EXACT_PHASES: Final = 1024
"""Ratios with more phases than this are interpolated between `_PHASES` of them."""
_PHASES: Final = 512


def to_int16(pcm: NDArray[np.floating]) -> Pcm:
    """float -1 to 1 as int16, clipped; what is not a number becomes 0."""
    scaled = np.nan_to_num(pcm * np.float32(32768.0), nan=0.0, posinf=32767.0, neginf=-32768.0)
    clipped: Pcm = np.clip(np.rint(scaled), -32768, 32767).astype(np.int16)
    return clipped


def to_float(pcm: NDArray[Any]) -> Floats:
    """int16 as float32 -1 to 1; floats are clipped to that, and what is not a number becomes 0."""
    if pcm.dtype == np.int16:
        return pcm.astype(np.float32) / np.float32(32768.0)
    clipped: Floats = np.nan_to_num(np.clip(pcm, -1.0, 1.0)).astype(np.float32)
    return clipped


def to_channels(pcm: NDArray[Any], channels: int) -> NDArray[Any]:
    """`pcm` of shape (n,) or (n, any) as (n,) for one channel and (n, channels) for more.

    Several become one by their mean; one becomes several by copying; three or more become two by the mean, copied.
    """
    have = 1 if pcm.ndim == 1 else pcm.shape[1]
    if have == channels:
        return pcm.reshape(-1) if channels == 1 else pcm
    if have == 1:
        return np.repeat(pcm.reshape(-1, 1), channels, axis=1)
    mixed = pcm.mean(axis=1, dtype=np.float32)
    if pcm.dtype == np.int16:
        mixed = np.rint(mixed)
    single = mixed.astype(pcm.dtype)
    return single if channels == 1 else np.repeat(single.reshape(-1, 1), channels, axis=1)


def _filter(rate_hz: int, half: int, shape: float, positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Windowed sinc that passes what `rate_hz` can hold; `positions` in samples of that rate."""
    # The middle of the transition lies so that the transition ends at the band's edge.
    stop_db = shape / 0.1102 + 8.7
    cut = 1.0 - (stop_db - 8.0) / (2.285 * 2 * half) / (2 * np.pi)
    inside = np.clip(1.0 - (positions / half) ** 2, 0.0, None)
    taps: NDArray[np.float64] = cut * np.sinc(cut * positions) * np.i0(shape * np.sqrt(inside)) / np.i0(shape) * (inside > 0)
    return taps


class Resampler:
    """Converts a stream of float32 blocks, (n,) or (n, channels), from one rate to another.

    Args:
        in_rate_hz: 8000 to 192000.
        out_rate_hz: 8000 to 192000.
        channels: 1 or more.
    """

    def __init__(self, in_rate_hz: int, out_rate_hz: int, channels: int = 1) -> None:
        for name, rate in (("in_rate_hz", in_rate_hz), ("out_rate_hz", out_rate_hz)):
            if not 8000 <= rate <= 192000:
                raise ValueError(f"{name} must be 8000 to 192000, not {rate}")
        self.in_rate_hz = in_rate_hz
        self.out_rate_hz = out_rate_hz
        self.channels = channels
        common = math.gcd(in_rate_hz, out_rate_hz)
        # Output k lies at input k * down / up.
        self._up = out_rate_hz // common
        self._down = in_rate_hz // common
        low = min(in_rate_hz, out_rate_hz)
        half, shape = (40, 8.0) if low >= 32000 else (24, 6.0)
        self._half = math.ceil(half * in_rate_hz / low)
        self._table = self._make_table(low, half, shape)
        self._begin()

    def _make_table(self, low: int, half: int, shape: float) -> Floats:
        """A row of taps, oldest sample first, for every place between two input samples that an output can have."""
        phases = self._up if self._up <= _MAX_EXACT_PHASES else _PHASES
        places = np.arange(phases + 1)[:, np.newaxis] / phases
        samples = np.arange(2 * self._half)[np.newaxis, :] - (self._half - 1)
        taps = _filter(low, half, shape, (samples - places) * low / self.in_rate_hz)
        table: Floats = (taps / taps.sum(axis=1, keepdims=True)).astype(np.float32)
        return table

    def _begin(self) -> None:
        # Channels first: the filter then runs over neighbours in memory.
        self._kept: Floats = np.zeros((self.channels, self._half - 1), dtype=np.float32)
        # Of the next output, in input samples times `_up`, counted from the window that begins with the kept samples.
        self._position = 0
        self._taken = 0
        self._made = 0

    @property
    def latency(self) -> float:
        """Output samples that are still to come for the input so far: the delay of the conversion."""
        return 0.0 if self._up == self._down else self._half * self.out_rate_hz / self.in_rate_hz

    def push(self, pcm: Floats) -> Floats:
        """The part of the result that is ready."""
        block = np.asarray(pcm, dtype=np.float32).reshape(-1, self.channels)
        self._taken += len(block)
        if self._up != self._down:
            block = self._convert(block)
        self._made += len(block)
        return self._shape(block)

    def flush(self) -> Floats:
        """The rest of the result. What is pushed after it is a new signal."""
        wanted = -(-self._taken * self._up // self._down) - self._made
        rest = np.zeros((0, self.channels), dtype=np.float32)
        if self._up != self._down:
            rest = self._convert(np.zeros((self._half + 1, self.channels), dtype=np.float32))[:wanted]
        self._begin()
        return self._shape(rest)

    def _convert(self, block: Floats) -> Floats:
        """All outputs that can be made now; what the later ones need is kept."""
        joined = np.concatenate((self._kept, block.T), axis=1)
        width = 2 * self._half
        last = (joined.shape[1] - width + 1) * self._up - 1 - self._position
        count = last // self._down + 1 if last >= 0 else 0
        out = np.zeros((self.channels, 0), dtype=np.float32)
        if count:
            windows = sliding_window_view(joined, width, axis=1)
            if self._up == 1:
                chosen = windows[:, self._position :: self._down][:, :count]
                out = np.einsum("cnw,w->cn", chosen, self._table[0])
            else:
                starts, phases = np.divmod(self._position + self._down * np.arange(count), self._up)
                out = np.einsum("cnw,nw->cn", windows[:, starts], self._taps(phases))
        self._position += count * self._down
        gone = min(self._position // self._up, joined.shape[1])
        self._position -= gone * self._up
        self._kept = joined[:, gone:].copy()
        return np.ascontiguousarray(out.T)

    def _taps(self, phases: NDArray[np.int64]) -> Floats:
        rows = len(self._table) - 1
        if rows == self._up:
            return self._table[phases]
        exact = phases * (rows / self._up)
        whole = exact.astype(np.int64)
        part = (exact - whole).astype(np.float32)[:, np.newaxis]
        lower = self._table[whole]
        between: Floats = lower + (self._table[whole + 1] - lower) * part
        return between

    def _shape(self, block: Floats) -> Floats:
        return block.reshape(-1) if self.channels == 1 else block


def resample(pcm: Floats, in_rate_hz: int, out_rate_hz: int) -> Floats:
    """A whole recording, (n,) or (n, channels), at another rate."""
    out: Floats = soxr.resample(pcm, in_rate_hz, out_rate_hz, quality="HQ")
    return out
