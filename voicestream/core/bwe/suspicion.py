"""A queue the other way, and no news of ours: capacity often goes both ways at once, and what would tell of it waits, too."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["Suspicion"]

NEWS: Final = 0.08
"""Seconds without a report from which a queue the other way may mean one of ours."""

INTERVAL: Final = 2.0
"""Seconds from one suspicion to the next."""

LONGEST: Final = 0.8
"""Seconds that one lasts without news of what left after it began."""


class Suspicion:
    """Holds until there is news of what left after it began."""

    __slots__ = ("_at",)

    def __init__(self) -> None:
        self._at = -math.inf

    def begins(self, now: float, news_at: float | None) -> bool:
        """Whether what waits the other way is a reason for one; `news_at`: when the last report came, None before the first."""
        if news_at is None or now - news_at < NEWS or now - self._at < INTERVAL:
            return False
        self._at = now
        return True

    def holds(self, now: float, told_to: float) -> bool:
        """Whether it is not cleared up by a report of what left up to `told_to`."""
        return told_to < self._at and now - self._at < LONGEST
