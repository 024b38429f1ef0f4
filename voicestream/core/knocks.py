"""Asking a path that has gone silent for a sign of life, so that its return is noticed soon."""

from __future__ import annotations

from typing import Final

__all__ = ["Knocks"]

SHORTEST: Final = 0.1
"""Seconds between two questions at first: a datagram with nothing in it, 5 kbps on the wire."""

WITH_SPEECH: Final = 0.05
"""Seconds after one at which the next may leave where there is something new to say: it is then live speech that arrives first."""

LONGEST: Final = 0.5
"""Seconds between two of them in the end."""

GROWTH: Final = 600
"""One part in so many of the silence is the time between two questions, within these bounds: from a minute on they come slower."""


class Knocks:
    """Decides when the far end is asked for an answer while nothing comes from it and audio leaves no other way."""

    __slots__ = ("_asked_at", "_next_at", "_often", "_since")

    def __init__(self) -> None:
        self._since: float | None = None
        self._asked_at = self._next_at = 0.0
        self._often = True

    def due(self, now: float, *, silent: bool, speech: bool = False) -> bool:
        """Whether a question should leave now; it counts as having left then.

        Args:
            now: Monotonic seconds.
            silent: The far end owes an answer, and this end has stopped its audio for that.
            speech: A frame waits that the question would carry.
        """
        if not silent:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        elif now < self._next_at and not (speech and self._often and now >= self._asked_at + WITH_SPEECH):
            return False
        pause = min(LONGEST, max(SHORTEST, (now - self._since) / GROWTH))
        self._often = pause == SHORTEST
        self._asked_at = now
        self._next_at = now + pause
        return True

    def next_timer(self) -> float | None:
        """When the next question is due, or None."""
        return None if self._since is None else self._next_at
