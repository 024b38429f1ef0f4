"""What is said before the server has taken the call: kept while the client dials, and handed over in order when it is open."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Any, Final

import numpy as np

from voicestream.call import Call
from voicestream.call_voice import slices
from voicestream.config import AudioConfig

__all__ = ["EarlyAudio"]

KEPT_S: Final = 10.0
"""Seconds kept; the oldest is dropped and counted."""

SLICE_S: Final = 0.02
SPEED: Final = 4.0
"""How much faster than real time what was kept leaves, as after a break."""


class EarlyAudio:
    """PCM on its way to a call that is not there yet. From any thread.

    Attributes:
        dropped_s: Seconds dropped for want of a call.
    """

    __slots__ = ("_audio", "_call", "_kept", "_kept_s", "_lock", "dropped_s")

    def __init__(self, audio: AudioConfig) -> None:
        self.dropped_s = 0.0
        self._audio = audio
        self._lock = threading.Lock()
        self._kept: deque[tuple[Any, float]] = deque()
        self._kept_s = 0.0
        self._call: Call | None = None

    def put(self, pcm: Any) -> None:
        """Hand a block to the call, or keep it until there is one.

        Raises:
            TypeError: It is neither bytes nor an array.
        """
        if not isinstance(pcm, bytes | bytearray | memoryview | np.ndarray):
            raise TypeError(f"pcm must be a numpy array or bytes, not {type(pcm).__name__}")
        with self._lock:
            call = self._call
            if call is None:
                # The caller may use its buffer again.
                self._keep(pcm.copy() if isinstance(pcm, np.ndarray) else bytes(pcm))
        if call is not None and not call.closed:
            call.send_nowait(pcm if isinstance(pcm, np.ndarray) else bytes(pcm))

    def _keep(self, pcm: Any) -> None:
        size = round(self._audio.sample_rate_hz * SLICE_S)
        for part in slices(pcm, size, self._audio.channels):
            samples = len(part) / (1 if isinstance(part, np.ndarray) else 2 * self._audio.channels)
            self._kept.append((part, samples / self._audio.sample_rate_hz))
            self._kept_s += self._kept[-1][1]
        while self._kept_s > KEPT_S:
            seconds = self._kept.popleft()[1]
            self._kept_s -= seconds
            self.dropped_s += seconds

    async def hand_over(self, call: Call) -> None:
        """Say what was kept, and give the call all that comes from now on. Raises as `Call.send`."""
        while True:
            with self._lock:
                if not self._kept:
                    self._kept_s, self._call = 0.0, call
                    return
                part, seconds = self._kept.popleft()
                self._kept_s -= seconds
            call.send_nowait(part)
            await asyncio.sleep(seconds / SPEED)

    def leave(self) -> None:
        """The call is over, and there may be another one."""
        with self._lock:
            self._call = None
