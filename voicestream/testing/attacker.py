"""A client that keeps to no rule, in a world of calls: what it sends is put into its QUIC connection by hand.

    world = EndpointWorld(seed=1)
    honest, attacker = world.client(), Attacker(world)
    world.open()
    attacker.say(ProbeFrame(cluster=0, size=1000), times=500)
    world.run(5)
    assert attacker.fate is not None and attacker.fate.code == ErrorCode.LIMIT_EXCEEDED
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, cast

from voicestream.config import SessionConfig
from voicestream.events import Closed
from voicestream.quic.endpoint import Address, SessionPort
from voicestream.session import Session
from voicestream.testing.endpoint_sim import EndpointWorld
from voicestream.testing.profile import LinkProfile, NetworkProfile
from voicestream.wire import Datagram, Frame, Message, encode_datagram, encode_message
from voicestream.wire.frame_values import ReportFrame
from voicestream.wire.sequence import ticks

__all__ = ["Attacker"]

CONTROL_STREAM = 0


class Attacker:
    """A client of a world, whose session can be bypassed.

    Args:
        world: Where it lives.
        profile: Its path; a good one by default.
        config: Of its session.

    Attributes:
        client: The host.
    """

    def __init__(
        self, world: EndpointWorld, profile: NetworkProfile | LinkProfile | None = None, *, config: SessionConfig | None = None
    ) -> None:
        self.client = world.client(profile, config=config)
        self._world = world
        self._index = len(world.clients) - 1
        self._rng = random.Random(world.sim.seed)

    @property
    def fate(self) -> Closed | None:
        """How the server has ended its call; None while that goes on."""
        side = self._world.server.sides.get(self._index)
        ends = [] if side is None else side.seen(Closed)
        return ends[0][1] if ends else None

    @property
    def victim(self) -> Session:
        """The server's session of its call."""
        return self._world.server.sides[self._index].session

    def say(self, *frames: Frame, tick: int | None = None, number: int | None = None, times: int = 1) -> None:
        """Send a datagram with these frames, so many times at once, under the next number each time unless one is given.

        From then on its session hears no datagrams any more: it would be the first to object.
        """
        self._deafen()
        sent, now = self.client.session._link.reports.sent, self._world.sim.now
        for _ in range(times):
            own = sent.next_number if number is None else number
            data = encode_datagram(
                Datagram(number=own & 0xFFFF, send_tick=(ticks(now) if tick is None else tick) & 0xFFFF, frames=frames)
            )
            if number is None:
                sent.sent(len(data), now)
            self.client.connection._quic.offer_datagram(data)
        self.client.flush()

    def _deafen(self) -> None:
        carried: Any = self.client.connection.session
        if not isinstance(carried, _Deaf):
            self.client.connection.adopt(cast(SessionPort, _Deaf(carried)))

    def datagram(self, data: bytes) -> None:
        """Send these bytes as a datagram."""
        self.client.connection._quic.offer_datagram(data)
        self.client.flush()

    def message(self, *messages: Message) -> None:
        """Send control messages."""
        self.stream(CONTROL_STREAM, b"".join(map(encode_message, messages)))

    def stream(self, stream_id: int, data: bytes, *, fin: bool = False) -> None:
        """Send bytes on a stream."""
        self.client.connection._quic.offer_stream_data(stream_id, data, fin=fin)
        self.client.flush()

    def open_streams(self, *each: bytes, fin: bool = True, unidirectional: bool = True) -> None:
        """Send bytes on streams of their own."""
        quic = self.client.connection._quic
        for data in each:
            quic.offer_stream_data(quic.get_next_available_stream_id(is_unidirectional=unidirectional), data, fin=fin)
        self.client.flush()

    def lie(self, change: Callable[[ReportFrame], ReportFrame]) -> None:
        """Change every report that its session makes from now on."""
        reports = self.client.session._link.reports
        made = reports.make

        class Liar(type(reports)):  # type: ignore[misc]
            __slots__ = ()

            def make(self, *args: Any, **options: Any) -> Any:
                found = made(*args, **options)
                return None if found is None else (change(found[0]), found[1])

        reports.__class__ = Liar

    def forge(self, count: int, data: Callable[[int], bytes], *, hosts: int = 65536) -> None:
        """Have so many UDP payloads come to the server from other addresses."""
        for n in range(count):
            host = n % hosts
            source: Address = (f"203.0.{host // 250 % 250}.{host % 250 + 1}", 1024 + self._rng.randrange(60000))
            self._world.server.receive(data(n), source)


class _Deaf:
    """A session that datagrams do not reach."""

    def __init__(self, session: SessionPort) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def receive_datagram(self, data: bytes, now: float) -> None:
        """Not taken."""
