"""All calls of a server: where they come in, who sees them through, and how they end together."""

from __future__ import annotations

import asyncio
import os
from typing import Final

from voicestream.call import Call
from voicestream.call_figures import CallFigures
from voicestream.call_link import CallLink
from voicestream.call_state import Ending
from voicestream.codepoints import ErrorCode
from voicestream.core.resume import TokenSealer
from voicestream.events import ResumeReceived
from voicestream.observe import Traces
from voicestream.quic.aio import Link, ServerTransport
from voicestream.quic.configuration import ServerTls
from voicestream.quic.session_homes import SessionHomes
from voicestream.server_reception import SHUTTING_DOWN, Reception, Rules
from voicestream.server_watch import LOOK_INTERVAL
from voicestream.session import ServerSession
from voicestream.store import SessionStore, StoreWriter

__all__ = ["ServerCalls"]


SAMPLE_INTERVAL: Final = 1.0
"""Seconds between two samples of all calls for the figures, where somebody looks at them."""

STORE_TIMEOUT_S: Final = 2.0
"""Seconds that the store gets for the last batch."""


class ServerCalls:
    """Takes the connections of one transport."""

    __slots__ = (
        "_by_id",
        "_detached",
        "_draining",
        "_homes",
        "_leaving",
        "_links",
        "_receptions",
        "_rules",
        "_traces",
        "_transport",
        "_watching",
        "_writer",
        "_writing",
        "addresses",
        "closed",
        "figures",
    )

    def __init__(self, rules: Rules, store: SessionStore | None = None, traces: Traces | None = None) -> None:
        self._rules = rules
        self._traces = traces
        self._writer = None if store is None else StoreWriter(store)
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
        options = self._rules.options
        sealer = TokenSealer(os.urandom(32))

        def new_session() -> ServerSession:
            observer = options.observer if self._traces is None else self._traces.begin(options.observer)
            return ServerSession(options.session, sealer=sealer, entropy=os.urandom, observer=observer)

        try:
            self._transport = await ServerTransport.listen(
                host, port, tls=tls, new_session=new_session, on_connection=self._welcome, limits=options.session.limits
            )
        except OSError as error:
            if error.filename is not None or error.strerror is None:
                raise
            raise OSError(error.errno, f"cannot listen on {host or 'every address'} port {port}: {error.strerror.lower()}") from error
        self.addresses = self._transport.addresses
        self._watching = asyncio.get_running_loop().create_task(self._watch(), name="voicestream paths")
        if (writer := self._writer) is not None:
            self.figures.store = lambda: (writer.batches, writer.failures)
            self._writing = asyncio.get_running_loop().create_task(writer.run(), name="voicestream store")

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
        sampled_at = began = clock()
        while True:
            await asyncio.sleep(LOOK_INTERVAL)
            if figures.wanted:
                figures.observe("loop_lag_seconds", clock() - began - LOOK_INTERVAL)
                if clock() - sampled_at >= SAMPLE_INTERVAL:
                    sampled_at = clock()
                    figures.sample()
            began = clock()
            for reception in list(self._receptions):
                if (link := self._links.get(reception.link)) is not None:
                    reception.look(link.connection)

    async def _end_writing(self) -> None:
        if self._writing is None or self._writer is None:
            return
        self._writing.cancel()
        await asyncio.wait([self._writing])
        try:
            async with asyncio.timeout(STORE_TIMEOUT_S):
                await self._writer.flush()
        except TimeoutError:
            pass

    async def _drain(self, timeout: float) -> None:
        self._draining = True
        for reception in list(self._receptions):
            reception.leave()
        tasks = [reception.task for reception in self._receptions if reception.task is not None]
        if tasks and timeout > 0:
            await asyncio.wait(tasks, timeout=timeout)

    def _welcome(self, link: Link) -> None:
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
        reception.pump()

    def _let_go(self, reception: Reception) -> None:
        self._receptions.pop(reception, None)
        self._detached.pop(reception, None)
        self._links.pop(reception.link, None)
        session_id = reception.session_id
        if session_id is not None and self._by_id.get(session_id) is reception:
            del self._by_id[session_id]
            if self._writer is not None:
                self._writer.forget(session_id)
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
        if self._writer is not None and (record := reception.record) is not None:
            self._writer.note(record)

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
        new.wake()
        assert self._transport is not None
        self._transport.wake_connection(before)
