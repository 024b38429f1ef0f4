"""The call's quality in one word, steady enough to be shown to a person."""

from __future__ import annotations

import enum
from typing import Final

__all__ = ["Quality", "QualityGauge"]

LIMITED_BPS: Final = 24000
"""Codec bitrate below which a call is limited (unless the application wants no more)."""

POOR_BPS: Final = 14000
POOR_LOSS: Final = 0.15
LIMITED_LOSS: Final = 0.05
MARGIN: Final = 1.15
HOLD: Final = 2.0
"""Seconds for which things must be better before the word gets better."""


class Quality(enum.Enum):
    """How well a direction can be sent."""

    GOOD = "good"
    LIMITED = "limited"
    POOR = "poor"
    PAUSED = "paused"


_ORDER: Final = (Quality.GOOD, Quality.LIMITED, Quality.POOR, Quality.PAUSED)


class QualityGauge:
    """Worse at once, better after two seconds.

    Attributes:
        level: The present one.
    """

    __slots__ = ("_better_since", "level")

    def __init__(self) -> None:
        self.level = Quality.GOOD
        self._better_since: float | None = None

    def update(self, now: float, *, bitrate_bps: int, wanted_bps: int, loss: float, paused: bool) -> bool:
        """Take the present state; whether the level changed.

        Args:
            now: Monotonic seconds.
            bitrate_bps: Of the codec.
            wanted_bps: What the application would have at best.
            loss: Share of datagrams lost.
            paused: Nothing is sent.
        """
        level = _grade(bitrate_bps, wanted_bps, loss, paused)
        if level is self.level:
            self._better_since = None
            return False
        if _ORDER.index(level) < _ORDER.index(self.level):
            # Better means clearly better, or the word would change with every small turn of the rate.
            careful = _grade(round(bitrate_bps / MARGIN), round(wanted_bps / MARGIN), loss * MARGIN, paused)
            if _ORDER.index(careful) >= _ORDER.index(self.level):
                self._better_since = None
                return False
            if self._better_since is None:
                self._better_since = now
            if now - self._better_since < HOLD:
                return False
        self._better_since = None
        self.level = level
        return True


def _grade(bitrate_bps: int, wanted_bps: int, loss: float, paused: bool) -> Quality:
    if paused:
        return Quality.PAUSED
    if bitrate_bps < min(POOR_BPS, wanted_bps) or loss > POOR_LOSS:
        return Quality.POOR
    if bitrate_bps < min(LIMITED_BPS, wanted_bps) or loss > LIMITED_LOSS:
        return Quality.LIMITED
    return Quality.GOOD
