"""Carries out the decisions of a playout buffer at the decoder's rate, so that no seam between them is heard.

Every decision gives one piece of PCM. What matters at its start is where the piece before came from: the decoder (a codec joins
its frames, and its own concealment, by itself), our continuation of a signal whose codec cannot conceal, a decoder of low-rate
copies, or silence.
"""

from __future__ import annotations

import enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from voicestream.audio.codec import Decoder
from voicestream.audio.conceal import MEMORY_MS, Continuation, loss_gain
from voicestream.audio.level import VoiceDetector
from voicestream.audio.library import PacketError
from voicestream.audio.stretch import MAX_PERIOD_MS, accelerate, crossfade, expand, fade, merge
from voicestream.config import UNITS_PER_SECOND
from voicestream.core.playout.decision import Accelerate, Conceal, Decision, Decode, Expand, Merge, Repair, Silence
from voicestream.media import MediaFrame, SourceKind

__all__ = ["Executor", "Piece"]

Pcm = NDArray[np.int16]

_SEAM_MS: Final = 4.0
_FADE_IN_MS: Final = 2.5
_INAUDIBLE: Final = 0.02
_EXACT_UNITS: Final = 0.5
_HANGOVER_MS: Final = 120.0
"""A gap between words, and the closure of a plosive, is no pause: what is shifted there is shifted within the phrase."""


class _Source(enum.Enum):
    """Where the last samples came from."""

    SILENCE = enum.auto()
    DECODER = enum.auto()
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
        inband_frames: Lost frames made of the in-band redundancy of the frame after them.
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
        # First pts that nothing was made for yet.
        self._next_pts = 0
        # Units of concealment made while a frame was waited for: media time has not advanced by them.
        self._waited = 0.0
        self._lost_ms = 0.0
        self._continuation: Continuation | None = None
        self._continuation_gain = 1.0
        self._voice = VoiceDetector(hangover_ms=_HANGOVER_MS)
        self._speech = False
        self.corrupt_frames = 0
        self.inband_frames = 0
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
                piece = self._lost(units, next_frame)
            case Expand(frame=None, units=units):
                piece = self._wait(units)
            case Expand(frame=MediaFrame() as frame, units=units, urgent=urgent):
                piece = self._frame(frame)
                longer = piece.pcm
                if urgent or not self._speech:
                    longer = expand(piece.pcm, self._samples(units), sample_rate_hz=self._rate, history=self._memory)
                self.inserted_samples += len(longer) - len(piece.pcm)
                piece.pcm = longer
            case Accelerate(frame=frame, units=units, urgent=urgent):
                piece = self._frame(frame)
                shorter = piece.pcm
                if urgent or not self._speech:
                    shorter = accelerate(piece.pcm, self._samples(units), sample_rate_hz=self._rate)
                self.removed_samples += len(piece.pcm) - len(shorter)
                piece.pcm = shorter
            case Silence(units=units):
                piece = self._silence(self._samples(units))
            case _:
                raise TypeError(f"not a playout decision: {decision!r}")
        self._remember(piece.pcm)
        return piece

    def cut(self) -> None:
        """What was made last was thrown away, and what follows is another utterance: nothing of the old may sound in it."""
        self._decoder.reset()
        if self._copies is not None:
            self._copies.reset()
            self._copy_end = -1
        self._heard(_Source.SILENCE, self._next_pts)
        self._memory = self._zeros(0)

    # One kind of piece each

    def _frame(self, frame: MediaFrame) -> Piece:
        # What was waited beyond the length of what is missing makes this frame late.
        late = self._waited - (frame.pts - self._next_pts)
        tail = None
        if self._waited and late > _EXACT_UNITS:
            tail = self._conceal(self._ms(MAX_PERIOD_MS) + self._ms(_SEAM_MS))
            # The decoder had gone on without the frame; it goes back to where the frame belongs.
            self._rewind(frame.pts - self._next_pts)
        try:
            pcm = self._decoder.decode(frame.payload)
        except PacketError:
            self.corrupt_frames += 1
            self._next_pts, self._waited = frame.pts, 0.0
            return self._lost(frame.units, None)
        pcm = self._join(pcm) if tail is None else merge(tail, pcm, sample_rate_hz=self._rate)
        self._heard(_Source.DECODER, frame.pts + frame.units)
        self._speech = self._voice.push(pcm, 1000 * len(pcm) / self._rate)
        return Piece(pcm)

    def _join(self, pcm: Pcm) -> Pcm:
        """Make the start of a decoded frame follow what was played last, without changing its length."""
        seam = min(self._ms(_SEAM_MS), len(pcm))
        if self._source is _Source.SILENCE:
            start = min(self._ms(_FADE_IN_MS), len(pcm))
            return np.concatenate((fade(pcm[:start], 0.0, 1.0), pcm[start:]))
        if self._source is _Source.COPY and self._copies is not None:
            rest = self._copies.conceal(seam)
            return pcm if rest is None else np.concatenate((crossfade(rest, pcm[:seam]), pcm[seam:]))
        if self._continuation is not None:
            return np.concatenate((crossfade(self._conceal(seam), pcm[:seam]), pcm[seam:]))
        # The codec joins its frames to its own concealment, but not to the fade that we laid over it.
        gain = loss_gain(self._lost_ms)
        return pcm if gain == 1.0 else np.concatenate((fade(pcm[:seam], gain, 1.0), pcm[seam:]))

    def _wait(self, units: float) -> Piece:
        """A frame that is late: the signal goes on, and the decoder must be able to return."""
        if not self._waited:
            self._decoder.mark()
        self._waited += units
        return self._concealed(self._samples(units))

    def _lost(self, units: int, next_frame: MediaFrame | None) -> Piece:
        """A frame that will not come: what was waited for it and these `units` are its place."""
        piece = self._redundant(units, next_frame) or self._concealed(self._samples(units))
        self._next_pts += round(self._waited) + units
        self._waited = 0.0
        return piece

    def _redundant(self, units: int, next_frame: MediaFrame | None) -> Piece | None:
        """The end of a lost frame out of the in-band copy that the frame after it carries, if it does."""
        if next_frame is None or not self._decoder.has_inband_copy(next_frame.payload):
            return None
        before = self._waited + units - next_frame.units
        if units > next_frame.units or before < -_EXACT_UNITS:
            return None
        tail = None
        if self._waited:
            tail = self._conceal(min(self._ms(_SEAM_MS), self._samples(units)))
            self._rewind(before)
        try:
            pcm = self._decoder.decode_fec(next_frame.payload, self._samples(next_frame.units))
        except PacketError:
            self.corrupt_frames += 1
            return None
        pcm = pcm[len(pcm) - self._samples(units) :]
        pcm = self._join(pcm) if tail is None else np.concatenate((crossfade(tail, pcm[: len(tail)]), pcm[len(tail) :]))
        self._heard(_Source.DECODER, self._next_pts)
        self.inband_frames += 1
        return Piece(pcm)

    def _concealed(self, samples: int) -> Piece:
        silent = self._source is _Source.SILENCE or loss_gain(self._lost_ms) <= _INAUDIBLE
        return Piece(self._conceal(samples), concealed=True, silent=silent)

    def _conceal(self, samples: int) -> Pcm:
        """The next samples of a signal that does not come, by the codec or else by us, faded by how long it has lasted."""
        start = loss_gain(self._lost_ms)
        self._lost_ms += samples * 1000 / self._rate
        end = loss_gain(self._lost_ms)
        if start <= 0 or self._source is _Source.SILENCE:
            return self._zeros(samples)
        decoder = self._copies if self._source is _Source.COPY and self._copies is not None else self._decoder
        pcm = decoder.conceal(samples)
        if pcm is not None:
            return fade(pcm, start, end)
        if self._continuation is None:
            self._continuation = Continuation(self._memory, self._rate)
            # What it repeats carries the fade that had been reached by then.
            self._continuation_gain = start
        return fade(self._continuation.take(samples), start / self._continuation_gain, end / self._continuation_gain)

    def _copy(self, frame: MediaFrame, warmup: tuple[MediaFrame, ...]) -> Piece:
        """A low-rate copy of a lost frame. In the main decoder it would spoil the frames after it."""
        if self._copies is None:
            self._copies = self._decoder.new()
        follows = self._source is _Source.COPY and self._copy_end == frame.pts
        if not self._waited:
            self._decoder.mark()
        tail = None if follows else self._conceal(self._ms(_SEAM_MS))
        # The main decoder is told of the loss, so that it finds into the frames after it.
        self._rewind(frame.units)
        try:
            for earlier in warmup:
                if earlier.pts >= self._copy_end:
                    self._copies.decode(earlier.payload)
            pcm = self._copies.decode(frame.payload)
        except PacketError:
            self.corrupt_frames += 1
            return self._lost(frame.units, None)
        if tail is not None:
            tail = tail[: len(pcm)]
            pcm = np.concatenate((crossfade(tail, pcm[: len(tail)]), pcm[len(tail) :]))
        self._copy_end = frame.pts + frame.units
        self._heard(_Source.COPY, self._copy_end)
        return Piece(pcm)

    def _silence(self, samples: int) -> Piece:
        pcm = self._zeros(samples)
        if self._source is not _Source.SILENCE and samples:
            seam = min(self._ms(_SEAM_MS), samples)
            pcm[:seam] = fade(self._conceal(seam), 1.0, 0.0)
        self._heard(_Source.SILENCE, self._next_pts)
        return Piece(pcm)

    def _heard(self, source: _Source, next_pts: int) -> None:
        """Something else than concealment was made: a loss before it is over."""
        self._source = source
        self._next_pts = next_pts
        self._waited = 0.0
        self._lost_ms = 0.0
        self._continuation = None

    def _rewind(self, units: float) -> None:
        """Take the decoder back to the mark, and then over `units` of lost audio."""
        self._decoder.back_to_mark()
        if units > 0:
            self._decoder.conceal(self._samples(units))

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
