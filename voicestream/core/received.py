"""Which media of a track has been received (specification section 6.1): full pts from 16 bits, duplicates, holes."""

from __future__ import annotations

import functools
import re
from typing import Final

from voicestream.wire.sequence import unwrap

__all__ = ["WINDOW_UNITS", "ReceivedMedia"]

WINDOW_UNITS: Final = 12000
"""How far back duplicates are told from news by default, in pts units (30 s). What is older counts as received."""


@functools.lru_cache(maxsize=8)
def _ones(bits: int) -> int:
    """As many bits set; all tracks with one window share the kilobytes."""
    return (1 << bits) - 1


class ReceivedMedia:
    """A bit for every unit of the newest media.

    Args:
        window_units: How far back it reaches: at least as far as the sender may go back when a session is resumed.

    Attributes:
        end_pts: End of the latest media received.
    """

    __slots__ = ("_full", "_mask", "_reference", "_window", "end_pts")

    def __init__(self, window_units: int = WINDOW_UNITS) -> None:
        self.end_pts = 0
        self._window = window_units
        self._full = _ones(window_units)
        self._reference = 0
        self._mask = 0  # bit i: the unit end_pts - 1 - i has been received

    def full_pts(self, pts16: int) -> int:
        """The full pts nearest to the latest one known. VS-6.2-2"""
        return unwrap(pts16, self._reference)

    def anchor(self, pts: int) -> None:
        """The sender names a full pts: what follows is near it. One that lies before what is known came late and changes nothing."""
        self._reference = max(self._reference, pts)

    def restore(self, end_pts: int) -> None:
        """All before this pts has come elsewhere."""
        self.end_pts = self._reference = end_pts
        self._mask = self._full

    def add(self, pts: int, units: int) -> bool:
        """Note a frame; False when its beginning was received before (or is too old to tell). VS-6.1-5"""
        if self.has(pts):
            return False
        end = pts + units
        bits = (1 << units) - 1
        if end > self.end_pts:
            shift = end - self.end_pts
            self._mask = ((self._mask << shift) & self._full if shift < self._window else 0) | bits
            self.end_pts = end
        else:
            self._mask |= bits << (self.end_pts - end)
        self._reference = max(self._reference, pts)
        return True

    def has(self, pts: int) -> bool:
        """Whether this unit has been received, or is too old to tell."""
        back = self.end_pts - 1 - pts
        if back < 0:
            return False
        return back >= self._window or bool(self._mask >> back & 1)

    def holes(self, from_pts: int) -> list[tuple[int, int]]:
        """(first pts, units) of what is missing between `from_pts` and the latest media, oldest first."""
        first = max(from_pts, self.end_pts - self._window)
        count = self.end_pts - first
        if count <= 0:
            return []
        bits = f"{self._mask & ((1 << count) - 1):0{count}b}"  # the oldest unit first
        return [(first + hole.start(), hole.end() - hole.start()) for hole in re.finditer("0+", bits)]

    @property
    def live_pts(self) -> int:
        """The latest pts that the sender is known to have come to."""
        return max(self.end_pts, self._reference)
