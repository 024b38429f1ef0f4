"""Traffic that keeps a queue which does not answer to us: TCP, as a rule."""

from __future__ import annotations

from typing import Final

__all__ = ["PART", "Rivals"]

MEMORY: Final = 30.0
"""Seconds for which competition is taken for given after it was last seen; then the queue counts again, to see whether it is gone."""

NEAR: Final = 12.0
"""Seconds within which two signs mean competition."""

PEAK: Final = 0.1
"""Seconds of queue that flows like ours do not build beside us, and those in the manner of TCP do."""

PART: Final = 1.6
"""A link that is so much faster than what arrives of ours carries others as well."""

EMPTY: Final = 0.015
"""Seconds of queue that count as none."""

GONE: Final = 3.0
"""Seconds without any queue after which nobody competes any more."""


class Rivals:
    """Whether others compete, and what is a fair part beside them."""

    __slots__ = ("_clear_since", "_sign_at", "_until")

    def __init__(self) -> None:
        self._sign_at = float("-inf")
        self._until = float("-inf")
        self._clear_since: float | None = None

    def sign(self, now: float) -> None:
        """A queue did not answer. Once may be a longer route, twice is competition."""
        if now - self._sign_at < NEAR or self.compete(now):
            self._until = now + MEMORY
        self._sign_at = now
        self._clear_since = None

    def drained(self, now: float, peak: float, share: float, pair: float | None) -> None:
        """A queue of ours has been emptied: `peak` seconds at its longest, while so much of ours arrived on a link that fast."""
        if peak > PEAK and pair is not None and pair > PART * share:
            self.sign(now)

    def update(self, now: float, queue: float) -> None:
        """The queue is so long now."""
        if queue > EMPTY:
            self._clear_since = None
        elif self._clear_since is None:
            self._clear_since = now
        elif now - self._clear_since > GONE:
            self._until = self._sign_at = float("-inf")

    def compete(self, now: float) -> bool:
        """Whether they do."""
        return now < self._until
