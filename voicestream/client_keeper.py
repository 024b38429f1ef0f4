"""Keeps a client's call alive: notices that its path is dead, dials beside it, and moves the session to what answers."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from voicestream.call_events import CallEvent
from voicestream.call_link import CallLink
from voicestream.call_parts import CallParts
from voicestream.call_state import Ending
from voicestream.config import Limits
from voicestream.core.path_watch import ATTEMPT_TIME, PathState, PathWatch
from voicestream.errors import ConnectError
from voicestream.quic.aio import ClientTransport
from voicestream.quic.configuration import ClientTls
from voicestream.quic.streams import SessionPort
from voicestream.quic.vacancy import Pending, Vacant
from voicestream.session import ClientSession

__all__ = ["Keeper", "Redial"]

logger = logging.getLogger("voicestream.client")

LOOK_INTERVAL: Final = 0.1
"""Seconds between two looks at the path."""

@dataclass(frozen=True, kw_only=True, slots=True)
class Redial:
    """Whom to dial when the path is lost; see `ClientTransport.dial`. `replay_ms` is wanted once more then."""

    host: str
    port: int
    tls: ClientTls
    limits: Limits
    route_token: bytes | None
    replay_ms: int


class Keeper:
    """Looks after one call until it is over.

    Args:
        redial: Whom to dial.
        link: The call's hold on its connection; moved to each new one.
        parts: Are told how the path looks.
        ending: Of the call.
        transport: The first connection.
    """

    __slots__ = ("_dial", "_ending", "_generation", "_link", "_parts", "_redial", "_transport", "_watch")

    def __init__(self, redial: Redial, link: CallLink, parts: CallParts, ending: Ending, transport: ClientTransport) -> None:
        self._redial = redial
        self._link = link
        self._parts = parts
        self._ending = ending
        self._transport = transport
        self._watch = PathWatch()
        self._generation = 0
        self._dial: asyncio.Task[ClientTransport] | None = None

    def begin(self) -> None:
        """Look after the call from now on."""
        self._transport.connection.keeps_session = True
        self._parts.attendant = asyncio.get_running_loop().create_task(self._run(), name="voicestream keeper")

    async def _run(self) -> None:
        try:
            while not await self._ending.wait_for(LOOK_INTERVAL):
                self._look()
        finally:
            if self._dial is not None:
                self._dial.cancel()
                await asyncio.wait([self._dial])
            if self._link.is_over and self._transport.connection.session is not self._session:
                self._transport.drop()

    @property
    def _session(self) -> ClientSession:
        with self._link.locked() as session:
            assert isinstance(session, ClientSession)
            return session

    def _look(self) -> None:
        watch, now = self._watch, self._link.now()
        with self._link.locked() as session:
            if session.is_detached:
                session.handle_timer(now)
            connection = self._transport.connection
            broken = session.is_detached or connection.is_closed
            unanswered_since = connection.hearing.unanswered_since
            generation = 0 if session.grant is None else session.grant.generation
            is_open = session.is_open
        if broken:
            self._parts.pump()
        if is_open and generation > self._generation:
            self._generation = generation
            watch.resumed()
        if self._ending.closed:
            return
        if watch.look(now, unanswered_since, broken=broken):
            self._tell(unanswered_since)
        self._see_to_dial(now)

    @property
    def _is_between(self) -> bool:
        """Whether the session has gone to a connection whose dial will be done in a moment."""
        carried: object = self._transport.connection.session
        return self._dial is not None and self._session.is_detached and carried is not self._session and not self._dial.done()

    def _tell(self, since: float | None) -> None:
        state = self._watch.state
        if state is PathState.LOST:
            self._parts.tell_lost(since)
        else:
            self._parts.inbox.put(CallEvent(kind=state.value))

    def _see_to_dial(self, now: float) -> None:
        watch, dial = self._watch, self._dial
        if dial is not None and dial.done():
            self._dial = None
            if dial.cancelled() or dial.exception() is not None:
                logger.debug("the dial for a resumption failed: %s", None if dial.cancelled() else dial.exception())
                self._failed(now)
        elif watch.timed_out(now) and not self._is_between:
            if dial is not None:
                dial.cancel()
                self._dial = None
            self._failed(now)
        if watch.dial_due(now) and not self._link.is_over:
            watch.dialled(now)
            if watch.attempts == 1:
                self._parts.inbox.put(CallEvent(kind="resuming"))
            self._dial = asyncio.get_running_loop().create_task(self._connect(), name="voicestream redial")

    def _failed(self, now: float) -> None:
        with self._link.locked() as session:
            if session.is_detached:
                # Asked on a connection that brought no answer: the next one asks again.
                session.path_lost(now)
                self._transport.connection.abandon()
        self._watch.failed(now)
        if self._watch.state is PathState.CONNECTED:
            self._parts.lost_at = None
            self._tell(None)

    async def _connect(self) -> ClientTransport:
        """Dial; the session moves when the handshake is complete, and only then."""
        redial = self._redial
        try:
            new = await ClientTransport.dial(
                redial.host,
                redial.port,
                tls=redial.tls,
                session=Pending(self._take_up),
                limits=redial.limits,
                route_token=redial.route_token,
                open_timeout=ATTEMPT_TIME,
                lock=self._transport.lock,
            )
        except OSError as exc:
            raise ConnectError(str(exc)) from exc
        old, self._transport = self._transport, new
        new.connection.keeps_session = True
        self._link.move(new)
        new.on_activity = lambda _: self._parts.pump()
        old.drop()
        self._parts.pump()
        new.wake()
        return new

    def _take_up(self, now: float) -> SessionPort:
        """Called by the new connection with the lock held."""
        session = self._session
        if session.is_closed:
            return Vacant()
        session.path_lost(now)
        session.resume_on_new_connection(now, replay_ms=self._redial.replay_ms)
        self._transport.connection.abandon()
        return session
