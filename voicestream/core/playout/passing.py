"""Whether a frame that has come too late is played late, or passed over."""

from __future__ import annotations

from typing import Final

from voicestream.core.playout.buffer import Entry
from voicestream.core.playout.intake import Intake

__all__ = ["is_passed_over"]

EXACT_UNITS: Final = 1.5
"""What was made in its place is as long as the frame but for this (4 ms)."""

LATE_TIMES: Final = 2
"""So many times late within two seconds, this one included, is chance; more is a delay that has grown."""


def is_passed_over(front: Entry, intake: Intake, now: float, waited: float) -> bool:
    """Whether the concealment made while `front` was waited for stands for it, and what follows keeps its time.

    In the middle of a word a hole that is filled is heard less than a shift of all that follows. Where the delay has grown, the next
    frame is late as well, or others were shortly before: then it is time to lengthen. The same frame will be late again where the source
    speaks in bursts.

    Args:
        front: The frame at the playhead, which has come.
        intake: Where it is.
        now: Time, in pts units.
        waited: Units of concealment made in its place.
    """
    delay, following = intake.delay, intake.buffer.second()
    if delay.base is None or not delay.is_settled or abs(waited - front.frame.units) > EXACT_UNITS or following is None:
        return False
    if following.pts != front.end or following.early > EXACT_UNITS or front.frame.talkspurt_end or intake.gate.is_ahead(front.pts):
        return False
    return delay.late_events(now - waited - front.end - delay.base) <= LATE_TIMES
