"""The pause that empties a long queue sooner than less speech would."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["LONGEST", "Pause"]

LONG_QUEUE: Final = 0.35
"""Seconds of queue from which a pause is better than to go on with less: speech behind it would come too late to be of use."""

SEEN_QUEUE: Final = 0.15
"""Seconds that datagrams must have been seen to wait, where the rate at which they leave is known, before the rest is guessed."""

LONG_DRAIN: Final = 1.8
"""Seconds that less speech would take to empty the queue, from which a pause is better than that, too."""

SHORT_QUEUE: Final = 0.08
"""Seconds of queue at which speech goes on after it."""

LONGEST: Final = 1.4
"""Seconds of one pause at most."""

IN_VAIN: Final = 30.0
"""Seconds without guesses after a pause that has emptied nothing: others keep the queue."""

STILL: Final = 0.5
"""Part of the queue that must not be left after a pause."""


class Pause:
    """Decides on it, once for each queue.

    Attributes:
        until: Nothing that can wait should leave before.
        may_begin: Another queue has formed.
    """

    __slots__ = ("_began_at", "_expected", "_no_guess_until", "may_begin", "until")

    def __init__(self) -> None:
        self.until = -math.inf
        self.may_begin = True
        self._began_at = -math.inf
        self._expected: float | None = None  # the queue when the pause under way, or that before, began
        self._no_guess_until = -math.inf

    def update(self, now: float, backlog: float, wait: float, told_to: float, *, drains_in: float | None) -> None:
        """A report came while a queue is drained.

        Args:
            now: Monotonic seconds.
            backlog: Seconds that the path needs for what waits on it, by what is known of its rate.
            wait: Seconds that the newest datagram that arrived had waited.
            told_to: When that one left.
            drains_in: Seconds in which the queue would be empty without a pause; None where the rate was not read off datagrams that
                waited, so that how long the queue is has to be seen.
        """
        is_known = drains_in is not None and now >= self._no_guess_until
        if now < self.until:
            if wait < SHORT_QUEUE:
                self.until = now
            else:
                most = min(self._began_at + LONGEST, now + max(0.0, backlog - SHORT_QUEUE))
                self.until = max(self.until, most) if is_known and most > self.until else min(self.until, most)
        elif self._expected is not None and told_to > self.until:
            if wait > STILL * self._expected:
                self._no_guess_until = now + IN_VAIN
            self._expected = None
        guessed = is_known and wait > SEEN_QUEUE and (drains_in or 0.0) > LONG_DRAIN
        if self.may_begin and (guessed or min(wait, backlog) > LONG_QUEUE):
            self.may_begin = False
            self._began_at, self._expected = now, backlog
            self.until = now + min(LONGEST, backlog - SHORT_QUEUE)
