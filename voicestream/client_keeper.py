"""Keeps a client's call alive: notices that its path is dead, dials beside it, and moves the session to what answers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Final

from voicestream.call_events import CallEvent
from voicestream.call_link import CallLink
from voicestream.call_parts import CallParts
from voicestream.call_state import Ending
from voicestream.config import Limits
from voicestream.core.path_watch import ATTEMPT_TIME
from voicestream.errors import ConnectError
from voicestream.quic.aio import ClientTransport
from voicestream.quic.configuration import ClientTls
from voicestream.quic.path_keeper import LOOK_INTERVAL, PathKeeper, Step
from voicestream.quic.tickets import CallTickets
from voicestream.quic.vacancy import Vacant
from voicestream.session import ClientSession
from voicestream.uri import CallUri, parse_uri

__all__ = ["Keeper", "Redial"]

logger = logging.getLogger("voicestream.client")


MAX_OTHERS: Final = 8
"""Servers remembered beside the one that is called."""

MAX_MOVES: Final = 5
MOVES_WITHIN: Final = 60.0
"""No more moves at servers' word in so many seconds. VS-5.2.3-1"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Redial:
    """Whom to dial when the path is lost; see `ClientTransport.dial`.

    Attributes:
        resume: Whether to dial at all.
        replay_ms: How much of what was received before is wanted once more then.
        timeout: Seconds without a path after which the call is given up; None for what the server grants.
        others: Servers that share sessions with this one, asked in turn.
        tickets: With which a server takes the request to resume before the handshake is complete; None to do without.
    """

    host: str
    port: int
    tls: ClientTls
    limits: Limits
    route_token: bytes | None = field(repr=False)
    resume: bool
    replay_ms: int
    timeout: float | None
    others: tuple[CallUri, ...] = ()
    tickets: CallTickets | None = field(default=None, repr=False)

    def at(self, target: CallUri, route_token: bytes | None = None) -> Redial:
        """The same at another server, whose certificate is to be for its own name."""
        tls = self.tls if self.tls.server_name != self.host else replace(self.tls, server_name=target.host)
        return replace(self, host=target.host, port=target.port, tls=tls, route_token=route_token)


class Keeper:
    """Looks after one call until it is over.

    Args:
        redial: Whom to dial.
        link: The call's hold on its connection; moved to each new one.
        parts: Are told how the path looks.
        ending: Of the call.
        transport: The first connection.
    """

    __slots__ = (
        "_dial", "_ending", "_fled", "_keeper", "_link", "_loop", "_moves", "_others", "_parts", "_redial", "_sent", "_session",
        "_transport",
    )  # fmt: skip

    def __init__(self, redial: Redial, link: CallLink, parts: CallParts, ending: Ending, transport: ClientTransport) -> None:
        self._redial = redial
        self._link = link
        self._parts = parts
        self._ending = ending
        self._transport = transport
        self._dial: asyncio.Task[ClientTransport] | None = None
        self._loop = asyncio.get_running_loop()
        self._moves: set[asyncio.Task[None]] = set()
        self._fled = False
        self._others = list(redial.others)
        self._sent: deque[float] = deque(maxlen=MAX_MOVES)
        with link.locked() as session:
            assert isinstance(session, ClientSession)
            self._session = session
            self._keeper = PathKeeper(
                session, chance=random.random, timeout=redial.timeout, replay_ms=redial.replay_ms, dials=redial.resume
            )

    def begin(self) -> None:
        """Look after the call from now on."""
        self._transport.connection.keeps_session = self._redial.resume
        self._parts.attendant = self._loop.create_task(self._run(), name="voicestream keeper")
        self._parts.on_network_changed = self.network_changed

    def network_changed(self, local_address: str | None = None) -> None:
        """See `Call.network_changed`. From any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, and the call with it
            self._loop.call_soon_threadsafe(self._begin_move, local_address)

    def _begin_move(self, local_address: str | None) -> None:
        if not self._ending.closed:
            move = self._loop.create_task(self._move(local_address), name="voicestream move")
            self._moves.add(move)
            move.add_done_callback(self._moves.discard)

    async def _move(self, local_address: str | None) -> None:
        """Go on from a new socket, and dial at once where the path is lost already."""
        transport = self._transport
        if self._redial.tickets is not None:
            self._redial.tickets.network_changed()
        try:
            await transport.rebind(local_address)
        except OSError as error:
            # Not from there: the server of this family may be out of reach, and a dial tries all of its addresses.
            logger.debug("the socket could not be bound anew: %s", error)
        if self._ending.closed:
            return
        with self._link.locked():
            steps = self._keeper.network_changed(self._link.now(), self._transport.connection)
        self._record_move()
        self._transport.wake()
        self._do(steps)

    def _record_move(self) -> None:
        observer = self._parts.options.observer
        if observer is not None:
            with self._link.locked():
                observer.record(self._link.now(), "path:network_changed", {"reason": "told" if not self._fled else "socket error"})

    async def _run(self) -> None:
        try:
            while not await self._ending.wait_for(LOOK_INTERVAL):
                self._look()
        finally:
            tasks = [*self._moves] if self._dial is None else [self._dial, *self._moves]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            # What was cancelled remembers where, and there is all of the call.
            self._dial = None
            tasks.clear()
            with self._link.locked() as session:
                carried: object = self._transport.connection.session
                is_left = session.is_closed and carried is not session
            if is_left:
                self._transport.drop()

    def _look(self) -> None:
        self._see_to_dial()
        transport = self._transport
        if transport.is_unreachable is not self._fled:
            # A socket that finds no way gives its place to a new one, once; the dial is beside that.
            self._fled = not self._fled
            if self._fled:
                self._begin_move(None)
        with self._link.locked() as session:
            steps = self._keeper.look(self._link.now(), transport.connection, error=transport.is_unreachable)
            is_alone = session.is_detached or session.is_closed
        if is_alone:
            self._parts.pump()
        if steps or self._keeper.has_probed:
            transport.wake()
        self._do(steps)

    def _do(self, steps: list[Step]) -> None:
        for step in steps:
            if self._ending.closed and step is not Step.STOP_DIAL:
                return
            self._record(step)
            if step is Step.DIAL:
                if self._keeper.watch.attempts == 1:
                    self._parts.inbox.put(CallEvent(kind="resuming"))
                self._dial = self._loop.create_task(self._connect(), name="voicestream redial")
            elif step is Step.STOP_DIAL:
                self._stop_dial()
            elif step is Step.LOST:
                self._parts.tell_lost(self._keeper.watch.lost_since)
            elif step is not Step.GAVE_UP:
                self._parts.tell_path(step.value)

    def _record(self, step: Step) -> None:
        observer = self._parts.options.observer
        if observer is None:
            return
        watch = self._keeper.watch
        with self._link.locked():
            now = self._link.now()
            if step is Step.DIAL:
                observer.record(now, "path:dial", {"attempt": watch.attempts, "reason": "the path is lost"})
            elif step is Step.STOP_DIAL:
                observer.record(now, "path:dial_stopped", {"attempt": watch.attempts, "reason": "no answer, or none is needed"})
            else:
                observer.record(now, "path:state", {"state": step.value, "dials": watch.attempts})

    def _stop_dial(self) -> None:
        if self._dial is not None:
            self._dial.cancel()
            self._dial = None
        transport = self._transport
        if isinstance(transport.connection.session, Vacant):
            # Asked on this connection, and there was no answer: nor shall the question come late.
            transport.drop()

    def _see_to_dial(self) -> None:
        dial = self._dial
        if dial is None or not dial.done():
            return
        self._dial = None
        if dial.cancelled() or dial.exception() is not None:
            logger.debug("the dial for a resumption failed: %s", None if dial.cancelled() else dial.exception())
            with self._link.locked():
                if self._parts.options.observer is not None:
                    self._parts.options.observer.record(self._link.now(), "path:dial_failed", {"attempt": self._keeper.watch.attempts})
                steps = self._keeper.dial_failed(self._link.now(), self._transport.connection)
            self._do(steps)

    async def _connect(self) -> ClientTransport:
        """Dial; the session moves when the handshake is complete, and only then."""
        redial = self._choose()
        try:
            new = await ClientTransport.dial(
                redial.host,
                redial.port,
                tls=redial.tls,
                session=self._keeper.pending(lambda: self._transport.connection),
                limits=redial.limits,
                route_token=redial.route_token,
                open_timeout=ATTEMPT_TIME,
                lock=self._transport.lock,
                tickets=redial.tickets,
            )
        except OSError as exc:
            raise ConnectError(str(exc)) from exc
        self._moved(redial)
        old, self._transport = self._transport, new
        new.connection.keeps_session = True
        self._link.move(new)
        new.on_activity = lambda _: self._parts.pump()
        old.drop()
        self._parts.pump()
        new.wake()
        return new

    def _choose(self) -> Redial:
        """Whom to dial: where the server sends us, or the server itself and those beside it in turn."""
        session, redial = self._session, self._redial
        with self._link.locked():
            place, session.sent_to, session.moving_to = session.sent_to, None, None
            target = None if place is None else self._sent_to(place.uri)
            if place is not None and target is not None:
                session.moving_to = place
                return redial.at(target, place.route_token)
        turn = (self._keeper.watch.attempts - 1) % (1 + len(self._others))
        return redial if turn == 0 else redial.at(self._others[turn - 1])

    def _sent_to(self, uri: str | None) -> CallUri | None:
        """Where that is; it is remembered. None if it is nowhere, or when servers send us from one to the other."""
        here = CallUri(host=self._redial.host, port=self._redial.port, path="/")
        now = self._link.now()
        if len(self._sent) == self._sent.maxlen and now - self._sent[0] < MOVES_WITHIN:
            logger.warning("servers send this call from one to another; it stays where it is")
            return None
        try:
            target = here if uri is None else parse_uri(uri)
        except ValueError as error:
            logger.warning("the server names a place that is none: %s", error)
            return None
        self._sent.append(now)
        if all(one.authority != target.authority for one in (here, *self._others)):
            self._others = [target, *self._others][:MAX_OTHERS]
        return target

    def _moved(self, home: Redial) -> None:
        """The session is at this server now; the one that had it may be called again."""
        before, self._redial = self._redial, home
        if (before.host, before.port) != (home.host, home.port):
            self._others = [one for one in self._others if (one.host, one.port) != (home.host, home.port)]
            self._others = [*self._others, CallUri(host=before.host, port=before.port, path="/")][-MAX_OTHERS:]
