"""Two endpoints in virtual time with a fake session on each, and the certificate that they share."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.config import Limits
from voicestream.events import Closed, Event
from voicestream.quic.certificates import make_certificate, write_certificate
from voicestream.quic.configuration import ClientTls, ServerTls
from voicestream.quic.endpoint import ClientEndpoint, Connection, ServerEndpoint

SERVER_ADDRESS = ("192.0.2.1", 4433)
CLIENT_ADDRESS = ("198.51.100.7", 50000)


class FakeSession:
    """Records what it is given and sends what the test puts in. Its control messages are lines of text; "CLOSE" closes."""

    def __init__(self) -> None:
        self.started_at: float | None = None
        self.takes_calls = True
        self.paths = 1
        self.datagrams: list[bytes] = []
        self.datagram_times: list[float] = []
        self.control = b""
        self.streams: dict[int, bytes] = {}
        self.finished: list[int] = []
        self.resets: list[int] = []
        self.closed: Closed | None = None
        self.target_bps = 100_000.0
        self.timer: float | None = None
        self.timers_fired: list[float] = []
        self.out_datagrams: deque[bytes] = deque()
        self.out_control = b""
        self.out_streams: deque[tuple[int, bytes, bool]] = deque()
        self.out_stops: list[tuple[int, int]] = []
        self.events: deque[Event] = deque()
        self.on_control: Callable[[float], None] | None = None

    @property
    def is_open(self) -> bool:
        return self.started_at is not None and self.takes_calls and self.closed is None

    @property
    def is_closed(self) -> bool:
        return self.closed is not None

    @property
    def has_left(self) -> bool:
        return False

    def start(self, now: float, rtt: float | None = None) -> None:
        assert self.started_at is None
        self.started_at = now
        self.rtt_at_start = rtt

    def suppose_rtt(self, rtt: float | None) -> None:
        self.supposed = rtt

    def path_changed(self, now: float) -> None:
        self.paths += 1

    def path_lost(self, now: float) -> bool:
        return False

    def receive_datagram(self, data: bytes, now: float) -> None:
        self.datagrams.append(data)
        self.datagram_times.append(now)

    def receive_control(self, data: bytes, now: float, fin: bool = False) -> None:
        self.control += data
        line = self.control.split(b"\n")[-2] if b"\n" in self.control else b""
        if line.startswith(b"CLOSE "):
            _, code, reason = line.decode().split(" ", 2)
            self._end(Closed(code=int(code), reason=reason, remote=True, may_resume=True))
        elif self.on_control is not None:
            self.on_control(now)

    def receive_stream(self, stream_key: int, data: bytes, fin: bool, now: float) -> None:
        self.streams[stream_key] = self.streams.get(stream_key, b"") + data
        if fin:
            self.finished.append(stream_key)

    def reset_stream(self, stream_key: int, now: float) -> None:
        self.resets.append(stream_key)

    def transport_closed(self, now: float, code: int, reason: str = "", *, remote: bool = True) -> None:
        self._end(Closed(code=code, reason=reason, remote=remote, may_resume=False))

    def handle_timer(self, now: float) -> None:
        self.timers_fired.append(now)
        self.timer = None

    def next_timer(self) -> float | None:
        return self.timer

    def idle_until(self, now: float) -> float | None:
        return None

    def is_calm(self, until: float) -> bool:
        return False

    def datagrams_to_send(self, now: float) -> list[bytes]:
        taken = list(self.out_datagrams)
        self.out_datagrams.clear()
        return taken

    def control_to_send(self) -> bytes:
        taken, self.out_control = self.out_control, b""
        return taken

    def streams_to_send(self, now: float) -> list[tuple[int, bytes, bool]]:
        taken = list(self.out_streams)
        self.out_streams.clear()
        return taken

    def let_go(self) -> None:
        pass

    def streams_to_stop(self) -> list[tuple[int, int]]:
        taken, self.out_stops = self.out_stops, []
        return taken

    def next_event(self) -> Event | None:
        return self.events.popleft() if self.events else None

    def close(self, now: float, code: int = ErrorCode.NO_ERROR, reason: str = "", may_resume: bool = False) -> None:
        self.out_control += f"CLOSE {int(code)} {reason}\n".encode()
        self._end(Closed(code=code, reason=reason, remote=False, may_resume=may_resume))

    def _end(self, closed: Closed) -> None:
        if self.closed is None:
            self.closed = closed
            self.events.append(closed)


def entropy(seed: int) -> Callable[[int], bytes]:
    return random.Random(seed).randbytes


@dataclass
class World:
    """A client and a server with a path of constant delay between them."""

    server: ServerEndpoint
    tls: ClientTls
    limits: Limits
    delay: float = 0.02
    now: float = 100.0
    clients: list[tuple[ClientEndpoint, Any]] = field(default_factory=list)
    sessions: list[FakeSession] = field(default_factory=list)
    wire: list[tuple[float, int, bytes, Any, Any]] = field(default_factory=list)
    to_client: int = 0
    to_server: int = 0
    keep: Callable[[bytes, Any, Any], bool] = lambda data, source, target: True
    made: int = 0
    takes_calls: bool = True
    order: int = 0

    def client(self, address: Any = None, *, tls: ClientTls | None = None, **options: Any) -> ClientEndpoint:
        options.setdefault("limits", self.limits)
        self.made += 1
        endpoint = ClientEndpoint(tls or self.tls, FakeSession(), entropy=entropy(self.made), **options)
        self.clients.append((endpoint, address or (CLIENT_ADDRESS[0], CLIENT_ADDRESS[1] + self.made)))
        return endpoint

    def connect(self, **options: Any) -> tuple[ClientEndpoint, Connection]:
        """A client whose handshake is complete, and the server's side of it."""
        endpoint = self.client(**options)
        endpoint.connect(SERVER_ADDRESS, self.now)
        self.run(0.3)
        connection = self.server.next_connection()
        assert endpoint.connection.is_up
        assert connection is not None
        return endpoint, connection

    def move(self, endpoint: ClientEndpoint, address: Any) -> None:
        """Give a client another address, as a NAT does."""
        self.clients = [(one, address if one is endpoint else at) for one, at in self.clients]

    def send(self, data: bytes, source: Any, target: Any) -> None:
        if target == SERVER_ADDRESS:
            self.to_server += 1
        else:
            self.to_client += 1
        if self.keep(data, source, target):
            self.order += 1
            heapq.heappush(self.wire, (self.now + self.delay, self.order, data, source, target))

    def flush(self) -> None:
        for endpoint, address in self.clients:
            for data, target in endpoint.datagrams_to_send(self.now):
                self.send(data, address, target)
        for data, target in self.server.datagrams_to_send(self.now):
            self.send(data, SERVER_ADDRESS, target)

    def deliver(self, data: bytes, source: Any, target: Any) -> None:
        if target == SERVER_ADDRESS:
            self.server.receive_datagram(data, source, self.now)
        for endpoint, address in self.clients:
            if address == target:
                endpoint.receive_datagram(data, source, self.now)

    def run(self, seconds: float) -> None:
        """Let virtual time pass."""
        until = self.now + seconds
        self.flush()
        for _ in range(1_000_000):
            nodes = [*(endpoint for endpoint, _ in self.clients), self.server]
            timers = [timer for node in nodes if (timer := node.next_timer()) is not None]
            arrivals = [self.wire[0][0]] if self.wire else []
            at = min([*timers, *arrivals], default=until)
            if at > until:
                break
            self.now = max(self.now, at)
            while self.wire and self.wire[0][0] <= self.now:
                _, _, data, source, target = heapq.heappop(self.wire)
                self.deliver(data, source, target)
            for node in nodes:
                timer = node.next_timer()
                if timer is not None and timer <= self.now:
                    node.handle_timer(self.now)
            self.flush()
            if not timers and not arrivals:
                break
        else:
            raise AssertionError("virtual time does not advance")
        self.now = until


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    folder = tmp_path_factory.mktemp("certificate")
    cert, key, sha256 = make_certificate(["voice.example", "192.0.2.1"])
    write_certificate(cert, key, folder / "cert.pem", folder / "key.pem")
    return folder / "cert.pem", folder / "key.pem", sha256


@pytest.fixture
def make_world(certificate: tuple[Path, Path, str]) -> Callable[..., World]:
    certfile, keyfile, _ = certificate

    def make(*, limits: Limits | None = None, **options: Any) -> World:
        limits = limits or Limits()
        sessions: list[FakeSession] = []

        def new_session() -> FakeSession:
            sessions.append(FakeSession())
            sessions[-1].takes_calls = world.takes_calls
            return sessions[-1]

        tls = ServerTls(certfile=certfile, keyfile=keyfile)
        server = ServerEndpoint(tls, new_session, entropy=entropy(0), limits=limits, **options)
        world = World(server, ClientTls(server_name="voice.example", cafile=certfile), limits, sessions=sessions)
        return world

    return make


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


@pytest.fixture
def fake_session() -> type[FakeSession]:
    return FakeSession
