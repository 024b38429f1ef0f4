"""Whether a talkspurt that waits begins now."""

from __future__ import annotations

from typing import Final

from voicestream.core.playout.buffer import Entry
from voicestream.core.playout.intake import Intake

__all__ = ["is_due"]

FIRST_WAIT_UNITS: Final = 12.0
"""What lacks when the first frame comes is waited for up to this (30 ms): soon enough to be the first sound, and a wait costs no
sound. The rest is lengthened."""

PAUSE_UNITS: Final = 200.0
"""A coded pause in a prefetched talkspurt is kept when it is shorter than this (500 ms)."""


def is_due(front: Entry, intake: Intake, now: float, silence: float, *, idle: bool) -> bool:
    """Whether the talkspurt that begins with `front` begins now.

    Args:
        front: The frame that waits first.
        intake: Where it waits.
        now: Time, in pts units.
        silence: Units of silence played since the talkspurt before.
        idle: Nothing was played yet.
    """
    delay = intake.delay
    if intake.gate.is_ahead(front.pts):
        pause = front.pts - intake.playhead
        return idle or silence + 0.5 >= pause or silence >= PAUSE_UNITS or pause - silence > 2 * delay.ceiling
    # Silence may be as long as one likes: the moment to set the delay for free.
    wanted = min(delay.spread, max(FIRST_WAIT_UNITS, delay.first_wait)) if idle else delay.target
    return delay.base is None or now - front.end - delay.base >= wanted
