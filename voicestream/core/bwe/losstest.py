"""Whether losses answer to our rate: those of a policer or a short queue do, those of a radio link do not."""

from __future__ import annotations

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
MAX_LENGTH: Final = 5.0
PAUSE: Final = 3.0
HEAVY: Final = 0.3
"""Share of losses that needs no test before the rate is lowered further."""


class LossTest:
    """Lowers the rate for a moment and looks whether the losses fall with it.

    Attributes:
        background: Share of losses that have nothing to do with our rate.
        running: A test is under way.
        before_bps: The rate before it.
        factor: What the rate is multiplied with meanwhile.
    """

    __slots__ = ("_ended_at", "_loss", "_started_at", "background", "before_bps", "factor", "running")

    def __init__(self) -> None:
        self.background = 0.0
        self.running = False
        self.before_bps = 0.0
        self.factor = 1.0
        self._loss = 0.0
        self._started_at = 0.0
        self._ended_at = -PAUSE

    def suspects(self, log: LossLog, now: float) -> bool:
        """Whether there are more losses than the background explains."""
        count, lost = log.recent(now, WINDOW)
        if self.running or lost < LEAST_LOSSES or now - self._ended_at < PAUSE:
            return False
        self._loss = lost / count
        return self._loss > SUSPICIOUS + 1.5 * self.background

    def start(self, now: float, rate_bps: float) -> float:
        """Begin a test; returns the rate for its time."""
        self.running = True
        self.before_bps = rate_bps
        self.factor = max(0.3, 1 - self._loss) if self._loss > HEAVY else 0.85
        self._started_at = now
        return rate_bps * self.factor

    def abandon(self, now: float) -> None:
        """Something else has changed the rate."""
        self.running = False
        self._ended_at = now

    def verdict(self, log: LossLog, now: float, rtt: float) -> bool | None:
        """True: the losses answered; False: they did not, and are background from now on; None: not known yet."""
        begin = self._started_at + rtt + SETTLE
        length = now - begin
        if length < LENGTH:
            return None
        count, lost = log.recent(now, length)
        if count < LEAST_DATAGRAMS and length < MAX_LENGTH:
            return None
        after = lost / count if count else 0.0
        expected = max(0.0, 1 - (1 - self._loss) / self.factor)
        self.abandon(now)
        if after < self._loss - 0.5 * (self._loss - expected):
            return True
        self.background = after
        return False
