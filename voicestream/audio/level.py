"""How loud a piece of audio is, and whether somebody speaks in it."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["SILENCE_DBFS", "LoudPart", "VoiceDetector", "level_dbfs", "peak_dbfs"]

SILENCE_DBFS: Final = -120.0
"""Level of digital silence."""


def _as_fraction(pcm: NDArray[Any]) -> NDArray[np.float32]:
    values = pcm.astype(np.float32)
    return values / np.float32(32768.0) if pcm.dtype.kind == "i" else values


def level_dbfs(pcm: NDArray[Any]) -> float:
    """RMS in dB against full scale, of int16 or of floats -1 to 1; -120 for silence and for an empty block."""
    if pcm.size == 0:
        return SILENCE_DBFS
    values = _as_fraction(pcm).reshape(-1)
    power = float(np.dot(values, values)) / values.size
    return max(SILENCE_DBFS, 10.0 * math.log10(power)) if power > 0 else SILENCE_DBFS


def peak_dbfs(pcm: NDArray[Any]) -> float:
    """Largest sample in dB against full scale; -120 for silence and for an empty block."""
    peak = float(np.abs(_as_fraction(pcm)).max()) if pcm.size else 0.0
    return max(SILENCE_DBFS, 20.0 * math.log10(peak)) if peak > 0 else SILENCE_DBFS


class VoiceDetector:
    """Tells speech from background by its level above the noise.

    The noise level follows the quietest audio at once downward and slowly upward, so that a fan that starts becomes noise
    within seconds.

    Args:
        margin_db: How far above the noise speech begins.
        floor_dbfs: What is below this is never speech.
        hangover_ms: How long after its last loud block speech goes on, so that the ends of words belong to it.
    """

    __slots__ = ("_floor_dbfs", "_hangover_ms", "_left_ms", "_margin_db", "_noise_dbfs")

    _RISE_DB_PER_S: Final = 3.0

    def __init__(self, *, margin_db: float = 9.0, floor_dbfs: float = -55.0, hangover_ms: float = 200.0) -> None:
        self._margin_db = margin_db
        self._floor_dbfs = floor_dbfs
        self._hangover_ms = hangover_ms
        self._noise_dbfs = floor_dbfs
        self._left_ms = 0.0

    @property
    def noise_dbfs(self) -> float:
        """Present estimate of the background's level."""
        return self._noise_dbfs

    def push(self, pcm: NDArray[Any], duration_ms: float) -> bool:
        """Whether somebody speaks in this block.

        Args:
            pcm: int16, or floats -1 to 1; 5 to 60 ms suit.
            duration_ms: Its length.
        """
        level = level_dbfs(pcm)
        if level > max(self._noise_dbfs + self._margin_db, self._floor_dbfs):
            self._left_ms = self._hangover_ms
            speech = True
        else:
            speech = self._left_ms > 0
            self._left_ms = max(0.0, self._left_ms - duration_ms)
        rise = self._RISE_DB_PER_S * duration_ms / 1000
        self._noise_dbfs = max(SILENCE_DBFS, min(level, self._noise_dbfs + rise))
        return speech


class LoudPart:
    """Tells the louder frames of speech, and its onsets, from the others, so that a certain part of all are such.

    Args:
        part: That part, 0 to 1.
    """

    __slots__ = ("_before_dbfs", "_bound_db", "_part")

    _STEP_DB: Final = 1.0
    _BEGIN_DB: Final = -35.0
    _ONSET: Final = 0.5

    def __init__(self, part: float) -> None:
        self._part = part
        self._bound_db = self._BEGIN_DB
        self._before_dbfs = 0.0

    def push(self, pcm: NDArray[Any]) -> bool:
        """Whether this frame is one of the louder ones."""
        level = level_dbfs(pcm)
        weight = level + self._ONSET * max(0.0, level - self._before_dbfs)
        self._before_dbfs = level
        loud = weight > self._bound_db
        # Rises with each loud frame and falls with each other, as much as keeps them balanced at this part.
        self._bound_db += self._STEP_DB * (loud - self._part)
        return loud
