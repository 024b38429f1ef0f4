"""What a stall of the network held up: it comes all at once, and most of it too late."""

from __future__ import annotations

from typing import Final

from voicestream.config import UNITS_PER_SECOND
from voicestream.core.playout.buffer import Entry
from voicestream.core.playout.intake import Intake

__all__ = ["STANDSTILL_UNITS", "is_arriving"]

STANDSTILL_UNITS: Final = 40.0
"""After so much concealment what comes may be too old to be worth playing (100 ms)."""

ARRIVAL_UNITS: Final = 40.0
"""So long what a stall held up is waited for, from the first of it on (100 ms)."""

ARRIVAL_PACE: Final = 4.0
"""What a stall held up comes at more than so many times the pace of speech; slower, it is a queue that may stand for long."""


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
