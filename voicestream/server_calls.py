"""All calls of a server: where they come in, who sees them through, and how they end together."""

from __future__ import annotations

import asyncio
import os

from voicestream.call import Call
from voicestream.call_link import CallLink
from voicestream.call_state import Ending
from voicestream.codepoints import ErrorCode
from voicestream.core.resume import TokenSealer
from voicestream.quic.aio import Link, ServerTransport
from voicestream.quic.configuration import ServerTls
from voicestream.server_reception import SHUTTING_DOWN, Reception, Rules
from voicestream.session import ServerSession

__all__ = ["ServerCalls"]


class ServerCalls:
    """Takes the connections of one transport."""

    __slots__ = ("_draining", "_leaving", "_receptions", "_rules", "_transport", "addresses", "closed")

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._transport: ServerTransport | None = None
        self._receptions: dict[Link, Reception] = {}
        self._draining = False
        self._leaving = asyncio.Lock()
        self.addresses: list[tuple[str, int]] = []
        self.closed = asyncio.Event()

    @property
    def calls(self) -> list[Call]:
        """Calls that have been taken and are not over."""
        calls = (reception.call for reception in self._receptions.values())
        return [call for call in calls if call is not None and not call.closed]

    async def listen(self, host: str, port: int, tls: ServerTls) -> None:
        """Begin to take calls; see `voicestream.server.serve`."""
        options = self._rules.options
        sealer = TokenSealer(os.urandom(32))

        def new_session() -> ServerSession:
            return ServerSession(options.session, sealer=sealer, entropy=os.urandom, observer=options.observer)

        try:
            self._transport = await ServerTransport.listen(
                host, port, tls=tls, new_session=new_session, on_connection=self._welcome, limits=options.session.limits
            )
        except OSError as error:
            if error.filename is not None or error.strerror is None:
                raise
            raise OSError(error.errno, f"cannot listen on {host or 'every address'} port {port}: {error.strerror.lower()}") from error
        self.addresses = self._transport.addresses

    async def close(self, drain_timeout: float) -> None:
        """Drain and close; see `voicestream.server.Server.close`."""
        async with self._leaving:
            transport = self._transport
            if transport is None or self.closed.is_set():
                return
            try:
                await self._drain(drain_timeout)
                await asyncio.gather(*(reception.stop() for reception in list(self._receptions.values())))
                await transport.close(ErrorCode.GOING_AWAY, SHUTTING_DOWN)
            finally:
                # Also when this is cancelled: whoever asks twice wants to leave at once.
                for reception in list(self._receptions.values()):
                    reception.cancel()
                transport.abort()
                self.closed.set()

    async def _drain(self, timeout: float) -> None:
        self._draining = True
        for reception in list(self._receptions.values()):
            reception.leave()
        tasks = [reception.task for reception in self._receptions.values() if reception.task is not None]
        if tasks and timeout > 0:
            await asyncio.wait(tasks, timeout=timeout)

    def _welcome(self, link: Link) -> None:
        ending = Ending()
        reception = Reception(
            self._rules,
            CallLink(link, ending),
            ending,
            link.remote_address,
            draining=self._draining,
            on_over=lambda: self._let_go(link),
        )
        self._receptions[link] = reception
        link.on_activity = reception.pump
        reception.pump()

    def _let_go(self, link: Link) -> None:
        self._receptions.pop(link, None)
