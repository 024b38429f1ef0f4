"""Recovery of a session's tracks: repair frames and retransmissions out, questions and recovered media in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from voicestream.codepoints import CodecId
from voicestream.config import UNITS_PER_SECOND
from voicestream.core.allocator import WIRE_OVERHEAD, SendPlan
from voicestream.core.feedback import Feedback
from voicestream.core.rate_limit import RateLimit
from voicestream.core.recovery.budget import RedundancyBudget, Tool
from voicestream.core.recovery.fec import Repair, RepairEncoder, Source, runs_of, window_of
from voicestream.core.recovery.missing import MAX_PIECES
from voicestream.core.recovery.resend import ResendQueue
from voicestream.core.recovery.retain import RetainedMedia
from voicestream.core.recovery.waiting import Waiting
from voicestream.media import MediaFrame
from voicestream.session.coded import coded
from voicestream.session.hub import Hub, earliest
from voicestream.session.recovery_values import IncomingRecovery, OutgoingRecovery, RecoveryCounts, flags_of
from voicestream.session.sender import Bundle
from voicestream.wire.datagram import HEADER_SIZE
from voicestream.wire.frame_values import CopyFrame, MissingFrame, ProbeFrame, RepairFrame, RetransmissionFrame
from voicestream.wire.frames import frame_size
from voicestream.wire.opus_toc import opus_is_celt
from voicestream.wire.sequence import unwrap

__all__ = ["Recovery"]

REPAIR_SPAN_UNITS: Final = 52
"""How far back a repair reaches (130 ms): what is older is past its playout time behind a lookahead of 150 ms."""

REPAIR_HASTE: Final = 2
"""Frames by which a repair may leave before the plan's interval has passed, if there is credit."""

ASSUMED_RTT: Final = 0.1
"""Seconds, before the first report."""

MAX_HOLE_UNITS: Final = 160
"""A longer hole (400 ms) is a break or a silence whose marks were lost; only its end is worth asking for."""

LOOKED_AT_PER_SECOND: Final = 20000
"""Frames that questions of the far end make us look at in a second: all that is kept of a call, ten times."""

MAX_BREAK_UNITS: Final = 1600
"""What is asked for of a break, where everything is wanted in order (4 s): after a longer one the session is resumed."""

INBAND_PART: Final = 0.2
"""Estimated part of a frame's bytes that the codec's in-band copy of the frame before takes under a low hint."""

PROBE_BYTES: Final = 60
"""Filler of a datagram that only measures the path."""

LARGE: Final = 1.5
"""A frame that is larger than what the plan gives one by this factor was coded before the rate fell."""

RICH_BITRATE_BPS: Final = 24000
"""From here on a retransmission leaves at once; below it waits for a datagram to ride on, to save the headers."""


class Recovery:
    """Routes between the recovery mechanisms of all tracks and the datagrams.

    Attributes:
        budget: What all tools may cost.
        counts: Counters.
        outgoing: By track that this end sends.
        incoming: By track that this end receives.
    """

    __slots__ = ("_hub", "_looking", "_questions", "_rtt", "budget", "counts", "incoming", "outgoing")

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.budget = RedundancyBudget(hub.config.rate.redundancy_share)
        self.counts = RecoveryCounts()
        self.outgoing: dict[int, OutgoingRecovery] = {}
        self.incoming: dict[int, IncomingRecovery] = {}
        self._looking = RateLimit(LOOKED_AT_PER_SECOND, 1.0)
        self._questions: dict[int, tuple[tuple[int, int], ...]] = {}
        self._rtt = ASSUMED_RTT

    def open(self, *, sent: Iterable[int], received: Iterable[int]) -> None:
        """Set up the tracks that this end sends and receives."""
        for track in sent:
            self.outgoing[track] = OutgoingRecovery(RepairEncoder(), RetainedMedia(self._hub.config.retain_s), ResendQueue())
        for track in received:
            self.incoming[track] = IncomingRecovery()

    # Out

    def ride(self, bundle: Bundle, now: float, plan: SendPlan, *, draining: bool = False) -> None:
        """Put retransmissions and a repair before the audio of a datagram that leaves, and remember that audio.

        While a queue drains there is nothing but a retransmission no larger than what the plan gives a frame: frames coded before the
        rate fell are too large to be sent once more, and so are repairs of them.
        """
        if draining:
            self._drop_large(plan, now)
        for track in {frame.track for frame in bundle.sources}:
            out = self.outgoing[track]
            if not draining and not plan.copy_bps:  # copies mean bursts, where an echo is often lost with its answer
                self._echo(out, bundle, now)
            if len(out.resends):
                self._resend(out, bundle, now, headers=0, most=1 if draining else MAX_PIECES)
            if draining:
                continue
            if plan.copy_bps:
                self._copy(out, bundle, now, plan.copy_offset_frames)
            self._repair(out, track, bundle, now, plan.repair_interval)
        self.left(bundle, now, plan)

    def left(self, bundle: Bundle, now: float, plan: SendPlan) -> None:
        """Remember the audio of a datagram that leaves."""
        for frame in bundle.sources:
            out = self.outgoing[frame.track]
            out.encoder.add(Source(pts=frame.pts, flags=flags_of(frame), payload=frame.payload))
            out.retained.add(frame, now)
            out.copies.left(frame, wanted=bool(plan.copy_bps))
            if plan.inband_fec_percent and self._is_silk(frame):
                self.budget.spend(Tool.INBAND, round(INBAND_PART * len(frame.payload)))
            out.newest_pts = frame.pts
            out.frames_since_repair += 1

    def companion(self, bundle: Bundle, now: float, interval: int) -> Bundle:
        """What follows right behind a datagram of audio, to measure the path with something useful: a repair, or the frame before."""
        track = bundle.sources[-1].track
        pair = Bundle()
        if interval and self.budget.share and self._add_repair(self.outgoing[track], track, pair, now, "measures the path"):
            self.budget.spend(Tool.PAIR, WIRE_OVERHEAD + HEADER_SIZE)
            return pair
        frame = self.redundant_frame(track, bundle)
        if frame is None:
            return self.probe()
        pair.frames.append(frame)
        pair.size += frame_size(frame)
        self.budget.spend(Tool.PAIR, WIRE_OVERHEAD + pair.size)
        self._hub.record(now, "recovery:copy_sent", track=track, pts16=frame.pts, reason="measures the path")
        return pair

    def redundant_frame(self, track: int, bundle: Bundle) -> RetransmissionFrame | None:
        """The most useful frame to send once more beside this audio: for now, the one before it. None if there is none."""
        first = bundle.sources[0]
        if not self.budget.share or first.pts == 0:
            return None
        before = self.outgoing[track].retained.within(first.pts - 1, 1)
        if not before or before[-1].clear_number != first.clear_number:
            return None
        return coded(RetransmissionFrame, before[-1])

    def probe(self) -> Bundle:
        """A datagram that only measures the path."""
        frame = ProbeFrame(cluster=0, size=PROBE_BYTES)
        return Bundle(frames=[frame], size=HEADER_SIZE + frame_size(frame))

    def keep(self, track: int, frames: Iterable[MediaFrame], now: float) -> None:
        """These were never sent: who misses them after a break can still have them."""
        for frame in frames:
            self.outgoing[track].retained.add(frame, now)

    @property
    def resends_wait(self) -> bool:
        """Whether there are retransmissions that have not left."""
        return sum([len(out.resends) for out in self.outgoing.values()]) > 0

    def alone(self, now: float, bitrate_bps: int) -> list[Bundle]:
        """Datagrams of retransmissions that should not wait for audio."""
        bundles: list[Bundle] = []
        if bitrate_bps < RICH_BITRATE_BPS:
            return bundles
        for out in self.outgoing.values():
            while len(out.resends):
                bundle = Bundle()
                self._resend(out, bundle, now, headers=WIRE_OVERHEAD + HEADER_SIZE)
                if not bundle.frames:
                    break
                bundles.append(bundle)
        return bundles

    @property
    def gets_copies(self) -> bool:
        """Whether the source makes low-rate copies when it is asked to."""
        return all(out.copies.has_source for out in self.outgoing.values())

    def carried(self, size: int) -> None:
        """A datagram of this size leaves."""
        self.budget.carried(size + WIRE_OVERHEAD)

    def reported(self, feedback: Feedback) -> None:
        """A report told what became of datagrams."""
        self.budget.outcome(len(feedback.acked), len(feedback.lost))

    def on_missing(self, frame: MissingFrame, next_pts: int, now: float, rtt: float | None) -> None:
        """The far end asks for media. What was never sent, or is kept no more, it does not get. VS-4.10-4, VS-4.10-5"""
        self.outgoing[frame.track].resends.asked(self.asked(frame, next_pts, now), now, rtt or ASSUMED_RTT)

    def asked(self, frame: MissingFrame, next_pts: int, now: float) -> list[MediaFrame]:
        """What is kept of the media that is asked for, oldest first; nothing while the far end has us look for more than it can miss."""
        if not self.budget.share or not self._looking.allow(now):
            return []
        ranges: list[tuple[int, int]] = []
        for first16, units in frame.ranges:
            first = unwrap(first16, next_pts)
            if first < next_pts:
                self._hub.record(now, "recovery:asked_by_peer", track=frame.track, pts=first, units=units)
                ranges.append((first, min(units, next_pts - first)))
        found, looked = self.outgoing[frame.track].retained.among(ranges)
        self._looking.spend(looked)
        return found

    def void(self, track: int) -> None:
        """A clear: what was sent on the track is not worth repairing."""
        out = self.outgoing[track]
        out.encoder.clear()
        out.retained.clear()
        out.resends.clear()
        out.copies.clear()

    def _drop_large(self, plan: SendPlan, now: float) -> None:
        """Forget what is asked for and too large for the plan, and what credit was saved up at a better rate."""
        self.budget.tighten()
        for track, out in self.outgoing.items():
            dropped = out.resends.drop_larger(round(LARGE * plan.bitrate_bps * plan.frame_ms / 8000))
            if dropped:
                self._hub.record(now, "recovery:given_up", track=track, pieces=dropped, reason="too large while a queue drains")

    def _resend(self, out: OutgoingRecovery, bundle: Bundle, now: float, *, headers: int, most: int = MAX_PIECES) -> None:
        while most and (media := out.resends.peek(now)) is not None:
            most -= 1
            frame = coded(RetransmissionFrame, media)
            size = frame_size(frame)
            if bundle.size + size > self._hub.peer.max_datagram_size or not self.budget.allows(Tool.RETRANSMISSION, size + headers):
                return
            out.resends.pop(now)
            bundle.media.append((media.track, media.pts))
            self._send_again(frame, bundle, headers)
            self._hub.record(now, "recovery:retransmitted", track=media.track, pts=media.pts, alone=headers > 0, reason="asked for")
            headers = 0

    def _echo(self, out: OutgoingRecovery, bundle: Bundle, now: float) -> None:
        """What was sent again a moment ago rides on audio once more: if that was lost, this is quicker than the next question."""
        for media in out.resends.echoes(now):
            frame = coded(RetransmissionFrame, media)
            size = frame_size(frame)
            if bundle.size + size <= self._hub.peer.max_datagram_size and self.budget.allows(Tool.RETRANSMISSION, size):
                self._send_again(frame, bundle, 0)
                self._hub.record(now, "recovery:retransmitted", track=media.track, pts=media.pts, alone=False, reason="once more")

    def _send_again(self, frame: RetransmissionFrame, bundle: Bundle, headers: int) -> None:
        bundle.frames.insert(0, frame)
        bundle.size += frame_size(frame)
        self.budget.spend(Tool.RETRANSMISSION, frame_size(frame) + headers)
        self.counts.retransmissions_sent += 1

    def _is_silk(self, frame: MediaFrame) -> bool:
        """Whether the frame can carry an in-band copy: CELT has none."""
        opus = any(track.track_id == frame.track and track.codec == CodecId.OPUS for track in self._hub.config.tracks)
        return opus and not opus_is_celt(frame.payload)

    def _copy(self, out: OutgoingRecovery, bundle: Bundle, now: float, offset: int) -> None:
        """Low-rate copies of frames that left some time ago."""
        for media in out.copies.due(offset, last=bundle.sources[-1].talkspurt_end):
            frame = coded(CopyFrame, media)
            size = frame_size(frame)
            if bundle.size + size > self._hub.peer.max_datagram_size or not self.budget.allows(Tool.COPY, size):
                out.copies.dropped += 1
                continue
            bundle.frames.insert(0, frame)
            bundle.size += size
            self.budget.spend(Tool.COPY, size)
            self.counts.copies_sent += 1
            self._hub.record(now, "recovery:copied", track=media.track, pts=media.pts, size=size)

    def _repair(self, out: OutgoingRecovery, track: int, bundle: Bundle, now: float, interval: int) -> None:
        """A repair of frames in earlier datagrams, when the plan has one now and enough credit has grown."""
        if not interval or out.frames_since_repair < max(1, interval - REPAIR_HASTE) or not self.budget.allows(Tool.REPAIR, 1):
            return
        longest = max((len(frame.payload) for frame in bundle.sources), default=0)
        if not self.budget.allows(Tool.REPAIR, longest + 16):
            return
        self._add_repair(out, track, bundle, now, "the budget allows it")

    def _add_repair(self, out: OutgoingRecovery, track: int, bundle: Bundle, now: float, reason: str) -> bool:
        repair = out.encoder.repair(MAX_PIECES, oldest_pts=out.newest_pts - REPAIR_SPAN_UNITS)
        if repair is None:
            return False
        frame = RepairFrame(
            track=track, key=repair.key, newest_pts=repair.window[0] & 0xFFFF, runs=runs_of(repair.window), symbol=repair.symbol
        )
        size = frame_size(frame)
        if bundle.size + size > self._hub.peer.max_datagram_size:
            return False
        bundle.frames.insert(0, frame)
        bundle.size += size
        out.frames_since_repair = 0
        self.budget.spend(Tool.REPAIR, size)
        self.counts.repairs_sent += 1
        window = repair.window
        self._hub.record(now, "recovery:repair_sent", track=track, newest_pts=window[0], frames=len(window), reason=reason)
        return True

    # In

    def arrived(self, media: MediaFrame, older_end: int, now: float, *, patience: float = 0.0, plain: bool = False) -> list[Source]:
        """New media has come, in whatever way; returns what the repairs bring back with its help.

        Args:
            media: The frame.
            older_end: End of the latest media before it.
            now: Monotonic seconds.
            patience: Seconds that whoever takes it in order waits for what a break has swallowed; 0 where it is not one.
            plain: It came the plain way.
        """
        into = self.incoming[media.track]
        into.missing.arrived(media.pts, media.units)
        if media.pts >= older_end:
            into.loss.arrived()
        elif plain:
            into.loss.overtaken()
        if media.pts > older_end and not media.talkspurt_start:
            into.loss.lost(min(MAX_HOLE_UNITS, media.pts - older_end) // media.units)
            self._hole(media.track, into, older_end, media.pts, now, patience)
        into.decoder.forget(media.pts - 2 * REPAIR_SPAN_UNITS)
        return into.decoder.source(Source(pts=media.pts, flags=flags_of(media), payload=media.payload))

    def waiting(self, track: int, units: int) -> Waiting | None:
        """How long what is missing is worth waiting for, with frames of so many units; None where it comes by itself, if later."""
        return self.incoming[track].waiting(units, self._rtt, self._hub.config.playout.lookahead_ms / 1000)

    def ended(self, track: int, end_pts: int, finish_pts: int, now: float, *, patience: float = 0.0) -> None:
        """The track ends at `finish_pts`, and media has come up to `end_pts`."""
        if finish_pts > end_pts:
            self._hole(track, self.incoming[track], end_pts, finish_pts, now, patience)

    def on_repair(self, frame: RepairFrame, reference: int) -> list[Source]:
        """A repair has come; returns what it brings back."""
        self.counts.repairs_received += 1
        window = window_of(unwrap(frame.newest_pts, reference), frame.runs)
        if window is None:  # VS-10.3-3
            self.counts.repairs_invalid += 1
            return []
        return self.incoming[frame.track].decoder.repair(Repair(key=frame.key, window=window, symbol=frame.symbol))

    def voided(self, track: int, to_pts: int) -> None:
        """A clear: what lies before `to_pts` is not missed, nor asked for."""
        self.incoming[track].missing.clear(to_pts)
        wanted = [(max(first, to_pts), first + units) for first, units in self._questions.pop(track, ()) if first + units > to_pts]
        if wanted:
            self._questions[track] = tuple((first, end - first) for first, end in wanted)

    def asking(self, now: float, rtt: float | None) -> bool:
        """Whether there is something to ask the far end for now."""
        self._rtt = rtt or ASSUMED_RTT
        for track, into in self.incoming.items():
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
        return earliest([into.missing.next_timer(rtt or ASSUMED_RTT) for into in self.incoming.values() if len(into.missing)])

    def _record_given_up(self, track: int, into: IncomingRecovery, before: int, now: float, reason: str) -> None:
        if into.missing.given_up != before:
            self._hub.record(now, "recovery:given_up", track=track, pieces=into.missing.given_up - before, reason=reason)

    def _hole(self, track: int, into: IncomingRecovery, first: int, end: int, now: float, patience: float) -> None:
        self._hub.record(now, "recovery:hole", track=track, pts=first, units=end - first)
        if patience:  # VS-4.10-5
            first = max(first, end - MAX_BREAK_UNITS)
            into.missing.hole(first, end - first, now, now + patience)
            return
        given_up = into.missing.given_up
        first = max(first, end - MAX_HOLE_UNITS)
        lookahead = self._hub.config.playout.lookahead_ms / 1000
        # The newest media is played a lookahead from now at the latest, and what comes before it earlier by their distance.
        into.missing.hole(first, end - first, now, now + lookahead - (end - first) / UNITS_PER_SECOND)
        self._record_given_up(track, into, given_up, now, "too many holes")
