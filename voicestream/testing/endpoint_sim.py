"""Whole calls in virtual time with the real transport: one server endpoint, any number of client endpoints, an emulated path each.

    world = EndpointWorld(seed=7)
    client = world.client(LinkProfile(delay_ms=20, loss=0.05))
    world.open(client)
    client.speak()
    world.run(10)

Everything of QUIC is real (handshake, acknowledgements, loss recovery, migration); only sockets and the clock are not. A path's
profile may have NAT rebindings, and a client can `move` to another address. Links count IP packets: UDP payload and 28 bytes.

Times and sizes are the same for the same seed; TLS draws its own random numbers, so bytes are not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from voicestream.config import SessionConfig
from voicestream.events import Accepted, Closed, Event
from voicestream.quic.endpoint import Address, ClientEndpoint, Connection, SessionPort
from voicestream.quic.path_keeper import PathKeeper
from voicestream.quic.tickets import CallTickets, Place
from voicestream.quic.vacancy import Vacant
from voicestream.session import ClientSession
from voicestream.testing.drift import drifting
from voicestream.testing.endpoint_server import ServerHost, ServerSide
from voicestream.testing.link import Link
from voicestream.testing.profile import LinkProfile, NetworkProfile
from voicestream.testing.side import CallSide
from voicestream.testing.sim import Simulation
from voicestream.testing.sim_certificate import SERVER_NAME, sim_certificate
from voicestream.trace import Observer

__all__ = ["ClientHost", "EndpointWorld", "ServerHost", "ServerSide"]

IP_UDP_BYTES = 28
SERVER_ADDRESS: Address = ("192.0.2.1", 4433)
PLACE: Place = (SERVER_NAME, 4433)


class ClientHost(CallSide):
    """A client behind a NAT, as a node of the engine.

    Attributes:
        connection: Its connection.
        address: Where the server sees it.
        links: "b2a" toward the server, "a2b" back.
        packets: (seconds since the world began, bytes) of every IP packet that it sent and that were sent to it.
        mute: Links that carry nothing at present.
        nat_dropped: Packets of the server that came to an address which is no longer this client's.
    """

    def __init__(
        self, world: EndpointWorld, number: int, profile: NetworkProfile, config: SessionConfig, observer: Observer | None, sim: Simulation
    ) -> None:
        name = f"client{number}"
        session = ClientSession(config, authority=SERVER_NAME, path=f"/{number}", entropy=sim.entropy(name), observer=observer)
        super().__init__(sim, name, session)
        self.tickets = CallTickets() if world.early else None
        endpoint = self._endpoint(session, sim.entropy(f"{name}/quic"), config)
        self.connection: Connection = endpoint.connection
        self.address: Address = (f"198.51.{number // 250}.{number % 250 + 1}", 50000)
        seed = f"{sim.seed}/{name}"
        epoch = world.sim.now
        self.links = {"a2b": Link(profile.a2b, f"{seed}/a2b", epoch=epoch), "b2a": Link(profile.b2a, f"{seed}/b2a", epoch=epoch)}
        self.packets: dict[str, list[tuple[float, int]]] = {"a2b": [], "b2a": []}
        self.nat_dropped = 0
        self._world = world
        self._number = number
        self._config = config
        self._dialling: tuple[Connection, Address] | None = None
        self._flushing = False
        self._port: int = self.address[1]
        self.mute: set[str] = set()
        for at in profile.rebind:
            world.sim.at(epoch + at, self.rebind)
        self.connection.connect(SERVER_ADDRESS, sim.now)
        self.flush()

    def _endpoint(self, session: SessionPort, entropy: Callable[[int], bytes], config: SessionConfig) -> ClientEndpoint:
        return ClientEndpoint(sim_certificate()[2], session, entropy=entropy, limits=config.limits, tickets=self.tickets, place=PLACE)

    def rebind(self) -> None:
        """The NAT forgets the flow: the client's packets come from another port, packets to the old one are lost."""
        self.address = (self.address[0], self._next_port())

    def _next_port(self) -> int:
        self._port += 1
        return self._port

    def move(self) -> None:
        """The client changes its network and knows it: another address, another connection id."""
        self.address = (self.address[0].replace("198.51.", "203.0."), self._next_port())
        self.connection.moved(self.sim.now)
        self.flush()

    def redial(self, *, replay_ms: int = 0, keeper: PathKeeper | None = None) -> None:
        """Call the server once more from another port, to go on with the session there; the old connection is listened to until then."""
        entropy = self.sim.entropy(f"client{self._number}/quic/{self._port}/{self.sim.now}")

        assert isinstance(self.session, ClientSession)
        keeper = keeper or PathKeeper(self.session, chance=lambda: 1.0, replay_ms=replay_ms)
        pending = keeper.pending(lambda: self.connection)
        move = pending.take_up

        def take_up(now: float) -> SessionPort:
            session = move(now)
            assert self._dialling is not None
            self.connection, self.address = self._dialling
            self._dialling = None
            return session

        pending.take_up = take_up
        endpoint = self._endpoint(pending, entropy, self._config)
        self._dialling = endpoint.connection, (self.address[0], self._next_port())
        endpoint.connection.keeps_session = True
        endpoint.connection.connect(SERVER_ADDRESS, self.sim.now)
        self.flush()

    @property
    def is_dialling(self) -> bool:
        """Whether the handshake of another connection is under way."""
        return self._dialling is not None

    def give_up_dial(self) -> None:
        """Forget the new connection, if one is under way."""
        self._dialling = None

    def receive(self, data: bytes, address: Address) -> None:
        """A UDP payload of the server arrives at `address`."""
        if self._dialling is not None and address == self._dialling[1]:
            self._dialling[0].receive_datagram(data, SERVER_ADDRESS, self.sim.now)
            self.flush()
            return
        if address != self.address or isinstance(self.connection.session, Vacant):
            self.nat_dropped += 1
            return
        self._digest.update(b"%.6f %d" % (self.sim.now, len(data)))
        self.connection.receive_datagram(data, SERVER_ADDRESS, self.sim.now)
        self.flush()

    def next_timer(self) -> float | None:
        """The connections' timer."""
        timers = [connection.next_timer() for connection, _ in self._sockets()]
        timers.append(self.session.next_timer() if self.session.is_detached else None)
        return min((timer for timer in timers if timer is not None), default=None)

    def handle_timer(self, now: float) -> None:
        """A timer is due."""
        for connection, _ in self._sockets():
            connection.handle_timer(now)
        if self.session.is_detached:
            self.session.handle_timer(now)
        self.flush()

    def flush(self) -> None:
        """Carry away what the connection has to say."""
        if self._flushing:
            return
        self._flushing = True
        try:
            while True:
                event = self._next_event()
                if event is None:
                    self._transmit()
                    event = self._next_event()
                if event is None:
                    break
                self.record(event)
        finally:
            self._flushing = False
        self.sim.update(self)

    def _next_event(self) -> Event | None:
        carried: object = self.connection.session
        event = self.connection.next_event()
        return self.session.next_event() if event is None and carried is not self.session else event

    def _transmit(self) -> None:
        for connection, address in self._sockets():
            for data, _ in connection.datagrams_to_send(self.sim.now):
                self._world.to_server(self, data, address)

    def _sockets(self) -> list[tuple[Connection, Address]]:
        """Connections that have a socket, which closes when the session leaves."""
        found = [] if self._dialling is None else [self._dialling]
        return found if isinstance(self.connection.session, Vacant) else [(self.connection, self.address), *found]


class EndpointWorld:
    """One server and its clients.

    Args:
        seed: Of links and entropy.
        config: Of all sessions.
        retry: The server makes each client prove its address.
        resumable: The server keeps sessions whose connection breaks.
        early: The server gives out tickets, and clients ask for their resumption in early data.
        start: Virtual time at the beginning, in seconds.

    Attributes:
        sim: The engine.
        server: The server.
        clients: In order of their making.
        misrouted: Packets of the server to an address that was never a client's.
    """

    def __init__(
        self, *, seed: int = 0, config: SessionConfig | None = None, retry: bool = False, resumable: bool = False, early: bool = False,
        start: float = 1000.0,
    ) -> None:  # fmt: skip
        self.sim = Simulation(seed, start=start)
        self.start = start
        self.config = config or SessionConfig()
        self.clients: list[ClientHost] = []
        self.misrouted = 0
        self.early = early
        self.server = ServerHost(self, self.config, retry=retry, resumable=resumable)
        self._homes: dict[Address, ClientHost] = {}

    def client(self, profile: NetworkProfile | LinkProfile | None = None, *, config: SessionConfig | None = None,
               observer: Observer | None = None, drift_ppm: float = 0.0) -> ClientHost:  # fmt: skip
        """A new client, whose clock is fast by `drift_ppm`, begins to call now; its path begins now, too."""
        if not isinstance(profile, NetworkProfile):
            profile = NetworkProfile.both(profile or LinkProfile())
        clock = drifting(self.sim, drift_ppm)
        host = ClientHost(self, len(self.clients), profile, config or self.config, observer, clock)
        self.clients.append(host)
        return host

    def to_server(self, client: ClientHost, data: bytes, source: Address) -> None:
        """A client's UDP payload enters its path."""
        size = len(data) + IP_UDP_BYTES
        self._homes[source] = client
        client.packets["b2a"].append((self.sim.now - self.start, size))
        if "b2a" in client.mute:
            return
        for at in client.links["b2a"].send(self.sim.now, size):
            self.sim.at(at, lambda: self.server.receive(data, source))

    def to_client(self, data: bytes, address: Address) -> None:
        """A UDP payload of the server enters the path of the client that has or had that address."""
        client = self._homes.get(address)
        if client is None:
            self.misrouted += 1
            return
        size = len(data) + IP_UDP_BYTES
        client.packets["a2b"].append((self.sim.now - self.start, size))
        if "a2b" in client.mute:
            return
        for at in client.links["a2b"].send(self.sim.now, size):
            self.sim.at(at, lambda: client.receive(data, address))

    def run(self, seconds: float) -> None:
        """Let `seconds` of virtual time pass."""
        self.sim.run(self.sim.now + seconds)

    def digest(self) -> str:
        """Hash of the whole run, bytes of packets excepted: equal for equal seeds."""
        whole = hashlib.blake2b(digest_size=16)
        for client in self.clients:
            whole.update(f"{client.digest()} {client.packets}".encode())
        for number in sorted(self.server.sides):
            whole.update(self.server.sides[number].digest().encode())
        return whole.hexdigest()

    def open(self, *clients: ClientHost, within: float = 10.0) -> None:
        """Let time pass until these clients (all, if none is named) have been accepted.

        Raises:
            SimulationError: It does not happen within so many seconds, or one is closed instead.
        """
        wanted = clients or tuple(self.clients)

        def ready() -> bool:
            return all(client.seen(Accepted) or client.seen(Closed) for client in wanted)

        if not ready() and not self.sim.run(self.sim.now + within, stop=ready):
            self.sim.fail("a call was not accepted in time")
        for client in wanted:
            if client.seen(Closed):
                self.sim.fail(f"{client.name} was closed: {client.seen(Closed)[0][1]} {client.connection.connect_error}")
