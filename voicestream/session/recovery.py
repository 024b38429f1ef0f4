"""Recovery of a session's tracks: repairs, copies and retransmissions that leave. What comes in is `missed`'s."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from voicestream.codepoints import CodecId
from voicestream.core.allocator import WIRE_OVERHEAD, SendPlan
from voicestream.core.feedback import Feedback
from voicestream.core.rate_limit import RateLimit
from voicestream.core.recovery.budget import MOST, RedundancyBudget, Tool, answering
from voicestream.core.recovery.choice import INBAND_PART
from voicestream.core.recovery.fec import RepairEncoder, Source, runs_of
from voicestream.core.recovery.missing import MAX_PIECES
from voicestream.core.recovery.resend import ResendQueue
from voicestream.core.recovery.retain import RetainedMedia
from voicestream.media import MediaFrame
from voicestream.session.coded import coded
from voicestream.session.hub import Hub
from voicestream.session.missed import Missed
from voicestream.session.recovery_values import ASSUMED_RTT, REPAIR_SPAN_UNITS, OutgoingRecovery, RecoveryCounts, flags_of
from voicestream.session.sender import Bundle
from voicestream.wire.datagram import HEADER_SIZE
from voicestream.wire.frame_values import CopyFrame, MissingFrame, ProbeFrame, RepairFrame, RetransmissionFrame
from voicestream.wire.frames import frame_size
from voicestream.wire.opus_toc import has_inband_copy
from voicestream.wire.sequence import unwrap

__all__ = ["Recovery"]

REPAIR_HASTE: Final = 2
"""Frames by which a repair may leave before the plan's interval has passed, if there is credit."""

LOOKED_AT_PER_SECOND: Final = 20000
"""Frames that questions of the far end make us look at in a second: all that is kept of a call, ten times."""

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
        echoes: How many times an answer rides on later audio once more.
        outgoing: By track that this end sends.
        missed: What comes in.
    """

    __slots__ = ("_hub", "_looking", "budget", "counts", "echoes", "missed", "outgoing")

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        rate = hub.config.rate
        self.budget = RedundancyBudget(rate.redundancy_share, max(MOST, rate.redundancy_cap))
        self.counts = RecoveryCounts()
        self.echoes = 1
        self.outgoing: dict[int, OutgoingRecovery] = {}
        self.missed = Missed(hub, self.counts)
        self._looking = RateLimit(LOOKED_AT_PER_SECOND, 1.0)

    def open(self, *, sent: Iterable[int], received: Iterable[int]) -> None:
        """Set up the tracks that this end sends and receives."""
        for track in sent:
            self.outgoing[track] = OutgoingRecovery(RepairEncoder(), RetainedMedia(self._hub.config.retain_s), ResendQueue())
        self.missed.open(received)

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
            if not draining:
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
            if plan.inband_fec_percent and self._has_inband_copy(frame):
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
        if frame is None or not self.budget.allows(Tool.PAIR, WIRE_OVERHEAD + pair.size + frame_size(frame)):
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
        if bitrate_bps < RICH_BITRATE_BPS or (self.budget.is_scarce and self.echoes == 1):
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

    def plan(self, share: float, *, echoes: int, carried_bps: float) -> None:
        """What redundancy may take of the wire, how often an answer rides along, and what the path carries."""
        self.echoes = echoes
        self.budget.share = share
        self.budget.answers = answering(echoes)
        self.budget.path_carries(carried_bps if echoes > 1 else 0.0)  # where losses are no bursts, many at once are a queue's

    def reported(self, feedback: Feedback) -> None:
        """A report told what became of datagrams."""
        self.budget.outcome(len(feedback.acked), len(feedback.lost))

    def on_missing(self, frame: MissingFrame, next_pts: int, now: float, rtt: float | None) -> None:
        """The far end asks for media. What was never sent, or is kept no more, it does not get. VS-4.10-4, VS-4.10-5"""
        self.outgoing[frame.track].resends.asked(self.asked(frame, next_pts, now), now, rtt or ASSUMED_RTT)

    def asked(self, frame: MissingFrame, next_pts: int, now: float) -> list[MediaFrame]:
        """What is kept of the media that is asked for, oldest first; nothing while the far end has us look for more than it can miss."""
        if not self._hub.config.rate.redundancy_share or not self._looking.allow(now):
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
        for media in out.resends.echoes(now, self.echoes):
            frame = coded(RetransmissionFrame, media)
            size = frame_size(frame)
            if bundle.size + size <= self._hub.peer.max_datagram_size and self.budget.allows(Tool.RETRANSMISSION, size, again=True):
                self._send_again(frame, bundle, 0)
                self._hub.record(now, "recovery:retransmitted", track=media.track, pts=media.pts, alone=False, reason="once more")

    def _send_again(self, frame: RetransmissionFrame, bundle: Bundle, headers: int) -> None:
        bundle.frames.insert(0, frame)
        bundle.size += frame_size(frame)
        self.budget.spend(Tool.RETRANSMISSION, frame_size(frame) + headers)
        self.counts.retransmissions_sent += 1

    def _has_inband_copy(self, frame: MediaFrame) -> bool:
        """Whether the frame carries a copy of the one before it."""
        opus = any(track.track_id == frame.track and track.codec == CodecId.OPUS for track in self._hub.config.tracks)
        return opus and has_inband_copy(frame.payload)

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
