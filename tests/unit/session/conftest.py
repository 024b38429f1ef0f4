"""Two sessions joined by pipes in virtual time; each pipe delays, and may lose, reorder or repeat datagrams."""

from __future__ import annotations

import dataclasses
import heapq
import random
from collections.abc import Callable
from typing import Any

import pytest

from voicestream.config import SessionConfig
from voicestream.core.resume import TokenSealer
from voicestream.errors import ProtocolError
from voicestream.events import Closed, Event
from voicestream.session import ClientSession, ServerSession, Session
from voicestream.wire import Datagram, Frame, Message, MessageParser, decode_datagram, encode_datagram, encode_message

KEY = bytes(range(32))
OPUS_20_MS = b"\x08"  # SILK, narrowband, 20 ms, one frame

Fate = Callable[[int, bytes], list[float]]
"""From a datagram's count and bytes to the delays with which it arrives: none for a loss, two for a repetition."""


def entropy(seed: int) -> Callable[[int], bytes]:
    return random.Random(seed).randbytes


def frame(serial: int = 0, size: int = 60, units: int = 8) -> bytes:
    """An Opus packet of 20 ms, or of 60 ms with units=24."""
    toc = {8: 0x08, 24: 0x18, 16: 0x10, 4: 0x00}[units]
    return bytes([toc]) + serial.to_bytes(4, "big") + bytes(size - 5)


class Recorder:
    """An observer that keeps everything."""

    def __init__(self) -> None:
        self.records: list[tuple[float, str, dict[str, object]]] = []

    def record(self, now: float, name: str, data: Any) -> None:
        self.records.append((now, name, dict(data)))

    def named(self, name: str) -> list[dict[str, object]]:
        return [data for _, one, data in self.records if one == name]


class Player:
    """Stands in for a playout: keeps what it gets and answers a clear with a given pts."""

    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.kinds: list[Any] = []
        self.send_times: list[float | None] = []
        self.clears: list[tuple[int, int, int]] = []
        self.ahead: list[tuple[int, bool]] = []
        self.expected: list[tuple[float, bool]] = []
        self.supposed: list[float] = []
        self.finish_pts: int | None = None
        self.heard = 0
        self.level_units = 12.0
        self.target_units = 16.0
        self.heard_now = 0
        self.is_exact = False

    def insert(self, frame: Any, now: float, *, kind: Any = None, send_time: float | None = None) -> None:
        self.frames.append(frame)
        self.kinds.append(kind)
        self.send_times.append(send_time)

    def suppose(self, wait: float) -> None:
        self.supposed.append(wait)

    def expect_repairs(self, wait: float, *, answered: bool) -> None:
        self.expected.append((wait, answered))

    def set_ahead(self, from_pts: int, ahead: bool) -> None:
        self.ahead.append((from_pts, ahead))

    def clear(self, from_pts: int, to_pts: int, number: int) -> int:
        self.clears.append((from_pts, to_pts, number))
        return self.heard

    def finish(self, pts: int) -> None:
        self.finish_pts = pts

    @property
    def pts(self) -> list[int]:
        return [one.pts for one in self.frames]


class Reader(Player):
    """Stands in for an ordered reader."""

    def wait_for(self, answer: float) -> None:
        """Not needed."""

    def outlive(self, silence: float) -> None:
        """Not needed."""

    def sign_of_life(self, now: float) -> None:
        """Nor this."""

    def expect_answer(self, now: float) -> None:
        """Nor this."""

    def answered(self, sent_at: float) -> float | None:
        """Nor this."""

    def clear(self, from_pts: Any = None, to_pts: Any = None, number: Any = None) -> int:
        self.clears.append((from_pts, to_pts, number))
        return self.heard


def with_pairs(config: SessionConfig, pairs: bool) -> SessionConfig:
    """The same, with or without datagrams that only measure the path."""
    return dataclasses.replace(config, rate=dataclasses.replace(config.rate, pairs=pairs))


class Pair:
    """A client and a server, and what is on its way between them."""

    def __init__(
        self,
        client: SessionConfig | None = None,
        server: SessionConfig | None = None,
        *,
        delay: float = 0.02,
        seed: int = 1,
        to_server: Fate | None = None,
        to_client: Fate | None = None,
        control_delay: float | None = None,
        start: float = 100.0,
        path: str = "/agent",
        pairs: bool = False,
    ) -> None:
        plain = SessionConfig(grease=False)
        client, server = (with_pairs(config or plain, pairs) for config in (client, server))
        self.now = start
        self.logs = {"client": Recorder(), "server": Recorder()}
        self.client = ClientSession(
            client, authority="host", path=path, token=b"secret", entropy=entropy(seed), observer=self.logs["client"]
        )
        self.server = ServerSession(server, sealer=TokenSealer(KEY), entropy=entropy(seed + 1), observer=self.logs["server"])
        self.delay = delay
        self.control_delay = delay if control_delay is None else control_delay
        self.fates: dict[str, Fate | None] = {"server": to_server, "client": to_client}
        self.events: dict[str, list[Event]] = {"client": [], "server": []}
        self.sent: dict[str, list[Datagram]] = {"client": [], "server": []}
        self.stopped: dict[str, list[tuple[int, int]]] = {"client": [], "server": []}
        self._flying: list[tuple[float, int, str, str, Any]] = []
        self._serial = 0
        self._counts = {"client": 0, "server": 0}

    def side(self, name: str) -> Session:
        return self.client if name == "client" else self.server

    # Running

    def run(self, seconds: float) -> None:
        """Let time pass; everything that is due happens in order."""
        end = self.now + seconds
        self.drain()
        instants = 0
        while True:
            times = [self._flying[0][0]] if self._flying else []
            times += [timer for one in (self.client, self.server) if (timer := one.next_timer()) is not None]
            due = max(min(times, default=end), self.now)
            if due > end:
                break
            instants = instants + 1 if due == self.now else 0
            assert instants < 100, "the sessions never come to rest"
            self.now = due
            self._deliver()
            for one in (self.client, self.server):
                one.handle_timer(self.now)
            self.drain()
            if not times:
                break
        self.now = end

    def drain(self) -> None:
        """Take what both sides have to send."""
        for name, other in (("client", "server"), ("server", "client")):
            session = self.side(name)
            control = session.control_to_send()
            if control:
                self._fly(self.control_delay, other, "control", control)
            for datagram in session.datagrams_to_send(self.now):
                assert len(datagram) <= 1160
                self.sent[name].append(decode_datagram(datagram))
                fate = self.fates[other]
                count = self._counts[name]
                self._counts[name] += 1
                for delay in [self.delay] if fate is None else fate(count, datagram):
                    self._fly(delay, other, "datagram", datagram)
            for chunk in session.streams_to_send(self.now):
                self._fly(self.control_delay, other, "stream", chunk)
            self.stopped[name] += session.streams_to_stop()
            while (event := session.next_event()) is not None:
                self.events[name].append(event)

    def _fly(self, delay: float, to: str, kind: str, data: Any) -> None:
        self._serial += 1
        heapq.heappush(self._flying, (self.now + delay, self._serial, to, kind, data))

    def _deliver(self) -> None:
        while self._flying and self._flying[0][0] <= self.now:
            _, _, to, kind, data = heapq.heappop(self._flying)
            session = self.side(to)
            if kind == "datagram":
                session.receive_datagram(data, self.now)
            elif kind == "control":
                session.receive_control(data, self.now)
            else:
                key, chunk, fin = data
                session.receive_stream(key, chunk, fin, self.now)

    # Usual steps

    def ask(self) -> Pair:
        """HELLO has reached the server."""
        self.server.start(self.now)
        self.client.start(self.now)
        self.run(4 * self.control_delay)
        return self

    def open(self) -> Pair:
        """Both sides are open."""
        self.ask()
        self.server.accept(self.now)
        self.run(4 * self.control_delay)
        return self

    def talk(self, seconds: float, *names: str, size: int = 60, units: int = 8, **options: Any) -> list[int]:
        """The named sides (both by default) send a frame after the other; returns the pts of the last named one."""
        sent = []
        for serial in range(round(seconds * 400 / units)):
            for name in names or ("client", "server"):
                pts = self.side(name).send_frame(frame(serial, size, units), self.now, **options)
            sent.append(pts)
            self.run(units / 400)
        return sent

    # Looking

    def of(self, name: str, kind: type) -> list[Any]:
        """Events of one kind that a side reported."""
        return [event for event in self.events[name] if isinstance(event, kind)]

    def closed(self, name: str) -> Closed:
        """The one Closed event of a side."""
        self.drain()
        found = self.of(name, Closed)
        assert len(found) == 1, found
        assert self.events[name][-1] is found[0]
        return found[0]

    def frames(self, name: str, kind: type) -> list[Any]:
        """Frames of one kind in the datagrams that a side sent."""
        return [one for datagram in self.sent[name] for one in datagram.frames if isinstance(one, kind)]


def make_datagram(*frames: Frame, number: int = 0, tick: int = 0) -> bytes:
    return encode_datagram(Datagram(number=number, send_tick=tick, frames=frames))


class Hand:
    """A peer played by hand against one session, to say what no session of ours would."""

    def __init__(self, session: Session, now: float = 50.0) -> None:
        self.session = session
        self.now = now
        self.number = 0
        self.events: list[Event] = []
        self.received: list[Message] = []
        self._parser = MessageParser()

    def say(self, *messages: Message) -> None:
        self.session.receive_control(b"".join(encode_message(one) for one in messages), self.now)
        self.look()

    def show(self, *frames: Frame) -> None:
        self.session.receive_datagram(make_datagram(*frames, number=self.number & 0xFFFF), self.now)
        self.number += 1
        self.look()

    def look(self) -> None:
        while (event := self.session.next_event()) is not None:
            self.events.append(event)
        try:
            self.received += self._parser.feed(self.session.control_to_send())
        except ProtocolError as error:
            raise AssertionError("the session itself sent what cannot be decoded") from error

    def of(self, kind: type) -> list[Any]:
        self.look()
        return [event for event in self.events if isinstance(event, kind)]

    def closed(self) -> Closed:
        found = self.of(Closed)
        assert len(found) == 1, self.events
        assert self.events[-1] is found[0]
        assert self.session.is_closed
        return found[0]


class Kit:
    """What the tests of this folder share; a fixture, since test modules import nothing from each other."""

    Pair = Pair
    Player = Player
    Reader = Reader
    Recorder = Recorder
    Hand = Hand
    KEY = KEY
    frame = staticmethod(frame)
    entropy = staticmethod(entropy)
    datagram = staticmethod(make_datagram)

    @staticmethod
    def lossy(seed: int, share: float, *, delay: float = 0.02, jitter: float = 0.0, repeat: float = 0.0) -> Fate:
        """Loses a share, delays by up to `jitter` more (so that datagrams overtake each other), repeats some."""
        rng = random.Random(seed)

        def fate(count: int, data: bytes) -> list[float]:
            if rng.random() < share:
                return []
            delays = [delay + rng.random() * jitter]
            if rng.random() < repeat:
                delays.append(delay + rng.random() * jitter)
            return delays

        return fate


@pytest.fixture(scope="session")
def kit() -> type[Kit]:
    return Kit


@pytest.fixture
def pair() -> Pair:
    """An open pair."""
    return Pair().open()
