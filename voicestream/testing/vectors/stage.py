"""Conversations for the test vectors: two sessions play a script, and all that they send is written down."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any, Final

from voicestream.codepoints import ErrorCode, EventKind
from voicestream.config import RateConfig, SessionConfig
from voicestream.core.resume import TokenSealer
from voicestream.errors import ProtocolError
from voicestream.events import Event, HelloReceived, ResumeReceived
from voicestream.session import ClientSession, ServerSession
from voicestream.testing.vectors.values import datagram_json, event_json, message_json, to_datagram, to_event, to_message
from voicestream.wire import (
    Datagram,
    EventHeader,
    EventParser,
    Message,
    MessageParser,
    decode_datagram,
    encode_datagram,
    encode_event_header,
    encode_message,
)

__all__ = ["AUTHORITY", "END", "START", "Actor", "Stage", "Step", "encode_step", "other"]

Step = dict[str, Any]

START: Final = 1000.0
AUTHORITY: Final = "example.org"
CONFIG: Final = SessionConfig(grease=False, rate=RateConfig(redundancy_share=0.0, redundancy_cap=0.0))
END: Final = 1 << 20
MAX_EVENT_SIZE: Final = 1 << 20
_LIMITS: Final = ["max_datagram_size", "max_event_size", "lookahead_ms", "retain_ms", "max_rate_bps", "metadata", "unknown"]
_ANY: Final[dict[str, list[str]]] = {
    "HELLO": _LIMITS,
    "ACCEPT": ["session_id", "resume_token", "lifetime_ms", *_LIMITS],
    "REJECT": ["reason", "uri", "route_token", "retry_after_ms"],
    "RESUME": ["held", "replay_ms", "unknown"],
    "RESUMED": ["resume_token", "held", "metadata", "unknown"],
    "CLEARED": ["heard_pts"],
    "FINISHED": ["played_pts"],
    "CLOSE": ["reason", "may_resume"],
}
_MUST_FRAMES: Final = frozenset({"AUDIO", "RETRANSMISSION"})
_MAY: Final = {"PROGRESS", "SETTINGS", "UNKNOWN"}


def other(side: str) -> str:
    """The other side."""
    return "server" if side == "client" else "client"

def encode_step(step: Step) -> bytes:
    """The bytes of a step's value."""
    if step["channel"] == "control":
        return encode_message(to_message(step["value"]))
    if step["channel"] == "datagram":
        return encode_datagram(to_datagram(step["value"]))
    header, payload = to_event(step["value"])
    return encode_event_header(header) + payload

class Actor:
    """One side: a session and its application, which does as the script says.

    Args:
        side: "client" or "server".
        entropy: Gives so many random bytes.
    """

    def __init__(self, side: str, entropy: Callable[[int], bytes]) -> None:
        self.side = side
        self._entropy = entropy
        self._key = entropy(32)
        self._answer: Step = {"do": "accept"}
        self._fresh: ServerSession | None = None
        self._streams = itertools.count(3, 4)
        self.session: ClientSession | ServerSession
        if side == "client":
            self.session = ClientSession(CONFIG, authority=AUTHORITY, path="/agent", token=b"secret", entropy=entropy)
        else:
            self.session = self._new_server()
        self.events: list[Event] = []
        self.unsaid: list[tuple[str, bytes]] = []

    def _new_server(self) -> ServerSession:
        return ServerSession(CONFIG, sealer=TokenSealer(self._key), entropy=self._entropy)

    def do(self, step: Step, now: float) -> None:
        """What the application does: the verb of the step with its arguments."""
        verb, session = step["do"], self.session
        if verb == "send":
            session.send_frame(bytes.fromhex(step["payload"]), now, talkspurt_start=step.get("talkspurt_start", False))
        elif verb == "clear":
            session.clear(now, outgoing=step["outgoing"])
        elif verb == "play":
            session.report_played(step["pts"], now)
        elif verb == "event":
            session.send_event(bytes.fromhex(step["payload"]), now, kind=EventKind.JSON)
        elif verb == "finish":
            session.finish(now)
        elif verb == "close":
            session.close(now, step.get("code", 0), step.get("reason", ""))
        elif verb == "lose":
            session.path_lost(now)
        elif verb == "answer":
            self._answer = step["with"]
        else:
            self._connect(verb, now)
        self.collect(now)

    def _connect(self, verb: str, now: float) -> None:
        if verb == "resume":
            assert isinstance(self.session, ClientSession)
            self.session.resume_on_new_connection(now)
        elif verb == "wait" and self.session.session_id is not None:
            self._fresh = self._new_server()
            self._fresh.start(now)
        else:  # "call" of a client, "wait" of a server
            self.session.start(now)

    def receive(self, channel: str, data: bytes, now: float) -> None:
        """Bytes of the other side."""
        session = self._fresh or self.session
        if channel == "control":
            session.receive_control(data, now)
        elif channel == "end":
            session.receive_control(b"", now, fin=True)
        elif channel == "datagram":
            session.receive_datagram(data, now)
        else:
            session.receive_stream(next(self._streams), data, True, now)
        self.collect(now)

    def collect(self, now: float) -> None:
        """Take what the sessions have to say."""
        for session in (self._fresh, self.session):
            if session is None:
                continue
            while (event := session.next_event()) is not None:
                self.events.append(event)
                self._react(event, now)
            if (control := session.control_to_send()) != b"":
                self.unsaid.append(("control", control))
            self.unsaid += [("event", data) for _, data, _ in session.streams_to_send(now)]
            session.streams_to_stop()
            self.unsaid += [("datagram", data) for data in session.datagrams_to_send(now)]

    def _react(self, event: Event, now: float) -> None:
        if isinstance(event, HelloReceived):
            assert isinstance(self.session, ServerSession)
            answer = self._answer
            if answer["do"] == "accept":
                self.session.accept(now)
            else:
                retry = answer.get("retry_after_ms")
                retry_after = None if retry is None else retry / 1000
                self.session.reject(now, answer["code"], answer.get("reason", ""), uri=answer.get("uri"), retry_after=retry_after)
        elif isinstance(event, ResumeReceived):
            self._resume(event, now)

    def _resume(self, event: ResumeReceived, now: float) -> None:
        asked, self._fresh = self._fresh, None
        assert isinstance(self.session, ServerSession)
        if asked is None:  # nobody knows a session on this server
            self.session.reject(now, ErrorCode.SESSION_UNKNOWN)
            return
        try:
            if event.session_id != self.session.session_id:
                raise ProtocolError(ErrorCode.SESSION_UNKNOWN, "there is no such session")
            self.session.take_over(asked, now)
        except ProtocolError as error:
            asked.reject(now, error.code)
            self._fresh = asked

    def run(self, now: float) -> None:
        """Timers that are due."""
        for session in (self._fresh, self.session):
            timer = None if session is None else session.next_timer()
            if session is not None and timer is not None and timer <= now:
                session.handle_timer(now)
        self.collect(now)

    def next_timer(self) -> float | None:
        """When `run` has something to do."""
        timers = [timer for session in (self._fresh, self.session) if session and (timer := session.next_timer()) is not None]
        return min(timers, default=None)

class Stage:
    """Both sides, and what they have said so far.

    Args:
        seed: Of the randomness of both.
    """

    def __init__(self, seed: str) -> None:
        rng = random.Random(seed)
        self.now = START
        self.steps: list[Step] = []
        self.actors = {side: Actor(side, rng.randbytes) for side in ("client", "server")}
        self._parsers = {side: MessageParser() for side in self.actors}
        self._cleared: set[tuple[str, int]] = set()

    def do(self, side: str, verb: str, **arguments: Any) -> None:
        """One side's application does something."""
        step = {"at_ms": self._at(), "from": side, "do": verb, **arguments}
        self.steps.append(step)
        self.actors[side].do(step, self.now)

    def _at(self) -> int:
        return round((self.now - START) * 1000)

    def say(self, side: str, value: Message | Datagram | tuple[EventHeader, bytes] | bytes, **more: Any) -> None:
        """One side sends what no session would make it send; the other one receives it."""
        if isinstance(value, Datagram):
            step: Step = {"channel": "datagram", "value": datagram_json(value)}
        elif isinstance(value, tuple):
            step = {"channel": "event", "value": event_json(*value)}
        elif isinstance(value, bytes):
            step = {"channel": "end", "value": {}}
        else:
            step = {"channel": "control", "value": message_json(value)}
        data = b"" if isinstance(value, bytes) else encode_step(step)
        self._note(side, step["channel"], data, step["value"], **more)
        self.actors[other(side)].receive(step["channel"], data, self.now)

    def _note(self, side: str, channel: str, data: bytes, value: Any, **more: Any) -> None:
        self.steps.append({"at_ms": self._at(), "from": side, "channel": channel, "bytes": data.hex(), "value": value, **more})

    def exchange(self, first: str = "control") -> None:
        """Deliver what both have said, at once, until both are silent; `first` is the channel that is quickest."""
        for _ in range(20):
            said = [(side, *one) for side, actor in self.actors.items() for one in actor.unsaid]
            if not said:
                return
            for actor in self.actors.values():
                actor.unsaid = []
            for side, channel, data in sorted(said, key=lambda one: one[1] != first):
                for piece, value in self._values(side, channel, data):
                    self._note(side, channel, piece, value, **self._judged(side, channel, value))
                self.actors[other(side)].receive(channel, data, self.now)
        raise AssertionError("the two never cease to answer each other")

    def exchange_one(self, side: str, *, deliver: bool = True) -> None:
        """Write down what one side has said, and deliver it; or lose it, so that its other side goes on without."""
        actor = self.actors[side]
        said, actor.unsaid = actor.unsaid, []
        for channel, data in said:
            for piece, value in self._values(side, channel, data):
                self._note(side, channel, piece, value, **self._judged(side, channel, value))
            if deliver:
                self.actors[other(side)].receive(channel, data, self.now)

    def _values(self, side: str, channel: str, data: bytes) -> list[tuple[bytes, Step]]:
        if channel == "control":
            return [(encode_message(one), message_json(one)) for one in self._parsers[side].feed(data)]
        if channel == "datagram":
            return [(data, datagram_json(decode_datagram(data)))]
        event = EventParser(MAX_EVENT_SIZE).feed(data, fin=True)
        assert event is not None
        return [(data, event_json(*event))]

    def wait(self, ms: int, *, quiet: bool = False) -> None:
        """Let time pass and both sides' timers run; `quiet` throws away what they say for themselves."""
        until = self.now + ms / 1000
        while True:
            timers = [timer for actor in self.actors.values() if (timer := actor.next_timer()) is not None]
            nearest = min(timers, default=until)
            self.now = min(until, max(nearest, self.now))
            for actor in self.actors.values():
                actor.run(self.now)
                if quiet:
                    actor.unsaid = []
            if self.now >= until:
                return
            self.exchange()

    def lose(self) -> None:
        """The connection is gone at both ends, and with it what is under way."""
        for side, actor in self.actors.items():
            self.do(side, "lose")
            actor.unsaid = []
        self._parsers = {side: MessageParser() for side in self.actors}

    def resume(self) -> None:
        """The client asks for its session on a new connection."""
        self.do("server", "wait")
        self.do("client", "resume")

    def _judged(self, side: str, channel: str, value: Step) -> Step:
        """What of a step another implementation must send as well, and which fields of that are its own choice."""
        if channel == "control":
            name = value["message"]
            return {} if name in _MAY else {"must": [name], "any": _ANY.get(name, [])}
        if channel == "event":
            return {"must": ["EVENT"], "any": ["event_id"]}
        names = {frame["frame"] for frame in value["frames"]} & _MUST_FRAMES
        for frame in value["frames"]:
            # It is repeated as the paths of the datagrams want; that it comes in one at all is what can be asked for. VS-8.4-1
            if frame["frame"] == "CLEAR" and (side, frame["number"]) not in self._cleared:
                self._cleared.add((side, frame["number"]))
                names.add("CLEAR")
        return {"must": sorted(names), "any": []} if names else {}
