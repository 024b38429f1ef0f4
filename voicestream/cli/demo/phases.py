"""What the demo's link goes through, phase by phase, and the link that does it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from voicestream.testing.link import Link, LinkProfile

__all__ = ["BREAK_S", "COURSE", "Phase", "PhasedLink", "Span", "course", "spans"]

GOOD_KBPS: Final = 160.0
"""Capacity of the good link: half as much again as a call at its best takes, headers and repairs included."""

QUEUE_MS: Final = 300.0
BREAK_S: Final = 3.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """A stretch of time in which the link stays as it is, alike in both directions.

    Attributes:
        key: What the checks call it: "good", "loss", "narrow", "break" or "again".
        label: What people call it.
        seconds: Its length.
        loss: Share of packets lost at random, 0 to 1.
        rate_kbps: Capacity, headers included.
        mute: Nothing passes.
    """

    key: str
    label: str
    seconds: float
    loss: float = 0.0
    rate_kbps: float = GOOD_KBPS
    mute: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A phase and when it was: seconds since the call began."""

    phase: Phase
    start: float
    end: float


COURSE: Final = (
    Phase(key="good", label="Good link", seconds=10.0),
    Phase(key="loss", label="5 % loss", seconds=12.0, loss=0.05),
    Phase(key="narrow", label="30 kbps", seconds=14.0, rate_kbps=30.0),
    Phase(key="break", label="Break", seconds=BREAK_S, mute=True),
    Phase(key="again", label="Good again", seconds=21.0),
)
"""A minute. The queue that the narrow phase leaves behind goes with the break."""


def course(seconds: float) -> tuple[Phase, ...]:
    """The phases in so many seconds; the break keeps its length."""
    whole = sum(phase.seconds for phase in COURSE)
    factor = max(0.0, seconds - BREAK_S) / (whole - BREAK_S)
    return tuple(phase if phase.mute else replace(phase, seconds=phase.seconds * factor) for phase in COURSE)


def spans(phases: Sequence[Phase]) -> tuple[Span, ...]:
    """When each phase is, the first from 0 on."""
    found, start = [], 0.0
    for phase in phases:
        found.append(Span(phase=phase, start=start, end=start + phase.seconds))
        start += phase.seconds
    return tuple(found)


class PhasedLink:
    """One direction of a path that changes from phase to phase; the last one holds for ever.

    Args:
        phases: What happens when.
        delay_ms: Propagation delay.
        seed: Of the losses.
        epoch: The caller's time at which the first phase begins, in seconds.
    """

    def __init__(self, phases: Sequence[Phase], delay_ms: float, seed: int | str, epoch: float) -> None:
        self._spans = spans(phases)
        self._epoch = epoch
        self._fates = random.Random(f"{seed}/loss")
        profile = LinkProfile(
            delay_ms=delay_ms,
            rate_kbps=tuple((span.start, span.phase.rate_kbps) for span in self._spans),
            queue_ms=QUEUE_MS,
            outages=tuple((span.start, span.phase.seconds) for span in self._spans if span.phase.mute),
        )
        self._link = Link(profile, seed, epoch=epoch)

    def send(self, now: float, size_bytes: int) -> list[float]:
        """A packet enters the link; returns when it arrives, empty if it does not. See `Link.send`."""
        at = now - self._epoch
        phase = next((span.phase for span in self._spans if at < span.end), self._spans[-1].phase)
        if phase.loss and self._fates.random() < phase.loss:
            return []
        return self._link.send(now, size_bytes)
