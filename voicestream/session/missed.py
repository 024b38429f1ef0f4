"""What a session misses of the tracks it receives: what repairs bring back of it, and questions for the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from voicestream.config import UNITS_PER_SECOND
from voicestream.core.recovery.fec import Repair, Source, window_of
from voicestream.core.recovery.missing import REORDER_PATIENCE
from voicestream.core.recovery.waiting import BURSTS, UNKNOWN_LOSS, Waiting, waiting_for
from voicestream.media import MediaFrame
from voicestream.session.hub import Hub
from voicestream.session.recovery_values import ASSUMED_RTT, REPAIR_SPAN_UNITS, IncomingRecovery, RecoveryCounts, flags_of
from voicestream.wire.frame_values import MissingFrame, RepairFrame
from voicestream.wire.frames import frame_size
from voicestream.wire.sequence import unwrap

__all__ = ["Missed"]

MAX_HOLE_UNITS: Final = 160
"""A longer hole (400 ms) is a break or a silence whose marks were lost; only its end is worth asking for."""

FRAME: Final = 0.02
"""Seconds of a usual frame, by which a path is judged."""

ANSWER_SLACK: Final = 0.1
"""Seconds beyond two round trips: questions and answers wait for something to ride on, and questions for what may be overtaken."""

OVERTAKEN: Final = 0.03
"""Seconds for which what is missing is waited for before it is asked for, where most of it comes by itself: it was overtaken."""

MAX_ANSWER: Final = 1.5
"""Seconds after which who reads in order goes on without the answer."""

MAX_BREAK_UNITS: Final = 1600
"""What is asked for of a break, where everything is wanted in order (4 s): after a longer one the session is resumed."""


class Missed:
    """Routes between the datagrams that come and the recovery of what does not.

    Attributes:
        counts: Counters.
        least_rtt: Round trip of the empty path in seconds, as far as it is known.
        tracks: By track that this end receives.
    """

    __slots__ = ("_hub", "_questions", "_rtt", "counts", "least_rtt", "tracks")

    def __init__(self, hub: Hub, counts: RecoveryCounts) -> None:
        self._hub = hub
        self.counts = counts
        self.tracks: dict[int, IncomingRecovery] = {}
        self._questions: dict[int, tuple[tuple[int, int], ...]] = {}
        self._rtt = self.least_rtt = ASSUMED_RTT

    def open(self, received: Iterable[int]) -> None:
        """Set up the tracks that this end receives."""
        for track in received:
            self.tracks[track] = IncomingRecovery()

    def arrived(self, media: MediaFrame, older_end: int, now: float, *, patience: float = 0.0, plain: bool = False) -> list[Source]:
        """New media has come, in whatever way; returns what the repairs bring back with its help.

        Args:
            media: The frame.
            older_end: End of the latest media before it.
            now: Monotonic seconds.
            patience: Seconds that whoever takes it in order waits for what is missing before it; 0: the lookahead.
            plain: It came the plain way.
        """
        into = self.tracks[media.track]
        into.missing.arrived(media.pts, media.units)
        if plain:
            self._came(into, media, now, live=not patience)
        else:
            into.mended.append(media.pts)
        if media.pts > older_end and not media.talkspurt_start:
            self._hole(media.track, into, older_end, media.pts, now, patience)
        into.decoder.forget(media.pts - 2 * REPAIR_SPAN_UNITS)
        return into.decoder.source(Source(pts=media.pts, flags=flags_of(media), payload=media.payload))

    def _came(self, into: IncomingRecovery, media: MediaFrame, now: float, *, live: bool) -> None:
        """A frame has come the plain way: what is missing before it was lost, though it may have come another way."""
        end = into.plain_end
        if media.pts < end:
            self._overtaken(into)
        else:
            into.loss.arrived()
            if self.tells_loss(media):
                into.loss.lost(min(MAX_HOLE_UNITS, media.pts - end) // media.units)
                if into.loss.is_real:
                    into.overdue.lost(now)
                into.missing.echoes = self._echoes(into)
            into.plain_end = media.pts + media.units
        start, last = media.talkspurt_start, media.talkspurt_end or not live
        into.overdue.came(media.pts, media.units, now, talkspurt_start=start, talkspurt_end=last)

    @staticmethod
    def _echoes(into: IncomingRecovery) -> int:
        """How many times a question is asked once more: in bursts the way back may be as long without a datagram."""
        if not into.loss.is_real or not into.overdue.is_of_use:
            return 1
        return 2 if into.loss.burst < BURSTS else 3

    def came_again(self, track: int, pts: int, units: int, now: float) -> None:
        """A frame has come the plain way that was here before: if it had come another way, it was not lost, but late."""
        into = self.tracks[track]
        if pts in into.mended:
            into.mended.remove(pts)
            self._overtaken(into)
            into.overdue.came(pts, units, now, talkspurt_start=False, talkspurt_end=False)

    @staticmethod
    def _overtaken(into: IncomingRecovery) -> None:
        """What was missing was only late: where that is usual, a frame that is overdue is not asked for."""
        into.loss.overtaken()
        if not into.loss.is_real:
            into.overdue.lost(-math.inf)

    def tells_loss(self, media: MediaFrame) -> bool:
        """Whether a frame that comes the plain way tells that others before it are missing, or would have been."""
        end = self.tracks[media.track].plain_end
        return media.pts > end > 0 and not media.talkspurt_start

    def answered_within(self) -> float:
        """Seconds in which a question, or a second one if that gets lost, brings what is missing; 0 where the lookahead is as long."""
        needed = min(MAX_ANSWER, 2 * self._rtt + ANSWER_SLACK)
        return needed if needed > self._hub.config.playout.lookahead_ms / 1000 else 0.0

    def beginning(self) -> float | None:
        """Seconds that what is missing would be worth waiting for on a path where no answer comes in time; None on any other."""
        lookahead = self._hub.config.playout.lookahead_ms / 1000
        if self.least_rtt < lookahead:
            return None
        waiting = waiting_for(loss=UNKNOWN_LOSS, burst=1.0, rtt=self.least_rtt, frame=FRAME, lookahead=lookahead)
        return None if waiting.answered else waiting.seconds

    def waiting(self, track: int, units: int) -> Waiting | None:
        """How long what is missing is worth waiting for, with frames of so many units; None where it comes by itself, if later."""
        return self.tracks[track].waiting(units, self._rtt, self._hub.config.playout.lookahead_ms / 1000)

    def ended(self, track: int, end_pts: int, finish_pts: int, now: float, *, patience: float = 0.0) -> None:
        """The track ends at `finish_pts`, and media has come up to `end_pts`."""
        self.tracks[track].overdue.stop(finish_pts)
        if finish_pts > end_pts:
            self._hole(track, self.tracks[track], end_pts, finish_pts, now, patience)

    def on_repair(self, frame: RepairFrame, reference: int) -> list[Source]:
        """A repair has come; returns what it brings back."""
        self.counts.repairs_received += 1
        window = window_of(unwrap(frame.newest_pts, reference), frame.runs)
        if window is None:  # VS-10.3-3
            self.counts.repairs_invalid += 1
            return []
        self.tracks[frame.track].loss.repaired()
        return self.tracks[frame.track].decoder.repair(Repair(key=frame.key, window=window, symbol=frame.symbol))

    def voided(self, track: int, to_pts: int) -> None:
        """A clear: what lies before `to_pts` is not missed, nor asked for."""
        into = self.tracks[track]
        into.missing.clear(to_pts)
        into.overdue.stop(to_pts)
        into.plain_end = max(into.plain_end, to_pts)
        wanted = [(max(first, to_pts), first + units) for first, units in self._questions.pop(track, ()) if first + units > to_pts]
        if wanted:
            self._questions[track] = tuple((first, end - first) for first, end in wanted)

    def asking(self, now: float, rtt: float | None) -> bool:
        """Whether there is something to ask the far end for now."""
        self._rtt = rtt or ASSUMED_RTT
        for track, into in self.tracks.items():
            late = into.overdue.due(now)
            if late is not None:
                self._overdue(track, into, late, now)
            if not len(into.missing):
                continue
            given_up = into.missing.given_up
            due = into.missing.due(now, rtt or ASSUMED_RTT)
            self._record_given_up(track, into, given_up, now, "too late to ask")
            if due:
                self._questions[track] = due
                self._hub.record(now, "recovery:asked", track=track, ranges=[list(one) for one in due], reason="missing, and in time")
        return bool(self._questions)

    def questions(self, room: int) -> list[MissingFrame]:
        """The questions that fit into so many bytes; they are asked with that."""
        found: list[MissingFrame] = []
        for track, ranges in list(self._questions.items()):
            question = MissingFrame(track=track, ranges=tuple((first & 0xFFFF, units) for first, units in ranges))
            size = frame_size(question)
            if size <= room:
                room -= size
                found.append(question)
                del self._questions[track]
        return found

    def next_timer(self, rtt: float | None) -> float | None:
        """When the next question is due, or None."""
        first: float | None = None
        for into in self.tracks.values():
            timer = into.overdue.next_timer()
            if timer is not None:
                first = timer if first is None else min(first, timer)
            if len(into.missing) and (timer := into.missing.next_timer(rtt or ASSUMED_RTT)) is not None:
                first = timer if first is None else min(first, timer)
        return first

    def is_calm(self, until: float) -> bool:
        """Whether nothing is missing, and no frame will be overdue before `until`."""
        if self._questions:
            return False
        for into in self.tracks.values():
            timer = into.overdue.next_timer()
            if (timer is not None and timer < until) or len(into.missing):
                return False
        return True

    def _record_given_up(self, track: int, into: IncomingRecovery, before: int, now: float, reason: str) -> None:
        if into.missing.given_up != before:
            self._hub.record(now, "recovery:given_up", track=track, pieces=into.missing.given_up - before, reason=reason)

    def _overdue(self, track: int, into: IncomingRecovery, late: tuple[int, int], now: float) -> None:
        """A frame has not come in its time: it is asked for before others tell that it is lost, lest a burst have to end first."""
        first, units = late
        self._hub.record(now, "recovery:overdue", track=track, pts=first, units=units)
        lookahead = self._hub.config.playout.lookahead_ms / 1000
        into.missing.hole(first, units, now - REORDER_PATIENCE, now + lookahead - into.overdue.slack)

    def _hole(self, track: int, into: IncomingRecovery, first: int, end: int, now: float, patience: float) -> None:
        self._hub.record(now, "recovery:hole", track=track, pts=first, units=end - first)
        if patience:  # VS-4.10-5
            first = max(first, end - MAX_BREAK_UNITS)
            into.missing.hole(first, end - first, now, now + patience)
            return
        given_up = into.missing.given_up
        first = max(first, into.overdue.asked_end)
        if first >= end:
            return
        first = max(first, end - MAX_HOLE_UNITS)
        lookahead = self._hub.config.playout.lookahead_ms / 1000
        # The newest media is played a lookahead from now at the latest, and what comes before it earlier by their distance.
        since = now if into.loss.is_real else now + OVERTAKEN
        into.missing.hole(first, end - first, since, now + lookahead - (end - first) / UNITS_PER_SECOND)
        self._record_given_up(track, into, given_up, now, "too many holes")
