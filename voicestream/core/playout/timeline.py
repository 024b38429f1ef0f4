"""Which media time the audio made so far belongs to, so that "what has been heard" can be told to one unit."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

__all__ = ["Timeline"]

_KEPT_UNITS = 4000.0
_KEPT_SEGMENTS = 4096
_ROUNDING = 1e-6


@dataclass(slots=True)
class _Segment:
    made: float
    from_pts: float
    to_pts: float


class Timeline:
    """The last ten seconds of audio made, as segments of media time; a segment of no media time is silence or waiting."""

    def __init__(self) -> None:
        self._segments: deque[_Segment] = deque()
        self._made = 0.0

    def append(self, made_units: float, from_pts: int, to_pts: int) -> None:
        """Add `made_units` of audio that stand for the media time [from_pts, to_pts)."""
        last = self._segments[-1] if self._segments else None
        if last is not None and from_pts == to_pts == last.to_pts == last.from_pts:
            last.made += made_units
        else:
            self._segments.append(_Segment(made_units, from_pts, to_pts))
        self._made += made_units
        while len(self._segments) > 1 and (self._made - self._segments[0].made >= _KEPT_UNITS or len(self._segments) > _KEPT_SEGMENTS):
            self._made -= self._segments.popleft().made

    @property
    def end_pts(self) -> int:
        """Media time at which the audio made so far ends."""
        return int(self._segments[-1].to_pts + _ROUNDING) if self._segments else 0

    def heard_pts(self, held_units: float) -> int:
        """Media time of the first of the last `held_units` made; with nothing held, of the next sample to be made."""
        if not self._segments:
            return 0
        left = held_units
        if left <= 0:
            return self.end_pts
        for segment in reversed(self._segments):
            if left <= segment.made:
                part = (segment.made - left) / segment.made if segment.made else 1.0
                return int(segment.from_pts + part * (segment.to_pts - segment.from_pts) + _ROUNDING)
            left -= segment.made
        return int(self._segments[0].from_pts)

    def drop(self, units: float) -> None:
        """Forget the last `units` made: the executor threw them away unheard."""
        left = units
        while left > 0 and self._segments:
            last = self._segments[-1]
            if last.made > left:
                part = (last.made - left) / last.made
                last.to_pts = last.from_pts + part * (last.to_pts - last.from_pts)
                last.made -= left
                self._made -= left
                return
            left -= last.made
            self._made -= last.made
            self._segments.pop()
            if not self._segments:
                self._segments.append(_Segment(0.0, last.from_pts, last.from_pts))
                return
