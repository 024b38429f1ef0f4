"""Media that was sent, kept for those who miss it: retransmissions now, a resumed session later."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from voicestream.media import MediaFrame

__all__ = ["RETURN_TIME", "RetainedMedia"]

MAX_BYTES_PER_SECOND: Final = 8192
"""Bytes kept at most for each second of `seconds`: what 64 kbps of codec make."""

MAX_FRAMES_PER_SECOND: Final = 100

RETURN_TIME: Final = 5.0
"""Seconds beyond, in which the return of a path is noticed and answered: else a break as long as media is kept would cost its beginning."""


class RetainedMedia:
    """The newest media of one track, bounded in time (VS-15.2-1), bytes and frames.

    Args:
        seconds: Length of a break of which nothing is lost: a frame is kept for so long after it was sent and `RETURN_TIME` more, within
            what so many seconds take at most.
    """

    __slots__ = ("_bytes", "_frames", "_max_bytes", "_max_frames", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._frames: deque[tuple[MediaFrame, float]] = deque()
        self._seconds = seconds + RETURN_TIME
        self._max_bytes = round(seconds * MAX_BYTES_PER_SECOND)
        self._max_frames = round(seconds * MAX_FRAMES_PER_SECOND)
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def payload_bytes(self) -> int:
        """Coded bytes held."""
        return self._bytes

    def add(self, frame: MediaFrame, now: float) -> None:
        """A frame has left. Pts rise."""
        self._frames.append((frame, now))
        self._bytes += len(frame.payload)
        while self._bytes > self._max_bytes or len(self._frames) > self._max_frames or now - self._frames[0][1] > self._seconds:
            self._bytes -= len(self._frames.popleft()[0].payload)

    def within(self, first: int, units: int) -> list[MediaFrame]:
        """Frames that hold anything of `units` from pts `first` on, oldest first."""
        found: list[MediaFrame] = []
        for frame, _ in reversed(self._frames):
            if frame.pts + frame.units <= first:
                break
            if frame.pts < first + units:
                found.append(frame)
        return found[::-1]

    def among(self, ranges: Iterable[tuple[int, int]]) -> tuple[list[MediaFrame], int]:
        """Frames that hold anything of these (first pts, units), oldest first and each once; and how many were looked at for it."""
        wanted: list[tuple[int, int]] = []
        for first, units in sorted(ranges):
            if wanted and first <= wanted[-1][1]:
                first, units = wanted[-1][0], max(wanted[-1][1], first + units) - wanted[-1][0]
                wanted.pop()
            wanted.append((first, first + units))
        found: list[MediaFrame] = []
        looked = 0
        for frame, _ in reversed(self._frames):
            while wanted and wanted[-1][0] >= frame.pts + frame.units:
                wanted.pop()
            if not wanted:
                break
            looked += 1
            if frame.pts < wanted[-1][1]:
                found.append(frame)
        return found[::-1], looked

    def clear(self) -> None:
        """What was sent is void."""
        self._frames.clear()
        self._bytes = 0
