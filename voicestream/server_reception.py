"""One client at a server: from its hello over the application's verdict and its handler to the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, cast

from voicestream.call import Call
from voicestream.call_link import CallLink
from voicestream.call_options import CallInfo, CallOptions
from voicestream.call_parts import CallParts
from voicestream.call_state import Ending
from voicestream.codepoints import ErrorCode, error_name
from voicestream.errors import CallClosed, RejectedError, StateError
from voicestream.events import Closed, HelloReceived, ResumeReceived
from voicestream.quic.endpoint import Connection
from voicestream.server_admission import Authenticate, admit
from voicestream.session import ServerSession

__all__ = ["Handler", "Reception", "Rules"]

logger = logging.getLogger("voicestream.server")

SHUTTING_DOWN: Final = "the server is shutting down"

STOP_TIMEOUT_S: Final = 2.0
"""Seconds that a cancelled handler gets for its own tidying up."""

Handler = Callable[[Call], Awaitable[None]]
"""What a server runs for each call. The call ends when it returns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What all calls of a server have in common.

    Attributes:
        handler: See `Handler`.
        authenticate: See `Authenticate`; None takes every call.
        options: Configuration of each call.
        finish_timeout: Seconds that a client gets to play what was sent when the handler has returned.
    """

    handler: Handler
    authenticate: Authenticate | None
    options: CallOptions
    finish_timeout: float


class Reception:
    """Takes one client's call and sees it through."""

    __slots__ = ("_address", "_draining", "_ending", "_link", "_on_over", "_parts", "_rules", "call", "task")

    def __init__(
        self,
        rules: Rules,
        link: CallLink,
        ending: Ending,
        address: tuple[str, int],
        *,
        draining: bool,
        on_over: Callable[[], None],
    ) -> None:
        self._rules = rules
        self._link = link
        self._ending = ending
        self._address = address
        self._draining = draining
        self._on_over = on_over
        self._parts: CallParts | None = None
        self.call: Call | None = None
        self.task: asyncio.Task[None] | None = None

    def pump(self, _connection: Connection | None = None) -> None:
        """Deliver what the session has to tell. The transport calls this on the loop after anything has happened."""
        while self._parts is None and (event := self._link.next_event()) is not None:
            if isinstance(event, HelloReceived) and self.task is None:
                self.task = asyncio.get_running_loop().create_task(self._run(event), name="voicestream call")
                self.task.add_done_callback(self._check_over)
            elif isinstance(event, ResumeReceived):
                with self._link.locked() as session:
                    cast(ServerSession, session).reject(self._link.now(), ErrorCode.SESSION_UNKNOWN, "there is no such session")
                self._link.wake()
            elif isinstance(event, Closed):
                self._ending.set(event)
        if self._parts is not None:
            self._parts.pump()
        self._check_over()

    def _check_over(self, _task: asyncio.Task[None] | None = None) -> None:
        if self._ending.closed and (self.task is None or self.task.done()):
            self._on_over()

    def leave(self) -> None:
        """Tell the client that the server is going away, or decline it if it has not been accepted yet."""
        self._draining = True
        if self._parts is None:
            return
        with self._link.locked() as session:
            if session.is_open:
                session.going_away(self._link.now(), reason=SHUTTING_DOWN)
        self._link.wake()

    def cancel(self) -> None:
        """Cancel the handler if it still runs."""
        if self.task is not None:
            self.task.cancel()

    async def stop(self) -> None:
        """Cancel the handler if it still runs, wait for it, and end the session."""
        self.cancel()
        if self.task is not None:
            await asyncio.wait([self.task], timeout=STOP_TIMEOUT_S)
        self._link.close(ErrorCode.GOING_AWAY, SHUTTING_DOWN)

    async def _run(self, hello: HelloReceived) -> None:
        verdict = await self._verdict(hello)
        try:
            if isinstance(verdict, RejectedError):
                self._reject(verdict)
                return
            call, parts = self._accept(hello, verdict)
        except (CallClosed, StateError):
            logger.debug("client %s gave up before its call was taken", self._address[0])
            return
        await self._handle(call, parts)

    async def _verdict(self, hello: HelloReceived) -> bytes | RejectedError:
        session, leaving = self._rules.options.session, RejectedError(ErrorCode.GOING_AWAY, SHUTTING_DOWN)
        if self._draining:
            return leaving
        verdict = await admit(
            self._rules.authenticate, hello, self._address, metadata=session.metadata, timeout=session.limits.handshake_timeout
        )
        return leaving if self._draining and not isinstance(verdict, RejectedError) else verdict

    def _reject(self, why: RejectedError) -> None:
        with self._link.verbs() as (session, now):
            cast(ServerSession, session).reject(
                now, why.code, why.reason, uri=why.uri, route_token=why.route_token, retry_after=why.retry_after
            )
        logger.info("call from %s declined: %s", self._address[0], why)

    def _accept(self, hello: HelloReceived, metadata: bytes) -> tuple[Call, CallParts]:
        with self._link.verbs() as (session, now):
            cast(ServerSession, session).accept(now, metadata=metadata)
            session_id = session.session_id
        info = CallInfo(
            authority=hello.authority,
            path=hello.path,
            metadata=hello.metadata,
            remote_address=self._address,
            session_id=session_id or b"",
        )
        parts = CallParts(self._link, self._ending, self._rules.options)
        self._parts = parts
        self.call = Call(info, parts)
        return self.call, parts

    async def _handle(self, call: Call, parts: CallParts) -> None:
        logger.info("call %s opened: %s from %s", call.session_id[:8], call.path, self._address[0])
        try:
            await self._rules.handler(call)
            await self._finish(call, parts)
            parts.close_now(ErrorCode.NO_ERROR, "")
        except CallClosed:
            parts.close_now(ErrorCode.NO_ERROR, "")
        except asyncio.CancelledError:
            if _is_being_cancelled():
                parts.close_now(ErrorCode.GOING_AWAY, SHUTTING_DOWN)
                raise
            # Something that the handler awaited was cancelled, not the handler.
            self._fail(call, parts)
        except Exception:
            self._fail(call, parts)
        finally:
            self._log_end(call)

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

    def _log_end(self, call: Call) -> None:
        stats = call.stats()
        code, reason = stats.close_code, call.close_reason
        logger.info(
            "call %s closed: %s%s; %.1f s, %d frames sent, %d received, %.2f %% concealed",
            call.session_id[:8],
            "NO_ERROR" if code is None else error_name(code),
            f" ({reason})" if reason else "",
            stats.duration_s,
            stats.sent.frames,
            stats.received.frames,
            100 * stats.playout.concealed_share,
        )


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
