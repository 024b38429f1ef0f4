"""Sessions over real QUIC on loopback sockets, with asyncio and with uvloop where it is installed."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from aioquic.asyncio.client import connect as plain_connect
from aioquic.quic.configuration import QuicConfiguration

from voicestream.codepoints import ALPN, ErrorCode
from voicestream.config import SessionConfig
from voicestream.core.playout import OrderedReader
from voicestream.core.resume import TokenSealer
from voicestream.errors import CertificateError, ConnectError
from voicestream.events import Accepted, Closed, Event, EventReceived, HelloReceived, Rejected
from voicestream.media import MediaFrame
from voicestream.quic.aio import ClientTransport, Link, ServerTransport, clock
from voicestream.quic.certificates import make_certificate, write_certificate
from voicestream.quic.configuration import ClientTls, ServerTls
from voicestream.quic.endpoint import Connection
from voicestream.session import ClientSession, ServerSession
from voicestream.testing.fake_codec import FakeCodec

LOOPS = ["asyncio", "uvloop"]
FRAME_S = 0.02


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Run a coroutine to its end in a loop of its own."""
    if request.param == "asyncio":
        return asyncio.run
    uvloop = pytest.importorskip("uvloop")
    runner: Callable[[Coroutine[Any, Any, None]], None] = uvloop.run
    return runner


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    folder = tmp_path_factory.mktemp("tls")
    certificate, key, sha256 = make_certificate(["localhost", "127.0.0.1"])
    write_certificate(certificate, key, folder / "cert.pem", folder / "key.pem")
    return folder / "cert.pem", folder / "key.pem", sha256


class End:
    """One side's connection with its events and what was said to it."""

    def __init__(self, connection: Connection, wake: Callable[[], None]) -> None:
        self.connection = connection
        self.session: Any = connection.session
        self.wake = wake
        self.events: list[Event] = []
        self.reader = OrderedReader(lookahead_ms=150, max_frames=500)
        self.heard: list[bytes] = []
        self.refuse: int | None = None

    def on_activity(self, connection: Connection) -> None:
        while (event := connection.next_event()) is not None:
            self.events.append(event)
            if isinstance(event, HelloReceived):
                if self.refuse is None:
                    self.session.accept(clock())
                else:
                    self.session.reject(clock(), self.refuse, "not today", uri="voicestream://elsewhere/")
            if isinstance(event, Accepted | HelloReceived) and self.session.is_open:
                self.session.receivers[0].attach_ordered(self.reader)
        while (piece := self.reader.next(clock())) is not None:
            if isinstance(piece, MediaFrame):
                self.heard.append(piece.payload)

    def seen(self, kind: type[Event]) -> Any:
        return next((event for event in self.events if isinstance(event, kind)), None)


class Site:
    """A server on loopback and a way to call it."""

    def __init__(self, files: tuple[Path, Path, str], *, refuse: int | None = None) -> None:
        self.files = files
        self.ends: list[End] = []
        self.refuse = refuse
        self.sealer = TokenSealer(os.urandom(32))
        self.transport: ServerTransport

    async def __aenter__(self) -> Site:
        self.transport = await ServerTransport.listen(
            "127.0.0.1",
            0,
            tls=ServerTls(certfile=self.files[0], keyfile=self.files[1]),
            new_session=lambda: ServerSession(SessionConfig(), sealer=self.sealer, entropy=os.urandom),
            on_connection=self.welcome,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.transport.close()

    def welcome(self, link: Link) -> None:
        end = End(link.connection, link.wake)
        end.refuse = self.refuse
        self.ends.append(end)
        link.on_activity = end.on_activity

    async def dial(self, tls: ClientTls | None = None) -> tuple[ClientTransport, End]:
        session = ClientSession(SessionConfig(), authority="localhost", token=b"secret", entropy=os.urandom)
        tls = tls or ClientTls(server_name="localhost", cafile=self.files[0])
        transport = await ClientTransport.dial("127.0.0.1", self.transport.port, tls=tls, session=session)
        end = End(transport.connection, transport.wake)
        transport.on_activity = end.on_activity
        transport.wake()
        return transport, end

    async def call(self) -> tuple[ClientTransport, End, End]:
        transport, near = await self.dial()
        await until(lambda: near.seen(Accepted))
        return transport, near, self.ends[-1]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


async def speak(frames: int, *ends: End) -> None:
    """Each of `ends` says `frames` frames of 20 ms, at their pace."""
    codec, begun = FakeCodec(), clock()
    for number in range(frames):
        for end in ends:
            end.session.send_frame(codec.encode(number), clock())
            end.wake()
        await asyncio.sleep(max(0.0, begun + FRAME_S * (number + 1) - clock()))


def frames_of(count: int) -> list[bytes]:
    codec = FakeCodec()
    return [codec.encode(number) for number in range(count)]


def test_one_way_audio_costs_one_packet_a_frame_and_no_lone_acks(run: Any, files: Any) -> None:
    async def scenario() -> None:
        async with Site(files) as site:
            transport, near, far = await site.call()
            await speak(10, near)
            before, before_far = near.connection.stats(), far.connection.stats()
            await speak(100, near)
            after, after_far = near.connection.stats(), far.connection.stats()
            await until(lambda: len(far.heard) == 110)
            assert far.heard == [*frames_of(10), *frames_of(100)]
            assert 95 <= after.packets_sent - before.packets_sent <= 115
            # Reports, 100 ms apart, carry the acknowledgements.
            assert after_far.packets_sent - before_far.packets_sent <= 40
            assert after_far.lone_acks_sent - before_far.lone_acks_sent <= 8
            assert after.packets_lost == after_far.packets_lost == 0
            await transport.close()

    run(scenario())


def test_two_way_audio_has_its_acks_ride_along(run: Any, files: Any) -> None:
    async def scenario() -> None:
        async with Site(files) as site:
            transport, near, far = await site.call()
            await speak(10, near, far)
            before = [end.connection.stats().lone_acks_sent for end in (near, far)]
            await speak(100, near, far)
            after = [end.connection.stats().lone_acks_sent for end in (near, far)]
            await until(lambda: len(far.heard) == len(near.heard) == 110)
            assert max(after[0] - before[0], after[1] - before[1]) <= 15
            await transport.close()

    run(scenario())


def test_hello_events_and_the_close_go_both_ways(run: Any, files: Any) -> None:
    async def scenario() -> None:
        async with Site(files) as site:
            transport, near, far = await site.call()
            assert far.seen(HelloReceived).token == b"secret"
            far.session.send_event(b'{"text": "' + b"x" * 5000 + b'"}', clock())
            far.wake()
            await until(lambda: near.seen(EventReceived))
            assert len(near.seen(EventReceived).payload) == 5012
            await transport.close(ErrorCode.HANDLER_ERROR, "bye")
            await until(lambda: far.seen(Closed))
            closed = far.seen(Closed)
            assert (closed.code, closed.reason, closed.remote) == (ErrorCode.HANDLER_ERROR, "bye", True)
            await until(lambda: not site.transport.endpoint.connections)
            assert near.seen(Closed) == Closed(code=ErrorCode.HANDLER_ERROR, reason="bye", remote=False, may_resume=False)

    run(scenario())


def test_a_rejection_arrives_with_all_it_says(run: Any, files: Any) -> None:
    async def scenario() -> None:
        async with Site(files, refuse=ErrorCode.REDIRECT) as site:
            transport, near = await site.dial()
            await asyncio.wait_for(transport.wait_closed(), 10)
            rejected = near.seen(Rejected)
            assert (rejected.code, rejected.reason, rejected.uri) == (ErrorCode.REDIRECT, "not today", "voicestream://elsewhere/")
            assert isinstance(near.events[-1], Closed)

    run(scenario())


def test_a_server_that_cannot_be_trusted_hears_nothing(run: Any, files: Any) -> None:
    async def scenario() -> None:
        async with Site(files) as site:
            for tls in (ClientTls(server_name="localhost"), ClientTls(server_name="localhost", pin="ab" * 32)):
                with pytest.raises(CertificateError):
                    await site.dial(tls)
            await until(lambda: not site.transport.endpoint.connections)
            assert site.ends == []

    run(scenario())


def test_a_call_survives_a_new_socket_in_the_middle(run: Any, files: Any) -> None:
    async def scenario() -> None:
        async with Site(files) as site:
            transport, near, far = await site.call()
            await speak(20, near, far)
            await transport.rebind()
            await speak(20, near, far)
            await until(lambda: len(far.heard) >= 38)
            await until(lambda: len(near.heard) >= 36)
            assert not near.session.is_closed
            await transport.close()

    run(scenario())


def test_nothing_listens(run: Any, files: Any) -> None:
    async def scenario() -> None:
        async with Site(files) as site:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.bind(("127.0.0.1", 0))
                port = sock.getsockname()[1]
            session = ClientSession(SessionConfig(), authority="localhost", entropy=os.urandom)
            with pytest.raises(ConnectError, match="nothing listens"):
                await ClientTransport.dial("127.0.0.1", port, tls=ClientTls(server_name="localhost"), session=session)
            assert site.ends == []

    run(scenario())


async def test_stock_aioquic_completes_a_handshake_with_the_server(files: Any) -> None:
    """An endpoint without our changes: other ACK delay, other ids, other congestion control."""
    async with Site(files) as site:
        configuration = QuicConfiguration(alpn_protocols=[ALPN], max_datagram_frame_size=65536, server_name="localhost")
        configuration.load_verify_locations(cafile=str(files[0]))
        async with plain_connect("127.0.0.1", site.transport.port, configuration=configuration) as protocol:
            await until(lambda: site.ends)
            await protocol.ping()
        await until(lambda: not site.transport.endpoint.connections)


async def test_a_client_of_another_protocol_gets_a_tls_alert(files: Any) -> None:
    async with Site(files) as site:
        configuration = QuicConfiguration(alpn_protocols=["h3"], max_datagram_frame_size=65536, server_name="localhost")
        configuration.load_verify_locations(cafile=str(files[0]))
        with pytest.raises(ConnectionError):
            async with plain_connect("127.0.0.1", site.transport.port, configuration=configuration):
                pass
        assert site.ends == []
