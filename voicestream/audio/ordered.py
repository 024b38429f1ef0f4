"""Coded frames in order, as a recogniser or a recorder takes them: PCM in blocks of one length, with gaps marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from voicestream.audio.codec import Decoder
from voicestream.audio.fifo import SampleFifo
from voicestream.audio.library import PacketError
from voicestream.audio.resample import Resampler, to_channels, to_float, to_int16
from voicestream.config import PTS_UNIT_MS, UNITS_PER_SECOND
from voicestream.media import MediaFrame

if TYPE_CHECKING:
    from voicestream.core.playout.ordered import Gap

__all__ = ["DecodedBlock", "OrderedDecoder"]

Pcm = NDArray[np.int16]

MAX_FILL_MS: Final = 1000.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodedBlock:
    """PCM of one stretch of media time.

    Attributes:
        pcm: int16 of shape (n,) or (n, channels).
        pts: Media time of its first sample in units of 2.5 ms.
        duration_ms: Its length.
        gap: Part of it was lost and is silence.
    """

    pcm: Pcm
    pts: float
    duration_ms: float
    gap: bool = False


class OrderedDecoder:
    """Turns frames and gaps, in order, into blocks of one length.

    A short gap, and a short pause between talkspurts, is filled with silence, so that time in the audio stays time in the
    call. At a longer one the block is cut short, and the next one begins at the pts of what follows.

    Args:
        decoder: Of the track.
        sample_rate_hz: Of the blocks.
        channels: Of the blocks, 1 or 2.
        block_ms: Length of a block, 10 or more.
        max_fill_ms: Longest gap or pause that is filled.
    """

    def __init__(
        self, decoder: Decoder, sample_rate_hz: int = 48000, channels: int = 1, *, block_ms: int = 200, max_fill_ms: float = MAX_FILL_MS
    ) -> None:
        if block_ms < 10:
            raise ValueError(f"block_ms must be at least 10, not {block_ms}")
        self._decoder = decoder
        self._channels = channels
        self._rate = sample_rate_hz
        self._block = sample_rate_hz * block_ms // 1000
        self._max_fill_units = max_fill_ms / PTS_UNIT_MS
        have = decoder.sample_rate_hz
        self._resampler = Resampler(have, sample_rate_hz, decoder.channels) if have != sample_rate_hz else None
        self._fifo: SampleFifo[np.int16] = SampleFifo(channels, np.int16)
        self._next_pts: int | None = None
        self._start_pts = 0.0
        # Samples of the queue up to which something was lost.
        self._gap_until = 0
        self.corrupt_frames = 0

    def push(self, item: MediaFrame | Gap) -> list[DecodedBlock]:
        """Take the next frame or gap; the blocks that it completed."""
        start, end = (item.pts, item.pts + item.units) if isinstance(item, MediaFrame) else (item.from_pts, item.to_pts)
        if self._next_pts is None:
            self._start_pts = start
            self._next_pts = start
        if not isinstance(item, MediaFrame) and end - start > self._max_fill_units:
            start = end
        blocks = self._pause(start - self._next_pts)
        if start > self._next_pts and not len(self._fifo):
            self._start_pts = start
        if isinstance(item, MediaFrame):
            self._decode(item)
        else:
            self._fill(end - start, lost=True)
        self._next_pts = end
        return blocks + self._complete()

    def flush(self) -> list[DecodedBlock]:
        """The rest, shorter than a block. What is pushed later begins anew."""
        if self._resampler is not None:
            self._append(to_int16(self._resampler.flush()))
        blocks = self._complete()
        if len(self._fifo):
            blocks.append(self._take(len(self._fifo)))
        return blocks

    def _pause(self, units: float) -> list[DecodedBlock]:
        """Nothing was sent for `units`: silence, or the start of a new stretch."""
        if units <= 0:
            return []
        if units <= self._max_fill_units:
            self._fill(units, lost=False)
            return []
        blocks = self.flush()
        self._decoder.reset()
        return blocks

    def _decode(self, frame: MediaFrame) -> None:
        try:
            pcm = self._decoder.decode(frame.payload)
        except PacketError:
            self.corrupt_frames += 1
            self._fill(frame.units, lost=True)
            return
        self._convert(pcm)

    def _fill(self, units: float, *, lost: bool) -> None:
        channels = self._decoder.channels
        samples = round(units * self._decoder.sample_rate_hz / UNITS_PER_SECOND)
        self._convert(np.zeros(samples if channels == 1 else (samples, channels), dtype=np.int16))
        if lost:
            self._gap_until = max(1, len(self._fifo))

    def _convert(self, pcm: Pcm) -> None:
        self._append(pcm if self._resampler is None else to_int16(self._resampler.push(to_float(pcm))))

    def _append(self, pcm: Pcm) -> None:
        self._fifo.push(to_channels(pcm, self._channels))

    def _complete(self) -> list[DecodedBlock]:
        blocks = []
        while len(self._fifo) >= self._block:
            blocks.append(self._take(self._block))
        return blocks

    def _take(self, samples: int) -> DecodedBlock:
        pcm = self._fifo.take(samples)
        block = DecodedBlock(pcm=pcm, pts=self._start_pts, duration_ms=len(pcm) * 1000 / self._rate, gap=self._gap_until > 0)
        self._start_pts += len(pcm) * UNITS_PER_SECOND / self._rate
        self._gap_until = max(0, self._gap_until - samples)
        return block
