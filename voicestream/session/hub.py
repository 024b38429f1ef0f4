"""What all parts of a session share: its settings, its state, and the ways out for messages, events and trace records."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Final

from voicestream.codepoints import MessageType
from voicestream.config import SessionConfig
from voicestream.core.lifecycle import Lifecycle, Role, State
from voicestream.core.repeats import Repeats
from voicestream.errors import ProtocolError, StateError
from voicestream.events import Closed, Event, EventReceived, Progress
from voicestream.session.negotiation import PeerLimits
from voicestream.trace import Observer
from voicestream.wire import messages as wire
from voicestream.wire.frame_values import ClearedFrame, ClearFrame, Frame, ProgressFrame

__all__ = ["MESSAGE_TYPES", "Counts", "EventQueue", "Hub", "Outgoing", "earliest"]

MESSAGE_TYPES: Final[dict[type, MessageType]] = {
    wire.Hello: MessageType.HELLO,
    wire.Accept: MessageType.ACCEPT,
    wire.Reject: MessageType.REJECT,
    wire.Resume: MessageType.RESUME,
    wire.Resumed: MessageType.RESUMED,
    wire.Confirm: MessageType.CONFIRM,
    wire.Settings: MessageType.SETTINGS,
    wire.Clear: MessageType.CLEAR,
    wire.Cleared: MessageType.CLEARED,
    wire.Progress: MessageType.PROGRESS,
    wire.Finish: MessageType.FINISH,
    wire.Finished: MessageType.FINISHED,
    wire.GoingAway: MessageType.GOING_AWAY,
    wire.Close: MessageType.CLOSE,
}

MAX_REASON: Final = 1024


@dataclass(slots=True)
class Counts:
    """Counters of a session that belong to no mechanism."""

    datagrams_sent: int = 0
    bytes_sent: int = 0
    datagrams_received: int = 0
    bytes_received: int = 0
    early_datagrams_dropped: int = 0
    messages_sent: int = 0
    messages_received: int = 0
    messages_unknown: int = 0
    frames_unknown: int = 0
    frames_unused: int = 0
    keepalives_sent: int = 0
    reports_received: int = 0
    events_sent: int = 0
    event_bytes_sent: int = 0
    resumes: int = 0
    events_received: int = 0
    event_bytes_received: int = 0


class EventQueue:
    """Events for the session's owner; bounded, for an owner who does not fetch them.

    Args:
        limit: Events held; beyond it the oldest application event or progress is dropped and counted.

    Attributes:
        dropped: Events dropped.
        over: Closed has been queued; nothing follows it.
    """

    __slots__ = ("_events", "_limit", "dropped", "over")

    def __init__(self, limit: int) -> None:
        self._events: deque[Event] = deque()
        self._limit = limit
        self.dropped = 0
        self.over = False

    def put(self, event: Event) -> None:
        """Queue an event. After `Closed` there are no more."""
        if self.over:
            return
        self.over = isinstance(event, Closed)
        self._events.append(event)
        if len(self._events) > self._limit:
            self._drop()

    def pop(self) -> Event | None:
        """The oldest event, or None."""
        return self._events.popleft() if self._events else None

    def _drop(self) -> None:
        """Make room: by an application event or progress if there is one, by anything but Closed otherwise."""
        index = next((i for i, event in enumerate(self._events) if isinstance(event, EventReceived | Progress)), 0)
        del self._events[index]
        self.dropped += 1


class Outgoing:
    """What waits to leave besides media: bytes of the control stream, and frames that are repeated in datagrams."""

    __slots__ = ("control", "repeats")

    def __init__(self) -> None:
        self.control = bytearray()
        self.repeats = Repeats()


class Hub:
    """Shared by the parts of one session.

    Attributes:
        config: Settings of this end.
        lifecycle: The state.
        peer: Limits of the far end.
        max_rate_bps: What this end may send at most by its own owner's word, in bits per second on the wire; None for no bound.
        entropy: Gives so many random bytes.
        outgoing: What waits to leave besides media.
        events: What the owner fetches.
        counts: Counters.
        is_unheard: No report has come for so long that what this end asks for is likely not to arrive.
    """

    __slots__ = ("_observer", "config", "counts", "entropy", "events", "is_unheard", "lifecycle", "max_rate_bps", "outgoing", "peer")

    def __init__(self, config: SessionConfig, role: Role, entropy: Callable[[int], bytes], observer: Observer | None) -> None:
        self.config = config
        self.lifecycle = Lifecycle(role)
        self.peer = PeerLimits()
        self.max_rate_bps: int | None = None
        self.entropy = entropy
        self.outgoing = Outgoing()
        self.events = EventQueue(config.limits.undelivered_events)
        self.counts = Counts()
        self.is_unheard = False
        self._observer = observer

    @property
    def is_open(self) -> bool:
        """Whether media and events may flow."""
        state = self.lifecycle.state  # comparing two beats hashing one
        return state is State.OPEN or state is State.CONFIRMING

    @property
    def is_detached(self) -> bool:
        """Whether the session goes on without a connection that carries anything."""
        state = self.lifecycle.state
        return state is State.DETACHED or state is State.RESUMING

    @property
    def is_closed(self) -> bool:
        """Whether the session is over."""
        return self.lifecycle.state is State.CLOSED

    @property
    def observer(self) -> Observer | None:
        """Who takes trace records, if anybody does."""
        return self._observer

    @property
    def rate_bound(self) -> int | None:
        """Bits per second on the wire that this end may send: what both sides allow; None for no bound."""
        own, theirs = self.max_rate_bps, self.peer.max_rate_bps
        return theirs if own is None else own if theirs is None else min(own, theirs)

    def require_open(self, verb: str) -> None:
        """Raise StateError unless media and events may flow, now or when the session is resumed."""
        if not self.is_open and not self.is_detached:
            raise StateError(f"{verb} needs an open session; this one is {self.lifecycle.state.value}")

    def record(self, now: float, name: str, **data: object) -> None:
        """Give a trace record to the observer, if there is one."""
        if self._observer is not None:
            self._observer.record(now, name, data)

    def send(self, message: wire.Message, now: float, *, repeat: Hashable | None = None) -> None:
        """Send a control message.

        Args:
            message: A legal one for the present state.
            now: Monotonic seconds.
            repeat: Key under which it is repeated in datagrams as well, until it is known to have arrived.

        Raises:
            StateError: It may not be sent now.
            ValueError: A value is out of its range. Nothing has changed then.
        """
        encoded = wire.encode_message(message)
        if self.is_detached and not self.lifecycle.may_send(MESSAGE_TYPES[type(message)]):
            # What still matters when the session is resumed is said again then.
            if repeat is not None:
                self._repeat(repeat, message, now)
            return
        if not isinstance(message, wire.UnknownMessage):
            before = self.lifecycle.state
            self.lifecycle.sent(MESSAGE_TYPES[type(message)])
            self.note_state(before, now)
        self.outgoing.control += encoded
        self.counts.messages_sent += 1
        if repeat is not None:
            self._repeat(repeat, message, now)

    def _repeat(self, key: Hashable, message: wire.Message, now: float) -> None:
        self.outgoing.repeats.put(key, frame_of(message), now, urgent=isinstance(message, wire.Clear))

    def note_state(self, before: State, now: float) -> None:
        """Record a change of state, if there was one."""
        if self.lifecycle.state is not before:
            self.record(now, "session:state", old=before.value, new=self.lifecycle.state.value)

    def end(self, now: float, code: int, reason: str, *, remote: bool = False, may_resume: bool = False, tell: bool = True) -> None:
        """The session is over; the one place where that happens. `Closed` comes once, whatever follows.

        CLOSE is sent if this end is the cause, the state allows a message, and there is something to carry it (`tell`).
        """
        if self.events.over:  # VS-13.2-2
            return
        reason = reason.encode(errors="replace")[:MAX_REASON].decode(errors="ignore")
        if tell and not remote and self.lifecycle.may_send(MessageType.CLOSE):
            self.send(wire.Close(code=code, reason=reason, may_resume=may_resume), now)
        before = self.lifecycle.state
        self.lifecycle.close()
        self.note_state(before, now)
        self.outgoing.repeats = Repeats()
        self.record(now, "session:closed", code=int(code), reason=reason, remote=remote, may_resume=may_resume)
        self.events.put(Closed(code=code, reason=reason, remote=remote, may_resume=may_resume))

    def fail(self, error: ProtocolError, now: float) -> None:
        """The peer broke a rule; such a session is not taken up again. VS-13.2-4"""
        self.end(now, error.code, error.reason)


def earliest(times: Iterable[float | None]) -> float | None:
    """The first of several times, of which each may be never."""
    first: float | None = None
    for time in times:
        if time is not None and (first is None or time < first):
            first = time
    return first


def frame_of(message: wire.Message) -> Frame:
    """The frame that carries a message in a datagram."""
    if isinstance(message, wire.Clear):
        return ClearFrame(message=message)
    if isinstance(message, wire.Cleared):
        return ClearedFrame(message=message)
    if isinstance(message, wire.Progress):
        return ProgressFrame(message=message)
    raise ValueError(f"{type(message).__name__} has no form as a frame")
