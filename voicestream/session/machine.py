"""The works of a session: bytes and time in, bytes and events out. `voicestream.session.base` adds what an application asks for."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from voicestream.codepoints import ErrorCode, MessageType
from voicestream.config import SessionConfig, Track
from voicestream.core.allocator import WIRE_OVERHEAD
from voicestream.core.lifecycle import Role, State
from voicestream.errors import ProtocolError, StateError
from voicestream.events import Event, GoingAway, PathLost
from voicestream.session.app_events import AppEvents
from voicestream.session.control import ControlChannel
from voicestream.session.grease import Grease
from voicestream.session.hub import Hub, earliest
from voicestream.session.link import Link
from voicestream.session.negotiation import peer_limits
from voicestream.session.planner import Planner
from voicestream.session.tracks import Tracks
from voicestream.trace import Observer
from voicestream.wire import messages as wire
from voicestream.wire.parameters import Parameters

__all__ = ["Grant", "Machine"]

_DEAF: Final = (State.CLOSED, State.IDLE, State.DETACHED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """What the server gives with ACCEPT, so that the session can be taken up again. `lifetime` in seconds."""

    session_id: bytes
    resume_token: bytes = field(repr=False)  # VS-15-2 VS-15.2-2
    generation: int
    lifetime: float


class Machine(abc.ABC):
    """Routes between the parts. A peer that breaks the rules ends the session with a `Closed` event, never with an exception."""

    __slots__ = ("_control", "_events", "_grant", "_hub", "_link", "_lost_until", "_planner", "_settings", "_tracks")

    def __init__(self, config: SessionConfig, role: Role, entropy: Callable[[int], bytes], observer: Observer | None) -> None:
        self._hub = Hub(config, role, entropy, observer)
        self._tracks = Tracks(self._hub)
        self._planner = Planner(self._hub)
        self._events = AppEvents(self._hub)
        self._link = Link(self._hub, self._tracks, self._planner, Grease(entropy, enabled=config.grease))
        self._grant: Grant | None = None
        self._lost_until: float | None = None
        self._settings = Parameters()
        tracks = self._tracks
        self._control = ControlChannel(
            self._hub,
            {
                MessageType.CLEAR: tracks.on_clear,
                MessageType.CLEARED: tracks.on_cleared,
                MessageType.PROGRESS: tracks.on_progress,
                MessageType.FINISH: tracks.on_finish,
                MessageType.FINISHED: tracks.on_finished,
                MessageType.SETTINGS: self._on_settings,
                MessageType.GOING_AWAY: self._on_going_away,
                MessageType.CLOSE: self._on_close,
                **self._role_handlers(),
            },
        )

    # What the owner may know

    @property
    def state(self) -> State:
        """Where the session stands."""
        return self._hub.lifecycle.state

    @property
    def is_open(self) -> bool:
        """Whether media and events may flow."""
        return self._hub.is_open

    @property
    def is_closed(self) -> bool:
        """Whether the session is over."""
        return self._hub.is_closed

    @property
    def has_left(self) -> bool:
        """Whether the session has let its connection go and goes on without: it does not end with it."""
        return self.state is State.DETACHED

    @property
    def observer(self) -> Observer | None:
        """Who takes trace records, if anybody does."""
        return self._hub.observer

    def let_go(self) -> None:
        """Of a session that is over: have nothing in it refer back to it, so that it goes with its last user and not whenever the
        garbage collector comes by. What it counted stays."""
        if self.is_closed:
            self._control.let_go()
            self._link.let_go()

    def abandon(self) -> None:
        """It is of no use any more, and over without a word to anybody."""
        self._hub.lifecycle.close()
        self.let_go()

    # What comes in

    def receive_datagram(self, data: bytes, now: float) -> None:
        """Take the payload of a QUIC datagram. Never raises; ignored after the end."""
        self._guarded(now, self._link.receive, data, now)

    def receive_control(self, data: bytes, now: float, fin: bool = False) -> None:
        """Take the next bytes of the control stream. Never raises; ignored after the end."""
        self._guarded(now, self._control.receive, data, now, fin)

    def receive_stream(self, stream_key: int, data: bytes, fin: bool, now: float) -> None:
        """Take the next bytes of a unidirectional stream of the peer. Never raises; ignored after the end.

        Args:
            stream_key: Any number that names the stream.
            data: The bytes, possibly none.
            fin: No more follow.
            now: Monotonic seconds.
        """
        self._guarded(now, self._events.receive, stream_key, data, fin, now)

    def reset_stream(self, stream_key: int, now: float) -> None:
        """The peer gave up a unidirectional stream."""
        if not self.is_closed:
            self._events.reset(stream_key)

    def transport_closed(self, now: float, code: int, reason: str = "", *, remote: bool = True) -> None:
        """The QUIC connection is gone. Ends the session, if it has not ended yet (specification section 13.2)."""
        self._hub.end(now, code, reason, remote=remote, tell=False)

    def path_lost(self, now: float) -> bool:
        """The connection is gone, or is to be left, and the session goes on: it can be resumed for its lifetime.

        Verbs work as before. What they send is kept for the resume.

        Returns:
            False when this session cannot be kept, since it is not open. Nothing has changed then.
        """
        before = self.state
        if self._grant is None or not self._hub.lifecycle.detach():
            return False
        self._hub.note_state(before, now)
        self._hub.outgoing.control.clear()
        self._tracks.detached(now)
        self._tracks.nothing_comes(now)
        if before is not State.RESUMING:
            self._hub.record(now, "session:path_lost", reason="the connection is gone or was left")
            self._hub.events.put(PathLost())
        self._lost_until = now + self._grant.lifetime
        return True

    def path_changed(self, now: float) -> None:
        """The packets take another path, as after a change of network: what was measured of the old one does not hold."""
        if self.is_open:
            self._planner.path_changed(now)

    def suppose_rtt(self, rtt: float | None) -> None:
        """What the transport has measured of the path meanwhile, in seconds, to go by until the session has measured itself."""
        self._link.reports.clock.suppose(rtt)

    def handle_timer(self, now: float) -> None:
        """Do what is due. Harmless when called too early or late."""
        if self.is_closed:
            return
        self._control.handle_timer(now)
        if self._lost_until is not None and now >= self._lost_until:
            # VS-11.3-14
            self._hub.end(now, ErrorCode.PATH_LOST, "the session was not resumed within its lifetime")
        if self.is_open or self._hub.is_detached:
            self._tracks.handle_timer(now)
        if self.is_open:
            self._planner.handle_timer(now, self._link.reports.clock.rtt)

    def next_timer(self) -> float | None:
        """When to call `handle_timer` (and fetch what goes out) next, in monotonic seconds, or None."""
        state, outbox = self._hub.lifecycle.state, self._events.outbox
        if state is State.CLOSED:
            return None
        if state is State.OPEN or state is State.CONFIRMING:
            timer = self._link.next_timer()
            return earliest((self._lost_until, timer, outbox.next_timer())) if outbox.waiting or self._lost_until else timer
        timers = [self._control.next_timer(), self._lost_until]
        if self._hub.is_detached:
            timers += [receiver.played.next_timer() for receiver in self._tracks.receivers.values()]
        return earliest(timers)

    def is_calm(self, until: float) -> bool:
        """Whether surely nothing leaves, and nothing is due before `until`, the last `next_timer` or a time before it."""
        events = self._events
        return not (events.outbox.waiting or events.has_stops) and self._lost_until is None and self._link.is_calm(until)

    def idle_until(self, now: float) -> float | None:
        """`next_timer` if nothing goes out now. None where something may, which the verbs below tell, and where no time is known."""
        events = self._events
        if not self._link.is_idle(now) or self._hub.outgoing.control or events.outbox.waiting or events.has_stops:
            return None
        return self.next_timer()

    # What goes out

    def datagrams_to_send(self, now: float) -> list[bytes]:
        """Payloads of QUIC datagrams that leave now, each within the far end's limit."""
        datagrams = self._link.send(now)
        outbox = self._events.outbox
        if datagrams or outbox.waiting:
            outbox.allowed_bps = self._planner.event_allowance_bps
        if datagrams:
            outbox.audio(sum(map(len, datagrams)) + WIRE_OVERHEAD * len(datagrams), now)
        return datagrams

    def control_to_send(self) -> bytes:
        """Bytes for the control stream."""
        control = self._hub.outgoing.control
        if not control:
            return b""
        data = bytes(control)
        control.clear()
        return data

    def streams_to_send(self, now: float) -> list[tuple[int, bytes, bool]]:
        """(key, bytes, end) for unidirectional streams of this end, one for each key; at most 1000 bytes a call."""
        outbox = self._events.outbox
        return outbox.take(now) if outbox.waiting and self._hub.is_open else []

    def streams_to_stop(self) -> list[tuple[int, int]]:
        """(stream key, code) of streams of the peer to answer with STOP_SENDING."""
        return [(key, ErrorCode.NO_ERROR) for key in self._events.stops()]

    def next_event(self) -> Event | None:
        """The oldest event that was not fetched, or None. `Closed` is the last one ever."""
        return self._hub.events.pop()

    # Inside

    @abc.abstractmethod
    def _role_handlers(self) -> Mapping[MessageType, Callable[[Any, float], None]]:
        """Handlers of messages that only this role receives."""

    def _require_idle(self) -> None:
        if self.state is not State.IDLE:
            raise StateError(f"start was called already; the session is {self.state.value}")

    def _guarded(self, now: float, take: Callable[..., None], *args: object) -> None:
        """Call a part that may find fault with the peer."""
        if self._hub.lifecycle.state in _DEAF:  # VS-13.2-3
            return
        try:
            take(*args)
        except ProtocolError as error:
            self._hub.fail(error, now)  # VS-13.1-3

    def _opened(self, grant: Grant, tracks: tuple[Track, ...], now: float) -> None:
        """The handshake is done: media and events may flow."""
        self._grant = grant
        self._tracks.open(tracks)
        self._events.limit_rate()
        self._hub.record(now, "session:opened", session_id=grant.session_id.hex(), lifetime_s=grant.lifetime, tracks=len(tracks))
        self._planner.opened(now, self._link.reports.clock.rtt)

    def _take_early(self, now: float) -> None:
        self._link.opened(now)
        self._events.opened(now)

    def _restart(self, now: float) -> None:
        """What belongs to a connection begins anew; what belongs to the session goes on (specification section 11.3)."""
        self._link.restart(now)
        self._events.restart()

    def _resumed(self, parameters: Parameters, now: float) -> None:
        """Both sides have agreed on the new connection.

        Raises:
            ProtocolError: The far end asks for what cannot be.
        """
        self._lost_until = None
        self._hub.counts.resumes += 1
        generation = None if self._grant is None else self._grant.generation
        self._hub.record(now, "session:resumed", generation=generation, resumes=self._hub.counts.resumes)
        if self._settings != Parameters():
            # VS-11.3-13: nobody knows what the broken connection has still carried
            self._hub.send(wire.Settings(parameters=self._settings), now)
        self._events.resumed(parameters.next_event, now)
        self._tracks.resumed(parameters.held, parameters.replay_ms or 0, now)

    def _on_settings(self, message: wire.Settings, now: float) -> None:
        self._hub.peer = peer_limits(message.parameters, self._hub.peer)
        for sender in self._tracks.senders.values():
            sender.budget.lookahead = self._hub.peer.lookahead_ms / 1000
        self._events.limit_rate()
        self._planner.update(now)

    def _on_going_away(self, message: wire.GoingAway, now: float) -> None:
        parameters = message.parameters
        self._hub.record(now, "session:going_away", by="peer")
        self._hub.events.put(
            GoingAway(
                reason=parameters.reason or "",
                uri=parameters.uri,
                route_token=parameters.route_token,
                retry_after=None if parameters.retry_after_ms is None else parameters.retry_after_ms / 1000,
            )
        )

    def _on_close(self, message: wire.Close, now: float) -> None:
        self._hub.end(now, message.code, message.reason, remote=True, may_resume=message.may_resume)
