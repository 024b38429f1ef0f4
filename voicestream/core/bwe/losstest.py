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

INNOCENT: Final = 0.05
"""Share of losses that a radio link may have at any time without our doing."""

MOST_BURST: Final = 4.0
SURE_BURSTS: Final = 3.0
"""Bursts of losses to be expected in a test, going by those that started it."""

MANY_BURSTS: Final = 6
"""Bursts that started a test: from so many on one test is enough."""

MOST_CLEAR: Final = 3.0
CLEAR: Final = 0.12
"""Share of losses from which one test is enough, times the length of their bursts."""

AGAIN: Final = 0.5
"""Seconds from a test whose answer may have been chance to the next."""

MEMORY: Final = 10.0
"""Seconds within which losses must answer twice."""


class LossTest:
    """Lowers the rate for a moment and looks whether the losses fall with it.

    Attributes:
        background: Share of losses that have nothing to do with our rate.
        running: A test is under way.
        before_bps: The rate before it.
        factor: What the rate is multiplied with meanwhile.
        unsure: The losses answered in the last test, but that may have been chance.
    """

    __slots__ = (
        "_answered_at", "_bursts", "_ended_at", "_loss", "_retest", "_started_at", "background", "before_bps", "factor", "running",
        "unsure",
    )  # fmt: skip

    def __init__(self) -> None:
        self.background = 0.0
        self.running = False
        self.before_bps = 0.0
        self.factor = 1.0
        self.unsure = False
        self._answered_at = -math.inf
        self._bursts = 0
        self._loss = 0.0
        self._started_at = 0.0
        self._ended_at = -PAUSE
        self._retest = RETEST

    def suspects(self, log: LossLog, now: float) -> bool:
        """Whether there are more losses than the background and chance explain."""
        if self.running or now - self._ended_at < (AGAIN if self.unsure else PAUSE):
            return False
        if log.are_few(now, WINDOW, LEAST_LOSSES):
            return False
        count, lost = log.recent(now, WINDOW)
        if lost < LEAST_LOSSES:
            return False
        self._loss, self._bursts = lost / count, log.bursts(now, WINDOW)
        if self.background > DOUBTFUL and self._loss > DOUBTFUL and now - self._ended_at > self._retest:
            self._retest *= 2
            return True
        usual = max(self.background, INNOCENT, min(log.lasting, MOST_BACKGROUND))
        # Losses that come in bursts vary more: that of the number of lost grows with the mean square of their length.
        spread = 2 * min(MOST_BURST, log.pattern.mean_burst) - 1
        return self._loss > SUSPICIOUS + usual and lost > count * usual + 2.5 * math.sqrt(count * usual * spread)

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
        """True: the losses answered; False: they did not, and are background from now on; None: not known yet.

        Losses of no great share may have come to an end by chance: they have to answer twice. After the first time it is False, `unsure`
        is set, and they are not taken for background.
        """
        begin = self._started_at + rtt + SETTLE
        length = now - begin
        if length < LENGTH:
            return None
        count, lost = log.recent(now, length)
        # Where losses are usual, it takes more datagrams to see that they are absent; more still where they come in bursts.
        usual = min(log.lasting, MOST_BACKGROUND)
        burst = min(MOST_BURST, log.pattern.mean_burst)
        clear = self._loss >= CLEAR * min(MOST_CLEAR, burst) and self._bursts >= MANY_BURSTS
        enough = SURE_LOSSES * (1.0 if clear else burst) / usual if usual > LITTLE else LEAST_DATAGRAMS
        if (count < max(LEAST_DATAGRAMS, enough) or length * self._bursts < SURE_BURSTS * WINDOW) and length < MAX_LENGTH:
            return None
        after = lost / count if count else 0.0
        self.abandon(now)
        if after <= 0.35 * self._loss and (usual <= LITTLE or after <= 0.4 * usual):
            once, self._answered_at = now - self._answered_at < MEMORY, now
            self.unsure = not clear and not once
            return not self.unsure
        self.unsure = False
        self.background = min(after, MOST_BACKGROUND)
        return False
