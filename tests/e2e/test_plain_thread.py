"""A call without asyncio: each end is a plain thread with a UDP socket, `select` and the endpoint's timer."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from voicestream.config import SessionConfig
from voicestream.core.playout import OrderedReader
from voicestream.core.resume import TokenSealer
from voicestream.events import Accepted, Closed, Event, HelloReceived
from voicestream.media import MediaFrame
from voicestream.quic.certificates import make_certificate, write_certificate
from voicestream.quic.configuration import ClientTls, ServerTls
from voicestream.quic.endpoint import ClientEndpoint, Connection, ServerEndpoint
from voicestream.session import ClientSession, ServerSession
from voicestream.testing.fake_codec import FakeCodec

FRAMES = 25


def drive(sock: socket.socket, endpoint: ClientEndpoint | ServerEndpoint, work: Callable[[float], bool]) -> None:
    """Run an endpoint on a UDP socket until `work(now)`, which handles events and uses the session, says that it is over."""
    over = False
    while not over:
        timer = endpoint.next_timer()
        wait = 0.005 if timer is None else min(0.005, max(0.0, timer - time.monotonic()))
        if select.select([sock], [], [], wait)[0]:
            data, address = sock.recvfrom(65536)
            endpoint.receive_datagram(data, address, time.monotonic())
        now = time.monotonic()
        timer = endpoint.next_timer()
        if timer is not None and timer <= now:
            endpoint.handle_timer(now)
        over = work(now)
        for data, address in endpoint.datagrams_to_send(now):
            sock.sendto(data, address)


class Echo:
    """A server that sends every frame back, whoever calls."""

    def __init__(self, endpoint: ServerEndpoint) -> None:
        self.endpoint = endpoint
        self.calls: list[tuple[Connection, OrderedReader]] = []

    def work(self, now: float) -> bool:
        while (connection := self.endpoint.next_connection()) is not None:
            self.calls.append((connection, OrderedReader(lookahead_ms=150, max_frames=500)))
        for connection, reader in self.calls:
            session = connection.session
            while (event := connection.next_event()) is not None:
                if isinstance(event, HelloReceived):
                    session.accept(now)
                    session.receivers[0].attach_ordered(reader)
            while not connection.is_closed and (piece := reader.next(now)) is not None:
                if isinstance(piece, MediaFrame):
                    session.send_frame(piece.payload, now)
        return bool(self.calls) and all(connection.is_terminated for connection, _ in self.calls)


class Caller:
    """A client that speaks `FRAMES` frames at their pace and hangs up when all have come back."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.codec = FakeCodec()
        self.reader = OrderedReader(lookahead_ms=150, max_frames=500)
        self.next_frame: float | None = None
        self.sent = 0
        self.received: list[bytes] = []
        self.events: list[Event] = []

    def work(self, now: float) -> bool:
        connection, session = self.connection, self.connection.session
        while (event := connection.next_event()) is not None:
            self.events.append(event)
            if isinstance(event, Accepted):
                session.receivers[0].attach_ordered(self.reader)
                self.next_frame = now
        while self.next_frame is not None and now >= self.next_frame and self.sent < FRAMES and not connection.is_closed:
            session.send_frame(self.codec.encode(self.sent), now)
            self.sent += 1
            self.next_frame += 0.02
        while (piece := self.reader.next(now)) is not None:
            if isinstance(piece, MediaFrame):
                self.received.append(piece.payload)
        if len(self.received) == FRAMES and not connection.is_closed:
            connection.close(now, reason="heard everything")
        return connection.is_terminated


def test_two_plain_threads_exchange_audio_on_loopback(tmp_path: Path) -> None:
    certificate, key, pin = make_certificate(["localhost"])
    write_certificate(certificate, key, tmp_path / "cert.pem", tmp_path / "key.pem")
    sealer, config = TokenSealer(os.urandom(32)), SessionConfig()
    give_up = time.monotonic() + 20

    server_socket, client_socket = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    with server_socket, client_socket:
        server_socket.bind(("127.0.0.1", 0))
        client_socket.bind(("127.0.0.1", 0))

        tls = ServerTls(certfile=tmp_path / "cert.pem", keyfile=tmp_path / "key.pem")
        server = ServerEndpoint(tls, lambda: ServerSession(config, sealer=sealer, entropy=os.urandom), entropy=os.urandom)
        echo = Echo(server)
        session = ClientSession(config, authority="localhost", path="/echo", entropy=os.urandom)
        client = ClientEndpoint(ClientTls(server_name="localhost", pin=pin), session, entropy=os.urandom)
        caller = Caller(client.connection)
        client.connect(server_socket.getsockname(), time.monotonic())

        threads = [
            threading.Thread(target=drive, args=(server_socket, server, lambda now: echo.work(now) or now > give_up)),
            threading.Thread(target=drive, args=(client_socket, client, lambda now: caller.work(now) or now > give_up)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

    assert caller.received == [FakeCodec().encode(number) for number in range(FRAMES)]
    closed = [event for event in caller.events if isinstance(event, Closed)]
    assert [event.reason for event in closed] == ["heard everything"]
    assert all(connection.is_terminated for connection, _ in echo.calls)
