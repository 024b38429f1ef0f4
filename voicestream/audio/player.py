"""The playing end of a track: pulled by a sound card or a loop, it always has samples."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from voicestream.audio.codec import Decoder
from voicestream.audio.executor import Executor, Piece
from voicestream.audio.fifo import SampleFifo
from voicestream.audio.resample import Resampler, to_channels, to_float, to_int16
from voicestream.config import UNITS_PER_SECOND

if TYPE_CHECKING:
    from voicestream.core.playout import Playout

__all__ = ["Player", "PlayerStats"]

Pcm = NDArray[np.int16]

_MAX_EMPTY_DECISIONS: Final = 50
"""Decisions in a row that may make no sample before silence is played instead; a guard against a loop without end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlayerStats:
    """What a player has done. Samples are at the rate it plays.

    Attributes:
        returned_samples: Given out by `Player.read`.
        made_samples: Made; what is not given out yet is held.
        concealed_samples: Given out, in place of audio that was lost or late.
        silent_concealed_samples: Of these, faded to silence.
        inserted_samples: Added to frames by expansion.
        removed_samples: Taken from frames by acceleration.
        corrupt_frames: Frames that the codec refused.
    """

    returned_samples: int = 0
    made_samples: int = 0
    concealed_samples: int = 0
    silent_concealed_samples: int = 0
    inserted_samples: int = 0
    removed_samples: int = 0
    corrupt_frames: int = 0


class Player:
    """Executes the decisions of a playout buffer as samples are asked for.

    Not thread-safe; who shares it holds a lock.

    Args:
        playout: Decides what is played.
        decoder: Of the track; its rate may differ from the one played.
        sample_rate_hz: 8000 to 192000, of the samples given out.
        channels: 1 or 2, of the samples given out.
    """

    def __init__(self, playout: Playout, decoder: Decoder, sample_rate_hz: int = 48000, channels: int = 1) -> None:
        self._playout = playout
        self._executor = Executor(decoder)
        self._channels = channels
        self._made_rate = decoder.sample_rate_hz
        self._rate = sample_rate_hz
        self._resampler = Resampler(self._made_rate, sample_rate_hz, decoder.channels) if sample_rate_hz != self._made_rate else None
        self._fifo: SampleFifo[np.int16] = SampleFifo(channels, np.int16)
        # What was made and not given out yet, at the decoder's rate: [samples, concealed, silent].
        self._runs: deque[list[float]] = deque()
        self._made = 0
        self._returned = 0
        self._padded = 0
        self._concealed = 0.0
        self._silent = 0.0

    @property
    def heard_pts(self) -> int:
        """pts of the sample that `read` gives out next."""
        return self._playout.heard_pts(self._held_units())

    @property
    def made_samples(self) -> int:
        """Samples made so far, at the rate played."""
        return self._made * self._rate // self._made_rate

    @property
    def held_samples(self) -> int:
        """Samples made and not given out yet, at the rate played."""
        return round(self._held_units() * self._rate / UNITS_PER_SECOND)

    @property
    def concealed_samples(self) -> int:
        """Samples given out so far in place of audio that was lost or late."""
        return round(self._concealed * self._rate / self._made_rate)

    def stats(self) -> PlayerStats:
        """What has been done so far."""
        scale = self._rate / self._made_rate
        return PlayerStats(
            returned_samples=self._returned,
            made_samples=self.made_samples,
            concealed_samples=self.concealed_samples,
            silent_concealed_samples=round(self._silent * scale),
            inserted_samples=round(self._executor.inserted_samples * scale),
            removed_samples=round(self._executor.removed_samples * scale),
            corrupt_frames=self._executor.corrupt_frames,
        )

    def read(self, n: int, now: float) -> Pcm:
        """The next `n` samples, int16 of shape (n,) or (n, channels). Never waits.

        Args:
            n: 0 or more.
            now: Monotonic seconds.
        """
        if n < 0:
            raise ValueError(f"n must not be negative, not {n}")
        empty = 0
        while len(self._fifo) < n:
            piece = self._next_piece(now)
            empty = 0 if len(piece.pcm) else empty + 1
            if empty >= _MAX_EMPTY_DECISIONS:
                self._padded += n - len(self._fifo)
                self._fifo.push(self._zeros(n - len(self._fifo)))
        block = self._fifo.take(n)
        self._returned += n
        self._account(n * self._made_rate / self._rate)
        # Blocks of the queue may be parts of one array; what leaves here belongs to the caller.
        return block if block.flags.owndata else block.copy()

    def _next_piece(self, now: float) -> Piece:
        piece = self._executor.run(self._playout.next(now, self._held_units()))
        made = len(piece.pcm)
        self._playout.done(made * UNITS_PER_SECOND / self._made_rate)
        self._made += made
        if made:
            self._runs.append([made, piece.concealed, piece.silent])
        pcm = piece.pcm
        if self._resampler is not None:
            pcm = to_int16(self._resampler.push(to_float(pcm)))
        self._fifo.push(to_channels(pcm, self._channels))
        return piece

    def _held_units(self) -> float:
        """Units made and not given out: in the queue and in the resampler."""
        return self._made * UNITS_PER_SECOND / self._made_rate - (self._returned - self._padded) * UNITS_PER_SECOND / self._rate

    def _account(self, samples: float) -> None:
        """Count how much of `samples` given out, at the decoder's rate, was concealment."""
        while samples > 0 and self._runs:
            run = self._runs[0]
            part = min(run[0], samples)
            if run[1]:
                self._concealed += part
            if run[2]:
                self._silent += part
            samples -= part
            run[0] -= part
            if run[0] <= 1e-9:
                self._runs.popleft()

    def _zeros(self, samples: int) -> Pcm:
        return np.zeros(samples if self._channels == 1 else (samples, self._channels), dtype=np.int16)
