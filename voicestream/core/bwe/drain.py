"""How a queue answers while less is sent than arrives."""

from __future__ import annotations

from typing import Final

__all__ = ["DrainWatch"]

STEP: Final = 0.003
"""Seconds of queue by which it must change to count."""

REST: Final = 0.8
"""Seconds without any shrinking after which what is left is no queue of ours."""

FLAT: Final = 0.05
"""Seconds a second; a delay that changes less stands still."""


class DrainWatch:
    """Follows one drain.

    Attributes:
        peak: The longest queue, in seconds.
        highest: The same since it was last set to 0, over drains that were begun anew.
    """

    __slots__ = ("_low", "_low_at", "_peak_at", "_settled_at", "highest", "peak")

    def __init__(self) -> None:
        self.peak = self.highest = 0.0
        self._peak_at = self._low_at = self._settled_at = 0.0
        self._low = 0.0

    def start(self, now: float, queue: float, answer_after: float) -> None:
        """Less is sent from now on; the queue can answer after so many seconds."""
        self.peak = self._low = queue
        self._settled_at = self._peak_at = self._low_at = now + answer_after

    def update(self, now: float, queue: float) -> None:
        """The queue is so long now."""
        self.highest = max(self.highest, queue)
        if queue > self.peak + STEP:
            self.peak = self._low = queue
            self._peak_at = self._low_at = max(now, self._settled_at)
        elif queue < self._low - STEP:
            self._low, self._low_at = queue, max(now, self._settled_at)

    def settled(self, now: float) -> bool:
        """Whether the queue has had time to answer."""
        return now > self._settled_at

    def unmoved(self, now: float, queue: float, trend: float, less: float, unsure: float = 0.0) -> bool:
        """Whether it stays though it should be gone; `less`: part by which less is sent than could arrive.

        It may grow meanwhile: a queue that others keep goes up and down with their windows.
        """
        return trend > -FLAT and less * (now - self._peak_at) > self.peak + 0.15 + unsure and queue > 0.5 * self.peak

    def rests(self, now: float, trend: float) -> bool:
        """Whether it has shrunk as far as it will."""
        return now - self._low_at > REST and abs(trend) < FLAT
