"""What a stall of the network held up: it comes all at once, and most of it too late."""

from __future__ import annotations

import math
from typing import Final

from voicestream.config import UNITS_PER_SECOND
from voicestream.core.playout.buffer import Entry
from voicestream.core.playout.intake import Intake

__all__ = ["BEHIND_UNITS", "STANDSTILL_UNITS", "Standstills", "is_arriving"]

STANDSTILL_UNITS: Final = 40.0
"""After so much concealment what comes may be too old to be worth playing (100 ms)."""

ARRIVAL_UNITS: Final = 40.0
"""So long what a stall held up is waited for, from the first of it on (100 ms)."""

ARRIVAL_PACE: Final = 4.0
"""What a stall held up comes at more than so many times the pace of speech; slower, it is a queue that may stand for long."""

BEHIND_UNITS: Final = 120.0
"""Everything must have waited so much longer than the lookahead for a second until what is too old goes (300 ms); with less it is caught up
by and by."""

OLD_PART: Final = 1.5
"""What a standstill held up is played when it is at most so many lookaheads older than the newest."""

OLD_UNITS: Final = 140.0
"""The same where one standstill follows another (350 ms): little would be heard else."""

FOLLOWS_UNITS: Final = 4000.0
"""So soon after the one before it follows (10 s)."""


class Standstills:
    """Remembers them."""

    __slots__ = ("_ended_at",)

    def __init__(self) -> None:
        self._ended_at = -math.inf

    def ended(self, now: float, waited: float) -> None:
        """A frame is played after so many units of concealment made without it."""
        if waited >= STANDSTILL_UNITS:
            self._ended_at = now

    def limit(self, now: float, ceiling: float) -> float:
        """How much older than the newest what is played after the one that ends now may be, in units; `ceiling`: the lookahead."""
        follows = now - self._ended_at < FOLLOWS_UNITS
        return max(OLD_UNITS if follows else 0.0, OLD_PART * ceiling)


def is_arriving(front: Entry, intake: Intake, now: float, waited: float) -> bool:
    """Whether what a standstill of the network held up is just coming, and the newest of it is too late still.

    It is known only when all is here which of it is too old. What was begun before that would be cut off by speech that came in time.

    Args:
        front: The frame that waits first.
        intake: Where it waits.
        now: Time, in pts units.
        waited: Units of concealment made since the frame before it.
    """
    base, newest = intake.delay.base, intake.buffer.last()
    if waited < STANDSTILL_UNITS or base is None or newest is None or intake.gate.is_ahead(front.pts):
        return False
    since = now - intake.buffer.earliest_arrival() * UNITS_PER_SECOND
    if since >= ARRIVAL_UNITS or intake.buffer.coded_units <= ARRIVAL_PACE * since:
        return False
    return newest.arrival * UNITS_PER_SECOND - newest.end - base > intake.delay.ceiling
