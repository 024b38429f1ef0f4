"""Whether losses answer to our rate: those of a policer or a short queue do, those of a radio link do not."""

from __future__ import annotations

import math
from typing import Final

from voicestream.core.bwe.loss import LossLog

__all__ = ["LossTest"]

SUSPICIOUS: Final = 0.06
"""Share of losses beyond the known background that starts a test."""

WINDOW: Final = 1.5
LEAST_LOSSES: Final = 4
SETTLE: Final = 0.3
LENGTH: Final = 1.5
LEAST_DATAGRAMS: Final = 20
SURE_LOSSES: Final = 3.0
"""Losses to be expected in a test that they survive."""

LITTLE: Final = 0.02
"""Share of losses that counts as none."""

MAX_LENGTH: Final = 5.0
PAUSE: Final = 3.0
MOST_BACKGROUND: Final = 0.3
"""More than this is never taken for the path's own doing."""

RETEST: Final = 20.0
"""Seconds after which a background of more than `DOUBTFUL` is looked at again; each time twice as long."""

DOUBTFUL: Final = 0.12
LEAST_FACTOR: Final = 0.3


class LossTest:
    """Lowers the rate for a moment and looks whether the losses fall with it.

    Attributes:
        background: Share of losses that have nothing to do with our rate.
        running: A test is under way.
        before_bps: The rate before it.
        factor: What the rate is multiplied with meanwhile.
    """

    __slots__ = ("_ended_at", "_loss", "_retest", "_started_at", "background", "before_bps", "factor", "running")

    def __init__(self) -> None:
        self.background = 0.0
        self.running = False
        self.before_bps = 0.0
        self.factor = 1.0
        self._loss = 0.0
        self._started_at = 0.0
        self._ended_at = -PAUSE
        self._retest = RETEST

    def suspects(self, log: LossLog, now: float) -> bool:
        """Whether there are more losses than the background explains."""
        if self.running or now - self._ended_at < PAUSE:
            return False
        count, lost = log.recent(now, WINDOW)
        if lost < LEAST_LOSSES:
            return False
        self._loss = lost / count
        if self.background > DOUBTFUL and self._loss > DOUBTFUL and now - self._ended_at > self._retest:
            self._retest *= 2
            return True
        usual = max(self.background, min(log.lasting, MOST_BACKGROUND))
        return self._loss > SUSPICIOUS + usual and lost > count * usual + 2.5 * math.sqrt(count * usual)

    def start(self, now: float, rate_bps: float) -> float:
        """Begin a test; returns the rate for its time."""
        self.running = True
        self.before_bps = rate_bps
        # So low that what a limit lets through would all get through.
        self.factor = max(LEAST_FACTOR, min(0.85, 0.95 * (1 - self._loss)))
        self._started_at = now
        return rate_bps * self.factor

    def abandon(self, now: float) -> None:
        """Something else has changed the rate."""
        self.running = False
        self._ended_at = now

    def worse(self, log: LossLog, now: float, rtt: float) -> float | None:
        """When more gets lost than when the test began, it began too early: begin anew; returns the rate for it, else None."""
        begin = self._started_at + rtt + SETTLE
        if now - begin < SETTLE:
            return None
        count, lost = log.recent(now, now - begin)
        if lost < LEAST_LOSSES or lost < (1.25 * self._loss + 0.05) * count:
            return None
        self._loss = lost / count
        return self.start(now, self.before_bps)

    def verdict(self, log: LossLog, now: float, rtt: float) -> bool | None:
        """True: the losses answered; False: they did not, and are background from now on; None: not known yet."""
        begin = self._started_at + rtt + SETTLE
        length = now - begin
        if length < LENGTH:
            return None
        count, lost = log.recent(now, length)
        # Where losses are usual, it takes more datagrams to see that they are absent.
        usual = min(log.lasting, MOST_BACKGROUND)
        enough = SURE_LOSSES / usual if usual > LITTLE else LEAST_DATAGRAMS
        if count < max(LEAST_DATAGRAMS, enough) and length < MAX_LENGTH:
            return None
        after = lost / count if count else 0.0
        self.abandon(now)
        if after <= 0.35 * self._loss and (usual <= LITTLE or after <= 0.4 * usual):
            return True
        self.background = min(after, MOST_BACKGROUND)
        return False
