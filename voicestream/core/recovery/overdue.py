"""When the next frame of a track is overdue: where frames come as regularly as they are spoken, a loss is known before the one after it."""

from __future__ import annotations

import math
from typing import Final

from voicestream.config import UNITS_PER_SECOND

__all__ = ["OverdueWatch"]

LEAST_SLACK: Final = 0.005
"""Seconds beyond its usual time for which the next frame is waited for at least."""

FIRST_SLACK: Final = 0.008
SLACK_RESERVE: Final = 0.002
MOST_SLACK: Final = 0.016
"""Where frames come so irregularly, what comes after a loss tells of it as soon."""

PUT_OFF: Final = 0.026
"""It gets no longer than that: a stall, or a link that has become narrow, puts questions by the clock off for 20 s."""

RISE: Final = 0.0005
"""Seconds by which the slack grows with a frame that comes later; by one part in `RARELY` of that it shrinks with one that does not."""

RARELY: Final = 50
LEAST_SEEN: Final = 40
"""Frames by which it is known how regularly they come."""

MOST_FRAMES: Final = 8
"""Frames overdue in a row of which anything is supposed: beyond, the path or the speaker is silent."""

WINDOW: Final = 1.0
"""Half of the time in seconds within which the quickest frame is looked for."""

NEW_RELATION: Final = 0.02
"""Seconds by which a talkspurt may begin early or late without its pts standing in a new relation to time."""

LASTING: Final = 30.0
"""Seconds after a loss for which others are to be expected."""

UNKNOWN_FOR: Final = 10.0
"""Seconds from the first frame on for which they are, too: nobody knows the path, and the first burst is as long as the others."""

UNSURE: Final = 0.01
"""Seconds for which a frame is waited for longer until anything was lost, and only where frames come as regularly as `FIRST_SLACK` says: a
queue may have begun."""


class OverdueWatch:
    """Knows when the frames of one track come, and of which the time has passed.

    Attributes:
        asked_end: End of the latest media that was told to be overdue.
        slack: Seconds beyond its usual time after which a frame is overdue.
    """

    __slots__ = (
        "_before", "_end", "_expected", "_lost_at", "_quickest", "_seen", "_told", "_turn_at", "_units", "_unsure", "asked_end", "slack",
    )  # fmt: skip

    def __init__(self) -> None:
        self.asked_end = 0
        self.slack = FIRST_SLACK
        self._quickest = self._before = math.inf
        self._turn_at = -math.inf
        self._end = 0
        self._units = 0
        self._seen = 0
        self._told = 0
        self._expected: float | None = None
        self._lost_at = -math.inf
        self._unsure = UNSURE

    @property
    def is_of_use(self) -> bool:
        """Whether the next loss will be known by the clock."""
        most = FIRST_SLACK if self._unsure else MOST_SLACK
        return self.slack < most and self._seen >= LEAST_SEEN

    def lost(self, now: float) -> None:
        """Something did get lost: more may."""
        self._lost_at = now
        self._unsure = 0.0

    def came(self, pts: int, units: int, now: float, *, talkspurt_start: bool, talkspurt_end: bool) -> None:
        """A frame has come the plain way."""
        if not self._seen:
            self._lost_at = now - LASTING + UNKNOWN_FOR
        self._seen += 1
        end = pts + units
        delay = now - end / UNITS_PER_SECOND
        late = delay - min(self._quickest, self._before)
        if talkspurt_start and not -NEW_RELATION <= late <= NEW_RELATION:
            self._quickest = self._before = delay
            late = 0.0
        elif now >= self._turn_at:
            self._before, self._quickest, self._turn_at = self._quickest, delay, now + WINDOW
        self._quickest = min(self._quickest, delay)
        if pts < self.asked_end and self._told and late < 1.0:
            self.slack = max(self.slack, min(late + SLACK_RESERVE, PUT_OFF))  # it was asked for in vain
        over = late + SLACK_RESERVE > self.slack
        self.slack = min(max(LEAST_SLACK, self.slack + (RISE if over else -RISE / RARELY)), PUT_OFF)
        if end <= self._end:
            return
        self._end, self._units, self._told = end, units, 0
        self._expected = None if talkspurt_end else self._due_at(end + units)

    def stop(self, end_pts: int) -> None:
        """Nothing up to there is expected any more."""
        if end_pts >= self._end:
            self._end = end_pts
            self._expected = None

    def due(self, now: float) -> tuple[int, int] | None:
        """(first pts, units) of the frame that is overdue now and was not told before, or None."""
        expected = self.next_timer()
        if expected is None or now < expected:
            return None
        first = self._end + self._told * self._units
        self._told += 1
        self.asked_end = first + self._units
        self._expected = self._due_at(self.asked_end + self._units) if self._told < MOST_FRAMES else None
        return first, self._units

    def next_timer(self) -> float | None:
        """When the next frame will be overdue; None when nothing is expected or that would say nothing."""
        expected = self._expected
        if expected is None or expected - self._lost_at > LASTING or not self.is_of_use:
            return None
        return expected

    def _due_at(self, end: int) -> float:
        return min(self._quickest, self._before) + end / UNITS_PER_SECOND + self.slack + self._unsure
