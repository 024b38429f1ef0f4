"""A call of two sessions over a hostile network in virtual time, that checks what both promise; driven by `voicestream.testing.stateful`.

It needs neither sockets nor hypothesis, so a failing example can be written down as a plain test.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from voicestream.config import PlayoutConfig, SessionConfig
from voicestream.core.playout import Decode, Gap, Merge, OrderedReader, Playout, Repair
from voicestream.core.resume import TokenSealer
from voicestream.errors import ProtocolError
from voicestream.events import Closed, Event, EventReceived, HelloReceived, Progress, Resumed, ResumeReceived
from voicestream.session import ClientSession, ServerSession
from voicestream.testing.device import execute_without_sound
from voicestream.testing.fuzz_victim import held_bytes

__all__ = ["BrokenPromise", "Fates", "HostileCall", "Party"]

MAX_HELD_BYTES = 4 << 20
"""What one session may hold."""

BLOCK_UNITS = 8.0


class BrokenPromise(AssertionError):
    """A session did what it must not do."""


def check(condition: bool, message: str) -> None:
    """Raise `BrokenPromise` unless `condition` holds."""
    if not condition:
        raise BrokenPromise(message)


@dataclass(slots=True, kw_only=True)
class Fates:
    """What the network does to datagrams at present: probabilities of 0 to 1, and seconds.

    Control and event streams are delayed like datagrams, and arrive whole and in order as long as the connection lives.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    delay: float = 0.02
    jitter: float = 0.0


@dataclass(slots=True)
class Party:
    """One side: session and application.

    Attributes:
        name: "client" or "server".
        session: Under test.
        sent: Payload of each frame given to the session, by pts.
        units: Their lengths.
        heard: Pts that the application got, in this order.
        events: What the session reported.
        events_sent: Payloads of the application events sent, by id; ordered ones have their place in `ordered_sent`.
        closed_by_app: Codes with which the application closed.
    """

    name: str
    session: ClientSession | ServerSession
    sent: dict[int, bytes] = field(default_factory=dict)
    units: dict[int, int] = field(default_factory=dict)
    heard: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    events_sent: dict[int, bytes] = field(default_factory=dict)
    ordered_sent: list[int] = field(default_factory=list)
    events_got: list[int] = field(default_factory=list)
    ordered_got: list[int] = field(default_factory=list)
    closed_by_app: list[int] = field(default_factory=list)
    kept: int = 0
    progress: int = 0
    reader: OrderedReader | None = None
    playout: Playout | None = None
    held_units: float = 0.0
    next_block: float | None = None

    @property
    def closed(self) -> Closed | None:
        """How the session ended, if it has."""
        return next((event for event in self.events if isinstance(event, Closed)), None)


class HostileCall:
    """Two sessions, their applications, and the network between them.

    Args:
        rng: Of the network and of the sessions' entropy.
        client: The client's settings.
        server: The server's; the client's by default.
    """

    def __init__(self, rng: random.Random, client: SessionConfig | None = None, server: SessionConfig | None = None) -> None:
        client = client or SessionConfig()
        self.rng = rng
        self.now = 1000.0
        self.fates = Fates()
        self._server_config = server or client
        self._sealer = TokenSealer(rng.randbytes(32))
        self.client = Party("client", ClientSession(client, authority="stateful.example", entropy=rng.randbytes))
        self.server = Party("server", self._new_server())
        self._fresh: ServerSession | None = None
        self.generation = 0
        """Connections so far; what is under way on an older one never arrives."""
        self._flights: list[tuple[float, int, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._last: dict[tuple[str, str, int], float] = {}

    @property
    def parties(self) -> tuple[Party, Party]:
        """Client and server."""
        return self.client, self.server

    def other(self, party: Party) -> Party:
        """The far side."""
        return self.server if party is self.client else self.client

    def _new_server(self) -> ServerSession:
        return ServerSession(self._server_config, sealer=self._sealer, entropy=self.rng.randbytes)

    def open(self) -> None:
        """Shake hands. The client plays what it hears on a device, the server takes it in order."""
        self.server.session.start(self.now)
        self.client.session.start(self.now)
        self.flush(self.client)
        self.wait(0.5)
        check(self.client.session.is_open and self.server.session.is_open, "no call came about on a good path")
        self.client.playout = Playout(PlayoutConfig(), track=0)
        self.client.session.receivers[0].attach_playout(self.client.playout)
        self.client.next_block = self.now
        self.server.reader = OrderedReader(150)
        self.server.session.receivers[0].attach_ordered(self.server.reader)

    # ------------------------------------------------------------------ what the applications do

    def send(self, party: Party, payload: bytes, units: int, *, start: bool = False, end: bool = False) -> int:
        """Give a frame to a session."""
        detached = party.session.is_detached
        queued = self._queued(party)
        pts = party.session.send_frame(payload, self.now, units=units, talkspurt_start=start, talkspurt_end=end)
        last = max(party.sent, default=None)
        check(last is None or pts >= last + party.units[last], f"{party.name}: pts {pts} goes back behind {last}")  # VS-6.1-1, VS-6.1-2
        party.sent[pts], party.units[pts] = payload, units
        party.kept += detached and self._queued(party) == queued
        self.flush(party)
        return pts

    @staticmethod
    def _queued(party: Party) -> int:
        stats = party.session.stats(0.0).tracks[0]
        return stats.frames_queued + stats.frames_overflowed

    def send_event(self, party: Party, payload: bytes, *, ordered: bool) -> None:
        """Send an application event."""
        number = party.session.send_event(payload, self.now, ordered=ordered)
        check(number not in party.events_sent, f"{party.name}: event id {number} was used twice")  # VS-7.1-1
        party.events_sent[number] = payload
        if ordered:
            party.ordered_sent.append(number)
        self.flush(party)

    def close(self, party: Party, code: int) -> None:
        """End the call."""
        if not party.session.is_closed:
            party.closed_by_app.append(code)
        party.session.close(self.now, code, "stateful")
        self.flush(party)

    def lose(self) -> None:
        """The connection is gone at both ends, with all that is under way."""
        self.generation += 1
        self._flights.clear()
        self._last.clear()
        self._fresh = None
        for party in self.parties:
            if party.session.is_open and not party.session.is_detached:
                party.kept += party.session.stats(self.now).tracks[0].frames_queued
            party.session.path_lost(self.now)
            self.flush(party)
        self._flights.clear()

    def resume(self) -> None:
        """The client asks for its session on a new connection."""
        self.generation += 1
        self._flights.clear()
        self._last.clear()
        self._fresh = self._new_server()
        self._fresh.start(self.now)
        session = self.client.session
        assert isinstance(session, ClientSession)
        session.resume_on_new_connection(self.now)
        self.flush(self.client)

    # ------------------------------------------------------------------ time and network

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        while True:
            due = [flight[0] for flight in self._flights[:1]]
            sessions = [self.client.session, self.server.session, *([self._fresh] if self._fresh else [])]
            due += [timer for session in sessions if (timer := session.next_timer()) is not None]
            due += [party.next_block for party in self.parties if party.next_block is not None]
            due += [timer for party in self.parties if party.reader is not None and (timer := party.reader.next_timer()) is not None]
            at = min(due, default=until)
            if at > until:
                break
            self.now = max(self.now, at)
            while self._flights and self._flights[0][0] <= self.now:
                heapq.heappop(self._flights)[3]()
            for session in sessions:
                timer = session.next_timer()
                if timer is not None and timer <= self.now:
                    session.handle_timer(self.now)
            for party in self.parties:
                self._live(party)
                self.flush(party)
        self.now = until

    def _live(self, party: Party) -> None:
        """The application takes what is there."""
        if party.reader is not None:
            while (item := party.reader.next(self.now)) is not None:
                if isinstance(item, Gap):
                    check(item.from_pts < item.to_pts, f"{party.name}: an empty gap {item}")
                else:
                    self._heard(party, item.pts, item.payload)
            if not party.session.is_closed:
                party.session.report_played(party.reader.next_pts, self.now)
        if party.playout is not None and party.next_block is not None and party.next_block <= self.now:
            party.next_block += 0.02
            playout = party.playout
            if playout.take_void(party.held_units):
                party.held_units = 0.0
            while party.held_units < BLOCK_UNITS:
                party.held_units += self._decide(party, playout)
            party.held_units -= BLOCK_UNITS
            if not party.session.is_closed:
                party.session.report_played(playout.heard_pts(party.held_units), self.now)

    def _decide(self, party: Party, playout: Playout) -> float:
        made: list[tuple[int, bytes]] = []
        real = playout.next

        class Seen:
            """What the device asks, with an eye on the frames that it gets."""

            @staticmethod
            def next(now: float, held: float) -> object:
                decision = real(now, held)
                frame = getattr(decision, "frame", None)
                if frame is not None and (isinstance(decision, Decode | Merge | Repair) or hasattr(decision, "units")):
                    made.append((frame.pts, frame.payload))
                return decision

            done = playout.done

        units = execute_without_sound(Seen, self.now, party.held_units)  # type: ignore[arg-type]
        for pts, payload in made:
            self._heard(party, pts, payload)
        return units

    def _heard(self, party: Party, pts: int, payload: bytes) -> None:
        check(not party.heard or pts > party.heard[-1], f"{party.name}: pts {pts} comes after {party.heard[-1:]}")  # VS-6.1-5
        party.heard.append(pts)
        check(self.other(party).sent.get(pts) == payload, f"{party.name}: pts {pts} is not what was sent")

    def flush(self, party: Party) -> None:
        """Carry away what a side has to say."""
        sessions: list[ClientSession | ServerSession] = [party.session]
        if party is self.server and self._fresh is not None:
            sessions.append(self._fresh)
        for session in sessions:
            while (event := session.next_event()) is not None:
                self._react(party, session, event)
            # While the client asks on a new connection, what the server has for the old one goes nowhere.
            lost = session is self.server.session and self._fresh is not None
            self._carry(party, session, lost)

    def _carry(self, party: Party, session: ClientSession | ServerSession, lost: bool) -> None:
        far, fates = self.other(party), self.fates
        control = session.control_to_send()
        streams = session.streams_to_send(self.now)
        session.streams_to_stop()
        datagrams = session.datagrams_to_send(self.now)
        if lost:
            return
        if control:
            self._fly(party.name, "control", 0, lambda: self._to_control(far, control))
        for key, data, fin in streams:
            self._fly(party.name, "stream", key, lambda key=key, data=data, fin=fin: self._stream(far, key, data, fin))  # type: ignore[misc]
        for datagram in datagrams:
            for _ in range(0 if self.rng.random() < fates.loss else 2 if self.rng.random() < fates.duplicate else 1):
                self._fly(party.name, "", 0, lambda datagram=datagram: self._datagram(far, datagram))  # type: ignore[misc]

    def _fly(self, name: str, channel: str, key: int, arrive: Callable[[], None]) -> None:
        at = self.now + self.fates.delay + self.rng.random() * self.fates.jitter
        if channel:  # streams keep their order
            at = max(at, self._last.get((name, channel, key), 0.0))
            self._last[name, channel, key] = at
        heapq.heappush(self._flights, (at, next(self._count), self.generation, arrive))

    def _to_control(self, far: Party, data: bytes) -> None:
        (self._fresh if far is self.server and self._fresh is not None else far.session).receive_control(data, self.now)
        self.flush(far)

    def _stream(self, far: Party, key: int, data: bytes, fin: bool) -> None:
        far.session.receive_stream(self.generation << 32 | key, data, fin, self.now)
        self.flush(far)

    def _datagram(self, far: Party, data: bytes) -> None:
        far.session.receive_datagram(data, self.now)
        self.flush(far)

    def _react(self, party: Party, session: ClientSession | ServerSession, event: Event) -> None:
        if session is not party.session:
            if isinstance(event, ResumeReceived):
                self._take_over(event)
            return
        party.events.append(event)
        if isinstance(event, HelloReceived) and isinstance(session, ServerSession):
            session.accept(self.now)
        elif isinstance(event, EventReceived):
            check(event.event_id not in party.events_got, f"{party.name}: event {event.event_id} came twice")  # VS-7.3-2
            party.events_got.append(event.event_id)
            check(self.other(party).events_sent.get(event.event_id) == event.payload, f"{party.name}: an event that was not sent")
            if event.order:
                party.ordered_got.append(event.event_id)
                check(event.order == len(party.ordered_got), f"{party.name}: ordered event {event.order} came out of turn")
        elif isinstance(event, Resumed):
            party.progress = 0
        elif isinstance(event, Progress):
            check(event.played_pts >= party.progress, f"{party.name}: progress goes back to {event.played_pts}")  # VS-8.3-2
            party.progress = event.played_pts

    def _take_over(self, event: ResumeReceived) -> None:
        fresh, self._fresh = self._fresh, None
        assert fresh is not None
        assert isinstance(self.server.session, ServerSession)
        try:
            self.server.session.take_over(fresh, self.now)
            self.flush(self.server)
        except ProtocolError as error:
            fresh.reject(self.now, error.code, error.reason)
            self._carry(self.server, fresh, False)

    # ------------------------------------------------------------------ promises

    def check_frames(self) -> None:
        """Every frame is accounted for, in both directions."""
        for party in self.parties:
            stats = party.session.stats(self.now)
            if stats.tracks:
                one = stats.tracks[0]
                fates = one.frames_sent + one.frames_expired + one.frames_overflowed + one.frames_cleared + one.frames_queued + party.kept
                check(fates == len(party.sent), f"{party.name}: {len(party.sent)} frames given, {fates} accounted for: {one}")
            if party.reader is not None:
                taken = party.reader.account
                fates = taken.frames_delivered + taken.frames_late + taken.frames_discarded + taken.frames_duplicate
                check(taken.frames_received == fates + party.reader.held_frames, f"{party.name}: {taken}")
            if party.playout is not None:  # VS-16-5
                played = party.playout.account
                fates = played.frames_played + played.frames_late + played.frames_discarded + played.frames_duplicate
                check(played.frames_received == fates + played.frames_expired + party.playout.held_frames, f"{party.name}: {played}")

    def check_memory(self) -> None:
        """What a session holds is bounded."""
        for party in self.parties:
            size = held_bytes(party.session)
            check(size < MAX_HELD_BYTES, f"{party.name} holds {size} bytes")

    def check_close(self) -> None:
        """On a good path both sides come to the same end. A side ends a call only when it was told to, by its application or its peer."""
        for party in self.parties:
            if party.closed is not None and not party.closed.remote:
                check(party.closed.code in party.closed_by_app, f"{party.name} closed by itself: {party.closed}")
        one, two = self.client.closed, self.server.closed
        check((one is None) == (two is None), f"the client ended with {one}, the server with {two}")
        if one is not None and two is not None and (one.remote or two.remote):
            check(one.code == two.code, f"the client ended with {one}, the server with {two}")
            check(one.remote != two.remote, f"neither closed: {one}, {two}")
