"""Carries out the decisions of a playout buffer at the decoder's rate, so that no seam between them is heard.

Every decision gives one piece of PCM. What matters at its start is where the piece before came from: the decoder itself (then
the codec joins them), our own continuation of a signal that stopped coming, a decoder of low-rate copies, or silence.
"""

from __future__ import annotations

import enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from voicestream.audio.codec import Decoder
from voicestream.audio.conceal import MEMORY_MS, Continuation, loss_gain
from voicestream.audio.library import PacketError
from voicestream.audio.stretch import MAX_PERIOD_MS, accelerate, crossfade, expand, fade, merge
from voicestream.config import UNITS_PER_SECOND
from voicestream.core.playout.decision import Accelerate, Conceal, Decision, Decode, Expand, Merge, Repair, Silence
from voicestream.media import MediaFrame, SourceKind

__all__ = ["Executor", "Piece"]

Pcm = NDArray[np.int16]

_SEAM_MS: Final = 5.0
_FADE_IN_MS: Final = 2.5
_INAUDIBLE: Final = 0.02


class _Source(enum.Enum):
    """Where the last samples came from."""

    SILENCE = enum.auto()
    DECODER = enum.auto()
    CONTINUATION = enum.auto()
    COPY = enum.auto()


class Piece:
    """PCM of one decision.

    Attributes:
        pcm: int16 of shape (n,) or (n, channels).
        concealed: It stands for audio that did not arrive.
        silent: It is concealment that has faded to nothing.
    """

    __slots__ = ("concealed", "pcm", "silent")

    def __init__(self, pcm: Pcm, concealed: bool = False, silent: bool = False) -> None:
        self.pcm = pcm
        self.concealed = concealed
        self.silent = silent


class Executor:
    """Makes PCM of decisions.

    Attributes:
        corrupt_frames: Frames that the codec refused; they were concealed.
        inserted_samples: Samples that expansion of frames added, at the decoder's rate.
        removed_samples: Samples that acceleration took away, at the decoder's rate.
    """

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._copies: Decoder | None = None
        self._copy_end = -1
        self._rate = decoder.sample_rate_hz
        self._source = _Source.SILENCE
        self._memory = self._zeros(0)
        self._continuation: Continuation | None = None
        self._continuation_gain = 1.0
        self._lost_ms = 0.0
        self.corrupt_frames = 0
        self.inserted_samples = 0
        self.removed_samples = 0

    def run(self, decision: Decision) -> Piece:
        """PCM of `decision`."""
        match decision:
            case Decode(frame=frame) | Merge(frame=frame):
                piece = self._frame(frame)
            case Repair(frame=frame, kind=kind, warmup=warmup):
                piece = self._copy(frame, warmup) if kind is SourceKind.COPY else self._frame(frame)
            case Conceal(units=units, next_frame=next_frame):
                piece = self._redundant(units, next_frame) or self._lost(units)
            case Expand(frame=None, units=units):
                piece = self._continued(self._samples(units))
            case Expand(frame=MediaFrame() as frame, units=units):
                piece = self._frame(frame)
                longer = expand(piece.pcm, self._samples(units), sample_rate_hz=self._rate, history=self._memory)
                self.inserted_samples += len(longer) - len(piece.pcm)
                piece.pcm = longer
            case Accelerate(frame=frame, units=units):
                piece = self._frame(frame)
                shorter = accelerate(piece.pcm, self._samples(units), sample_rate_hz=self._rate)
                self.removed_samples += len(piece.pcm) - len(shorter)
                piece.pcm = shorter
            case Silence(units=units):
                piece = self._silence(self._samples(units))
            case _:
                raise TypeError(f"not a playout decision: {decision!r}")
        self._remember(piece.pcm)
        return piece

    # One kind of piece each

    def _frame(self, frame: MediaFrame) -> Piece:
        try:
            pcm = self._decoder.decode(frame.payload)
        except PacketError:
            self.corrupt_frames += 1
            return self._lost(frame.units)
        return self._decoded(pcm)

    def _decoded(self, pcm: Pcm) -> Piece:
        pcm = self._join(pcm)
        self._source = _Source.DECODER
        self._lost_ms = 0.0
        self._continuation = None
        return Piece(pcm)

    def _join(self, pcm: Pcm) -> Pcm:
        """Make the start of a decoded frame follow what was played last."""
        seam = min(self._ms(_SEAM_MS), len(pcm))
        if self._source is _Source.DECODER:
            # The codec joins its frames itself, but not the fade that we laid over its concealment.
            gain = loss_gain(self._lost_ms)
            return pcm if gain == 1.0 else np.concatenate((fade(pcm[:seam], gain, 1.0), pcm[seam:]))
        if self._source is _Source.SILENCE:
            start = min(self._ms(_FADE_IN_MS), len(pcm))
            return np.concatenate((fade(pcm[:start], 0.0, 1.0), pcm[start:]))
        if self._source is _Source.COPY and self._copies is not None:
            rest = self._copies.conceal(seam)
            return pcm if rest is None else np.concatenate((crossfade(rest, pcm[:seam]), pcm[seam:]))
        tail = self._continue(self._ms(MAX_PERIOD_MS) + seam)
        return merge(tail, pcm, sample_rate_hz=self._rate)

    def _redundant(self, units: int, next_frame: MediaFrame | None) -> Piece | None:
        """A lost frame out of the in-band copy that the frame after it carries, if it does."""
        if next_frame is None or units > next_frame.units:
            return None
        try:
            pcm = self._decoder.decode_fec(next_frame.payload, self._samples(units))
        except PacketError:
            return None
        return None if pcm is None else self._decoded(pcm)

    def _lost(self, units: float) -> Piece:
        """A frame that will not come: time goes on, and the decoder with it."""
        samples = self._samples(units)
        pcm = None
        if loss_gain(self._lost_ms) > 0:
            pcm = self._decoder.conceal(samples)
        if pcm is None or self._source is not _Source.DECODER:
            # Going over from our continuation to the codec's would be one more seam.
            return self._continued(samples)
        start = loss_gain(self._lost_ms)
        self._lost_ms += samples * 1000 / self._rate
        end = loss_gain(self._lost_ms)
        return Piece(fade(pcm, start, end), concealed=True, silent=start <= _INAUDIBLE)

    def _continued(self, samples: int) -> Piece:
        """A frame that is late: the signal goes on, the decoder waits."""
        start = loss_gain(self._lost_ms)
        pcm = self._continue(samples)
        self._source = _Source.CONTINUATION
        return Piece(pcm, concealed=True, silent=start <= _INAUDIBLE)

    def _continue(self, samples: int) -> Pcm:
        """The next samples of our continuation, faded by how long it has lasted."""
        start = loss_gain(self._lost_ms)
        self._lost_ms += samples * 1000 / self._rate
        end = loss_gain(self._lost_ms)
        if self._continuation is None:
            if self._source is _Source.SILENCE or start <= _INAUDIBLE:
                return self._zeros(samples)
            self._continuation = Continuation(self._memory, self._rate)
            # What it repeats carries the fade that had been reached by then.
            self._continuation_gain = start
        if start <= 0:
            return self._zeros(samples)
        return fade(self._continuation.take(samples), start / self._continuation_gain, end / self._continuation_gain)

    def _copy(self, frame: MediaFrame, warmup: tuple[MediaFrame, ...]) -> Piece:
        """A low-rate copy of a lost frame. In the main decoder it would spoil the frames after it."""
        if self._copies is None:
            self._copies = self._decoder.new()
        try:
            for earlier in warmup:
                if earlier.pts >= self._copy_end:
                    self._copies.decode(earlier.payload)
            pcm = self._copies.decode(frame.payload)
        except PacketError:
            self.corrupt_frames += 1
            return self._lost(frame.units)
        follows = self._source is _Source.COPY and self._copy_end == frame.pts
        if not follows:
            seam = min(self._ms(_SEAM_MS), len(pcm))
            before = self._lost(frame.units).pcm[:seam]
            pcm = np.concatenate((crossfade(before, pcm[:seam]), pcm[seam:])) if len(before) == seam else pcm
        else:
            # The main decoder is told of the loss, so that it finds into the frames after it.
            self._decoder.conceal(self._samples(frame.units))
        self._copy_end = frame.pts + frame.units
        self._source = _Source.COPY
        self._lost_ms = 0.0
        self._continuation = None
        return Piece(pcm)

    def _silence(self, samples: int) -> Piece:
        pcm = self._zeros(samples)
        if self._source is not _Source.SILENCE and samples:
            seam = min(self._ms(_SEAM_MS), samples)
            pcm[:seam] = fade(self._continue(seam), 1.0, 0.0)
        self._source = _Source.SILENCE
        self._continuation = None
        self._lost_ms = 0.0
        return Piece(pcm)

    # Small helpers

    def _remember(self, pcm: Pcm) -> None:
        keep = self._ms(MEMORY_MS)
        self._memory = pcm[-keep:] if len(pcm) >= keep else np.concatenate((self._memory[len(pcm) - keep :], pcm))

    def _samples(self, units: float) -> int:
        return round(units * self._rate / UNITS_PER_SECOND)

    def _ms(self, milliseconds: float) -> int:
        return int(milliseconds * self._rate / 1000)

    def _zeros(self, samples: int) -> Pcm:
        channels = self._decoder.channels
        return np.zeros(samples if channels == 1 else (samples, channels), dtype=np.int16)
