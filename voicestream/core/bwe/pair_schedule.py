"""When to measure the path with a pair."""

from __future__ import annotations

from typing import Final

__all__ = ["PairSchedule"]

SOONEST: Final = 0.1
"""Seconds from one pair to the next at least."""

START: Final = 1.0
"""Seconds at the beginning in which pairs follow one another quickly."""


class PairSchedule:
    """Often while much is unknown or much is to be gained, seldom where headers are dear."""

    __slots__ = ("_at",)

    def __init__(self) -> None:
        self._at = -1.0

    def paired(self, now: float) -> None:
        """A pair leaves."""
        self._at = now

    def may_be_due(self, now: float) -> bool:
        """Whether `due` could be true whatever else it is told: most datagrams come much too soon after a pair."""
        return now - self._at >= SOONEST

    def due(self, now: float, since_start: float | None, *, rising: bool, faster: bool, target_bps: float) -> bool:
        """Whether the next one should leave.

        Args:
            now: Monotonic seconds.
            since_start: Seconds since the first datagram; None before.
            rising: The rate is below what there is use for and nothing stands against more.
            faster: One pair has told of a faster link.
            target_bps: The rate.
        """
        if since_start is None or since_start < START:
            interval = SOONEST
        elif faster:
            interval = 0.2
        elif rising:
            interval = 0.3
        else:
            interval = 0.5 if target_bps > 30000 else 0.8
        return now - self._at >= interval
