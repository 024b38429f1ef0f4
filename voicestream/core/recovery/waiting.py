"""How long what is lost is worth waiting for, as seen by the one who misses it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

__all__ = ["BURSTS", "UNKNOWN_LOSS", "LossWatch", "Waiting", "waiting_for"]

GAIN: Final = 1 / 200
"""Part that one frame has in the receiver's estimate of the loss."""

ANSWER: Final = 0.008
"""Seconds beyond a round trip that question and answer take."""

PER_LOSS: Final = 0.3
"""Seconds more for each part lost (3 ms for each per cent): what is lost twice comes with the answer's echo, or out of a repair."""

LATE_PRICE: Final = 10.0
"""Seconds of delay that one is willing to add to save everything from being late: 100 ms for each per cent of the frames."""

UNANSWERED: Final = 0.08
"""Part of what is asked for by the clock that takes as long as if it had been missed by the next frame, beside what gets lost twice."""

MOST_LOSS: Final = 0.09
RESERVE: Final = 0.01
"""Seconds of the lookahead that are left for what comes a little later."""

FAR_REPAIRS: Final = 1.2
FAR_PER_LOSS: Final = 50.0
"""Where no answer comes in time, so many repairs are waited for, and for each part lost so many frames more, since then several must
come and some do not."""

FAR_FRAMES: Final = 4.0
"""But no more frames than that: it is what one begins with there. Beyond, what lengthening the delay in the middle of the talk makes heard
is as much as the few frames that it saves."""

USUAL_REPAIRS: Final = 0.5
"""Repairs for each frame in the beginning, as long as none was seen."""

UNKNOWN_LOSS: Final = 0.03
"""Loss to expect in the beginning of a path on which no answer comes in time: lengthening later, in the middle of the talk, is heard."""

FEW: Final = 40
"""Frames' worth of quiet that is supposed in the beginning, so that the first loss is not taken for half of all."""

FEW_BURSTS: Final = 4
"""Single losses that are supposed likewise."""

BEHIND_BURST: Final = 0.02
"""Seconds behind the end of a burst in which what was asked for meanwhile comes on a short path."""

BURSTS: Final = 1.6
"""Mean from which losses come in bursts; below, two are lost together by chance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """What to expect of recovery.

    Attributes:
        seconds: Delay behind the quickest frame that is worth waiting for.
        answered: It comes when it is asked for, so that it is worth lengthening what is played at once.
    """

    seconds: float
    answered: bool


class LossWatch:
    """Loss of one received track's frames, by the holes in their pts.

    Attributes:
        share: Lost part of late; in the beginning, of all.
        burst: Mean number of frames lost together.
        repairs: Repairs that come for each frame.
    """

    __slots__ = ("_filled", "_frames", "_holes", "_seen", "burst", "repairs", "share")

    def __init__(self) -> None:
        self.share = 0.0
        self.burst = 1.0
        self.repairs = USUAL_REPAIRS
        self._frames = FEW
        self._seen = FEW_BURSTS
        self._holes = 0.0
        self._filled = 0.0

    def arrived(self) -> None:
        """A frame has come the plain way."""
        gain = self._gain()
        self.share -= gain * self.share
        self.repairs -= gain * self.repairs

    def repaired(self) -> None:
        """A repair has come."""
        self.repairs += max(GAIN, 1 / self._frames)

    def lost(self, frames: int) -> None:
        """So many are missing before it; none where the hole is shorter than a frame."""
        if not frames:
            return
        for _ in range(frames):
            gain = self._gain()
            self.share += gain * (1 - self.share)
            self.repairs -= gain * self.repairs
        self._seen = min(8, self._seen + 1)
        self.burst += (frames - self.burst) / self._seen
        self._holes += 1 - self._holes / 8
        self._filled -= self._filled / 8

    def overtaken(self) -> None:
        """A frame that counted as lost has come the plain way after all: others had overtaken it."""
        self.share -= GAIN * self.share
        self._filled += 1

    def _gain(self) -> float:
        self._frames += 1
        return max(GAIN, 1 / self._frames)

    @property
    def is_real(self) -> bool:
        """Whether what is missing is lost, as a rule, and has not merely been overtaken."""
        return 2 * self._filled <= self._holes


def waiting_for(
    *,
    loss: float,
    burst: float,
    rtt: float,
    frame: float,
    lookahead: float,
    repairs: float = USUAL_REPAIRS,
    overdue: float | None = None,
) -> Waiting:
    """What to expect.

    Args:
        loss: Share of frames lost.
        burst: Mean number lost together; the first of them is missed when the first after them comes.
        rtt: Round trip in seconds.
        frame: Length of a frame in seconds.
        lookahead: Seconds that the playout waits at most.
        repairs: Repairs that come for each frame.
        overdue: Seconds beyond its time after which what does not come is asked for, though nothing after it has come either; None
            where it is only known by that.
    """
    loss, most = min(loss, MOST_LOSS), lookahead - RESERVE
    if frame + rtt + ANSWER <= most:
        # Of bursts many are longer than the mean: their standard deviation, were their lengths geometric, is waited for as well.
        longer = burst + math.sqrt(burst * (burst - 1)) if burst >= BURSTS else burst
        if overdue is not None and burst >= BURSTS:
            # The answer may be lost in the same burst; what rides on the next frame comes a frame later.
            again, end = max(PER_LOSS * loss, frame), longer * frame + BEHIND_BURST
            return Waiting(seconds=min(most, max(end, overdue + frame + rtt + ANSWER + again)), answered=True)
        if overdue is not None:
            soon = overdue + rtt + ANSWER
            later = max(soon, frame + rtt + ANSWER) + PER_LOSS * loss
            # To wait for the few that take longer costs delay for all.
            is_worth = LATE_PRICE * loss * (UNANSWERED + loss) > later - soon
            return Waiting(seconds=min(most, later if is_worth else soon), answered=True)
        return Waiting(seconds=min(most, longer * frame + rtt + ANSWER + PER_LOSS * loss), answered=True)
    frames = min(FAR_FRAMES, FAR_REPAIRS / max(repairs, 0.01) + FAR_PER_LOSS * loss) + burst - 1
    return Waiting(seconds=max(0.0, min(most, frames * frame + ANSWER)), answered=False)
