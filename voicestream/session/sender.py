"""The sending side of one track: it routes between timeline, queue, clears, anchors and the far end's answers."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from voicestream.codepoints import ErrorCode
from voicestream.config import MAX_DATAGRAM_SIZE, PTS_UNIT_MS, Track
from voicestream.core.ahead import AheadBudget
from voicestream.core.clear import SenderClears
from voicestream.core.pacer import SendQueue
from voicestream.core.timeline import Anchors, Timeline
from voicestream.errors import ProtocolError
from voicestream.events import Cleared, ClearRequested, Finished, Progress
from voicestream.media import MediaFrame
from voicestream.session.coded import coded
from voicestream.session.hub import Hub
from voicestream.wire import messages as wire
from voicestream.wire.frame_values import AnchorFrame, AudioFrame, Frame, PlayoutEntry
from voicestream.wire.opus_toc import frame_units
from voicestream.wire.sequence import unwrap

__all__ = ["ANCHOR_KEY", "Bundle", "Sender", "SenderCounts"]

ANCHOR_KEY: Final = "anchor"
"""First part of the key under which an anchor is confirmed; the second is the track."""

_HEADER: Final = 4
_AUDIO: Final = 5  # type, pts and the longest length
_ANCHOR: Final = 11  # type, length, flags and the longest pts

MAX_BUNDLE_UNITS: Final = 48  # VS-4.2-4
"""Media in one datagram, in pts units (120 ms)."""

KNOCK_BYTES: Final = 240
"""Coded audio in one datagram that asks a silent path for a sign of life: 100 ms of 19 kbps."""

_SLACK: Final = 0.01
"""Seconds that a bundle waits beyond the time at which its last frame should have come."""


@dataclass(slots=True)
class SenderCounts:
    """What happened to the media of one track, and what the far end says of it; pts and levels in pts units."""

    frames: int = 0
    payload_bytes: int = 0
    frames_lost: int = 0
    frames_overdue: int = 0
    played_pts: int = 0
    far_level_units: int = 0
    far_target_units: int = 0
    finished: bool = False


@dataclass(slots=True)
class Bundle:
    """Frames of one datagram, and what is to be remembered of it. `others`: its bytes that are neither audio nor redundancy."""

    frames: list[Frame] = field(default_factory=list)
    sources: list[MediaFrame] = field(default_factory=list)
    size: int = _HEADER
    units: int = 0
    others: int = 0
    media: list[tuple[int, int]] = field(default_factory=list)
    tokens: list[tuple[Hashable, int]] = field(default_factory=list)


class Sender:
    """Sends one track.

    Attributes:
        track: What it carries.
        timeline: Its pts.
        queue: What waits to leave.
        clears: Its clears.
        anchors: Its full pts on the wire.
        budget: How much may be sent ahead of time.
        counts: Counters.
    """

    __slots__ = ("_hub", "anchors", "budget", "clears", "counts", "queue", "timeline", "track")

    def __init__(self, hub: Hub, track: Track) -> None:
        rate = hub.config.rate
        self._hub = hub
        self.track = track
        self.timeline = Timeline()
        self.queue = SendQueue(max_frames=rate.queue_frames, deadline=rate.send_deadline_ms / 1000)
        self.clears = SenderClears(track.track_id)
        self.anchors = Anchors()
        self.budget = AheadBudget(hub.peer.lookahead_ms / 1000)
        self.counts = SenderCounts()

    # What the application asks for

    def send(
        self,
        payload: bytes,
        now: float,
        *,
        units: int | None,
        talkspurt_start: bool,
        talkspurt_end: bool,
        ahead: bool,
        pts: int | None,
        rtt: float | None,
    ) -> int:
        """Queue a frame; see `Session.send_frame`."""
        measured = self._measure(payload, units)
        place, start = self.timeline.place(measured, pts)
        frame = MediaFrame(
            track=self.track.track_id,
            pts=place,
            units=measured,
            payload=bytes(payload),
            clear_number=self.clears.number,
            talkspurt_start=talkspurt_start or start,
            talkspurt_end=talkspurt_end,
        )
        overflowed = self.queue.overflowed
        self.queue.push(frame, now, ahead=ahead)
        if self.queue.overflowed > overflowed:
            self._hub.record(now, "send:overflow", track=self.track.track_id, frames=1, reason="the queue is full")
        self.budget.sent(place + measured, measured, now, rtt)
        return place

    def _measure(self, payload: bytes, units: int | None) -> int:
        limit = min(self._hub.peer.max_datagram_size, MAX_DATAGRAM_SIZE) - _HEADER - _AUDIO - _ANCHOR
        if len(payload) > limit:
            raise ValueError(f"a frame must have at most {limit} bytes to fit a datagram of the far end, not {len(payload)}")
        try:
            measured = frame_units(self.track, payload)
        except ProtocolError as error:
            raise ValueError(f"not a frame of track {self.track.track_id}: {error.reason}") from error
        if units is not None and units != measured:
            raise ValueError(f"the frame has {measured} units of 2.5 ms, not {units}")
        return measured

    def clear(self, now: float) -> int:
        """Void what was sent; returns the clear's number."""
        to_pts = self.timeline.clear()
        self._drop_queue(now, "own")
        self._tell(self.clears.begin(self.counts.played_pts, to_pts), now)
        return self.clears.number

    def finish(self, now: float) -> None:
        """Say that nothing follows."""
        self.timeline.skip(0)  # refuses when finished already
        self._hub.send(wire.Finish(track=self.track.track_id, pts=self.timeline.next_pts), now)
        self.timeline.finished = True  # VS-8.6-1

    def restate(self, now: float) -> None:
        """On a new connection, say again what the far end may not know."""
        if self.timeline.next_pts:
            self.anchors.renew(self.timeline.next_pts)
        if self.clears.number:
            # Also one that is confirmed: who has asked for it confirms it before our answer says where it ends.
            track, number, to_pts = self.track.track_id, self.clears.number, self.clears.to_pts
            self._tell(wire.Clear(track=track, number=number, from_pts=min(self.counts.played_pts, to_pts), to_pts=to_pts), now)
        if self.timeline.finished and not self.counts.finished:
            self._hub.send(wire.Finish(track=self.track.track_id, pts=self.timeline.next_pts), now)

    # What the far end says

    def on_clear(self, clear: wire.Clear, now: float) -> bool:
        """It asks us to stop talking; whether that voids anything."""
        answer = self.clears.requested(clear, self.timeline.next_pts)
        if answer is None:
            return False
        self.timeline.clear(answer.to_pts)
        self._drop_queue(now, "requested")
        self._tell(answer, now)
        self._hub.events.put(ClearRequested(track=self.track.track_id, number=answer.number, to_pts=self.timeline.next_pts))
        return True

    def on_cleared(self, cleared: wire.Cleared, now: float) -> None:
        """It has done a clear, though perhaps one of its own that ends sooner: ours is repeated until it is known to be there. VS-8.2-4"""
        heard = min(cleared.heard_pts, self.clears.to_pts)
        for number in self.clears.done(cleared.number):
            self._hub.record(now, "clear:confirmed", track=self.track.track_id, number=number, heard_pts=heard)
            self._hub.events.put(Cleared(track=self.track.track_id, number=number, heard_pts=heard))

    def on_progress(self, progress: wire.Progress, now: float) -> None:
        """It has played so far. Repeats and old ones change nothing. VS-4.9-1, VS-8.3-3, VS-8.4-3"""
        played = min(progress.played_pts, self.timeline.next_pts)
        if played > self.counts.played_pts:
            self.counts.played_pts = played
            self.budget.playhead(played, now)
            self._hub.events.put(Progress(track=self.track.track_id, played_pts=played))

    def on_finished(self, finished: wire.Finished, now: float) -> None:
        """It has played the track to its end."""
        if not self.timeline.finished:  # VS-8.6-4
            raise ProtocolError(ErrorCode.UNEXPECTED_MESSAGE, f"FINISHED for track {self.track.track_id}, which is not finished")
        if not self.counts.finished:
            self.counts.finished = True
            self.counts.played_pts = min(finished.played_pts, self.timeline.next_pts)
            self._hub.events.put(Finished(track=self.track.track_id, played_pts=self.counts.played_pts))

    def on_playout(self, entry: PlayoutEntry, now: float, rtt: float | None) -> int | None:
        """A report tells how its playout stands; returns where it is, if it has begun."""
        self.counts.far_level_units = entry.level_units
        self.counts.far_target_units = entry.target_units
        playhead = unwrap(entry.playhead, self.timeline.next_pts)
        if playhead > self.timeline.next_pts:  # beyond lies only what a playout says that has not begun
            return None
        self.budget.playhead(playhead, now, rtt)
        return playhead

    # What leaves

    def take(self, now: float, bundle: int, *, paused: bool = False, apart: bool = False) -> list[Bundle]:
        """What leaves now, one bundle a datagram, or one frame each where they go `apart`; nothing while `paused`.

        Frames past their deadline are dropped first.
        """
        queue = self.queue
        expired = queue.expire(now)
        if expired:
            self._hub.record(now, "send:expired", track=self.track.track_id, frames=expired, reason="waited beyond the deadline")
        bundles: list[Bundle] = []
        while not paused and (waiting := len(queue)) and (waiting >= bundle or self._may_not_wait(now, bundle)):
            bundles += [self._bundle(now, 1) for _ in range(min(bundle, waiting))] if apart else [self._bundle(now, bundle)]
        return bundles

    def take_newest(self, now: float) -> Bundle | None:
        """What a question to a silent path carries: the newest that was said, in one datagram. None if there is nothing."""
        self.queue.expire(now)
        self.queue.keep_newest(KNOCK_BYTES)
        return self._bundle(now, len(self.queue)) if len(self.queue) else None

    def next_timer(self, bundle: int) -> float | None:
        """When the frames that wait for company will leave without it, or None."""
        oldest = self.queue.oldest_at
        if oldest is None:
            return None
        return oldest + (bundle - 1) * self.queue.peek(0).frame.units * PTS_UNIT_MS / 1000 + _SLACK

    def _may_not_wait(self, now: float, bundle: int) -> bool:
        timer = self.next_timer(bundle)
        return self.queue.ends_talkspurt or self.timeline.finished or (timer is not None and now >= timer)

    def _bundle(self, now: float, most: int) -> Bundle:
        bundle = Bundle()
        self._append(bundle, now)
        limit = self._hub.peer.max_datagram_size
        while len(bundle.media) < most and len(self.queue):
            frame = self.queue.peek(0).frame
            size = len(frame.payload) + _AUDIO + _ANCHOR
            if bundle.size + size > limit or bundle.units + frame.units > MAX_BUNDLE_UNITS:
                break
            self._append(bundle, now)
        return bundle

    def _append(self, bundle: Bundle, now: float) -> None:
        entry = self.queue.pop()
        frame = entry.frame
        anchor = self.anchors.accompany(frame.pts, now, ahead=entry.ahead, talkspurt_start=frame.talkspurt_start)
        if anchor is not None:
            token = ((ANCHOR_KEY, frame.track), anchor[1])
            if token not in bundle.tokens:
                bundle.frames.append(AnchorFrame(track=frame.track, pts=anchor[0].pts, ahead=anchor[0].ahead))
                bundle.tokens.append(token)
                bundle.size += _ANCHOR
        bundle.frames.append(coded(AudioFrame, frame))
        bundle.size += len(frame.payload) + _AUDIO
        bundle.units += frame.units
        bundle.media.append((frame.track, frame.pts))
        bundle.sources.append(frame)
        self.counts.frames += 1
        self.counts.frames_overdue += now > entry.deadline  # VS-3.2-4
        self.counts.payload_bytes += len(frame.payload)

    @property
    def _clear_key(self) -> tuple[str, int]:
        return "clear", self.track.track_id

    def _tell(self, clear: wire.Clear, now: float) -> None:
        self._hub.send(clear, now, repeat=self._clear_key)

    def _drop_queue(self, now: float, cause: str) -> None:
        dropped = self.queue.clear()
        self.budget.clear(now)
        self._hub.record(now, "clear:sent", track=self.track.track_id, cause=cause, frames_dropped=dropped)
