"""Short breaks of the path, in which everything is lost: they say nothing about the rate (specification section 9.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from voicestream.core.bwe.samples import Sample

__all__ = ["Blackouts"]

LONG: Final = 0.2
"""Seconds from one datagram that arrived to the next, with nothing but losses between them."""

MANY: Final = 6
"""Datagrams lost in it."""

EVERY: Final = 5.0
"""Seconds from one to the next."""

CALM: Final = 0.1
"""Part of what was sent before that may have been lost: a limit far below the rate lets one of many through all the time."""

UNKNOWN: Final = 0.09
"""The same before anything is known: a path may break as soon as a session has been resumed on it, and one break is excused."""

_GAIN: Final = 1 / 30


class Blackouts:
    """Finds breaks too short for feedback to have been missed."""

    __slots__ = ("_at", "_first", "_newest", "_share", "_to")

    def __init__(self) -> None:
        self._newest: Sample | None = None
        self._first = self._to = 0
        self._at = -math.inf
        self._share = UNKNOWN

    def beyond(self, now: float, samples: Sequence[Sample], lost: Sequence[int]) -> tuple[int, ...]:
        """The losses of a report that no break explains. `samples`: what arrived according to it."""
        for sample in samples:
            before = self._newest
            if before is not None and sample.number <= before.number:
                continue
            self._newest = sample
            if before is None:
                self._first, self._to = -1, sample.number  # what has carried nothing yet was broken
                self._at = now if len(lost) > MANY else self._at
            elif self._is_one(now, before, sample):
                self._at, self._first, self._to = now, before.number, sample.number
            else:
                self._share = 1 - (1 - self._share) * (1 - _GAIN) ** (sample.number - before.number - 1)
            self._share *= 1 - _GAIN
        return tuple([number for number in lost if not self._first < number < self._to])

    def _is_one(self, now: float, before: Sample, sample: Sample) -> bool:
        if now - self._at < EVERY or self._share >= CALM:
            return False
        return sample.sent_at - before.sent_at >= LONG and sample.number - before.number > MANY
