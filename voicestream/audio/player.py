"""The playing end of a track: pulled by a sound card or a loop, it always has samples."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakMethod

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

_RAMP_MS: Final = 5.0
"""Length of the slope from the last sample before a cut to zero."""

_MAX_EMPTY_DECISIONS: Final = 50
"""Decisions in a row that may make no sample before silence is played instead; a guard against a loop without end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlayerStats:
    """What a player has done. Samples are at the rate it plays.

    Attributes:
        returned_samples: Given out by `Player.read`.
        made_samples: Made; what is neither given out nor thrown away is held.
        voided_samples: Thrown away unheard, because of a clear.
        concealed_samples: Given out, in place of audio that was lost or late.
        silent_concealed_samples: Of these, faded to silence.
        inserted_samples: Added to frames by expansion.
        removed_samples: Taken from frames by acceleration.
        corrupt_frames: Frames that the codec refused.
        inband_frames: Lost frames made of the in-band redundancy of the frame after them.
    """

    returned_samples: int = 0
    made_samples: int = 0
    voided_samples: int = 0
    concealed_samples: int = 0
    silent_concealed_samples: int = 0
    inserted_samples: int = 0
    removed_samples: int = 0
    corrupt_frames: int = 0
    inband_frames: int = 0


class Player:
    """Executes the decisions of a playout buffer as samples are asked for.

    Not thread-safe; who shares it holds a lock.

    Args:
        playout: Decides what is played.
        decoder: Of the track; its rate may differ from the one played.
        sample_rate_hz: 8000 to 192000, of the samples given out.
        channels: 1 or 2, of the samples given out.

    Attributes:
        device_latency: Seconds from `read` to the loudspeaker: what was given out so lately has not been heard yet.
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
        self._thrown = 0.0
        # The last sample given out, and what is left of the slope from it to zero after a cut.
        self._last: NDArray[np.float64] | None = None
        self._ramp = np.zeros(0)
        self.device_latency = 0.0
        unheard = WeakMethod(self.unheard_units)
        # A playout that kept its player would keep both until the garbage collector comes by.
        playout.unheard = lambda: 0.0 if (tell := unheard()) is None else tell()

    @property
    def heard_pts(self) -> int:
        """pts of the sample that the device plays next; without a latency, of the one that `read` gives out next."""
        return self._playout.heard_pts(self.unheard_units())

    def unheard_units(self) -> float:
        """Units of 2.5 ms that were made and have not left the device."""
        return self._held_units() + self.device_latency * UNITS_PER_SECOND

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

    @property
    def inband_frames(self) -> int:
        """Lost frames made so far of the in-band redundancy of the frame after them."""
        return self._executor.inband_frames

    def stats(self) -> PlayerStats:
        """What has been done so far."""
        scale = self._rate / self._made_rate
        return PlayerStats(
            returned_samples=self._returned,
            made_samples=self.made_samples,
            voided_samples=round(self._thrown * self._rate / UNITS_PER_SECOND),
            concealed_samples=self.concealed_samples,
            silent_concealed_samples=round(self._silent * scale),
            inserted_samples=round(self._executor.inserted_samples * scale),
            removed_samples=round(self._executor.removed_samples * scale),
            corrupt_frames=self._executor.corrupt_frames,
            inband_frames=self.inband_frames,
        )

    def read(self, n: int, now: float) -> Pcm:
        """The next `n` samples, int16 of shape (n,) or (n, channels). Never waits.

        Args:
            n: 0 or more.
            now: Monotonic seconds.
        """
        if n < 0:
            raise ValueError(f"n must not be negative, not {n}")
        if self._playout.take_void(self._held_units()):
            self._cut()
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
        if len(self._ramp):
            block = self._slope(block)
        if n:
            self._last = block[-1].astype(np.float64)
        # Blocks of the queue may be parts of one array; what leaves here belongs to the caller.
        return block if block.flags.owndata else block.copy()

    def _cut(self) -> None:
        """Throw away what is held, old speech: no sample of it is given out, and there is no click either."""
        self._thrown += self._held_units()
        self._fifo.clear()
        self._runs.clear()
        if self._resampler is not None:
            self._resampler.flush()
        self._executor.cut()
        if self._last is not None:
            steps = int(_RAMP_MS * self._rate / 1000)
            slope = 0.5 + 0.5 * np.cos(np.pi * np.arange(1, steps + 1) / (steps + 1))
            self._ramp = np.multiply.outer(slope, self._last)

    def _slope(self, block: Pcm) -> Pcm:
        """Lay the rest of the slope over what follows a cut."""
        part, self._ramp = self._ramp[: len(block)], self._ramp[len(block) :]
        mixed = block.astype(np.float64)
        mixed[: len(part)] += part
        return np.clip(np.rint(mixed), -32768, 32767).astype(np.int16)

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
        """Units made and neither given out nor thrown away: in the queue and in the resampler."""
        given = (self._returned - self._padded) * UNITS_PER_SECOND / self._rate
        return self._made * UNITS_PER_SECOND / self._made_rate - given - self._thrown

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
