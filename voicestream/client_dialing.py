"""From an address to an open call: the transport is dialled, the session introduces itself, the server says yes or no."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field, replace

from voicestream.call import Call
from voicestream.call_link import CallLink
from voicestream.call_log import Journal
from voicestream.call_options import CallInfo, CallOptions
from voicestream.call_parts import CallParts
from voicestream.call_preload import preload
from voicestream.call_state import Ending
from voicestream.client_keeper import Keeper, Redial
from voicestream.client_moves import Moves
from voicestream.codepoints import ErrorCode, error_name
from voicestream.errors import ConnectError, RejectedError
from voicestream.events import Accepted, Closed, Rejected
from voicestream.observe import Traces
from voicestream.quic.aio import ClientTransport
from voicestream.quic.configuration import ClientTls
from voicestream.quic.endpoint import Connection
from voicestream.quic.tickets import CallTickets
from voicestream.session import ClientSession
from voicestream.uri import CallUri

__all__ = ["Dialing", "dial"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialing:
    """Whom to call, and how.

    Attributes:
        target: The URI's parts.
        options: Configuration of the call.
        tls: How the server's certificate is checked.
        token: What the server knows this client by.
        route_token: First connection id of the dial, if one was handed out.
        open_timeout: Seconds until the call must have been taken.
        resume: Take the session up again when its path is lost.
        replay_ms: How much of what was received before a break is wanted once more.
        resume_timeout: Seconds without a path after which the call is given up; None for what the server grants.
        early_resume: Ask for it with the first packet (0-RTT), where the server has given a ticket.
        traces: Where a trace of the call goes, if one is wanted.
        others: Servers that share sessions with the one that is called.
    """

    target: CallUri
    options: CallOptions
    tls: ClientTls
    token: bytes = field(repr=False)  # VS-15-2
    route_token: bytes | None = field(repr=False)
    open_timeout: float
    resume: bool = True
    replay_ms: int = 0
    resume_timeout: float | None = None
    early_resume: bool = True
    traces: Traces | None = None
    others: tuple[CallUri, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.open_timeout <= 600:
            raise ValueError(f"open_timeout must be more than 0 and at most 600, not {self.open_timeout}")
        if not 0 <= self.replay_ms <= 2000:
            raise ValueError(f"replay_ms must be 0 to 2000, not {self.replay_ms}")
        if self.resume_timeout is not None and not 0 < self.resume_timeout <= 300:
            raise ValueError(f"resume_timeout must be more than 0 and at most 300, not {self.resume_timeout}")

    def redial(self, tickets: CallTickets | None = None) -> Redial:
        """How a lost path is replaced."""
        return Redial(
            host=self.target.host,
            port=self.target.port,
            tls=self.tls,
            limits=self.options.session.limits,
            route_token=self.route_token,
            resume=self.resume,
            replay_ms=self.replay_ms,
            timeout=self.resume_timeout,
            others=self.others,
            tickets=tickets,
        )


class _Answer:
    """Waits for the server's word, then hands the session's events to the call."""

    __slots__ = ("_options", "_server", "ending", "link", "parts", "word")

    def __init__(self, dialing: Dialing, transport: ClientTransport) -> None:
        self.ending = Ending()
        self.link = CallLink(transport, self.ending)
        self._options = dialing.options
        self._server = dialing.target.authority
        self.parts: CallParts | None = None
        self.word: asyncio.Future[Accepted | ConnectError] = asyncio.get_running_loop().create_future()

    def pump(self, _connection: Connection | None = None) -> None:
        """Deliver what the session has to tell. The transport calls this on the loop after anything has happened."""
        while self.parts is None and (event := self.link.next_event()) is not None:
            if self.word.done():
                continue
            if isinstance(event, Accepted):
                self.parts = CallParts(self.link, self.ending, self._options)
                self.word.set_result(event)
            elif isinstance(event, Rejected):
                error = RejectedError(
                    event.code, event.reason, uri=event.uri, route_token=event.route_token, retry_after=event.retry_after
                )
                self.word.set_result(error)
            elif isinstance(event, Closed):
                why = error_name(event.code) + (f": {event.reason}" if event.reason else "")
                self.word.set_result(ConnectError(f"{self._server} closed the connection before it took the call: {why}"))
        if self.parts is not None:
            self.parts.pump()


async def dial(dialing: Dialing, moves: Moves | None = None) -> Call:
    """Open a call; see `voicestream.client.connect`."""
    moves = moves or Moves()
    if dialing.traces is None:
        return await _dial(dialing, moves)
    dialing.traces.check()
    trace = dialing.traces.begin(dialing.options.observer)
    try:
        return await _dial(replace(dialing, options=replace(dialing.options, observer=trace)), moves)
    except BaseException as error:
        trace.record(asyncio.get_running_loop().time(), "session:failed", {"reason": str(error) or type(error).__name__})
        trace.end()
        await asyncio.to_thread(trace.flush)
        raise


async def _dial(dialing: Dialing, moves: Moves) -> Call:
    target = dialing.target
    loop = asyncio.get_running_loop()
    deadline = loop.time() + dialing.open_timeout
    loaded = preload()
    tickets = CallTickets() if dialing.resume and dialing.early_resume else None
    transport = await moves.until(lambda: _transport(dialing, deadline - loop.time(), tickets), ClientTransport.abort)
    answer = _Answer(dialing, transport)
    try:
        transport.on_activity = answer.pump
        answer.pump()
        async with asyncio.timeout_at(deadline):
            word = await moves.while_waiting(answer.word, transport.rebind)
        await loaded
    except TimeoutError:
        transport.abort(ErrorCode.HANDSHAKE_TIMEOUT, "the call was not taken in time")  # VS-11.1-1
        raise ConnectError(f"{target.authority} did not take the call within {dialing.open_timeout:g} s") from None
    except BaseException:
        transport.abort()
        raise
    if isinstance(word, ConnectError):
        transport.abort()
        raise word
    return _open(dialing.redial(tickets), dialing, answer, word, transport)


async def _transport(dialing: Dialing, seconds: float, tickets: CallTickets | None) -> ClientTransport:
    """One attempt, with a session of its own: one that was given up may have begun to call."""
    target, options = dialing.target, dialing.options
    session = ClientSession(
        options.session, authority=target.authority, path=target.path, token=dialing.token, entropy=os.urandom, observer=options.observer
    )
    try:
        return await ClientTransport.dial(
            target.host,
            target.port,
            tls=dialing.tls,
            session=session,
            limits=options.session.limits,
            route_token=dialing.route_token,
            open_timeout=max(0.001, seconds),
            tickets=tickets,
        )
    except BaseException:
        session.abandon()
        raise


def _open(redial: Redial, dialing: Dialing, answer: _Answer, word: Accepted, transport: ClientTransport) -> Call:
    assert answer.parts is not None  # made before the word was passed on
    Keeper(redial, answer.link, answer.parts, answer.ending, transport).begin()
    info = CallInfo(
        authority=dialing.target.authority,
        path=dialing.target.path,
        metadata=word.metadata,
        remote_address=_remote(transport.connection),
        session_id=word.session_id,
    )
    answer.parts.journal = Journal(info, "client", dialing.options)
    return Call(info, answer.parts)


def _remote(connection: Connection) -> tuple[str, int]:
    host, port = (connection.peer_address or ("", 0))[:2]
    return str(host), int(port)
