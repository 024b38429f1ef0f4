"""Losses: their share and pattern, and the question whether they answer to our rate."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

__all__ = ["LossLog", "LossPattern"]

KEPT: Final = 250
"""Datagrams whose fate is remembered."""

FEW: Final = 8
"""Losses, and beginnings of bursts, whose times are remembered."""

_GAIN: Final = 1 / 50
_SLOW_GAIN: Final = 1 / 300


@dataclass(frozen=True, slots=True)
class LossPattern:
    """How datagrams get lost at present.

    Attributes:
        share: Lost part, 0 to 1, over the last hundred datagrams or so.
        mean_burst: Mean number of consecutive datagrams that are lost together, at least 1.
    """

    share: float = 0.0
    mean_burst: float = 1.0


class LossLog:
    """Fates of the datagrams, in order of their numbers.

    Attributes:
        share: Lost part of the last hundred or so.
        lasting: Lost part of the last several hundred.
    """

    __slots__ = ("_begun_at", "_bursts", "_fates", "_last_lost", "_losses", "_lost_at", "lasting", "share")

    def __init__(self) -> None:
        self._fates: deque[tuple[float, int]] = deque(maxlen=KEPT)  # (when told, 1 for lost)
        self._lost_at: deque[float] = deque(maxlen=FEW)
        self._begun_at: deque[float] = deque(maxlen=FEW)
        self._bursts = 0.0
        self._losses = 0.0
        self._last_lost = -2
        self.share = 0.0
        self.lasting = 0.0

    def told(self, now: float, arrived: int, lost: tuple[int, ...]) -> None:
        """A report told of so many arrivals and of these numbers lost."""
        for _ in range(arrived):
            self._fates.append((now, 0))
            self.share -= _GAIN * self.share
            self.lasting -= _SLOW_GAIN * self.lasting
        for number in lost:
            self._fates.append((now, 1))
            self._lost_at.append(now)
            self.share += _GAIN * (1 - self.share)
            self.lasting += _SLOW_GAIN * (1 - self.lasting)
            self._losses = self._losses * (1 - _GAIN) + 1
            begins = number != self._last_lost + 1
            self._bursts = self._bursts * (1 - _GAIN) + begins
            if begins:
                self._begun_at.append(now)
            self._last_lost = number

    def are_few(self, now: float, window: float, least: int) -> bool:
        """Whether the last `window` seconds told of fewer than `least` losses (at most `FEW`): cheaper to know than `recent`."""
        return len(self._lost_at) < least or self._lost_at[-least] < now - window

    def recent(self, now: float, window: float) -> tuple[int, int]:
        """(datagrams, of them lost) told of in the last `window` seconds."""
        since, count, lost = now - window, 0, 0
        for at, fate in reversed(self._fates):
            if at < since:
                break
            count += 1
            lost += fate
        return count, lost

    def bursts(self, now: float, window: float) -> int:
        """How many bursts of losses the last `window` seconds told of, a single loss being one; at most `FEW`."""
        return sum(at >= now - window for at in self._begun_at)

    @property
    def pattern(self) -> LossPattern:
        """The pattern at present."""
        burst = self._losses / self._bursts if self._bursts > 0.5 else 1.0
        return LossPattern(self.share, max(1.0, burst))
