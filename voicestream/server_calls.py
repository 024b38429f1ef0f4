"""All calls of a server: where they come in, who sees them through, and how they end together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Final, cast

from voicestream.call import Call
from voicestream.call_figures import CallFigures
from voicestream.call_link import CallLink
from voicestream.call_state import Ending
from voicestream.codepoints import ErrorCode
from voicestream.core.resume import TokenSealer
from voicestream.errors import ProtocolError, RejectedError
from voicestream.events import ResumeReceived
from voicestream.observe import Traces
from voicestream.observe.lag import late_by
from voicestream.quic.aio import Link, ServerTransport
from voicestream.quic.configuration import ServerTls
from voicestream.quic.session_homes import SessionHomes
from voicestream.quic.tickets import ServerTickets
from voicestream.server_admission import Admission
from voicestream.server_reception import Reception
from voicestream.server_rules import SHUTTING_DOWN, Rules
from voicestream.server_shared import Shared
from voicestream.server_watch import LOOK_INTERVAL
from voicestream.session import ServerSession
from voicestream.store import SessionStore

__all__ = ["ServerCalls"]


SAMPLE_INTERVAL: Final = 1.0
"""Seconds between two samples of all calls for the figures, where somebody looks at them."""

FULL_RETRY_AFTER: Final = 2.0

DETACHED_INTERVAL: Final = 1.0
"""Seconds between two looks at the store whether another server has a session that waits for its client here."""


class ServerCalls:
    """Takes the connections of one transport."""

    __slots__ = (
        "_by_id",
        "_detached",
        "_draining",
        "_homes",
        "_leaving",
        "_links",
        "_looked_at",
        "_receptions",
        "_rules",
        "_sealer",
        "_shared",
        "_traces",
        "_transport",
        "_watching",
        "_writing",
        "addresses",
        "closed",
        "figures",
    )

    def __init__(
        self, rules: Rules, keys: Sequence[bytes], store: SessionStore | None = None, traces: Traces | None = None
    ) -> None:
        self._rules = rules
        self._traces = traces
        self._sealer = TokenSealer(keys[0], older=keys[1:])
        self._shared = None if store is None else Shared(store, on_superseded=self._superseded, before_batch=self._note_all)
        self._looked_at = 0.0
        self._writing: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._transport: ServerTransport | None = None
        self._receptions: dict[Reception, None] = {}
        self._links: dict[CallLink, Link] = {}
        self._by_id: dict[bytes, Reception] = {}
        self._homes = SessionHomes()
        self._detached: dict[Reception, None] = {}
        self._draining = False
        self._leaving = asyncio.Lock()
        self.addresses: list[tuple[str, int]] = []
        self.closed = asyncio.Event()
        self.figures = CallFigures("server")

    @property
    def calls(self) -> list[Call]:
        """Calls that have been taken and are not over."""
        calls = (reception.call for reception in self._receptions)
        return [call for call in calls if call is not None and not call.closed]

    async def listen(self, host: str, port: int, tls: ServerTls) -> None:
        """Begin to take calls; see `voicestream.server.serve`."""
        session = self._rules.options.session
        tickets = ServerTickets(session.session_lifetime_s) if self._rules.early_resume else None
        try:
            self._transport = await ServerTransport.listen(
                host, port, tls=tls, new_session=self._new_session, on_connection=self._welcome, limits=session.limits, tickets=tickets
            )
        except OSError as error:
            if error.filename is not None or error.strerror is None:
                raise
            raise OSError(error.errno, f"cannot listen on {host or 'every address'} port {port}: {error.strerror.lower()}") from error
        self.addresses = self._transport.addresses
        self.figures.sources.append(self._transport.counters)
        self._watching = asyncio.get_running_loop().create_task(self._watch(), name="voicestream paths")
        if self._shared is not None:
            self.figures.sources.append(self._shared.counters)
            self._writing = asyncio.get_running_loop().create_task(self._shared.writer.run(), name="voicestream store")

    def _new_session(self) -> ServerSession:
        options = self._rules.options
        observer = options.observer if self._traces is None else self._traces.begin(options.observer)
        return ServerSession(options.session, sealer=self._sealer, entropy=os.urandom, observer=observer)

    def change_keys(self, keys: Sequence[bytes]) -> None:
        """See `voicestream.server.Server.change_keys`."""
        self._sealer.change(keys[0], older=keys[1:])

    async def close(self, drain_timeout: float) -> None:
        """Drain and close; see `voicestream.server.Server.close`."""
        async with self._leaving:
            transport = self._transport
            if transport is None or self.closed.is_set():
                return
            try:
                await self._drain(drain_timeout)
                await asyncio.gather(*(reception.stop() for reception in list(self._receptions)))
                await transport.close(ErrorCode.GOING_AWAY, SHUTTING_DOWN)
            finally:
                # Also when this is cancelled: whoever asks twice wants to leave at once.
                for reception in list(self._receptions):
                    reception.cancel()
                transport.abort()
                if self._watching is not None:
                    self._watching.cancel()
                self.closed.set()
                await self._end_writing()
                if self._traces is not None:
                    await asyncio.to_thread(self._traces.flush)

    async def _watch(self) -> None:
        """Look at the paths of all calls, again and again."""
        clock, figures = asyncio.get_running_loop().time, self.figures
        sampled_at = clock()
        while True:
            late = await late_by(LOOK_INTERVAL)
            if figures.wanted:
                figures.observe("loop_lag_seconds", late)
                if clock() - sampled_at >= SAMPLE_INTERVAL:
                    sampled_at = clock()
                    figures.sample()
            self._look()

    def _look(self) -> None:
        """A function of its own, so that no name of it keeps the last call alive while none goes on."""
        for reception in list(self._receptions):
            if (link := self._links.get(reception.link)) is not None:
                reception.look(link.connection)

    async def _end_writing(self) -> None:
        if self._writing is None or self._shared is None:
            return
        self._writing.cancel()
        await asyncio.wait([self._writing])
        await self._shared.flush()

    async def _drain(self, timeout: float) -> None:
        self._draining = True
        if self._shared is not None and timeout > 0:
            # Whoever is told to go must find its session where it is sent.
            await self._shared.flush()
        for reception in list(self._receptions):
            reception.leave()
        tasks = [reception.task for reception in self._receptions if reception.task is not None]
        if tasks and timeout > 0:
            await asyncio.wait(tasks, timeout=timeout)
        if self._shared is not None:
            await self._shared.flush()

    def _welcome(self, link: Link) -> None:
        self._receive(link).pump()

    def _receive(self, link: Link) -> Reception:
        ending = Ending()
        hold = CallLink(link, ending)
        reception = Reception(
            self._rules,
            hold,
            ending,
            link.remote_address,
            sessions=self,
            draining=self._draining,
            on_over=self._let_go,
        )
        self._receptions[reception] = None
        self._links[hold] = link
        link.on_activity = reception.pump
        return reception

    def _let_go(self, reception: Reception) -> None:
        self._receptions.pop(reception, None)
        self._detached.pop(reception, None)
        self._links.pop(reception.link, None)
        session_id = reception.session_id
        if session_id is not None and self._by_id.get(session_id) is reception:
            del self._by_id[session_id]
            if self._shared is not None:
                self._shared.writer.forget(session_id, keep=reception.was_left)
            self._homes.remove(session_id)

    # Sessions that change their connection; see `Sessions`

    def has_room(self) -> bool:
        """Whether another session may begin. Those that wait for their clients have their own bound; see `seen`."""
        return len(self._homes) - len(self._detached) < self._rules.options.session.limits.max_sessions

    def accepted(self, reception: Reception, link: CallLink) -> None:
        """A session was accepted; the lock is held."""
        if reception.session_id is not None:
            self._by_id[reception.session_id] = reception
            self._homes.add(self._links[link].connection)

    def seen(self, reception: Reception) -> None:
        """It may have lost its connection, or have one again. As many sessions wait for their clients as may have one, no more."""
        if not reception.link.is_detached:
            self._detached.pop(reception, None)
            return
        self._detached[reception] = None
        if len(self._detached) > self._rules.options.session.limits.max_sessions:
            oldest = next(iter(self._detached))
            del self._detached[oldest]
            oldest.link.close(ErrorCode.LIMIT_EXCEEDED, "too many sessions wait to be resumed")
            asyncio.get_running_loop().call_soon(oldest.pump)

    def changed(self, reception: Reception) -> None:
        """What a store keeps of a session is another."""
        if self._shared is not None and (record := reception.record(self._shared.owner)) is not None:
            self._shared.writer.note(record)

    def _note_all(self) -> None:
        """How far every session has come is written with each batch."""
        if self._shared is None:
            return
        now = asyncio.get_running_loop().time()
        look = self._draining or now - self._looked_at >= DETACHED_INTERVAL
        self._looked_at = now if look else self._looked_at
        for reception in self._by_id.values():
            if (record := reception.record(self._shared.owner)) is not None:
                self._shared.writer.note(record, again=look and reception in self._detached)

    def _superseded(self, session_id: bytes) -> None:
        if (reception := self._by_id.get(session_id)) is not None:
            reception.supersede()

    def has(self, session_id: bytes) -> bool:
        """See `Sessions`."""
        return self._homes.find(session_id) is not None

    def waits(self, session_id: bytes) -> bool:
        """See `Sessions`."""
        return self._homes.waits(session_id, ServerTransport.clock())

    async def wait_up(self, link: CallLink) -> None:
        """See `Sessions`."""
        await self._links[link].wait_up()

    async def resume(self, event: ResumeReceived, link: CallLink, *, identity: bytes, terms: Admission) -> None:
        """See `Sessions`."""
        new = self._links[link]
        if self._shared is None or not self._is_elsewhere(event.session_id, new, identity):
            self.take_over(event, link, identity=identity)
            return
        if not self.has_room():
            raise RejectedError(ErrorCode.BUSY, "the server has no room for another call", retry_after=FULL_RETRY_AFTER)
        try:
            claim = await self._shared.claim(
                event.session_id,
                cast(ServerSession, new.connection.session),
                identity=identity,
                terms=terms,
                new_session=self._new_session,
                locked=new.lock,
                clock=new.clock,
            )
        except ProtocolError as error:
            with link.verbs() as (session, now):
                cast(ServerSession, session).reject(now, error.code, error.reason)
            raise
        self._superseded(event.session_id)  # what was here is older, or another request of the same client has overtaken this one
        with new.lock:
            self._homes.bring(claim.session, new.connection, new.clock(), identity=identity)
        reception = self._receive(new)
        self._by_id[event.session_id] = reception
        reception.go_on(claim.info, claim.record, terms)
        new.wake()

    def _is_elsewhere(self, session_id: bytes, link: Link, identity: bytes) -> bool:
        """Whether another server has the session; a token that this one has not given out shows it."""
        session = self._homes.find(session_id)
        if session is None:
            return True
        with link.lock:
            fresh = cast(ServerSession, link.connection.session)
            try:
                return fresh.requested(identity).generation > session.generations[1]
            except ProtocolError:
                return False  # the client is told as ever

    def take_over(self, event: ResumeReceived, link: CallLink, *, identity: bytes) -> None:
        """Move the session that is asked for to this connection.

        Raises:
            ProtocolError: It may not be; the client has been told.
        """
        new = self._links[link]
        with new.lock:
            before = self._homes.take_over(event.session_id, new.connection, new.clock(), identity=identity)
        reception = self._by_id[event.session_id]
        self._links[reception.link] = new
        self.changed(reception)
        reception.move(new)
        if self._draining:
            reception.leave()
        new.wake()
        assert self._transport is not None
        self._transport.wake_connection(before)
