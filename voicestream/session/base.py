"""The session without sockets, threads or clock: what both roles have in common.

Give it what comes in (`receive_datagram`, `receive_control`, `receive_stream`, `handle_timer`) and call its verbs; after any call
fetch what goes out (`datagrams_to_send`, `control_to_send`, `streams_to_send`, `streams_to_stop`, `next_event`) and re-read
`next_timer`. A peer that breaks the rules ends the session with a `Closed` event; a caller that does gets an exception.
"""

from __future__ import annotations

from collections.abc import Mapping

from voicestream.codepoints import ErrorCode, EventKind
from voicestream.config import PTS_UNIT_MS, Track
from voicestream.core.allocator import SendPlan
from voicestream.session.machine import Grant, Machine
from voicestream.session.negotiation import PeerLimits, elsewhere
from voicestream.session.receiver import Receiver
from voicestream.session.stats import SessionStats, collect
from voicestream.wire import messages as wire
from voicestream.wire.parameters import Parameters

__all__ = ["Session"]


class Session(Machine):
    """One end of a call. Use `ClientSession` or `ServerSession`."""

    __slots__ = ()

    # What the owner may know

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
    def is_detached(self) -> bool:
        """Whether the session goes on without a connection, until it is resumed or its lifetime has passed."""
        return self._hub.is_detached

    @property
    def awaits_media(self) -> bool:
        """Whether the far end is in the midst of a talkspurt, so that audio should come."""
        return self.is_open and any(receiver.counts.talking for receiver in self._tracks.receivers.values())

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
    def target_bps(self) -> float:
        """Bits per second that this end may send at present, with all headers."""
        return self._planner.estimator.target_bps

    @property
    def peer(self) -> PeerLimits:
        """What the far end takes."""
        return self._hub.peer

    @property
    def rtt(self) -> float | None:
        """Smoothed round-trip time in seconds; None before the first report."""
        return self._link.reports.clock.rtt

    def path(self, now: float) -> tuple[float | None, float | None, float | None]:
        """Round-trip time, one-way delay from the far end and the bound of that one's error, in seconds; None while unknown."""
        reports = self._link.reports
        clock = reports.clock
        return clock.rtt, reports.path_delay, None if reports.path_delay is None else clock.error(now)

    def far_level(self, track: int = 0) -> float | None:
        """Seconds of this end's audio that the far end holds, as it said last; None for a track that is not sent."""
        sender = self._tracks.senders.get(track)
        return None if sender is None else sender.counts.far_level_units * PTS_UNIT_MS / 1000

    @property
    def events_waiting(self) -> int:
        """Application events that have not left completely."""
        return self._events.outbox.waiting

    def stats(self, now: float) -> SessionStats:
        """Everything countable, up to now."""
        return collect(self._hub, self._link, self._tracks, self._events, self._planner, now)

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
        copy: bytes | None = None,
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
            copy: The same audio coded at a low rate (`SendPlan.copy_bps`), as long as the frame; sent later if the plan has copies.

        Returns:
            Its pts.

        Raises:
            StateError: The session is not open, or the track is finished.
            ValueError: The payload is no frame of the track or too large, or another value is out of its range.
        """
        self._hub.require_open("send_frame")
        sender = self._tracks.sender(track)
        place = sender.send(
            payload,
            now,
            units=units,
            talkspurt_start=talkspurt_start,
            talkspurt_end=talkspurt_end,
            ahead=ahead,
            pts=pts,
            rtt=self.rtt,
        )
        self._tracks.latency.said(track, place, now, begins=talkspurt_start, ends=talkspurt_end, ahead=ahead)
        if copy is not None:
            self._tracks.recovery.outgoing[track].copies.offer(place, bytes(copy))
        if self._hub.is_detached:
            self._tracks.detached(now)
        return place

    def skip(self, units: int, track: int = 0) -> None:
        """Let `units` of 2.5 ms of media time pass without a frame (silence). Raises as `send_frame`."""
        self._hub.require_open("skip")
        self._tracks.sender(track).timeline.skip(units)

    def ahead_allowance(self, now: float, track: int = 0) -> float:
        """Seconds of audio that may be sent ahead of time now. Raises as `send_frame`."""
        self._hub.require_open("ahead_allowance")
        budget = self._tracks.sender(track).budget
        # Without a path the words wait for the resume: what is sent meanwhile would come too late to be heard.
        return 0.0 if self._hub.is_detached else budget.allowance(now, self.rtt)

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
        return self._tracks.clear(now, track, outgoing=outgoing)

    def clear_number(self, track: int = 0) -> int:
        """Clears so far of a track that this end sends, whoever began them. Raises ValueError when the track is not sent."""
        return self._tracks.sender(track).clears.number

    def report_played(self, pts: int, now: float, track: int = 0) -> bool:
        """The player says which sample of a received track leaves the device, often enough (each block).

        Returns:
            Whether the far end is to be told something. Where not, which is most times, there is no need to look for what goes out.

        Raises:
            StateError: The session is not open.
            ValueError: `pts` is negative, or the track is not received.
        """
        self._hub.require_open("report_played")
        if pts < 0:
            raise ValueError(f"pts must not be negative, not {pts}")
        told = self._tracks.receiver(track).report_played(pts, now)
        self._tracks.latency.heard(track, pts, now, self._link.reports.clock.offset())
        return told

    def finish(self, now: float, track: int = 0) -> None:
        """No audio follows on the track; `Finished` comes when the far end has played it all.

        Raises:
            StateError: The session is not open, or the track is finished already.
            ValueError: The track is not sent.
        """
        self._hub.require_open("finish")
        sender = self._tracks.sender(track)
        sender.finish(now)
        self._hub.record(now, "send:finish", track=track, pts=sender.timeline.next_pts)

    def update_settings(self, now: float, *, lookahead_ms: int | None = None, max_rate_bps: int | None = None) -> None:
        """Tell the far end of changed limits of this end: lookahead 0 to 500 ms, rate in bits per second on the wire.

        Raises:
            StateError: The session is not open.
            ValueError: A value is out of its range.
        """
        self._hub.require_open("update_settings")
        said = Parameters(lookahead_ms=lookahead_ms, max_rate_bps=max_rate_bps)
        self._hub.send(wire.Settings(parameters=said), now)
        known = self._settings
        self._settings = Parameters(
            lookahead_ms=known.lookahead_ms if lookahead_ms is None else lookahead_ms,
            max_rate_bps=known.max_rate_bps if max_rate_bps is None else max_rate_bps,
        )

    def going_away(
        self, now: float, *, reason: str = "", uri: str | None = None, route_token: bytes | None = None, retry_after: float | None = None
    ) -> None:
        """Announce that this end will close soon, and where to call instead.

        Raises:
            StateError: The session is not open.
            ValueError: A value is out of its range.
        """
        self._hub.require_open("going_away")
        self._hub.record(now, "session:going_away", by="own")
        self._hub.send(wire.GoingAway(parameters=elsewhere(reason, uri, route_token, retry_after)), now)

    def close(self, now: float, code: int = ErrorCode.NO_ERROR, reason: str = "", may_resume: bool = False) -> None:
        """End the session. Nothing if it is over already: the far end may have been quicker.

        Raises:
            ValueError: `code` is out of its range.
        """
        if not 0 <= code < 1 << 62:
            raise ValueError(f"code must be 0 to 2^62-1, not {code}")
        self._hub.end(now, code, reason, may_resume=may_resume)
