"""How long what is lost is worth waiting for, as seen by the one who misses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["LossWatch", "Waiting", "waiting_for"]

GAIN: Final = 1 / 200
"""Part that one frame has in the receiver's estimate of the loss."""

ANSWER: Final = 0.008
"""Seconds beyond a round trip that question and answer take."""

PER_LOSS: Final = 0.5
"""Seconds more for each part lost (5 ms for each per cent): what is lost twice comes with the answer's echo, or out of a repair."""

MOST_LOSS: Final = 0.09
RESERVE: Final = 0.01
"""Seconds of the lookahead that are left for what comes a little later."""

FAR_LEAST: Final = 0.08
FAR_PER_LOSS: Final = 1.5
"""Where no answer comes in time: seconds within which repairs and copies bring back what is lost, and more for each part lost, since
then several must come."""


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
        share: Lost part of late.
        burst: Mean number of frames lost together.
    """

    __slots__ = ("_filled", "_holes", "burst", "share")

    def __init__(self) -> None:
        self.share = 0.0
        self.burst = 1.0
        self._holes = 0.0
        self._filled = 0.0

    def arrived(self) -> None:
        """A frame has come the plain way."""
        self.share -= GAIN * self.share

    def lost(self, frames: int) -> None:
        """So many are missing before it."""
        for _ in range(frames):
            self.share += GAIN * (1 - self.share)
        self.burst += (frames - self.burst) / 8
        self._holes += 1 - self._holes / 8
        self._filled -= self._filled / 8

    def overtaken(self) -> None:
        """A frame that counted as lost has come the plain way after all: others had overtaken it."""
        self.share -= GAIN * self.share
        self._filled += 1

    @property
    def is_real(self) -> bool:
        """Whether what is missing is lost, as a rule, and has not merely been overtaken."""
        return 2 * self._filled <= self._holes


def waiting_for(*, loss: float, burst: float, rtt: float, frame: float, lookahead: float) -> Waiting:
    """What to expect.

    Args:
        loss: Share of frames lost.
        burst: Mean number lost together; the first of them is missed when the first after them comes.
        rtt: Round trip in seconds.
        frame: Length of a frame in seconds.
        lookahead: Seconds that the playout waits at most.
    """
    loss, most = min(loss, MOST_LOSS), lookahead - RESERVE
    if frame + rtt + ANSWER <= most:
        return Waiting(seconds=min(most, burst * frame + rtt + ANSWER + PER_LOSS * loss), answered=True)
    return Waiting(seconds=max(0.0, min(most, FAR_LEAST + FAR_PER_LOSS * loss)), answered=False)
