"""How the suite's peer and an implementation under test come together, in either role."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from aioquic.asyncio.server import QuicServer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection

from interop.implementations import end
from interop.model import Case
from interop.peers.raw import RawPeer
from voicestream.codepoints import ALPN, CodecId, ErrorCode
from voicestream.config import Track
from voicestream.wire import Accept, Hello, Message, Parameters, Reject, Resume

__all__ = ["ClientMeeting", "Met", "ServerMeeting", "raw_configuration"]

HANDSHAKE_SECONDS: Final = 8.0
START_SECONDS: Final = 60.0
"""For a client to begin to call; a program takes time to start on a busy machine."""


def raw_configuration(*, is_client: bool, alpn: str = ALPN, datagrams: int | None = 65536) -> QuicConfiguration:
    """QUIC of the suite's peer: large windows and packets, no check of certificates."""
    return QuicConfiguration(
        is_client=is_client, alpn_protocols=[alpn], max_datagram_frame_size=datagrams, max_datagram_size=1452, idle_timeout=30.0,
        max_data=1 << 24, max_stream_data=1 << 24, verify_mode=ssl.CERT_NONE if is_client else None, server_name="suite",
    )  # fmt: skip


class Met(RawPeer):
    """The suite's peer in a call.

    Attributes:
        against: Role of the implementation under test.
        authority, path, token: What HELLO names.
        again: Opens a further connection to the same implementation (a server); without greeting.
        track: The track of the call.
    """

    against = "server"
    authority = "suite.example"
    path = "/peer"
    token: bytes | None = None
    again: Callable[[], Awaitable[Met]]
    track = Track()
    answer: Message | None = None

    def parameters(self, **changes: Any) -> Parameters:
        """Those of a good HELLO or ACCEPT, with these changes."""
        if self.against == "server":
            own = Parameters(authority=self.authority, path=self.path, token=self.token, tracks=(self.track,), lookahead_ms=150)
        else:
            own = Parameters(
                session_id=os.urandom(16),
                resume_token=os.urandom(40),
                generation=0,
                lifetime_ms=60000,
                tracks=(self.track,),
                lookahead_ms=150,
            )
        return dataclasses.replace(own, **changes)

    def greeting(self, **changes: Any) -> Message:
        """A good HELLO or ACCEPT, with these changes of its parameters."""
        kind = Hello if self.against == "server" else Accept
        return kind(parameters=self.parameters(**changes))

    def meet(self, hello: Hello) -> None:
        """Take one of the offered tracks, as a server."""
        for track in hello.parameters.tracks:
            if track.codec == CodecId.OPUS:
                self.track = dataclasses.replace(track, send=track.receive, receive=track.send)
                return

    async def open(self, *, talk: bool = False, reports: bool = True, **changes: Any) -> bool:
        """Greet, and behave from then on; whether there is a call."""
        self.send(self.greeting(**changes))
        if self.against == "server":
            answer = await self.until(lambda: self.hello or self.end, HANDSHAKE_SECONDS)
            if not isinstance(answer, Accept):
                return False
            self.answer = answer
        self.behave(reports=reports, talk=talk)
        return True


class ServerMeeting:
    """Dials a server under test.

    Args:
        host, port: Where it listens.
        authority, path, token: What to call there.
    """

    role = "server"

    def __init__(self, host: str, port: int, *, authority: str | None = None, path: str = "/peer", token: bytes | None = None) -> None:
        self._address = (host, port)
        self._named = {"authority": authority or f"{host}:{port}", "path": path, "token": token}
        self._transports: list[asyncio.DatagramTransport] = []

    async def dial(self, *, alpn: str = ALPN, datagrams: int | None = 65536) -> Met:
        """A connection whose handshake is done.

        Raises:
            ConnectionError: It was refused.
            TimeoutError: Nobody answers.
        """
        loop = asyncio.get_running_loop()
        host, port = self._address
        where = (await loop.getaddrinfo(host, port, type=2))[0]
        quic = QuicConnection(configuration=raw_configuration(is_client=True, alpn=alpn, datagrams=datagrams))
        transport, peer = await loop.create_datagram_endpoint(lambda: Met(quic), remote_addr=None, local_addr=_any_of(where[0]))
        self._transports.append(transport)
        for name, value in self._named.items():
            setattr(peer, name, value)
        peer.again = self.dial
        peer.connect(where[4])
        try:
            await asyncio.wait_for(peer.wait_connected(), HANDSHAKE_SECONDS)
        except BaseException:
            transport.close()
            raise
        return peer

    async def meet(self, case: Case) -> Met:
        """A peer for a case."""
        return await self.dial(**{name: value for name, value in case.setup.items() if name in ("alpn", "datagrams")})

    async def done(self, peer: Met) -> None:
        """The case is over."""
        await peer.leave()

    async def stop(self) -> None:
        await asyncio.sleep(0.05)
        for transport in self._transports:
            transport.close()


def _any_of(family: int) -> tuple[str, int]:
    return ("::" if family == 10 else "0.0.0.0", 0)


class ClientMeeting:
    """Has a client under test call; it is started again where it does not dial by itself.

    Args:
        certificate: Files of certificate and key.
        start: Starts the client once, given the port to call; returns what stops it, and whether it still runs.
    """

    role = "client"

    def __init__(self, certificate: tuple[Path, Path], start: Callable[[int], Awaitable[Any]]) -> None:
        self._certificate = certificate
        self._start = start
        self._callers: asyncio.Queue[Met] = asyncio.Queue()
        self._server: QuicServer | None = None
        self._process: Any = None
        self._setup: dict[str, Any] = {}
        self.port = 0

    async def listen(self) -> None:
        configuration = raw_configuration(is_client=False)
        configuration.load_cert_chain(*self._certificate)
        loop = asyncio.get_running_loop()
        transport, server = await loop.create_datagram_endpoint(
            lambda: QuicServer(configuration=configuration, create_protocol=self._made), local_addr=("127.0.0.1", 0)
        )
        self._server, self.port = server, transport.get_extra_info("sockname")[1]

    def _made(self, quic: QuicConnection, stream_handler: object = None) -> Met:
        peer = Met(quic)
        peer.against = "client"
        peer.hand_over = self._called
        peer.again = self._next
        return peer

    def _called(self, peer: RawPeer) -> None:
        assert isinstance(peer, Met)
        if isinstance(peer.hello, Hello):
            peer.meet(peer.hello)
        while not self._callers.empty():
            self._callers.get_nowait()  # of a client that has dialled again since
        self._callers.put_nowait(peer)

    async def _next(self, timeout: float = 20.0) -> Met:
        return await asyncio.wait_for(self._callers.get(), timeout)

    async def meet(self, case: Case) -> Met:
        """The next caller with a HELLO."""
        for _ in range(6):
            if self._server is None:
                await self.listen()
            if self._process is None or self._process.returncode is not None:
                self._process = await self._start(self.port)
            try:
                peer = await self._next(START_SECONDS)
            except TimeoutError:
                await end(self._process)
                continue
            if peer.gone is not None:
                continue
            if isinstance(peer.hello, Resume):
                # Of a session of an earlier case: that is over.
                peer.send(Reject(code=ErrorCode.SESSION_UNKNOWN))
                continue
            return peer
        raise ConnectionError("the client does not call")

    async def done(self, peer: Met) -> None:
        """The case is over."""
        await peer.leave()

    async def stop(self) -> None:
        await asyncio.sleep(0.05)
        if self._process is not None:
            await end(self._process)
        if self._server is not None:
            self._server.close()
