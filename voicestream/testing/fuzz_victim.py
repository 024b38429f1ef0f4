"""Sessions in every state of their life, to be fed with hostile input, and the checks on what they do with it."""

from __future__ import annotations

import gc
import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from voicestream.codepoints import CodecId, ErrorCode
from voicestream.config import Limits, PlayoutConfig, SessionConfig, Track
from voicestream.core.playout import OrderedReader, Playout
from voicestream.core.resume import TokenSealer
from voicestream.errors import StateError
from voicestream.events import Accepted, Closed, Event, HelloReceived
from voicestream.session import ClientSession, ServerSession, Session
from voicestream.testing.device import execute_without_sound
from voicestream.testing.fake_codec import FakeCodec
from voicestream.testing.fuzz_inputs import FuzzInput

__all__ = ["CLIENT_STATES", "SERVER_STATES", "FuzzFailure", "Pair", "Victim", "held_bytes"]

CLIENT_STATES = ("new", "waiting", "open", "finishing", "going away", "closing", "closed", "closed by peer", "rejected")
SERVER_STATES = ("new", "waiting", "asked", "open", "finishing", "going away", "closing", "closed", "closed by peer", "rejected")

MAX_DATAGRAM_BYTES = 1160
MAX_HELD_BYTES = 3 << 20
"""What one session may hold after any input, with the small limits below."""

CONFIG = SessionConfig(
    tracks=(Track(), Track(track_id=1, codec=CodecId.PCMU, clock_rate_hz=8000)),
    limits=Limits(max_event_size=4096, max_event_streams=8, undelivered_events=50),
)


class FuzzFailure(AssertionError):
    """A session did what it must not do."""


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise FuzzFailure(message)


class Pair:
    """A client and a server session whose outputs reach each other at once.

    Args:
        rng: Of the sessions' entropy and of the audio.
    """

    def __init__(self, rng: random.Random) -> None:
        self.now = rng.uniform(0, 1e6)
        self.client = ClientSession(CONFIG, authority="fuzz.example", path="/call", token=b"token", entropy=rng.randbytes)
        self.server = ServerSession(CONFIG, sealer=TokenSealer(rng.randbytes(32)), entropy=rng.randbytes)
        self.events: dict[str, list[Event]] = {"client": [], "server": []}
        self.recorded: dict[str, list[bytes]] = {"datagram": [], "control": [], "stream": []}
        self._codec = FakeCodec(seed=rng.getrandbits(32))
        self._serial = 0

    def exchange(self) -> None:
        """Carry outputs to and fro until both sides are silent."""
        for _ in range(20):
            busy = self._carry(self.client, self.server, "client") | self._carry(self.server, self.client, "server")
            if not busy:
                return
        raise FuzzFailure("two sessions never cease to answer each other at the same instant")

    def _carry(self, one: Session, other: Session, name: str) -> bool:
        busy = False
        while (event := one.next_event()) is not None:
            self.events[name].append(event)
        control = one.control_to_send()
        if control:
            busy = True
            self.recorded["control"].append(control)
            other.receive_control(control, self.now)
        for key, data, fin in one.streams_to_send(self.now):
            busy = True
            self.recorded["stream"].append(data)
            other.receive_stream(key, data, fin, self.now)
        for datagram in one.datagrams_to_send(self.now):
            busy = True
            self.recorded["datagram"].append(datagram)
            other.receive_datagram(datagram, self.now)
        return busy

    def open(self) -> None:
        """Shake hands."""
        self.ask()
        self.server.accept(self.now, metadata=b"welcome")
        self.exchange()
        _check(any(isinstance(event, Accepted) for event in self.events["client"]), "the client was not accepted")

    def ask(self) -> None:
        """Bring the client's HELLO to the server."""
        self.server.start(self.now)
        self.client.start(self.now)
        self.exchange()
        _check(any(isinstance(event, HelloReceived) for event in self.events["server"]), "the server saw no HELLO")

    def talk(self, seconds: float) -> None:
        """Both sides talk for a while."""
        for _ in range(round(seconds * 50)):
            self.now += 0.02
            for session in (self.client, self.server):
                timer = session.next_timer()
                if timer is not None and timer <= self.now:
                    session.handle_timer(self.now)
                self.say(session)
            self.exchange()

    def say(self, session: Session) -> None:
        """One side sends a frame of 20 ms."""
        self._serial += 1
        session.send_frame(self._codec.encode(self._serial), self.now)


class Victim:
    """A session in one state, with an application that plays, talks and reads events as one would.

    Args:
        role: "client" or "server".
        state: One of the role's states.
        rng: All choices come from it.
    """

    def __init__(self, role: str, state: str, rng: random.Random) -> None:
        self.role = role
        self.state = state
        self.closed: list[Closed] = []
        self._rng = rng
        self._pair = pair = Pair(rng)
        self.session: ClientSession | ServerSession = pair.client if role == "client" else pair.server
        _PREPARE[state](pair, self)
        self.closed += [event for event in pair.events[role] if isinstance(event, Closed)]
        self._playout: Playout | None = None
        if state in ("open", "finishing", "going away"):
            self._listen()
        self._streams = 0

    def _listen(self) -> None:
        self._playout = Playout(PlayoutConfig(), track=0)
        self.session.receivers[0].attach_playout(self._playout)
        if self._rng.random() < 0.5:
            self.session.receivers[1].attach_ordered(OrderedReader(lookahead_ms=150, max_frames=500))

    @property
    def outcome(self) -> str:
        """How the session stands: "alive", "closed as asked" by the input, or the name of the code with which it closed."""
        if self.closed:
            close = self.closed[0]
            return "closed as asked" if close.remote else ErrorCode(close.code).name
        return "closed" if self.session.is_closed else "alive"

    def feed(self, given: FuzzInput) -> None:
        """Give one input to the session and let its owner do what an owner does.

        Raises:
            FuzzFailure: The session broke one of its promises.
            Exception: Whatever a session raised that it must not raise.
        """
        rng, pair, session = self._rng, self._pair, self.session
        pair.now += rng.choice((0.0, 0.0, 0.001, 0.02, 0.02, 0.02, 0.1)) if rng.random() < 0.99 else rng.uniform(0, 12)
        if given.channel == "datagram":
            session.receive_datagram(given.data, pair.now)
        elif given.channel == "control":
            session.receive_control(given.data, pair.now, fin=given.fin)
        else:
            self._streams += rng.choice((0, 1, 1, 1))
            session.receive_stream(self._streams * 4 + 3, given.data, given.fin, pair.now)
        self.drain()
        timer = session.next_timer()
        if timer is not None and timer <= pair.now:
            session.handle_timer(pair.now)
            self.drain()
        if rng.random() < 0.3 and self._playout is not None and not session.is_closed:
            self._live(self._playout)
            self.drain()

    def drain(self) -> None:
        """Take the outputs and hold them against the promises."""
        session, now = self.session, self._pair.now
        while (event := session.next_event()) is not None:
            _check(not self.closed, f"{event!r} after {self.closed}")
            if isinstance(event, Closed):
                self.closed.append(event)
                _check(event.remote or event.code in set(ErrorCode), f"closed with the unregistered code {event.code}")
                _check(session.is_closed, "Closed was reported by a session that is not closed")
        for datagram in session.datagrams_to_send(now):
            _check(0 < len(datagram) <= MAX_DATAGRAM_BYTES, f"sent a datagram of {len(datagram)} bytes")
        session.control_to_send()
        session.streams_to_send(now)
        session.streams_to_stop()
        timer = session.next_timer()
        _check(timer is None or timer == timer, "the timer is not a number")

    def _live(self, playout: Playout) -> None:
        """The application goes on with its call."""
        session, pair, rng = self.session, self._pair, self._rng
        held = 0.0
        while held < 8:
            held += execute_without_sound(playout, pair.now, held)
        try:
            session.report_played(playout.heard_pts(0.0), pair.now)
            choice = rng.randrange(12)
            if choice < 8:
                pair.say(session)
            elif choice == 8:
                session.send_event(b'{"turn": 1}', pair.now)
            elif choice == 9:
                session.skip(8)
            elif choice == 10 and rng.random() < 0.2:
                session.clear(pair.now, outgoing=rng.random() < 0.5)
            elif choice == 11:
                session.ahead_allowance(pair.now)
        except StateError:
            _check(self.state != "open" or session.is_closed, "an open session refused a verb of its application")


def _new(pair: Pair, victim: Victim) -> None:
    """Nothing has happened."""


def _waiting(pair: Pair, victim: Victim) -> None:
    victim.session.start(pair.now)
    victim.drain()


def _asked(pair: Pair, victim: Victim) -> None:
    pair.ask()


def _open(pair: Pair, victim: Victim) -> None:
    pair.open()
    pair.talk(0.04)


def _finishing(pair: Pair, victim: Victim) -> None:
    _open(pair, victim)
    victim.session.finish(pair.now)
    if victim._rng.random() < 0.5:
        pair.exchange()


def _going_away(pair: Pair, victim: Victim) -> None:
    _open(pair, victim)
    victim.session.going_away(pair.now, reason="moving")
    pair.exchange()


def _closing(pair: Pair, victim: Victim) -> None:
    _open(pair, victim)
    victim.session.close(pair.now, ErrorCode.NO_ERROR, "done")


def _closed(pair: Pair, victim: Victim) -> None:
    _closing(pair, victim)
    pair.exchange()


def _closed_by_peer(pair: Pair, victim: Victim) -> None:
    _open(pair, victim)
    other = pair.server if victim.role == "client" else pair.client
    other.close(pair.now, ErrorCode.NO_ERROR, "done")
    pair.exchange()


def _rejected(pair: Pair, victim: Victim) -> None:
    pair.ask()
    pair.server.reject(pair.now, ErrorCode.BUSY, "no room")
    pair.exchange()


_PREPARE: dict[str, Callable[[Pair, Victim], None]] = {
    "new": _new,
    "waiting": _waiting,
    "asked": _asked,
    "open": _open,
    "finishing": _finishing,
    "going away": _going_away,
    "closing": _closing,
    "closed": _closed,
    "closed by peer": _closed_by_peer,
    "rejected": _rejected,
}


def held_bytes(root: object) -> int:
    """Bytes of everything that `root` keeps alive, shared code and immortal values not counted."""
    seen: set[int] = set()
    return sum(sys.getsizeof(thing) for thing in _reachable(root, seen))


def _reachable(root: object, seen: set[int]) -> Iterator[Any]:
    skipped = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.MethodType)
    waiting = [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, skipped):
            continue
        seen.add(id(thing))
        yield thing
        waiting.extend(gc.get_referents(thing))
