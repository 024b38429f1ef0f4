"""Arithmetic of numbers that wrap around: pts, datagram numbers and ticks (specification section 6)."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["TICKS_PER_SECOND", "tick_delta", "ticks", "unwrap"]

TICKS_PER_SECOND: Final = 4000
"""One tick is 250 microseconds."""


def unwrap(value16: int, reference: int) -> int:
    """The full number nearest to `reference` whose 16 low bits are `value16`.

    Of two that are equally near, the higher; never a negative one. VS-6.2-1

    Args:
        value16: 0 to 65535.
        reference: A full number known to be near, at least 0.
    """
    distance = (value16 - reference) & 0xFFFF
    if distance > 0x8000:
        distance -= 0x10000
    full = reference + distance
    return full if full >= 0 else full + 0x10000


def ticks(now: float) -> int:
    """The tick of `now` (monotonic seconds) in the form of the wire, 0 to 65535 (specification section 6.3)."""
    return math.floor(now * TICKS_PER_SECOND) & 0xFFFF


def tick_delta(later: int, earlier: int) -> int:
    """Ticks from `earlier` to `later`, both 0 to 65535; -32768 to 32767. It says nothing once the ticks can have wrapped. VS-6.3-2"""
    return ((later - earlier + 0x8000) & 0xFFFF) - 0x8000
