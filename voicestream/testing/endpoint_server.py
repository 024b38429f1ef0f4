"""The server of `voicestream.testing.endpoint_sim`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from voicestream.config import SessionConfig
from voicestream.core.resume import TokenSealer
from voicestream.errors import ProtocolError
from voicestream.events import Event, HelloReceived, ResumeReceived
from voicestream.quic.endpoint import Address, Connection, ServerEndpoint
from voicestream.quic.session_homes import SessionHomes
from voicestream.quic.tickets import ServerTickets
from voicestream.session import ServerSession, Session
from voicestream.testing.side import CallSide
from voicestream.testing.sim_certificate import sim_certificate

if TYPE_CHECKING:
    from voicestream.testing.endpoint_sim import EndpointWorld

__all__ = ["ServerHost", "ServerSide"]


class ServerSide(CallSide):
    """The server's end of one call.

    Attributes:
        connection: Its connection.
    """

    def __init__(self, host: ServerHost, connection: Connection, session: Session, number: int) -> None:
        super().__init__(host.sim, f"server{number}", session)
        self.connection = connection
        self._host = host

    def flush(self) -> None:
        """Carry away what the connection has to say."""
        self._host.flush(self.connection)


class ServerHost:
    """The server, as a node of the engine.

    Attributes:
        endpoint: The real one.
        sides: Its calls, by number of the client once that has said HELLO.
        homes: Its sessions.
        refused: Codes with which resumptions were refused.
    """

    def __init__(self, world: EndpointWorld, config: SessionConfig, *, retry: bool, resumable: bool) -> None:
        self.sim = world.sim
        entropy = self.sim.entropy("server")
        sealer = TokenSealer(entropy(32))
        self.endpoint = ServerEndpoint(
            sim_certificate()[1],
            lambda: ServerSession(config, sealer=sealer, entropy=entropy),
            entropy=self.sim.entropy("server/quic"),
            limits=config.limits,
            retry=retry,
            tickets=ServerTickets(config.session_lifetime_s) if world.early else None,
        )
        self._asking: list[tuple[ServerSide, ResumeReceived]] = []
        self.sides: dict[int, ServerSide] = {}
        self.homes = SessionHomes()
        self._resumable = resumable
        self.refused: list[int] = []
        self._by_connection: dict[Connection, ServerSide] = {}
        self._world = world
        self._flushing = False

    def receive(self, data: bytes, address: Address) -> None:
        """A UDP payload arrives from `address`."""
        connection = self.endpoint.receive_datagram(data, address, self.sim.now)
        self.flush(connection, only_received=True)

    def next_timer(self) -> float | None:
        """The endpoint's timer."""
        return self.endpoint.next_timer()

    def handle_timer(self, now: float) -> None:
        """The endpoint's timer is due."""
        for connection in self.endpoint.handle_timer(now):
            self.flush(connection)

    def flush(self, connection: Connection | None, *, only_received: bool = False) -> None:
        """Carry away what one connection has to say, and what belongs to none. `only_received`: see `ServerEndpoint.rests`."""
        if self._flushing:
            return
        self._flushing = True
        try:
            self._flush(connection, only_received)
        finally:
            self._flushing = False
        self.sim.update(self)

    def _flush(self, connection: Connection | None, only_received: bool) -> None:
        now, endpoint = self.sim.now, self.endpoint
        packets = endpoint.replies_to_send()
        while (new := endpoint.next_connection()) is not None:
            session = new.session
            assert isinstance(session, Session)
            self._by_connection[new] = ServerSide(self, new, session, len(self._by_connection))
        asking, self._asking = self._asking, []
        for fresh, request in asking:
            self._resume(fresh, request)
        if connection is not None:
            while True:
                event = connection.next_event()
                if event is None:
                    if not only_received or not endpoint.rests(connection, now):
                        packets += endpoint.flush(connection, now)
                    event = connection.next_event()
                if event is None:
                    break
                only_received = False
                side = self._by_connection.get(connection)
                if side is not None:
                    self._react(side, event)
        for data, address in packets:
            self._world.to_client(data, address)

    def _react(self, side: ServerSide, event: Event) -> None:
        if isinstance(event, HelloReceived):
            number = int(event.path.removeprefix("/"))
            client = self._world.clients[number]
            side.name = f"server{number}"
            side.other, client.other = client, side
            self.sides[number] = side
            assert isinstance(side.session, ServerSession)
            side.session.accept(self.sim.now)
            if self._resumable:
                self.homes.add(side.connection)
        elif isinstance(event, ResumeReceived):
            self._resume(side, event)
            return
        side.record(event)

    def _resume(self, fresh: ServerSide, event: ResumeReceived) -> None:
        """A client wants its session to go on on the connection of `fresh`."""
        if fresh.connection.is_closed:
            return
        if not fresh.connection.is_up and not self.homes.waits(event.session_id, self.sim.now):
            self._asking.append((fresh, event))  # until its handshake is complete
            return
        try:
            before = self.homes.take_over(event.session_id, fresh.connection, self.sim.now)
        except ProtocolError as error:
            self.refused.append(error.code)
            return
        side = next(one for one in self.sides.values() if one.connection is before)
        del self._by_connection[before]
        self._by_connection[fresh.connection] = side
        side.connection = fresh.connection
        for data, address in self.endpoint.flush(before, self.sim.now):
            self._world.to_client(data, address)
