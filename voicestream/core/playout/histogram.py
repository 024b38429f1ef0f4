"""How late frames come, with decay, and the delay that serves them best."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import accumulate, repeat
from operator import add, mul

__all__ = ["DelayHistogram"]

LATE_COST_UNITS = 4000.0
"""Delay that one is willing to add, in units, to save everything from being late: 100 ms for each per cent of the frames."""

RELEASE_SHARE = 0.25
"""A lower delay must save at least this part of the difference, or the present one stays: stretching costs too."""

MEMORY_UNITS = 12000.0
"""Time constant of the decay, in units of media (30 s)."""

LITTLE_UNITS = 1600.0
"""One late frame among fewer than so many units says little of how many there will be (4 s)."""

_RESCALE = 1e12


class DelayHistogram:
    """Relative arrival delays in buckets of one unit (2.5 ms); older entries weigh less.

    Bucket 0 holds what was as quick as the quickest, bucket i delays in (i - 1, i]; the last one everything above the
    ceiling, which no allowed delay can serve.

    Args:
        ceiling_units: Largest delay of interest.
    """

    def __init__(self, ceiling_units: int) -> None:
        self._ceiling = ceiling_units
        self._weights = [0.0] * (ceiling_units + 2)
        self._total = 0.0
        self._unit_weight = 1.0
        self._late: list[float] = []
        self._doubted = 0.0

    def bucket(self, delay_units: float) -> int:
        """Index of the bucket for a delay."""
        if delay_units <= 0:
            return 0
        return math.ceil(delay_units) if delay_units <= self._ceiling else self._ceiling + 1

    def add(self, delay_units: float, media_units: float) -> None:
        """Count a frame of length `media_units` that came `delay_units` behind the quickest."""
        # Growing the new weight instead of shrinking all the old ones costs one multiplication.
        self._unit_weight *= 1.0 + media_units / MEMORY_UNITS
        weight = self._unit_weight * media_units
        self._weights[self.bucket(delay_units)] += weight
        self._total += weight
        if self._unit_weight > _RESCALE:
            self._weights = [w / self._unit_weight for w in self._weights]
            self._total /= self._unit_weight
            self._unit_weight = 1.0

    def best_delay(self, recent: Iterable[tuple[int, float]] = (), recent_factor: float = 1.0, present: int = 0) -> int:
        """The delay in units for which delay plus the price of late frames is least.

        Args:
            recent: (bucket, media units) of frames not added yet.
            recent_factor: How much more a recent frame weighs than one just added.
            present: The delay kept now.
        """
        scale = self._unit_weight * recent_factor
        weights = self._weights.copy()
        total = self._total
        for bucket, media_units in recent:
            weight = media_units * scale
            weights[bucket] += weight
            total += weight
        if not total:
            return 0
        # Weight of what comes late, from the longest delay down, and what it costs together with the delay: sums over all delays, ten
        # times a second, so they are left to what is written in C.
        late = self._late = list(accumulate(weights[:0:-1]))
        price, self._doubted = LATE_COST_UNITS / total, LATE_COST_UNITS / max(total, LITTLE_UNITS * scale)
        costs = list(map(add, range(self._ceiling, -1, -1), map(mul, repeat(price), late)))
        least = min(costs)
        best = self._ceiling - costs.index(least)
        kept = costs[self._ceiling - present] if 0 <= present <= self._ceiling else math.inf
        return present if best < present and kept - least < RELEASE_SHARE * (present - best) else best

    @property
    def is_known(self) -> bool:
        """Whether `best_delay` has had something to go by."""
        return bool(self._late)

    def cost(self, delay: int) -> float:
        """What a delay costs, in units, by what was known then; where little was, as if as many frames more had been in time.

        Args:
            delay: 0 to the ceiling.

        Raises:
            IndexError: Nothing is known.
        """
        return delay + self._doubted * self._late[self._ceiling - delay]
