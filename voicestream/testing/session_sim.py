"""Whole calls between two sessions across emulated links in virtual time: no socket, no QUIC, no codec, no waiting.

    call = SessionCall(NetworkProfile.both(LinkProfile(delay_ms=20, loss=0.05)), seed=7)
    call.client.speak()
    call.run(60)
    print(call.server.heard().concealed_share)

The client is host B of the profile, the server host A. Datagrams and streams share the links; what a link loses of a stream is
sent again, as QUIC would.
"""

from __future__ import annotations

import hashlib

from voicestream.config import SessionConfig
from voicestream.core.resume import TokenSealer
from voicestream.events import Accepted, Event, HelloReceived
from voicestream.session import ClientSession, ServerSession
from voicestream.testing.link import Link
from voicestream.testing.pipe import DatagramPipe, ReliablePipe
from voicestream.testing.profile import LinkProfile, NetworkProfile
from voicestream.testing.side import CallSide
from voicestream.testing.sim import Simulation

__all__ = ["SessionCall", "SessionPeer"]


class SessionPeer(CallSide):
    """A session joined to the other one by pipes, as a node of the engine."""

    def __init__(self, sim: Simulation, name: str, session: ClientSession | ServerSession) -> None:
        super().__init__(sim, name, session)
        self._own = session
        self._streams: dict[int, ReliablePipe] = {}
        self._flushing = False

    def connect(self, link: Link, other: SessionPeer, *, retry_s: float, rtt: float) -> None:
        """Join this side's output to the other side's input; a transport's handshake would have measured `rtt` on the way."""
        self._rtt = rtt
        self.other = self._far = other
        self._link = link
        self._retry_s = retry_s
        self._datagrams = DatagramPipe(self.sim, link, other.receive_datagram)
        self._control = ReliablePipe(self.sim, link, other.receive_control, retry_s=retry_s)

    def start(self) -> None:
        """Begin the handshake."""
        self._own.start(self.sim.now, self._rtt)
        self.flush()

    def receive_datagram(self, data: bytes) -> None:
        """A datagram arrives."""
        self._digest.update(b"%.6f" % self.sim.now + data)
        self.session.receive_datagram(data, self.sim.now)
        self.flush()

    def receive_control(self, data: bytes, fin: bool) -> None:
        """Bytes of the control stream arrive."""
        self._digest.update(b"%.6f" % self.sim.now + data)
        self.session.receive_control(data, self.sim.now, fin=fin)
        self.flush()

    def _receive_stream(self, key: int, data: bytes, fin: bool) -> None:
        self._digest.update(b"%.6f" % self.sim.now + data)
        self.session.receive_stream(key, data, fin, self.sim.now)
        self.flush()

    def next_timer(self) -> float | None:
        """The session's timer."""
        return self.session.next_timer()

    def handle_timer(self, now: float) -> None:
        """The session's timer is due."""
        self.session.handle_timer(now)
        self.flush()

    def flush(self) -> None:
        """Carry away everything that the session has to say; to be called after every verb of it."""
        if self._flushing:  # a handler of an event used a verb; the loop below goes on
            return
        self._flushing = True
        session, now = self.session, self.sim.now
        try:
            while True:
                event = session.next_event()
                if event is None:
                    self._carry(now)
                    event = session.next_event()
                if event is None:
                    break
                self._react(event)
        finally:
            self._flushing = False
        self.sim.update(self)

    def flush_control(self) -> None:
        """Carry away a control message, if there is one, and read the timer again: a third of all flushes is for players' reports."""
        control = self.session.control_to_send()
        if control:
            self._control.send(control)
            self.flush()
        else:
            self.sim.update(self)

    def _carry(self, now: float) -> None:
        session = self.session
        control = session.control_to_send()
        if control:
            self._control.send(control)
        for key, data, fin in session.streams_to_send(now):
            if key not in self._streams:
                self._streams[key] = self._open_stream(key)
            self._streams[key].send(data, fin)
            if fin:
                del self._streams[key]
        session.streams_to_stop()
        for datagram in session.datagrams_to_send(now):
            self._datagrams.send(datagram)

    def _open_stream(self, key: int) -> ReliablePipe:
        far = self._far
        return ReliablePipe(self.sim, self._link, lambda data, fin: far._receive_stream(key, data, fin), retry_s=self._retry_s)

    def _react(self, event: Event) -> None:
        if isinstance(event, HelloReceived) and isinstance(self.session, ServerSession):
            self.session.accept(self.sim.now)
        self.record(event)


class SessionCall:
    """A client and a server session joined by a path.

    Args:
        profile: The path, a perfect one by default; the client is its host B. Its `rebind` has no meaning at this depth.
        seed: Of the links, the sessions' entropy and the devices.
        client: Configuration of the client.
        server: Configuration of the server; the client's by default.
        start: Virtual time at which the path and the handshake begin.

    Attributes:
        sim: The engine.
        client: Host B.
        server: Host A; accepts every call.
        links: From client to server ("b2a"), and back ("a2b").
    """

    def __init__(
        self,
        profile: NetworkProfile | LinkProfile | None = None,
        *,
        seed: int = 0,
        client: SessionConfig | None = None,
        server: SessionConfig | None = None,
        start: float = 1000.0,
    ) -> None:
        if not isinstance(profile, NetworkProfile):
            profile = NetworkProfile.both(profile or LinkProfile())
        client = client or SessionConfig()
        self.sim = sim = Simulation(seed, start=start)
        self.start = start
        caller = ClientSession(client, authority="sim.example", path="/call", entropy=sim.entropy("client"))
        self.client = SessionPeer(sim, "client", caller)
        sealer = TokenSealer(sim.entropy("key")(32))
        self.server = SessionPeer(sim, "server", ServerSession(server or client, sealer=sealer, entropy=sim.entropy("server")))
        self.links = {"a2b": Link(profile.a2b, f"{seed}/a2b", epoch=start), "b2a": Link(profile.b2a, f"{seed}/b2a", epoch=start)}
        rtt = (profile.a2b.delay_ms + profile.b2a.delay_ms) / 1e3
        retry_s = rtt * 1.5 + 0.05
        self.client.connect(self.links["b2a"], self.server, retry_s=retry_s, rtt=rtt)
        self.server.connect(self.links["a2b"], self.client, retry_s=retry_s, rtt=rtt)
        self.server.start()
        self.client.start()

    def run(self, seconds: float) -> None:
        """Let `seconds` of virtual time pass."""
        self.sim.run(self.sim.now + seconds)

    def open(self, *, within: float = 10.0) -> None:
        """Let time pass until both sides may send.

        Raises:
            SimulationError: It does not happen within so many seconds.
        """
        if not self.sim.run(self.sim.now + within, stop=lambda: bool(self.client.seen(Accepted))):
            self.sim.fail("the call was not accepted in time")

    def digest(self) -> str:
        """Hash of the whole run: equal for equal seeds."""
        return hashlib.blake2b((self.client.digest() + self.server.digest()).encode(), digest_size=16).hexdigest()
