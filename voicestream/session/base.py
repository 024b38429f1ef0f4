"""The session without sockets, threads or clock: what both roles have in common.

Give it what comes in (`receive_datagram`, `receive_control`, `receive_stream`, `handle_timer`) and call its verbs; after any call
fetch what goes out (`datagrams_to_send`, `control_to_send`, `streams_to_send`, `streams_to_stop`, `next_event`) and re-read
`next_timer`. A peer that breaks the rules ends the session with a `Closed` event; a caller that does gets an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from voicestream.codepoints import ErrorCode, EventKind, MessageType
from voicestream.config import SessionConfig, Track
from voicestream.core.allocator import WIRE_OVERHEAD, SendPlan
from voicestream.core.lifecycle import Role, State
from voicestream.errors import ProtocolError, StateError
from voicestream.events import Event, GoingAway
from voicestream.session.app_events import AppEvents
from voicestream.session.control import ControlChannel
from voicestream.session.grease import Grease
from voicestream.session.hub import Hub
from voicestream.session.link import Link
from voicestream.session.negotiation import PeerLimits, peer_limits
from voicestream.session.planner import Planner
from voicestream.session.receiver import Receiver
from voicestream.session.stats import SessionStats, collect
from voicestream.session.tracks import Tracks
from voicestream.trace import Observer
from voicestream.wire import messages as wire
from voicestream.wire.parameters import Parameters

__all__ = ["Grant", "Session", "elsewhere"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """What the server gives with ACCEPT, so that the session can be taken up again. `lifetime` in seconds."""

    session_id: bytes
    resume_token: bytes
    generation: int
    lifetime: float


class Session:
    """One end of a call. Use `ClientSession` or `ServerSession`."""

    __slots__ = ("_control", "_events", "_grant", "_hub", "_link", "_planner", "_tracks")

    def __init__(self, config: SessionConfig, role: Role, entropy: Callable[[int], bytes], observer: Observer | None) -> None:
        self._hub = Hub(config, role, entropy, observer)
        self._tracks = Tracks(self._hub)
        self._planner = Planner(self._hub)
        self._events = AppEvents(self._hub)
        self._link = Link(self._hub, self._tracks, self._planner, Grease(entropy, enabled=config.grease))
        self._grant: Grant | None = None
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
    def session_id(self) -> bytes | None:
        """16 bytes that name the session; None before ACCEPT."""
        return None if self._grant is None else self._grant.session_id

    @property
    def resume_token(self) -> bytes | None:
        """What a client shows to take the session up again; None before ACCEPT."""
        return None if self._grant is None else self._grant.resume_token

    @property
    def grant(self) -> Grant | None:
        """Session id, token, generation and lifetime; None before ACCEPT."""
        return self._grant

    @property
    def tracks(self) -> tuple[Track, ...]:
        """The tracks agreed on, as this end describes them; empty before ACCEPT."""
        found = {sender.track.track_id: sender.track for sender in self._tracks.senders.values()}
        found |= {receiver.track.track_id: receiver.track for receiver in self._tracks.receivers.values()}
        return tuple(found[track] for track in sorted(found))

    @property
    def receivers(self) -> Mapping[int, Receiver]:
        """Received tracks by id, to attach a playout or an ordered reader to; empty before ACCEPT."""
        return self._tracks.receivers

    @property
    def plan(self) -> SendPlan:
        """How the session sends at present."""
        return self._planner.plan

    @property
    def peer(self) -> PeerLimits:
        """What the far end takes."""
        return self._hub.peer

    @property
    def rtt(self) -> float | None:
        """Smoothed round-trip time in seconds; None before the first report."""
        return self._link.reports.clock.rtt

    def stats(self, now: float) -> SessionStats:
        """Everything countable, up to now."""
        return collect(self._hub, self._link, self._tracks, self._events, now)

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
        """The QUIC connection is gone. Ends the session, if it has not ended yet."""
        if not self.is_closed:
            self._hub.lifecycle.close()  # no CLOSE: nothing carries it any more
            self._hub.end(now, code, reason, remote=remote)

    def handle_timer(self, now: float) -> None:
        """Do what is due. Harmless when called too early or late."""
        if self.is_closed:
            return
        self._control.handle_timer(now)
        if self.is_open:
            self._tracks.handle_timer(now)

    def next_timer(self) -> float | None:
        """When to call `handle_timer` (and fetch what goes out) next, in monotonic seconds, or None."""
        if self.is_closed:
            return None
        timers = [self._control.next_timer()]
        if self.is_open:
            timers += [*self._link.timers(), self._events.outbox.next_timer()]
        return min((timer for timer in timers if timer is not None), default=None)

    # What goes out

    def datagrams_to_send(self, now: float) -> list[bytes]:
        """Payloads of QUIC datagrams that leave now, each within the far end's limit."""
        datagrams = self._link.send(now)
        if datagrams:
            self._events.outbox.audio(sum(map(len, datagrams)) + WIRE_OVERHEAD * len(datagrams), now)
        return datagrams

    def control_to_send(self) -> bytes:
        """Bytes for the control stream."""
        data = bytes(self._hub.outgoing.control)
        self._hub.outgoing.control.clear()
        return data

    def streams_to_send(self, now: float) -> list[tuple[int, bytes, bool]]:
        """(key, bytes, end) for unidirectional streams of this end, one for each key; at most 1000 bytes a call."""
        return self._events.outbox.take(now) if self.is_open else []

    def streams_to_stop(self) -> list[tuple[int, int]]:
        """(stream key, code) of streams of the peer to answer with STOP_SENDING."""
        return [(key, ErrorCode.NO_ERROR) for key in self._events.stops()]

    def next_event(self) -> Event | None:
        """The oldest event that was not fetched, or None. `Closed` is the last one ever."""
        return self._hub.events.pop()

    # What the application asks for

    def send_frame(
        self,
        payload: bytes,
        now: float,
        *,
        units: int | None = None,
        track: int = 0,
        talkspurt_start: bool = False,
        talkspurt_end: bool = False,
        ahead: bool = False,
        pts: int | None = None,
    ) -> int:
        """Send one coded frame. It leaves with the next `datagrams_to_send`, or is dropped and counted; nothing waits.

        Args:
            payload: The coded bytes.
            now: Monotonic seconds.
            units: Length in pts units of 2.5 ms, checked against the payload; None to take it from there.
            track: Track that this end sends.
            talkspurt_start: Nothing before this frame should be waited for.
            talkspurt_end: Silence follows.
            ahead: It is sent faster than real time; see `ahead_allowance`.
            pts: Its place, at least the next free one; None for right there.

        Returns:
            Its pts.

        Raises:
            StateError: The session is not open, or the track is finished.
            ValueError: The payload is no frame of the track or too large, or another value is out of its range.
        """
        self._hub.require_open("send_frame")
        sender = self._tracks.sender(track)
        return sender.send(
            payload,
            now,
            units=units,
            talkspurt_start=talkspurt_start,
            talkspurt_end=talkspurt_end,
            ahead=ahead,
            pts=pts,
            rtt=self.rtt,
        )

    def skip(self, units: int, track: int = 0) -> None:
        """Let `units` of 2.5 ms of media time pass without a frame (silence). Raises as `send_frame`."""
        self._hub.require_open("skip")
        self._tracks.sender(track).timeline.skip(units)

    def ahead_allowance(self, now: float, track: int = 0) -> float:
        """Seconds of audio that may be sent ahead of time now. Raises as `send_frame`."""
        self._hub.require_open("ahead_allowance")
        return self._tracks.sender(track).budget.allowance(now, self.rtt)

    def send_event(
        self,
        payload: bytes,
        now: float,
        *,
        kind: int = EventKind.JSON,
        ordered: bool = True,
        track: int | None = None,
        pts: int | None = None,
    ) -> int:
        """Send an application event.

        Args:
            payload: UTF-8 for TEXT and JSON, anything otherwise.
            now: Monotonic seconds.
            kind: An `EventKind`.
            ordered: Deliver it after all ordered events before it.
            track: Track with whose audio it is aligned.
            pts: Pts with which it is aligned; present exactly when `track` is.

        Returns:
            Its id.

        Raises:
            StateError: The session is not open, or too many events wait.
            ValueError: It is larger than the far end takes, or a value is out of its range.
        """
        self._hub.require_open("send_event")
        return self._events.send(bytes(payload), now, kind=kind, ordered=ordered, track=track, pts=pts)

    def clear(self, now: float, *, track: int = 0, outgoing: bool) -> int:
        """Void audio (barge-in).

        Args:
            now: Monotonic seconds.
            track: The track.
            outgoing: True: the far end forgets what this end sent. False: the far end stops talking, and what it sent is forgotten here.

        Returns:
            Number of the clear; `Cleared` or, at the far end, `ClearRequested` bear it.

        Raises:
            StateError: The session is not open.
            ValueError: The track does not go that way.
        """
        self._hub.require_open("clear")
        return self._tracks.sender(track).clear(now) if outgoing else self._tracks.receiver(track).request_clear(now)

    def report_played(self, pts: int, now: float, track: int = 0) -> None:
        """The player says which sample of a received track leaves the device, often enough (each block).

        Raises:
            StateError: The session is not open.
            ValueError: `pts` is negative, or the track is not received.
        """
        self._hub.require_open("report_played")
        if pts < 0:
            raise ValueError(f"pts must not be negative, not {pts}")
        self._tracks.receiver(track).report_played(pts, now)

    def finish(self, now: float, track: int = 0) -> None:
        """No audio follows on the track; `Finished` comes when the far end has played it all.

        Raises:
            StateError: The session is not open, or the track is finished already.
            ValueError: The track is not sent.
        """
        self._hub.require_open("finish")
        self._tracks.sender(track).finish(now)

    def update_settings(self, now: float, *, lookahead_ms: int | None = None, max_rate_bps: int | None = None) -> None:
        """Tell the far end of changed limits of this end: lookahead 0 to 500 ms, rate in bits per second on the wire.

        Raises:
            StateError: The session is not open.
            ValueError: A value is out of its range.
        """
        self._hub.require_open("update_settings")
        self._hub.send(wire.Settings(parameters=Parameters(lookahead_ms=lookahead_ms, max_rate_bps=max_rate_bps)), now)

    def going_away(
        self, now: float, *, reason: str = "", uri: str | None = None, route_token: bytes | None = None, retry_after: float | None = None
    ) -> None:
        """Announce that this end will close soon, and where to call instead.

        Raises:
            StateError: The session is not open.
            ValueError: A value is out of its range.
        """
        self._hub.require_open("going_away")
        self._hub.send(wire.GoingAway(parameters=elsewhere(reason, uri, route_token, retry_after)), now)

    def close(self, now: float, code: int = ErrorCode.NO_ERROR, reason: str = "", may_resume: bool = False) -> None:
        """End the session. Nothing if it is over already: the far end may have been quicker.

        Raises:
            ValueError: `code` is out of its range.
        """
        if not 0 <= code < 1 << 62:
            raise ValueError(f"code must be 0 to 2^62-1, not {code}")
        self._hub.end(now, code, reason, may_resume=may_resume)

    # Inside

    def _role_handlers(self) -> Mapping[MessageType, Callable[[Any, float], None]]:
        """Handlers of messages that only this role receives."""
        raise NotImplementedError

    def _require_idle(self) -> None:
        if self.state is not State.IDLE:
            raise StateError(f"start was called already; the session is {self.state.value}")

    def _guarded(self, now: float, take: Callable[..., None], *args: object) -> None:
        """Call a part that may find fault with the peer."""
        if self.is_closed or self.state is State.IDLE:
            return
        try:
            take(*args)
        except ProtocolError as error:
            self._hub.fail(error, now)

    def _opened(self, grant: Grant, tracks: tuple[Track, ...], now: float) -> None:
        """The handshake is done: media and events may flow."""
        self._grant = grant
        self._tracks.open(tracks)
        self._events.limit_rate()
        self._planner.update(now)

    def _take_early(self, now: float) -> None:
        self._link.opened(now)
        self._events.opened(now)

    def _on_settings(self, message: wire.Settings, now: float) -> None:
        self._hub.peer = peer_limits(message.parameters, self._hub.peer)
        for sender in self._tracks.senders.values():
            sender.budget.lookahead = self._hub.peer.lookahead_ms / 1000
        self._events.limit_rate()
        self._planner.update(now)

    def _on_going_away(self, message: wire.GoingAway, now: float) -> None:
        parameters = message.parameters
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


def elsewhere(reason: str, uri: str | None, route_token: bytes | None, retry_after: float | None) -> Parameters:
    """The parameters of REJECT and GOING_AWAY; `retry_after` in seconds."""
    return Parameters(
        reason=reason or None,
        uri=uri,
        route_token=route_token,
        retry_after_ms=None if retry_after is None else round(retry_after * 1000),
    )
