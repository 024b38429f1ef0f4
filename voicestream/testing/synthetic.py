"""Links that were never recorded but behave like recorded ones: seeded generators of capacities and delays."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from voicestream.testing.profile import LinkProfile

__all__ = ["DELAYS", "DRIVES", "synthetic"]

SLOT_BITS: Final = 12000
DELAY_STEP_MS: Final = 100.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Drive:
    """A phone on the move: the logarithm of the capacity walks around its middle, and at times there is nothing.

    Attributes:
        middle_kbps: Median of the capacity.
        spread: Standard deviation of its logarithm.
        memory_s: After so long little is left of where it was.
        gap_every_s: Mean time between two gaps.
        gap_s: Mean length of a gap.
        lump: Opportunities that come at once, as of a cell that serves its phones in turn; 0 for a rate a second, as in a log.
    """

    middle_kbps: float
    spread: float
    memory_s: float
    gap_every_s: float
    gap_s: float
    lump: int = 1


DRIVES: Final[Mapping[str, _Drive]] = MappingProxyType({
    "commute": _Drive(middle_kbps=90, spread=1.1, memory_s=6, gap_every_s=40, gap_s=1.0, lump=0),
    "evdo": _Drive(middle_kbps=300, spread=1.3, memory_s=8, gap_every_s=45, gap_s=1.2, lump=2),
    "umts": _Drive(middle_kbps=900, spread=1.2, memory_s=5, gap_every_s=30, gap_s=0.9, lump=3),
    "lte": _Drive(middle_kbps=5000, spread=1.2, memory_s=8, gap_every_s=30, gap_s=0.5, lump=4),
})  # fmt: skip
"""By name: a commute over HSDPA, and drives in EVDO, UMTS and LTE networks."""

DELAYS: Final = ("satellite", "swell")
"""By name: a low satellite whose path changes every 15 s, and a queue of seconds that fills and drains beneath a call."""


def synthetic(name: str, seconds: float, rng: random.Random) -> LinkProfile:
    """A link that does nothing else.

    Raises:
        KeyError: There is no such name.
    """
    if name in DELAYS:
        delays = _satellite(seconds, rng) if name == "satellite" else _swell(seconds, rng)
        return LinkProfile(delay_trace_ms=tuple(delays), delay_trace_step_ms=DELAY_STEP_MS, loss=0.012 if name == "satellite" else 0.002)
    drive = DRIVES[name]
    rates = _rates(drive, seconds, 0.1 if drive.lump else 1.0, rng)
    if drive.lump:
        return LinkProfile(rate_trace_ms=tuple(_slots(rates, drive.lump, rng)))
    return LinkProfile(rate_kbps=tuple((float(second), round(bps / 1e3, 1)) for second, bps in enumerate(rates)))


def _rates(drive: _Drive, seconds: float, step_s: float, rng: random.Random) -> Iterator[float]:
    """Bits per second in one step after the other."""
    keep = math.exp(-step_s / drive.memory_s)
    level = abs(rng.gauss(0, 0.5))  # it begins where a call can
    gap_until = 0.0
    for step in range(int(seconds / step_s)):
        at = step * step_s
        level = keep * level + math.sqrt(1 - keep * keep) * rng.gauss(0, drive.spread)
        if at > 5 and rng.random() < step_s / drive.gap_every_s:
            gap_until = at + rng.expovariate(1 / drive.gap_s)
        yield 0.0 if at < gap_until else drive.middle_kbps * 1e3 * math.exp(level)


def _slots(rates: Iterator[float], lump: int, rng: random.Random) -> list[int]:
    """Milliseconds of opportunities, of rates in tenths of a second."""
    slots, credit = list[int](), 0.0
    for step, bps in enumerate(rates):
        credit = credit + bps * 0.1 / SLOT_BITS if bps else 0.0
        lumps = int(credit / lump)
        credit -= lumps * lump
        for _ in range(lumps):
            slots += [int((step + rng.random()) * 100)] * lump
    return sorted(slots) or [0]


def _satellite(seconds: float, rng: random.Random) -> list[float]:
    """Every 15 s another base; within that a little noise, and now and then a spike at the change."""
    delays: list[float] = []
    base = 20.0
    for step in range(int(seconds * 1e3 / DELAY_STEP_MS)):
        since = step % 150
        if since == 0:
            base = rng.uniform(5, 60)
        spike = 150 * math.exp(-since / 3) if since < 12 and base > 35 else 0.0
        delays.append(base + spike + abs(rng.gauss(0, 8)))
    return delays


def _swell(seconds: float, rng: random.Random) -> list[float]:
    """Somebody else's transfer fills a deep queue for some seconds, several times."""
    delays, level, filling, until = list[float](), 0.0, False, 8.0
    for step in range(int(seconds * 1e3 / DELAY_STEP_MS)):
        at = step * DELAY_STEP_MS / 1e3
        if at >= until:
            filling = not filling
            until = at + (rng.uniform(3, 8) if filling else rng.uniform(8, 20))
        level = min(1500.0, level + rng.uniform(10, 50)) if filling else max(0.0, level - rng.uniform(20, 60))
        delays.append(level + abs(rng.gauss(0, 6)))
    return delays
