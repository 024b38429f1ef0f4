"""What the calls of the executor tell of the device behind it."""

from __future__ import annotations

from dataclasses import dataclass

from voicestream.core.playout.sliding import SlidingMin

__all__ = ["DeviceTicks", "Tick"]

STALL_UNITS = 80.0
"""A device that takes audio this much later than it should have stood still (200 ms)."""

MAX_PIECE_UNITS = 8

CLOCK_UNITS = 800.0
"""The device's clock is read off its promptest block of the last two seconds."""


@dataclass(slots=True)
class Tick:
    """The device took a block.

    Attributes:
        consumed: Units that it took.
        stalled: Whether it had stood still before, or never ran.
        late: How much later it came than by its own clock.
    """

    consumed: float
    stalled: bool
    late: float = 0.0


class DeviceTicks:
    """Groups the calls at one instant into ticks and follows what the executor holds. Times in pts units."""

    def __init__(self) -> None:
        self._now: float | None = None
        self._block = 0.0
        self._taken = 0.0
        self._clock = SlidingMin(CLOCK_UNITS)
        self.held = 0.0

    def call(self, now: float, held_units: float) -> Tick | None:
        """Note a call of ``next``; returns the tick when it is the first at its instant.

        Args:
            now: Time of the call.
            held_units: What the executor holds.
        """
        before, had = self._now, self.held
        self.held = held_units
        if before is not None and now == before:
            return None
        self._now = now
        if before is None:
            return Tick(0.0, True)
        consumed = max(0.0, had - held_units)
        stalled = now - before - consumed > STALL_UNITS
        if consumed:
            self._block = consumed
        if stalled:
            self._clock.restart()
        self._taken += consumed
        behind = now - self._taken
        return Tick(consumed, stalled, behind - self._clock.push(now, behind))

    def made(self, units: float) -> None:
        """The executor made `units`."""
        self.held += units

    @property
    def need(self) -> int:
        """Whole units that the executor lacks for its block, as far as can be told; 1 to 8."""
        lacking = self._block - self.held
        return max(1, min(MAX_PIECE_UNITS, round(lacking))) if lacking > 0.01 else 4

    @property
    def left(self) -> float:
        """Units that the executor holds when its block has been taken."""
        return max(0.0, self.held - self._block)
