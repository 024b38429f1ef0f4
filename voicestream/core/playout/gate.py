"""Which frames are wanted at all: clears, the end of the track, and which talkspurts are sent ahead of time."""

from __future__ import annotations

from bisect import bisect_right

from voicestream.media import MediaFrame

__all__ = ["Gate"]

_MAX_MARKS = 64


class Gate:
    """What was said about ranges of pts.

    Attributes:
        cut: While audio before a clear is still to be played: the pts at which it ends.
        floor: Nothing before this pts is wanted once `cut` has been reached.
        finish: No audio at or after this pts exists, if known.
    """

    def __init__(self) -> None:
        self.cut: int | None = None
        self.floor = 0
        self.finish: int | None = None
        self._number: int | None = None
        self._marks: list[tuple[int, bool]] = []
        self._is_mixed = False

    @property
    def number(self) -> int | None:
        """Number of the newest clear; None before the first."""
        return self._number

    def is_ahead(self, pts: int) -> bool:
        """Whether the talkspurt at `pts` is sent faster than real time."""
        if not self._is_mixed:
            return False
        at = bisect_right(self._marks, (pts, True)) - 1
        return at >= 0 and self._marks[at][1]

    def set_ahead(self, from_pts: int, ahead: bool) -> None:
        """Note how the talkspurt from `from_pts` on is sent."""
        at = bisect_right(self._marks, (from_pts, True))
        if at > 0 and self._marks[at - 1][0] == from_pts:
            self._marks[at - 1] = (from_pts, ahead)
        else:
            self._marks.insert(at, (from_pts, ahead))
        del self._marks[:-_MAX_MARKS]
        self._is_mixed = any(is_ahead for _, is_ahead in self._marks)

    def clear(self, from_pts: int, to_pts: int, number: int, playhead: int) -> None:
        """Close [from_pts, to_pts) for good."""
        self._number = number
        self.floor = max(self.floor, to_pts)
        if playhead >= from_pts:
            self.cut = None
        elif self.cut is None or from_pts < self.cut:
            self.cut = from_pts

    def admits(self, frame: MediaFrame) -> bool:
        """Whether `frame` may still be played as far as clears and the finish are concerned. VS-16-1"""
        if self.finish is not None and frame.pts >= self.finish:
            return False
        if self._number is None:
            return True
        # A clear and the audio after it may overtake each other, so the next number is as good as the present one.
        if (frame.clear_number - self._number) % 4 <= 1 and frame.pts >= self.floor:
            return True
        return self.cut is not None and frame.pts + frame.units <= self.cut
