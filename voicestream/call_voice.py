"""From the application's PCM to coded frames, from any thread. The codec is loaded at the first sample."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from voicestream.config import AudioConfig, Track
from voicestream.events import PlanChanged

if TYPE_CHECKING:
    from voicestream.audio.pipeline import Capture, CodedFrame

__all__ = ["Voice", "slices"]


def slices(pcm: Any, size: int, channels: int) -> Iterator[Any]:
    """Parts of at most `size` samples of a block that `Capture.push` takes; what it refuses passes through whole, to be refused."""
    if isinstance(pcm, memoryview):
        pcm = pcm.tobytes()
    if isinstance(pcm, bytes | bytearray):
        step, length = size * 2 * channels, len(pcm)
    else:
        step, length = size, len(pcm) if getattr(pcm, "ndim", 0) else 0
    is_float = isinstance(pcm, np.ndarray) and pcm.dtype.kind == "f"
    if length <= step or (is_float and not np.isfinite(pcm).all()):
        yield pcm
        return
    for start in range(0, length, step):
        yield pcm[start : start + step]


class Voice:
    """Codes what the application says. `guard` is held from the coding of a block until its frames are queued.

    The guard is always taken before the transport's lock, and never by whoever holds that lock.
    """

    __slots__ = ("_capture", "_forget", "_plan", "audio", "guard", "track")

    def __init__(self, track: Track, audio: AudioConfig) -> None:
        self.track = track
        self.audio = audio
        self.guard = threading.Lock()
        self._capture: Capture | None = None
        self._plan: PlanChanged | None = None
        self._forget = False

    @property
    def opened(self) -> bool:
        """Whether anything has been coded."""
        return self._capture is not None

    def apply(self, plan: PlanChanged) -> None:
        """Code by `plan` from the next frame on. Takes no lock."""
        self._plan = plan

    def forget(self) -> None:
        """Drop samples that have not been coded yet, before anything else is coded. Takes no lock."""
        self._forget = True

    def code(self, pcm: Any) -> list[CodedFrame]:
        """Frames that are complete with this block. Call with the guard held.

        Raises:
            AudioError: No codec library.
            TypeError, ValueError: Not PCM of the shape and type asked for.
        """
        return self._ready().push(pcm)

    def rest(self) -> list[CodedFrame]:
        """The last, padded frames. Call with the guard held."""
        return [] if self._capture is None else self._ready().flush()

    def _ready(self) -> Capture:
        if self._capture is None:
            from voicestream.audio.pipeline import Capture

            self._capture = Capture(self.track, self.audio)
            self._forget = False
        capture = self._capture
        if self._forget:
            self._forget = False
            capture.drop()
        plan, self._plan = self._plan, None
        if plan is not None:
            capture.apply(plan.bitrate_bps, plan.frame_ms, plan.inband_fec_loss_percent, plan.copy_bps, plan.inband_part)
        return capture
