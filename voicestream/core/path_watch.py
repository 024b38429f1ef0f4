"""When a client takes its path for dead, and when it dials anew: no sooner than it must, and neither too often nor for ever."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final

__all__ = ["DEGRADED_AFTER", "LOST_AFTER", "PathState", "PathWatch"]

DEGRADED_AFTER: Final = 0.6
"""Seconds without an answer after which the path is called degraded."""

LOST_AFTER: Final = 2.0
"""Seconds without an answer after which another connection is dialled, beside the old one."""

MOVED_AFTER: Final = 0.6
"""The same after this machine has changed its network: the old way is likely to be gone, and the new one answers soon or never."""

FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 2.0
"""Seconds between a dial that failed and the next one: they double, and vary by chance."""

ATTEMPT_TIME: Final = 4.0
"""Seconds that one dial gets."""


NEARLY: Final = 0.25
"""Seconds before the end of its time at which a dial that fails has had it: its owner's clock runs from a little earlier."""

YOUNG_DIALS: Final = 15
"""Dials of a lost path that repeat their first packet more often, a minute of them."""


class PathState(enum.Enum):
    """How the path to the far end looks."""

    CONNECTED = "connected"
    DEGRADED = "degraded"
    LOST = "lost"


class PathWatch:
    """Watches one session's path.

    A path that was lost stays so until the session has been resumed on a new connection, even when the old one answers again:
    only a resumption brings what was missed. Should it not come about although the far end can be heard, the old path serves on.

    Args:
        chance: Gives numbers from 0 to 1; the pauses of many clients that one server has lost must not be the same.

    Attributes:
        state: How it looks.
        attempts: Dials since the path was lost.
        lost_since: Since when nothing has been heard, while it is lost.
    """

    __slots__ = ("_answered", "_chance", "_dialling_until", "_moved_at", "_next_at", "_pause", "_sure", "attempts", "lost_since", "state")

    def __init__(self, chance: Callable[[], float] = lambda: 1.0) -> None:
        self.state = PathState.CONNECTED
        self.attempts = 0
        self.lost_since: float | None = None
        self._chance = chance
        self._next_at = 0.0
        self._pause = FIRST_PAUSE
        self._dialling_until: float | None = None
        self._answered = False
        self._sure = False
        self._moved_at: float | None = None

    def look(self, now: float, unanswered_since: float | None, *, broken: bool = False) -> bool:
        """Look at the path; returns whether `state` changed.

        Args:
            now: Monotonic seconds.
            unanswered_since: Since when the far end has owed an answer, or None.
            broken: The connection is over, or its socket reports an error.
        """
        silence = 0.0 if unanswered_since is None else now - unanswered_since
        before = self.state
        if self._moved_at is not None and (unanswered_since is None or unanswered_since > self._moved_at):
            self._moved_at = None  # the new network has carried an answer
        gone = self._moved_at is not None and now - self._moved_at >= MOVED_AFTER
        if broken or gone or silence >= LOST_AFTER:
            self._answered = self._sure = False  # what a dial that began while it answered proves is nothing any more
            self.state = PathState.LOST
            if before is not PathState.LOST:
                self._begin(now, now - silence)
        elif before is PathState.LOST:
            if silence < DEGRADED_AFTER and not self._answered:
                self._answered = True
                self.hurry(now)
        else:
            self.state = PathState.DEGRADED if silence >= DEGRADED_AFTER else PathState.CONNECTED
        return self.state is not before

    def leave(self, now: float) -> None:
        """The far end wants the session elsewhere: another connection is dialled although the path is well.

        It serves on until that is there, and afterwards if nothing comes of it.
        """
        self.state = PathState.LOST
        self._begin(now, now)

    @property
    def is_answered(self) -> bool:
        """Whether a path that was lost answers again."""
        return self.state is PathState.LOST and self._answered

    def dial_due(self, now: float) -> bool:
        """Whether a new connection should be dialled now; call `dialled` then."""
        return self.state is PathState.LOST and self._dialling_until is None and now >= self._next_at

    def dialled(self, now: float) -> None:
        """A dial begins."""
        self.attempts += 1
        self._dialling_until = now + ATTEMPT_TIME
        self._sure = self._answered

    def timed_out(self, now: float) -> bool:
        """Whether the dial under way has had its time; call `failed` then."""
        return self._dialling_until is not None and now >= self._dialling_until

    def moved(self, now: float) -> None:
        """The session has left its old path for one that was dialled: there is nothing to go back to. The answer has its own time."""
        self._answered = self._sure = False
        if self._dialling_until is not None:
            self._dialling_until = now + ATTEMPT_TIME

    def failed(self, now: float, retry_after: float = 0.0) -> None:
        """The dial came to nothing, or the session was refused; the far end wants the next one `retry_after` seconds from now at least.

        After a dial that had its time without an answer there is no pause: it repeats its first packet at a rate that is bounded by
        itself, and the path may come back at any moment. What was answered, or failed at once, is tried again with growing pauses.
        """
        if self._sure and self._answered:
            self.resumed()
            return
        if self.timed_out(now + NEARLY) and not retry_after:
            self._dialling_until = None
            self._next_at = now
            return
        self._dialling_until = None
        self._next_at = now if self._answered else now + self._pause * (0.5 + 0.5 * self._chance())
        self._next_at = max(self._next_at, now + retry_after)
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)

    def resumed(self) -> None:
        """The session goes on."""
        self.state = PathState.CONNECTED
        self.lost_since = None
        self._dialling_until = None

    def network_changed(self, now: float) -> bool:
        """This machine has another network. A lost path is dialled at once; any other has to answer soon.

        Returns:
            Whether a dial that is under way, on the network that was left, is to be given up.
        """
        if self.state is not PathState.LOST:
            self._moved_at = now
            return False
        under_way = self._dialling_until is not None
        self._dialling_until = None
        self._next_at = now
        self._pause = FIRST_PAUSE
        return under_way

    @property
    def is_young(self) -> bool:
        """Whether the path has not been lost for so long that it should be tried less often."""
        return self.attempts <= YOUNG_DIALS

    def hurry(self, now: float) -> None:
        """The network is there again: the next dial need not wait. One that is under way goes on if it has time enough left."""
        self._next_at = min(self._next_at, now)
        self._pause = FIRST_PAUSE
        if self._dialling_until is not None:
            if self._dialling_until - now >= ATTEMPT_TIME / 2:
                self._sure = True
            else:
                self._dialling_until = now

    def _begin(self, now: float, since: float) -> None:
        self._moved_at = None
        self.attempts = 0
        self.lost_since = since
        self._answered = self._sure = False
        self._pause = FIRST_PAUSE
        self._next_at = now
        self._dialling_until = None
