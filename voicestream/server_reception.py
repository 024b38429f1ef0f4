"""One client at a server: from its hello over the application's verdict and its handler to the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol, cast

from voicestream.call import Call
from voicestream.call_figures import CallFigures, code_label
from voicestream.call_link import CallLink
from voicestream.call_log import Journal
from voicestream.call_options import CallInfo, as_bytes
from voicestream.call_parts import CallParts
from voicestream.call_state import Ending
from voicestream.codepoints import ErrorCode
from voicestream.errors import CallClosed, ProtocolError, RejectedError, StateError
from voicestream.events import Closed, HelloReceived, ResumeReceived
from voicestream.quic.aio import Link
from voicestream.quic.endpoint import Connection
from voicestream.server_admission import Admission, admit
from voicestream.server_rules import SHUTTING_DOWN, Rules
from voicestream.server_shared import state_of
from voicestream.server_watch import CallWatch
from voicestream.session import ServerSession, Session
from voicestream.store import SessionRecord

__all__ = ["Reception", "Sessions"]

logger = logging.getLogger("voicestream.server")

STOP_TIMEOUT_S: Final = 2.0
"""Seconds that a cancelled handler gets for its own tidying up."""

class Sessions(Protocol):
    """Knows which reception looks after which session."""

    def has_room(self) -> bool:
        """Whether another session may begin."""

    @property
    def figures(self) -> CallFigures:
        """What is counted of all calls."""

    def accepted(self, reception: Reception, link: CallLink) -> None:
        """A session was accepted; the lock is held."""

    def seen(self, reception: Reception) -> None:
        """It may have lost its connection, or have one again."""

    def changed(self, reception: Reception) -> None:
        """What a store keeps of a session is another."""

    def has(self, session_id: bytes) -> bool:
        """Whether a living session has this name."""

    def waits(self, session_id: bytes) -> bool:
        """Whether that session is here and without a path: it may be moved before the handshake is complete; see `SessionHomes.waits`."""

    async def wait_up(self, link: CallLink) -> None:
        """Wait until the handshake on this connection is complete.

        Raises:
            StateError: The connection is over before.
        """

    async def resume(self, event: ResumeReceived, link: CallLink, *, identity: bytes, terms: Admission) -> None:
        """Move the session that is asked for to this connection, be it ours or another server's.

        Raises:
            ProtocolError: It may not be; the client has been told.
            RejectedError: Not at present; the client is to be told.
        """


class Reception:
    """Takes one client's call and sees it through."""

    __slots__ = (
        "_address",
        "_draining",
        "_ending",
        "_info",
        "_lifetime",
        "_link",
        "_on_over",
        "_over_at",
        "_parts",
        "_rules",
        "_sessions",
        "_watch",
        "call",
        "task",
    )

    def __init__(
        self,
        rules: Rules,
        link: CallLink,
        ending: Ending,
        address: tuple[str, int],
        *,
        sessions: Sessions,
        draining: bool,
        on_over: Callable[[Reception], None],
    ) -> None:
        self._rules = rules
        self._link = link
        self._ending = ending
        self._address = address
        self._draining = draining
        self._on_over = on_over
        self._sessions = sessions
        self._lifetime: asyncio.TimerHandle | None = None
        self._over_at: asyncio.TimerHandle | None = None
        self._parts: CallParts | None = None
        self._info: CallInfo | None = None
        self._watch = CallWatch()
        self.call: Call | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def link(self) -> CallLink:
        """The hold on the connection."""
        return self._link

    def record(self, owner: bytes) -> SessionRecord | None:
        """The session as a store keeps it, once it has been accepted and while it is not over."""
        if self._parts is None or self._info is None:
            return None
        context = self._parts.context
        with self._link.locked() as session:
            if session.grant is None or session.is_closed:
                return None
            server = cast(ServerSession, session)
            confirmed, issued = server.generations
            return SessionRecord(
                session_id=session.grant.session_id,
                identity=server.identity,
                generation=issued,
                confirmed=confirmed,
                owner=owner,
                context=context.data,
                processed_pts=context.processed_pts,
                state=state_of(server, self._info),
            )

    @property
    def session_id(self) -> bytes | None:
        """The session's name, once it has been accepted."""
        with self._link.locked() as session:
            return session.session_id

    def pump(self, _connection: Connection | None = None) -> None:
        """Deliver what the session has to tell. The transport calls this on the loop after anything has happened."""
        while self._parts is None and (event := self._link.next_event()) is not None:
            if isinstance(event, HelloReceived) and self.task is None:
                self.task = asyncio.get_running_loop().create_task(self._run(event), name="voicestream call")
                self.task.add_done_callback(self._check_over)
            elif isinstance(event, ResumeReceived) and self.task is None:
                self.task = asyncio.get_running_loop().create_task(self._resume(event), name="voicestream resume")
                self.task.add_done_callback(self._check_over)
            elif isinstance(event, Closed):
                self._ending.set(event)
        if self._parts is not None:
            self._parts.pump()
            self._watch_lifetime()
        self._check_over()

    def _check_over(self, _task: asyncio.Task[None] | None = None) -> None:
        if self._ending.closed and (self.task is None or self.task.done()):
            if self._over_at is not None:
                self._over_at.cancel()
            self._on_over(self)
            self.task = None  # how it ended may have frames with this call in them

    # A session that changes its connection

    def move(self, link: Link) -> None:
        """The call goes on on another connection."""
        self._link.move(link)
        link.on_activity = self.pump
        self._address = link.remote_address
        self.pump()

    def look(self, connection: Connection) -> None:
        """See how the path of the call looks."""
        if self._parts is not None and not self._ending.closed:
            with self._link.locked() as session:
                self._watch.look(session, connection, self._parts, self._link.now())

    def _watch_lifetime(self) -> None:
        """Without a connection nobody else keeps the session's time."""
        if self._lifetime is not None:
            self._lifetime.cancel()
            self._lifetime = None
        self._sessions.seen(self)
        if not self._link.is_detached:
            return
        with self._link.locked() as session:
            timer = session.next_timer()
        if timer is not None:
            delay = max(0.01, timer - self._link.now())
            self._lifetime = asyncio.get_running_loop().call_later(delay, self._time_passed)

    def _time_passed(self) -> None:
        with self._link.locked() as session:
            if session.is_detached:
                session.handle_timer(self._link.now())
        self.pump()

    async def _resume(self, event: ResumeReceived) -> None:
        """A client wants its session to go on here: who it is is checked again."""
        hello = HelloReceived(authority=event.authority, path=event.path, token=event.token, metadata=b"")
        verdict = await self._verdict(hello, resumes=self._sessions.has(event.session_id))
        try:
            if isinstance(verdict, RejectedError) or not self._sessions.waits(event.session_id):
                await self._sessions.wait_up(self._link)  # VS-11.5-5
            if isinstance(verdict, RejectedError):
                self._reject(verdict, resumption=True)
            else:
                await self._sessions.resume(event, self._link, identity=verdict.identity_of(hello), terms=verdict)
        except RejectedError as error:
            self._reject(error, resumption=True)
        except ProtocolError as error:
            self._sessions.figures.count("resumes_refused", code_label(error.code))
            logger.info("resumption from %s refused: %s", self._address[0], error)
        except (CallClosed, StateError):
            logger.debug("client %s gave up before its call was resumed", self._address[0])
        finally:
            # Whatever has come of it: this end of the connection has nothing more to say to anybody.
            self._ending.set(Closed(code=ErrorCode.NO_ERROR, reason="", remote=False, may_resume=False))
            self._link.wake()

    def leave(self) -> None:
        """Tell the client that the server is going away, or decline it if it has not been accepted yet."""
        self._draining = True
        if self._parts is None:
            return
        with self._link.locked() as session:
            if session.is_open:
                rules = self._rules
                session.going_away(self._link.now(), reason=SHUTTING_DOWN, uri=rules.next_uri, route_token=rules.next_route_token)
        self._link.wake()

    def go_on(self, info: CallInfo, record: SessionRecord, terms: Admission) -> None:
        """A call that another server had goes on here: the handler begins with what the application had left there."""
        with self._link.locked() as session:
            call, parts = self._open(replace(info, remote_address=self._address), session, terms)
            parts.sender.next_pts = cast(ServerSession, session).sent_pts
        parts.context.restore(record.context, record.processed_pts)
        self.task = asyncio.get_running_loop().create_task(self._handle(call, parts), name="voicestream call")
        self.task.add_done_callback(self._check_over)
        if self._draining:
            self.leave()
        self.pump()

    @property
    def was_left(self) -> bool:
        """Whether the session was left for another server to take up."""
        closed = self._ending.event
        return closed is not None and closed.may_resume and self._rules.shares

    def supersede(self) -> None:
        """Another server has the session now."""
        self._link.close(ErrorCode.SUPERSEDED, "the session goes on at another server")
        asyncio.get_running_loop().call_soon(self.pump)

    def cancel(self) -> None:
        """Cancel the handler if it still runs."""
        if self.task is not None:
            self.task.cancel()

    async def stop(self) -> None:
        """Cancel the handler if it still runs, wait for it, and end the session."""
        self.cancel()
        if self.task is not None:
            await asyncio.wait([self.task], timeout=STOP_TIMEOUT_S)
        self._link.close(ErrorCode.GOING_AWAY, SHUTTING_DOWN, may_resume=self._rules.shares)
        if self._link.is_over:
            self.pump()  # without a connection nobody else does

    async def _run(self, hello: HelloReceived) -> None:
        verdict = await self._verdict(hello)
        if not self._sessions.has_room():
            # What is left is for sessions that come back.
            verdict = RejectedError(ErrorCode.BUSY, "the server has no room for another call")
        try:
            if isinstance(verdict, RejectedError):
                self._reject(verdict)
                return
            call, parts = self._accept(hello, verdict)
        except (CallClosed, StateError):
            logger.debug("client %s gave up before its call was taken", self._address[0])
            return
        await self._handle(call, parts)

    async def _verdict(self, hello: HelloReceived, *, resumes: bool = False) -> Admission | RejectedError:
        session = self._rules.options.session
        if self._draining and not resumes:
            return self._rules.leaving
        timeout = min(session.limits.authenticate_timeout, session.limits.handshake_timeout)
        verdict = await admit(self._rules.authenticate, hello, self._address, metadata=session.metadata, timeout=timeout)
        late = self._draining and not resumes and not isinstance(verdict, RejectedError)
        return self._rules.leaving if late else verdict

    def _reject(self, why: RejectedError, *, resumption: bool = False) -> None:
        self._sessions.figures.count("resumes_refused" if resumption else "calls_rejected", code_label(why.code))
        with self._link.verbs() as (session, now):
            server = cast(ServerSession, session)
            try:
                server.reject(now, why.code, why.reason, uri=why.uri, route_token=why.route_token, retry_after=why.retry_after)
            except ValueError as error:
                # A reason that is too long, a route token that is too short: the client gets an answer all the same.
                logger.error("a refusal by authenticate does not fit the protocol: %s", error)
                server.reject(now, ErrorCode.INTERNAL_ERROR, "the server could not say why")
        logger.info("call from %s declined: %s", self._address[0], why)

    def _accept(self, hello: HelloReceived, terms: Admission) -> tuple[Call, CallParts]:
        with self._link.verbs() as (session, now):
            cast(ServerSession, session).accept(
                now,
                metadata=as_bytes("metadata", terms.metadata, 4096),
                identity=terms.identity_of(hello),
                limits=terms.limits,
                max_rate_bps=terms.max_rate_bps,
            )
            session_id = session.session_id
            self._sessions.accepted(self, self._link)
        info = CallInfo(
            authority=hello.authority,
            path=hello.path,
            metadata=hello.metadata,
            remote_address=self._address,
            session_id=session_id or b"",
        )
        call, parts = self._open(info, session, terms)
        self._sessions.changed(self)
        return call, parts

    def _open(self, info: CallInfo, session: Session, terms: Admission) -> tuple[Call, CallParts]:
        options = replace(self._rules.options, observer=session.observer)
        parts = CallParts(self._link, self._ending, options)
        parts.journal = Journal(info, "server", options)
        parts.figures = self._sessions.figures
        parts.figures.begun(parts)
        self._parts = parts
        self._info = info
        parts.context.on_change = lambda: self._sessions.changed(self)
        self.call = Call(info, parts)
        if terms.max_duration_s is not None:
            self._over_at = asyncio.get_running_loop().call_later(terms.max_duration_s, self._time_is_up)
        return self.call, parts

    def _time_is_up(self) -> None:
        self._link.close(ErrorCode.LIMIT_EXCEEDED, "the call has lasted as long as it may")
        self.pump()

    async def _handle(self, call: Call, parts: CallParts) -> None:
        try:
            await self._rules.handler(call)
            await self._finish(call, parts)
            await parts.events_taken()
            parts.close_now(ErrorCode.NO_ERROR, "")
        except CallClosed:
            parts.close_now(ErrorCode.NO_ERROR, "")
        except asyncio.CancelledError:
            if _is_being_cancelled():
                parts.close_now(ErrorCode.GOING_AWAY, SHUTTING_DOWN, may_resume=self._rules.shares)
                raise
            # Something that the handler awaited was cancelled, not the handler.
            self._fail(call, parts)
        except Exception:
            self._fail(call, parts)

    def _fail(self, call: Call, parts: CallParts) -> None:
        logger.exception("call %s: the handler failed", call.session_id[:8])
        parts.close_now(ErrorCode.HANDLER_ERROR, "the handler failed")

    async def _finish(self, call: Call, parts: CallParts) -> None:
        """Let what was sent be played; a client that does not listen costs a few seconds at most."""
        for track in parts.sender.open_tracks():
            try:
                await call.finish(self._rules.finish_timeout, track=track)
            except TimeoutError:
                logger.info("call %s: the client had not played all within %g s", call.session_id[:8], self._rules.finish_timeout)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
