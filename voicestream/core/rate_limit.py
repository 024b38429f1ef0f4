"""A bound on how often the peer may do something (specification section 14, VS-14-1)."""

from __future__ import annotations

from typing import Final

__all__ = ["WINDOW", "RateLimit"]

WINDOW: Final = 10.0
"""Seconds over which the mean is taken by default: a burst of so many seconds' worth is allowed."""


class RateLimit:
    """A token bucket.

    Args:
        per_second: Mean rate that is allowed.
        window: Seconds over which the mean is taken.
    """

    __slots__ = ("_at", "_most", "_per_second", "_tokens")

    def __init__(self, per_second: float, window: float = WINDOW) -> None:
        self._per_second = per_second
        self._most = self._tokens = per_second * window
        self._at: float | None = None

    def allow(self, now: float, cost: float = 1) -> bool:
        """Count one more, or `cost` of them; False when it is too much, which is not counted then."""
        if self._at is not None:
            self._tokens = min(self._most, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        if self._tokens < cost:
            return False
        self._tokens -= cost
        return True

    def spend(self, cost: float) -> None:
        """Count what has been done already; `allow` makes up for it."""
        self._tokens -= cost
