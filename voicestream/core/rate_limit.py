"""A bound on how often the peer may do something (specification section 14)."""

from __future__ import annotations

from typing import Final

__all__ = ["WINDOW", "RateLimit"]

WINDOW: Final = 10.0
"""Seconds over which the mean is taken: a burst of so many seconds' worth is allowed."""


class RateLimit:
    """A token bucket.

    Args:
        per_second: Mean rate that is allowed.
    """

    __slots__ = ("_at", "_per_second", "_tokens")

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._tokens = per_second * WINDOW
        self._at: float | None = None

    def allow(self, now: float) -> bool:
        """Count one more; False when it is one too many."""
        if self._at is not None:
            self._tokens = min(self._per_second * WINDOW, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
