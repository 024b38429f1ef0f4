"""Keeps a client's session on a path that carries it: what to tell, when to dial, when to stop. The owner has the sockets and does it.

The owner calls `look` every `LOOK_INTERVAL` seconds and does what it says. It dials with `keeper.pending(...)` in
place of a session, so that the session moves when the new connection's handshake is complete, and not before: until then the old
path is listened to.

Where the client holds a ticket of the server, the request to resume travels with the first packet (0-RTT; VS-11.3-8). The session still
moves when the handshake is complete, and what the old path brings until then is taken; the request says what was held when it left, so
some of that comes once more, and is known by its pts.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final

from voicestream.codepoints import ErrorCode
from voicestream.core.lifecycle import State
from voicestream.core.path_watch import LOST_AFTER, PathState, PathWatch
from voicestream.quic.connection import Connection
from voicestream.quic.streams import SessionPort
from voicestream.quic.vacancy import Asked, Pending, Vacant
from voicestream.session import ClientSession

__all__ = ["LOOK_INTERVAL", "PathKeeper", "Step"]

LOOK_INTERVAL: Final = 0.1
"""Seconds between two looks at the path."""

PROBE_AFTER: Final = 0.25
"""Seconds of silence, where audio should come, after which the far end is asked for an answer."""

FIRST_MOVE_PAUSE: Final = 0.5
LONGEST_MOVE_PAUSE: Final = 8.0
"""Seconds between two attempts to follow a server's word that the session should go elsewhere; they double."""

MOVE_SPREAD: Final = 0.5
"""Seconds, by chance, before the first one: all clients of a server hear of it at once."""

STALE_AFTER: Final = 20.0
"""Seconds without an answer after which the far end has let the old connection go, or soon will: a dial alone notices the path's return."""

ANSWER_TIME: Final = 10.0
"""Seconds that a server which can be heard gets to answer a resumption: it checks who asks."""


class Step(enum.Enum):
    """What the owner is to do."""

    CONNECTED = "connected"
    """Tell the application that the path answers again."""
    DEGRADED = "degraded"
    """Tell it that the path does not answer."""
    LOST = "lost"
    """Tell it that the path is taken for dead."""
    STOP_DIAL = "stop dial"
    """Forget the connection that is being dialled, or that brought no answer to the resumption."""
    DIAL = "dial"
    """Dial another connection."""
    GAVE_UP = "gave up"
    """The session has ended; nothing else is to be done."""


class PathKeeper:
    """Looks after the path of one session.

    Args:
        session: The client's, open.
        chance: Gives numbers from 0 to 1.
        timeout: Seconds without a path after which the session is given up; that of the server is the upper bound.
        replay_ms: How much of what was received before a break is wanted once more.
        dials: Whether there is anybody who dials; without, the state of the path is told all the same.

    Attributes:
        watch: What is thought of the path.
        has_probed: The last look had the connection ask for an answer, which is to be sent.
    """

    __slots__ = (
        "_asked_at", "_awaited", "_chance", "_dials", "_generation", "_left", "_looked_at", "_move_at", "_move_pause", "_replay_ms",
        "_session", "_timeout", "has_probed", "watch",
    )  # fmt: skip

    def __init__(
        self,
        session: ClientSession,
        *,
        chance: Callable[[], float],
        timeout: float | None = None,
        replay_ms: int = 0,
        dials: bool = True,
    ) -> None:
        self.watch = PathWatch(chance)
        self._chance = chance
        self._move_at: float | None = None
        self._move_pause = FIRST_MOVE_PAUSE
        self._session = session
        session.moves = dials
        self._timeout = timeout
        self._replay_ms = replay_ms
        self._dials = dials
        self._generation = 0 if session.grant is None else session.grant.generation
        self._asked_at: float | None = None
        self._awaited = 0
        self._left: Connection | None = None
        self._looked_at = 0.0
        self.has_probed = False

    def take_up(self, old: Connection, now: float, *, has_asked: bool = False) -> SessionPort:
        """The handshake of a new connection is complete: the session leaves `old` for it and asks to be resumed there, if it has not."""
        session = self._session
        if session.is_closed:
            return Vacant()
        session.path_lost(now)
        session.resume_on_new_connection(now, replay_ms=self._replay_ms, has_asked=has_asked)
        old.abandon()
        self.watch.moved(now)
        self._left = old
        self._asked_at = now
        return session

    def pending(self, old: Callable[[], Connection]) -> Pending:
        """What a dial carries in place of the session. `old` gives the connection that the session is on then.

        A dial that has been given up gets nothing, even where the end of its handshake comes before its owner has closed it: the
        session would end with it.
        """
        connection = old()
        since = self.watch.lost_since
        is_stale = since is not None and self._looked_at - since >= STALE_AFTER
        is_urgent = self.watch.is_young and (connection.is_closed or self._session.is_detached or is_stale)
        self._awaited += 1
        number = self._awaited

        asked = Asked()

        def take_up(now: float) -> SessionPort:
            return self.take_up(old(), now, has_asked=asked.done) if number == self._awaited else Vacant()

        return Pending(take_up, is_urgent=is_urgent, ask=lambda now: self._session.request(self._replay_ms, now), asked=asked)

    def look(self, now: float, connection: Connection, *, error: bool = False) -> list[Step]:
        """Look at the path.

        Args:
            now: Monotonic seconds.
            connection: The one that the session is or was on.
            error: Its socket says that there is no way.

        Returns:
            What is to be done, in this order.
        """
        session, watch = self._session, self.watch
        self.has_probed = False
        self._looked_at = now
        if connection is self._left:
            return []  # it has just moved, and its owner has not noticed
        if session.is_detached:
            session.handle_timer(now)
        if session.is_closed:
            return []
        self._note_resumed()
        since = self._silent_since(now, connection)
        steps: list[Step] = []
        self._follow(now)
        if watch.look(now, since, broken=error or session.is_detached or connection.is_closed):
            steps.append(Step(watch.state.value))
        if not self._dials and watch.is_answered:
            watch.resumed()
            steps.append(Step.CONNECTED)
        if self._is_over(now):
            session.close(now, ErrorCode.PATH_LOST, "the session was not resumed in time")
            return [*steps, Step.GAVE_UP]
        refused = self._asked_at is not None and session.state is State.DETACHED
        if refused or (watch.timed_out(now) and not self._is_being_answered(now, connection)):
            steps.append(Step.STOP_DIAL)
            steps += self.dial_failed(now, connection)
        return [*steps, *self._dial(now)]

    def _dial(self, now: float) -> list[Step]:
        if not self._dials or not self.watch.dial_due(now):
            return []
        self.watch.dialled(now)
        return [Step.DIAL]

    def network_changed(self, now: float, connection: Connection) -> list[Step]:
        """This machine has another network: a lost path is dialled at once, any other is asked whether it answers from there.

        The owner has bound `connection` to a new socket before, if it could, and sends what is due.
        """
        session, watch = self._session, self.watch
        self.has_probed = False
        if session.is_closed or connection is self._left:
            return []  # over, or just moved, and its owner has not noticed
        steps: list[Step] = []
        if watch.network_changed(now):
            steps.append(Step.STOP_DIAL)
            self._leave_unanswered(now, connection)
        if not connection.is_closed:
            connection.probe()
            self.has_probed = True
        return [*steps, *self._dial(now)]

    def _follow(self, now: float) -> None:
        """The server has said that the session should go on elsewhere (VS-11.2-2): not all clients at once."""
        session = self._session
        if session.sent_to is None or not self._dials:
            if session.moving_to is None:
                self._move_at = None
                self._move_pause = FIRST_MOVE_PAUSE
        elif self._move_at is None:
            self._move_at = now + session.retry_after + MOVE_SPREAD * self._chance()
        elif now >= self._move_at and session.is_open and self.watch.state is not PathState.LOST:
            self._move_at = now + self._move_pause
            self._move_pause = min(LONGEST_MOVE_PAUSE, 2 * self._move_pause)
            self.watch.leave(now)

    def dial_failed(self, now: float, connection: Connection) -> list[Step]:
        """A dial came to nothing, or the session got no answer on the new `connection`."""
        session, watch = self._session, self.watch
        self._leave_unanswered(now, connection)
        watch.failed(now, session.retry_after)
        session.retry_after = 0.0
        if watch.state is not PathState.CONNECTED:
            return []
        if session.moving_to is not None:
            # The server that wants to be left still serves; it will be tried again.
            session.sent_to = session.sent_to or session.moving_to
            session.moving_to = None
        return [Step.CONNECTED]

    def _leave_unanswered(self, now: float, connection: Connection) -> None:
        """The session has asked for its resumption on a connection that is given up; the next one asks again."""
        session = self._session
        self._asked_at = None
        self._awaited += 1
        carried: object = connection.session
        if session.state is State.RESUMING or (session.state is State.DETACHED and carried is session):
            session.path_lost(now)
            connection.abandon()

    def _note_resumed(self) -> None:
        grant = self._session.grant
        if grant is not None and self._session.is_open and grant.generation > self._generation:
            self._generation = grant.generation
            self._session.moving_to = None
            self._asked_at = self._left = None
            self.watch.resumed()

    def _silent_since(self, now: float, connection: Connection) -> float | None:
        hearing = connection.hearing
        if hearing.unanswered_since is None and self._session.awaits_media and now - hearing.heard_at >= PROBE_AFTER:
            connection.probe()
            self.has_probed = True
        return hearing.unanswered_since

    def _is_being_answered(self, now: float, connection: Connection) -> bool:
        """Whether the new connection can be heard, so that an answer to the resumption is likely to come."""
        if self._asked_at is None or now - self._asked_at >= ANSWER_TIME or connection.is_closed:
            return False
        since = connection.hearing.unanswered_since
        return self._session.state is State.RESUMING and (since is None or now - since < LOST_AFTER)

    def _is_over(self, now: float) -> bool:
        since, grant = self.watch.lost_since, self._session.grant
        if since is None or grant is None or not self._dials:
            return False
        return now - since >= (grant.lifetime if self._timeout is None else min(self._timeout, grant.lifetime))
