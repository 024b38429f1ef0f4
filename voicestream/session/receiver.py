"""The receiving side of one track: duplicates, clears, delivery, and what the far end is told of the playing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from voicestream.codepoints import ErrorCode
from voicestream.config import PTS_UNIT_MS, UNITS_PER_SECOND, Track
from voicestream.core.clear import ReceiverClears
from voicestream.core.played import PlayedLog
from voicestream.core.received import ReceivedMedia
from voicestream.core.timeline import MAX_PTS
from voicestream.errors import ProtocolError
from voicestream.events import RemoteCleared, RemoteFinished
from voicestream.media import MediaFrame, SourceKind
from voicestream.session.delivery import Delivery, LivePlayout, OrderedSink
from voicestream.session.hub import Hub
from voicestream.session.replay import ReplayWindow
from voicestream.wire import messages as wire
from voicestream.wire.frame_values import AnchorFrame, AudioFrame, CopyFrame, PlayoutEntry, ProgressFrame, RetransmissionFrame
from voicestream.wire.opus_toc import frame_units
from voicestream.wire.parameters import Held

__all__ = ["BREAK_UNITS", "Receiver", "ReceiverCounts"]

PROGRESS_PATIENCE: Final = 0.1
"""Seconds that a PROGRESS may wait for a datagram that leaves anyway."""

MAX_HELD_RANGES: Final = 100
"""Ranges named in one HELD; the message has to hold them all."""

BREAK_SILENCE: Final = 1.0
"""Seconds without audio, where there should have been some, that are taken for a break."""

END_SILENCE: Final = 0.25
"""The same where the track has ended meanwhile, and its end is missing."""

BREAK_UNITS: Final = 80
"""Missing media in the midst of a talkspurt that is taken for one (200 ms)."""

BREAK_PATIENCE: Final = 10.0
"""Seconds that a reader in order waits for what a break has swallowed: the far end may have to notice and to dial first."""

CATCH_UP_SLACK: Final = 30.0
"""Seconds of media that may have come since a break, while what was missed is still on its way."""

MAX_WINDOW: Final = 330.0

DEAF_TIME: Final = 0.25
"""Seconds beyond a round trip in which a question is answered, by a report at least. Where that takes longer a break is why, and it is
asked anew."""

MAX_ASKED: Final = 24
"""Holes from before a break that are asked for once more: those after it need room as well."""

CONTROL_PROGRESS_EVERY: Final = 4
"""Every so many PROGRESS also goes on the control stream, for a path that carries no datagrams."""


@dataclass(slots=True)
class ReceiverCounts:
    """What happened to the media of one track."""

    frames: int = 0
    payload_bytes: int = 0
    duplicates: int = 0
    stale: int = 0
    retransmissions: int = 0
    progress_told: int = 0
    replayed: int = 0
    talking: bool = False
    is_told: bool = False
    is_far: bool = False
    break_at: float | None = None
    newest_at: float | None = None


class Receiver:
    """Receives one track.

    Attributes:
        track: What it carries.
        media: What has come.
        clears: Its clears.
        played: What has been played.
        delivery: Where the media goes.
        counts: Counters.
        replay: What was asked for once more.
    """

    __slots__ = ("_hub", "clears", "counts", "delivery", "media", "played", "replay", "track")

    def __init__(self, hub: Hub, track: Track) -> None:
        self._hub = hub
        self.track = track
        window = min(MAX_WINDOW, hub.peer.retain_ms / 1000 + CATCH_UP_SLACK)
        self.media = ReceivedMedia(round(window * UNITS_PER_SECOND))
        self.clears = ReceiverClears(track.track_id)
        self.played = PlayedLog(track.track_id)
        self.delivery = Delivery(hub.peer.retain_ms / 1000)
        self.counts = ReceiverCounts()
        self.replay = ReplayWindow()

    # For the owner of the session

    def attach_playout(self, playout: LivePlayout) -> None:
        """Play the track with `playout` from now on. What was kept until now (at most 10 s) goes to it first."""
        self.delivery.attach_playout(playout)

    def attach_ordered(self, reader: OrderedSink) -> None:
        """Give the track to `reader` from now on. What was kept until now (at most 10 s) goes to it first."""
        self.delivery.attach_ordered(reader)

    # What comes in datagrams

    def on_media(self, frame: AudioFrame | RetransmissionFrame, kind: SourceKind, now: float, send_time: float) -> MediaFrame | None:
        """A coded frame has come. Returns it when it is new and wanted."""
        track, received, clears, finish = self.track, self.media, self.clears, self.played.finish_pts
        units = frame_units(track, frame.payload)
        pts = received.full_pts(frame.pts)
        if pts >= MAX_PTS:  # VS-6.1-3
            raise ProtocolError(ErrorCode.TRACK_ERROR, f"pts {pts} of track {track.track_id} is absurd")
        if finish is not None and pts >= finish:  # VS-8.6-3
            raise ProtocolError(ErrorCode.TRACK_ERROR, f"audio after the end of track {track.track_id}")
        older_end = received.end_pts
        wanted_from = self.wanted_from
        if not received.add(pts, units):
            self._again(frame, pts, units, kind, now)
            return None
        number = clears.number_of(frame.clear_number, pts, older_end)
        if clears.overtaken(number, older_end):
            self._clear(now, by_sender=True)
        if clears.is_stale(number, pts):
            self.counts.stale += 1
            self._hub.record(now, "receive:stale", track=self.track.track_id, pts=pts)
            return None
        counts = self.counts
        counts.frames += 1
        counts.payload_bytes += len(frame.payload)
        counts.retransmissions += kind is SourceKind.RETRANSMISSION
        if kind is SourceKind.AUDIO:
            was_dead = now - (counts.newest_at or now) > BREAK_SILENCE or (counts.talking and pts - wanted_from >= BREAK_UNITS)
            # While this end's questions do not arrive, each hole is the break's: it is filled when they do.
            was_dead = was_dead or (self._hub.is_unheard and pts > wanted_from)
            if was_dead and not frame.talkspurt_start and not self.delivery.is_resumed:
                # What is missing comes when it is asked for; after a resume it would come by itself.
                counts.break_at = now
                self.delivery.catch_up(now, BREAK_PATIENCE, pts)
            counts.newest_at = now
            counts.talking = not frame.talkspurt_end
        media = self._media(frame, pts, units, number)
        # VS-11.3-11
        stale = kind is SourceKind.RETRANSMISSION and pts + self._lookahead_units < self.media.live_pts
        self.delivery.insert(media, now, kind, send_time, stale=stale, unheard=self._hub.is_unheard)
        return media

    def on_copy(self, frame: CopyFrame, now: float, send_time: float) -> None:
        """A low-rate copy has come: for a playout, which plays it if the frame itself does not come in time."""
        playout = self.delivery.playout
        if playout is None:
            return
        units = frame_units(self.track, frame.payload)
        pts = self.media.full_pts(frame.pts)
        number = self.clears.number_of(frame.clear_number, pts, self.media.end_pts)
        finish = self.played.finish_pts
        if pts >= MAX_PTS or self.clears.is_stale(number, pts) or (finish is not None and pts + units > finish):
            self.counts.stale += 1
            return
        media = self._media(frame, pts, units, number)
        playout.insert(media, now, kind=SourceKind.COPY, send_time=send_time)

    def _again(self, frame: AudioFrame | RetransmissionFrame, pts: int, units: int, kind: SourceKind, now: float) -> None:
        """A frame that came before: a duplicate, unless it was asked for once more."""
        if kind is not SourceKind.RETRANSMISSION or not self.replay.takes(pts):
            self.counts.duplicates += 1
            return
        self.counts.replayed += 1
        self.delivery.replay(self._media(frame, pts, units, self.clears.number, replayed=True), now)

    def _media(
        self, frame: AudioFrame | RetransmissionFrame | CopyFrame, pts: int, units: int, clear_number: int, *, replayed: bool = False
    ) -> MediaFrame:
        return MediaFrame(
            track=self.track.track_id,
            pts=pts,
            units=units,
            payload=frame.payload,
            clear_number=clear_number,
            talkspurt_start=frame.talkspurt_start,
            talkspurt_end=frame.talkspurt_end,
            replayed=replayed,
        )

    @property
    def wanted_from(self) -> int:
        """Where media that is still to come and is wanted begins: what a clear has voided is not missed."""
        return max(self.media.end_pts, self.clears.to_pts)

    def holes_before(self, end_pts: int) -> list[tuple[int, int]]:
        """(first pts, units) of what is missing before a pts and still waited for by whoever takes the track in order; the newest of it."""
        if self.delivery.ordered is None:
            return []
        holes = self.media.holes(max(self.clears.to_pts, self.delivery.wanted_from))
        return [hole for hole in holes if hole[0] < end_pts][-MAX_ASKED:]

    def answered(self, sent_at: float, now: float, rtt: float) -> bool:
        """What left at `sent_at` has arrived at the far end. Whether questions had no answer for so long that a break must be why."""
        ordered = self.delivery.ordered
        asked_at = None if ordered is None else ordered.answered(sent_at)
        if asked_at is None or now - asked_at < rtt + DEAF_TIME or self.delivery.is_resumed or not self.holes_before(self.wanted_from):
            return False
        self.counts.break_at = now
        self.delivery.catch_up(now, BREAK_PATIENCE, self.wanted_from)
        return True

    def patience(self, now: float) -> float:
        """Seconds that what is missing before the newest media is still worth asking for, if a break has swallowed it."""
        return BREAK_PATIENCE if self.counts.break_at == now and self.delivery.ordered is not None else 0.0

    # Between two connections

    def restore(self, had_pts: int, played_pts: int | None, finish_pts: int | None) -> None:
        """Go on where the application at another server had come: what follows `had_pts` is wanted."""
        self.media.restore(had_pts)
        self.delivery.start_from(had_pts)
        self.played.restore(self.clears.number, played_pts, finish_pts)
        if finish_pts is not None:
            self.delivery.finish(finish_pts)

    def held(self, now: float) -> Held:
        """What this end has of the track, or wants no more (VS-11.3-11)."""
        delivery, media = self.delivery, self.media
        holes = media.holes(max(self.clears.to_pts, delivery.wanted_from))
        next_pts = holes[0][0] if holes else self.wanted_from
        ranges = _between(holes, media.end_pts)
        if delivery.is_live and self.counts.newest_at is not None:
            # The far end's media time has gone on; what is older than the lookahead by then is too late.
            live_pts = media.end_pts + round((now - self.counts.newest_at) * UNITS_PER_SECOND)
            late = live_pts - self._lookahead_units
            if late > next_pts:
                later = [(max(first, late), first + units - max(first, late)) for first, units in ranges if first + units > late]
                ranges = [(next_pts, late - next_pts), *later]
        if len(ranges) > MAX_HELD_RANGES:
            # The newest ones count; what is sent in vain is known for what it is.
            ranges = ranges[-MAX_HELD_RANGES:]
        return Held(track=self.track.track_id, next_pts=next_pts, ranges=tuple(ranges))

    def resumed(self, now: float) -> None:
        """On a new connection, wait for what comes again, and say what the far end may not know."""
        self.delivery.catch_up(now, CATCH_UP_SLACK + self._hub.peer.retain_ms / 1000)
        if not self.clears.answered:
            to_pts = self.clears.to_pts
            self._hub.send(
                wire.Clear(
                    track=self.track.track_id,
                    number=self.clears.number,
                    from_receiver=True,
                    from_pts=min(self.played.played_pts or 0, to_pts),
                    to_pts=to_pts,
                ),
                now,
                repeat=self._request_key,
            )
        for message in self.played.restate():
            self._hub.send(message, now)

    @property
    def _lookahead_units(self) -> int:
        return round(self._hub.config.playout.lookahead_ms / PTS_UNIT_MS)

    def on_anchor(self, anchor: AnchorFrame) -> None:
        """The full pts of what follows."""
        if anchor.pts >= MAX_PTS:
            raise ProtocolError(ErrorCode.TRACK_ERROR, f"pts {anchor.pts} of track {self.track.track_id} is absurd")
        self.media.anchor(anchor.pts)
        self.delivery.set_ahead(anchor.pts, anchor.ahead)

    # Clear, finish, and what was played

    def request_clear(self, now: float) -> int:
        """Ask the far end to stop talking; returns the clear's number."""
        clear = self.clears.request(self.played.played_pts or 0, self.media.end_pts)
        self._hub.send(clear, now, repeat=self._request_key)
        self._clear(now, by_sender=False)
        return clear.number

    def on_clear(self, clear: wire.Clear, now: float) -> None:
        """The far end voids what it sent, or answers our request."""
        if clear.to_pts >= MAX_PTS:
            raise ProtocolError(ErrorCode.TRACK_ERROR, f"pts {clear.to_pts} of track {self.track.track_id} is absurd")
        by_sender = clear.number > self.clears.number
        if self.clears.received(clear):
            self._clear(now, by_sender=by_sender)
        if self.clears.answered:
            self._hub.outgoing.repeats.withdraw(self._request_key)

    def _clear(self, now: float, *, by_sender: bool) -> None:
        track, number, to_pts = self.track.track_id, self.clears.number, self.clears.to_pts
        # Concealment may have carried the player beyond a clear that ends where the sender had come to.
        heard = self.delivery.clear(min(self.played.played_pts or 0, to_pts), to_pts, number)
        playout = self.delivery.playout
        for message in self.played.clear(number, to_pts, heard, now, exact=playout is not None and playout.is_exact):
            self._tell_cleared(message, now)
        self._hub.record(now, "clear:received", track=track, number=number, to_pts=to_pts, by_sender=by_sender)
        if by_sender:
            self._hub.events.put(RemoteCleared(track=track, number=number, to_pts=to_pts))

    def on_finish(self, finish: wire.Finish, now: float) -> None:
        """No audio at or after a pts follows."""
        if self.played.finish_pts is not None:
            if self._hub.counts.resumes and finish.pts == self.played.finish_pts:
                return  # VS-11.3-13: said again, since the far end cannot know what the broken connection still carried
            raise ProtocolError(ErrorCode.UNEXPECTED_MESSAGE, f"FINISH for track {self.track.track_id} twice")  # VS-8.6-4
        if finish.pts < self.media.end_pts:  # VS-8.6-3
            raise ProtocolError(ErrorCode.TRACK_ERROR, f"audio after the end of track {self.track.track_id}")
        self.played.finish_pts = finish.pts
        missing = finish.pts - self.wanted_from
        was_dead = missing >= BREAK_UNITS or (missing > 0 and now - (self.counts.newest_at or now) > END_SILENCE)
        if self.counts.talking and was_dead:
            self.counts.break_at = now
            self.delivery.catch_up(now, BREAK_PATIENCE, finish.pts)
        self.counts.talking = False
        self.delivery.finish(finish.pts)
        self._hub.events.put(RemoteFinished(track=self.track.track_id, pts=finish.pts))
        if (self.played.played_pts or 0) >= finish.pts:
            # All had been played before the end was known, or there was nothing; a player with nothing left to play may not report.
            self.report_played(self.played.played_pts or 0, now)

    def report_played(self, pts: int, now: float) -> bool:
        """The player's word; see `Session.report_played`."""
        messages = self.played.played(pts, now)
        for message in messages:
            if isinstance(message, wire.Progress):
                self._tell_progress(message, now)
            elif isinstance(message, wire.Cleared):
                self._tell_cleared(message, now)
            else:
                self._hub.outgoing.repeats.withdraw(self._progress_key)
                self._hub.send(message, now)
        return bool(messages)

    def handle_timer(self, now: float) -> None:
        """Confirm a clear of which the player has said nothing."""
        for message in self.played.due(now):
            self._tell_cleared(message, now)

    def playout_entry(self) -> PlayoutEntry | None:
        """How the playout stands, for a report."""
        playout = self.delivery.playout
        if playout is None:
            return None
        return PlayoutEntry(
            track=self.track.track_id,
            playhead=max(0, playout.heard_now) & 0xFFFF,  # VS-16-6
            level_units=max(0, round(playout.level_units)),
            target_units=max(0, round(playout.target_units)),
        )

    @property
    def _request_key(self) -> tuple[str, int]:
        return "clear request", self.track.track_id

    @property
    def _progress_key(self) -> tuple[str, int]:
        return "progress", self.track.track_id

    def _tell_progress(self, message: wire.Progress, now: float) -> None:
        self._hub.outgoing.repeats.put(self._progress_key, ProgressFrame(message=message), now, patience=PROGRESS_PATIENCE)
        if self.counts.progress_told % CONTROL_PROGRESS_EVERY == 0:
            self._hub.send(message, now)
        self.counts.progress_told += 1

    def _tell_cleared(self, message: wire.Cleared, now: float) -> None:
        self._hub.send(message, now, repeat=("cleared", self.track.track_id))


def _between(holes: list[tuple[int, int]], end_pts: int) -> list[tuple[int, int]]:
    """(first pts, units) of what lies behind each hole."""
    if not holes:
        return []
    ends = [*(first for first, _ in holes[1:]), end_pts]
    return [(first + units, end - first - units) for (first, units), end in zip(holes, ends, strict=True) if end > first + units]
