"""From the application's PCM, in blocks of any length, to coded frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicestream.audio.codec import make_encoder
from voicestream.audio.fifo import SampleFifo
from voicestream.audio.resample import Resampler, to_channels, to_float, to_int16
from voicestream.config import FRAME_MS_CHOICES, UNITS_PER_SECOND, AudioConfig, Track

__all__ = ["Capture", "CodedFrame", "as_samples"]

Samples = NDArray[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class CodedFrame:
    """One frame's worth of media time.

    Attributes:
        payload: Coded bytes; None when nothing is to be sent for it (silence under DTX).
        units: Its length in pts units of 2.5 ms.
        talkspurt_start: First frame of a talkspurt.
        talkspurt_end: Last frame of a talkspurt.
        copy: The same audio at a low rate, to be sent again later; None when no copies are made.
    """

    payload: bytes | None
    units: int
    talkspurt_start: bool = False
    talkspurt_end: bool = False
    copy: bytes | None = None


def as_samples(pcm: Any, channels: int) -> Samples:
    """`pcm` as an array of int16 or float32 of shape (n,) for one channel and (n, channels) for more.

    Args:
        pcm: int16 or float32 array, or bytes of int16 (little-endian, interleaved).
        channels: 1 or 2, as the application said.

    Raises:
        TypeError: Another type.
        ValueError: Another shape, a broken number of bytes, or NaN or infinity among the floats.
    """
    if isinstance(pcm, bytes | bytearray | memoryview):
        data = bytes(pcm)
        if len(data) % (2 * channels):
            raise ValueError(f"PCM bytes must be whole int16 samples, a multiple of {2 * channels} bytes, not {len(data)}")
        flat = np.frombuffer(data, dtype="<i2").astype(np.int16)
        return flat if channels == 1 else flat.reshape(-1, channels)
    if not isinstance(pcm, np.ndarray):
        raise TypeError(f"PCM must be a numpy array of int16 or float32, or bytes of int16, not {type(pcm).__name__}")
    if (pcm.dtype.kind, pcm.dtype.itemsize) not in (("i", 2), ("f", 4)):
        raise TypeError(f"PCM must have dtype int16 or float32, not {pcm.dtype}")
    fits = pcm.ndim == 1 if channels == 1 else False
    if not fits and not (pcm.ndim == 2 and pcm.shape[1] == channels):
        expected = "(n,) or (n, 1)" if channels == 1 else f"(n, {channels})"
        raise ValueError(f"PCM of {channels} channel(s) must have shape {expected}, not {pcm.shape}")
    if pcm.dtype.kind == "f" and not np.isfinite(pcm).all():
        raise ValueError("PCM must be numbers from -1 to 1: this block has NaN or infinity in it")
    native = pcm.astype(pcm.dtype.newbyteorder("="), copy=False)
    return native.reshape(-1) if channels == 1 else native


class Capture:
    """Makes coded frames of what the application gives.

    Args:
        track: The track that the frames are for.
        audio: Form of the application's PCM and settings of the codec.

    Raises:
        AudioError: No encoder for the track; the message says what to do.
    """

    def __init__(self, track: Track, audio: AudioConfig) -> None:
        self._channels = audio.channels
        self._encoder = make_encoder(track, audio)
        rate = self._encoder.sample_rate_hz
        self._resampler = Resampler(audio.sample_rate_hz, rate, track.channels) if rate != audio.sample_rate_hz else None
        self._fifo: SampleFifo[np.int16] = SampleFifo(track.channels, np.int16)
        self._frame_units = self._encoder.frame_units(audio.frame_ms)
        self._dtx = audio.dtx
        self._talking = False

    @property
    def latency_s(self) -> float:
        """Seconds by which resampler and codec delay the signal, without the frame's own length."""
        delay = self._encoder.lookahead / self._encoder.sample_rate_hz
        if self._resampler is not None:
            delay += self._resampler.latency / self._resampler.out_rate_hz
        return delay

    @property
    def pending_s(self) -> float:
        """Seconds of PCM that wait for the rest of their frame."""
        return len(self._fifo) / self._encoder.sample_rate_hz

    def apply(self, bitrate_bps: int, frame_ms: int, inband_fec_loss_percent: int = 0, copy_bps: int = 0, inband_part: float = 1.0) -> None:
        """New settings from the next frame on.

        Args:
            bitrate_bps: 8000 to 64000.
            frame_ms: 10, 20, 40 or 60.
            inband_fec_loss_percent: Expected loss that the in-band copy is made for; 0 for none.
            copy_bps: Bits per second of separate low-rate copies; 0 for none.
            inband_part: Part of the frames, the louder ones, that the in-band copy is made for.
        """
        if frame_ms not in FRAME_MS_CHOICES:
            raise ValueError(f"frame_ms must be 10, 20, 40 or 60, not {frame_ms}")
        self._encoder.apply(bitrate_bps, inband_fec_loss_percent, copy_bps, inband_part)
        self._frame_units = self._encoder.frame_units(frame_ms)

    def push(self, pcm: Any) -> list[CodedFrame]:
        """Take a block of any length.

        Args:
            pcm: int16, or float32 from -1 to 1 (beyond it is clipped), of shape (n,) or (n, channels); or bytes of
                int16, little-endian and interleaved.

        Returns:
            The frames that it completed, none to many.

        Raises:
            TypeError: Not an array, or of another dtype.
            ValueError: Of another shape, or with NaN or infinity in it.
        """
        self._take_in(as_samples(pcm, self._channels))
        frames = []
        while len(self._fifo) >= self._frame_samples():
            frames.append(self._encode_next())
        return frames

    def flush(self) -> list[CodedFrame]:
        """The rest, padded with silence so that nothing stays in the resampler or the codec.

        The last frame ends the talkspurt; what is pushed later begins a new one.
        """
        if self._resampler is not None:
            self._fifo.push(to_int16(self._resampler.flush()))
        left = len(self._fifo)
        if not left and not self._talking:
            return []
        # At least one sample more, so that there is a frame to carry the end of the talkspurt.
        needed = left + max(self._encoder.lookahead, 0 if left else 1)
        padding = -needed % self._frame_samples() + needed - left
        self._fifo.push(self._silence(padding))
        frames = []
        while len(self._fifo) >= self._frame_samples():
            frames.append(self._encode_next(last=len(self._fifo) == self._frame_samples()))
        return frames

    def drop(self) -> None:
        """Forget the samples that wait for the rest of their frame and those in resampler and codec.

        What is pushed next is another utterance: it begins a talkspurt, and nothing of the old sounds in it.
        """
        self._fifo.clear()
        if self._resampler is not None:
            self._resampler.flush()
        self._encoder.reset()
        self._talking = False

    def _frame_samples(self) -> int:
        return self._encoder.sample_rate_hz * self._frame_units // UNITS_PER_SECOND

    def _silence(self, samples: int) -> NDArray[np.int16]:
        channels = self._encoder.channels
        return np.zeros(samples if channels == 1 else (samples, channels), dtype=np.int16)

    def _take_in(self, samples: Samples) -> None:
        block = to_channels(samples, self._encoder.channels)
        if self._resampler is not None:
            block = self._resampler.push(to_float(block))
        if block.dtype != np.int16:
            block = to_int16(block)
        elif np.shares_memory(block, samples):
            # The rest of a block waits here while the application reuses its buffer.
            block = block.copy()
        self._fifo.push(block)

    def _encode_next(self, last: bool = False) -> CodedFrame:
        units = self._frame_units
        pcm = self._fifo.take(self._frame_samples())
        payload, silent = self._encoder.encode(pcm)
        copy = self._encoder.encode_copy(pcm)
        start = not self._talking
        if self._dtx and silent:
            # The first silent frame travels, to end the talkspurt; the others are only time.
            self._talking = False
            if start:
                return CodedFrame(payload=None, units=units)
            return CodedFrame(payload=payload, units=units, talkspurt_end=True)
        self._talking = not last
        return CodedFrame(payload=payload, units=units, talkspurt_start=start, talkspurt_end=last, copy=copy)
