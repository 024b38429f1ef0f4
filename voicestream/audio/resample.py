"""Streaming conversion of the sampling rate, and of the number of channels.

soxr's constant-rate mode hands out its result in blocks of up to 170 ms; its variable-rate mode gives every sample as soon as
the filter allows, but that filter has 240 samples of the lower rate: 5 ms at 48 kHz, 30 ms at 8 kHz. So soxr converts between
high rates only, and whole-number steps below are made by short filters of our own, which wait for 24 samples of the lower rate.
"""

from __future__ import annotations

import math
from typing import Any, Final, Protocol

import numpy as np
import soxr
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

__all__ = ["Resampler", "to_channels", "to_float", "to_int16"]

Floats = NDArray[np.float32]
Pcm = NDArray[np.int16]

_HALF_LENGTH: Final = 24
"""Samples of the lower rate on either side of the filter's middle."""
_COMMON_RATE_HZ: Final = 192000
"""Highest rate over which two whole-number steps replace soxr."""
_KAISER_BETA: Final = 6.0
_HIGH_RATE_HZ: Final = 32000
"""soxr converts only where both rates are at least this."""


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


class _Stage(Protocol):
    def push(self, pcm: Floats) -> Floats: ...

    def flush(self) -> Floats: ...

    @property
    def delay_s(self) -> float: ...


def _low_pass(factor: int) -> Floats:
    """Windowed sinc for a whole-number step, `factor` points to each sample of the lower rate."""
    positions = np.arange(-_HALF_LENGTH * factor, _HALF_LENGTH * factor + 1) / factor
    # The cut lies so that the transition ends at the lower rate's half; 0.074 of the rate is its width for this window.
    cut = 1.0 - 0.074
    taps = cut * np.sinc(cut * positions) * np.kaiser(len(positions), _KAISER_BETA)
    scaled: Floats = (taps / taps.sum()).astype(np.float32)
    return scaled


class _Up:
    """Raises the rate by a whole number."""

    def __init__(self, rate_hz: int, factor: int, channels: int) -> None:
        taps = _low_pass(factor) * factor
        width = 2 * _HALF_LENGTH + 1
        padded = np.concatenate((taps, np.zeros(factor - 1, dtype=np.float32)))
        # Column p holds the taps that meet the window's samples, oldest first, for the p-th new sample.
        self._phases = np.ascontiguousarray(padded.reshape(width, factor)[::-1])
        self._factor = factor
        self._width = width
        # The window needs 24 samples on either side: the first output waits for 24 samples after the first input.
        self._kept: Floats = np.zeros((_HALF_LENGTH, channels), dtype=np.float32)
        self.delay_s = _HALF_LENGTH / rate_hz

    def push(self, pcm: Floats) -> Floats:
        joined = np.concatenate((self._kept, pcm))
        if len(joined) < self._width:
            self._kept = joined
            return joined[:0]
        windows = sliding_window_view(joined, self._width, axis=0)  # (n, channels, width)
        out = (windows @ self._phases).transpose(0, 2, 1)
        self._kept = joined[len(windows) :].copy()
        return np.ascontiguousarray(out.reshape(-1, joined.shape[1]), dtype=np.float32)

    def flush(self) -> Floats:
        return self.push(np.zeros((_HALF_LENGTH, self._kept.shape[1]), dtype=np.float32))


class _Down:
    """Lowers the rate by a whole number."""

    def __init__(self, rate_hz: int, factor: int, channels: int) -> None:
        self._taps = _low_pass(factor)[::-1].copy()
        self._factor = factor
        self._half = _HALF_LENGTH * factor
        self._kept: Floats = np.zeros((self._half, channels), dtype=np.float32)
        self.delay_s = self._half / rate_hz
        self._taken = 0
        self._made = 0

    def push(self, pcm: Floats) -> Floats:
        self._taken += len(pcm)
        joined = np.concatenate((self._kept, pcm))
        width = len(self._taps)
        if len(joined) < width:
            self._kept = joined
            return joined[:0]
        windows = sliding_window_view(joined, width, axis=0)[:: self._factor]
        out = windows @ self._taps
        self._kept = joined[len(windows) * self._factor :].copy()
        self._made += len(out)
        return np.ascontiguousarray(out, dtype=np.float32)

    def flush(self) -> Floats:
        wanted = -(-self._taken // self._factor) - self._made
        zeros = np.zeros((self._half + self._factor, self._kept.shape[1]), dtype=np.float32)
        return self.push(zeros)[: max(wanted, 0)]


class _Soxr:
    """Any ratio between high rates."""

    def __init__(self, in_rate_hz: int, out_rate_hz: int, channels: int) -> None:
        self._stream: Any = soxr.ResampleStream(in_rate_hz, out_rate_hz, channels, dtype="float32", quality="HQ", vr=True)
        self._channels = channels
        self.delay_s = self._measure(in_rate_hz, out_rate_hz)

    def _measure(self, in_rate_hz: int, out_rate_hz: int) -> float:
        """soxr reports what is pending only after it has been fed."""
        block = np.zeros((in_rate_hz // 10, self._channels), dtype=np.float32)
        made = len(self._stream.resample_chunk(block))
        self._stream.clear()
        return max(0.0, len(block) / in_rate_hz - made / out_rate_hz)

    def push(self, pcm: Floats) -> Floats:
        out: Floats = self._stream.resample_chunk(np.ascontiguousarray(pcm))
        return out.reshape(-1, self._channels)

    def flush(self) -> Floats:
        out: Floats = self._stream.resample_chunk(np.zeros((0, self._channels), dtype=np.float32), last=True)
        self._stream.clear()
        return out.reshape(-1, self._channels)


def _stages(in_rate_hz: int, out_rate_hz: int, channels: int) -> list[_Stage]:
    if in_rate_hz == out_rate_hz:
        return []
    if out_rate_hz % in_rate_hz == 0:
        return [_Up(in_rate_hz, out_rate_hz // in_rate_hz, channels)]
    if in_rate_hz % out_rate_hz == 0:
        return [_Down(in_rate_hz, in_rate_hz // out_rate_hz, channels)]
    common = math.lcm(in_rate_hz, out_rate_hz)
    if common <= _COMMON_RATE_HZ:
        return [_Up(in_rate_hz, common // in_rate_hz, channels), _Down(common, common // out_rate_hz, channels)]
    first = max(1, -(-_HIGH_RATE_HZ // in_rate_hz))
    last = max(1, -(-_HIGH_RATE_HZ // out_rate_hz))
    stages: list[_Stage] = []
    if first > 1:
        stages.append(_Up(in_rate_hz, first, channels))
    if in_rate_hz * first != out_rate_hz * last:
        stages.append(_Soxr(in_rate_hz * first, out_rate_hz * last, channels))
    if last > 1:
        stages.append(_Down(out_rate_hz * last, last, channels))
    return stages


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
        self._stages = _stages(in_rate_hz, out_rate_hz, channels)

    @property
    def latency(self) -> float:
        """Output samples that are still to come for the input so far: the delay of the conversion."""
        return sum(stage.delay_s for stage in self._stages) * self.out_rate_hz

    def push(self, pcm: Floats) -> Floats:
        """The part of the result that is ready."""
        block = np.asarray(pcm, dtype=np.float32).reshape(-1, self.channels)
        for stage in self._stages:
            block = stage.push(block)
        return self._shape(block)

    def flush(self) -> Floats:
        """The rest of the result. What is pushed after it is a new signal."""
        rest = np.zeros((0, self.channels), dtype=np.float32)
        for stage in self._stages:
            rest = np.concatenate((stage.push(rest), stage.flush()))
        self._stages = _stages(self.in_rate_hz, self.out_rate_hz, self.channels)
        return self._shape(rest)

    def _shape(self, block: Floats) -> Floats:
        return block.reshape(-1) if self.channels == 1 else block
