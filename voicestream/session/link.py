"""Datagrams out and in: what goes together into one, and who takes what comes (specification section 4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from voicestream.codepoints import ErrorCode
from voicestream.config import Limits
from voicestream.core.allocator import WIRE_OVERHEAD, SendPlan, wire_rate_bps
from voicestream.core.bwe import State as RateState
from voicestream.core.keepalive import Keepalive
from voicestream.core.knocks import Knocks
from voicestream.core.lifecycle import Role, State
from voicestream.core.rate_limit import RateLimit
from voicestream.errors import ProtocolError
from voicestream.session.grease import Grease
from voicestream.session.hub import Hub
from voicestream.session.planner import Planner
from voicestream.session.recovery_values import ASSUMED_RTT
from voicestream.session.reports import Reports, is_eliciting
from voicestream.session.sender import Bundle, Sender
from voicestream.session.tracks import Tracks
from voicestream.wire import frame_values as frames
from voicestream.wire.datagram import HEADER_SIZE, Datagram, decode_datagram, encode_datagram
from voicestream.wire.frames import frame_size
from voicestream.wire.sequence import ticks

__all__ = ["Link"]

BURST: Final = 2.0
"""Seconds' worth of datagrams that may come at once: a network may hold them back for so long, or several times that at a call's pace."""

WORK_PER_SECOND: Final = 600
"""Frames other than coded ones that are acted on in a second, which may cost a fraction of a millisecond each; a lively call sends 300."""

SHORT_QUEUE: Final = 0.06
"""Seconds of queue from which a path that has fallen silent is taken for a slow one; a dead one is asked more often, with speech."""

REPAIR_WORK: Final = 4
"""What a repair counts for among them."""

_MEDIA: Final = (frames.AudioFrame, frames.RetransmissionFrame)


class Link:
    """Puts datagrams together and takes them apart.

    Attributes:
        reports: Reports both ways, the clocks and the logs behind them.
        keepalive: Watches for silence.
    """

    __slots__ = (
        "_audio_only", "_early", "_grease", "_hub", "_knocks", "_limit", "_planner", "_takers", "_tracks", "_work", "keepalive", "reports",
    )  # fmt: skip

    def __init__(self, hub: Hub, tracks: Tracks, planner: Planner, grease: Grease) -> None:
        self._hub = hub
        self._tracks = tracks
        self._planner = planner
        self._grease = grease
        self._early: deque[tuple[bytes, float]] = deque()
        self._audio_only = False  # or reports, and nothing else since the timers were read
        self._limit = RateLimit(hub.config.limits.datagrams_per_second, BURST)
        self._work = RateLimit(WORK_PER_SECOND, BURST)
        self._knocks = Knocks()
        self.reports = Reports()
        self.keepalive = Keepalive() if hub.lifecycle.role is Role.CLIENT else Keepalive(None)
        self._takers: Mapping[type, Callable[[Any, float], None]] = {
            frames.AnchorFrame: lambda frame, now: tracks.on_anchor(frame),
            frames.ClearFrame: lambda frame, now: tracks.on_clear(frame.message, now),
            frames.ClearedFrame: lambda frame, now: tracks.on_cleared(frame.message, now),
            frames.ProgressFrame: lambda frame, now: tracks.on_progress(frame.message, now),
            frames.PaddingFrame: lambda frame, now: None,
            frames.UnknownFrame: self._count_unknown,
            frames.MissingFrame: lambda frame, now: tracks.on_missing(frame, now, self.reports.clock.rtt),
            frames.ProbeFrame: self._count_unused,
        }

    def tighten(self, limits: Limits) -> None:
        """Other bounds hold from now on."""
        self._limit = RateLimit(limits.datagrams_per_second, BURST)

    def let_go(self) -> None:
        """Nothing will be received any more."""
        self._takers = {}
        self._early.clear()

    # In

    def receive(self, data: bytes, now: float) -> None:
        """Take a datagram.

        Raises:
            ProtocolError: The peer broke a rule.
        """
        counts, state = self._hub.counts, self._hub.lifecycle.state
        if state is State.CALLING or state is State.RESUMING:
            self._keep_early(data, now)
            return
        if state is not State.OPEN and state is not State.CONFIRMING:
            raise ProtocolError(ErrorCode.AUDIO_BEFORE_ACCEPT, "a datagram came before ACCEPT was sent")  # VS-5.5-3
        counts.datagrams_received += 1
        counts.bytes_received += len(data)
        datagram = decode_datagram(data)  # VS-13.1-4
        if not self._limit.allow(now, max(1, len(datagram.frames) // 2)):
            raise ProtocolError(ErrorCode.LIMIT_EXCEEDED, "too many datagrams")
        reports = self.reports
        if not reports.arrived(datagram, len(data), now):
            return
        if reports.growth.is_long:
            self._audio_only = False
            self._planner.suspect(now)
        send_time = reports.left_at
        self._hub.is_unheard = self._planner.estimator.state is RateState.STARVED
        self._tracks.heard(now)
        self._tracks.recovery.missed.least_rtt = reports.clock.min_rtt or reports.clock.rtt or ASSUMED_RTT
        if self._audio_only:
            for frame in datagram.frames:
                if type(frame) is not frames.AudioFrame and type(frame) is not frames.ReportFrame:
                    self._audio_only = False
        for frame in datagram.frames:
            if isinstance(frame, _MEDIA):
                self._tracks.on_media(frame, now, send_time)
            elif isinstance(frame, frames.CopyFrame):
                self._tracks.on_copy(frame, now, send_time)
            elif not self._work.allow(now, REPAIR_WORK if isinstance(frame, frames.RepairFrame) else 1):
                counts.frames_unused += 1  # each of these says what will be said again; a flood of them is not listened to
            elif isinstance(frame, frames.RepairFrame):
                self._tracks.on_repair(frame, now, send_time)
            elif isinstance(frame, frames.ReportFrame):
                self._on_report(frame, datagram.send_tick, now, send_time)
            else:
                self._takers[type(frame)](frame, now)

    def opened(self, now: float) -> None:
        """The session is open: take what came too early, and watch for silence.

        Raises:
            ProtocolError: The peer broke a rule.
        """
        self.keepalive.sent(now)
        while self._early:
            self.receive(*self._early.popleft())

    def restart(self, now: float) -> None:
        """A new connection: numbers begin again, and nothing is known of the path."""
        self.reports = Reports()
        self._planner.restart(now)
        self._early.clear()
        self.keepalive.sent(now)

    def _keep_early(self, data: bytes, now: float) -> None:
        """A client keeps what overtook ACCEPT; the oldest goes when there is too much. VS-5.5-4"""
        self._early.append((data, now))
        if len(self._early) > self._hub.config.limits.early_datagrams:
            self._early.popleft()
            self._hub.counts.early_datagrams_dropped += 1

    def _on_report(self, report: frames.ReportFrame, reply_tick: int, now: float, send_time: float) -> None:
        self._hub.counts.reports_received += 1
        feedback = self.reports.on_report(report, reply_tick, now)
        for datagram in feedback.acked:
            self._tracks.on_acked(datagram)
        if feedback.acked:
            self._tracks.answered(max(datagram.sent_at for datagram in feedback.acked), now, self.reports.clock.rtt)
        for datagram in feedback.lost:
            self._tracks.on_lost(datagram)
        for datagram in feedback.found:
            self._tracks.on_found(datagram)
        self._tracks.recovery.reported(feedback)
        self._planner.allocator.copies = self._tracks.recovery.gets_copies
        self._planner.reported(feedback, now, self.reports.clock.rtt, self.reports.clock.min_rtt)
        self.reports.schedule.scarce = self._planner.estimator.state is RateState.DRAIN
        self._tracks.recovery.plan(
            self._planner.redundancy_share(), echoes=self._planner.allocator.echoes, carried_bps=self._planner.estimator.target_bps
        )
        self._tracks.on_playout(report.playout, now, self.reports.clock.rtt, send_time)

    def _count_unknown(self, frame: Any, now: float) -> None:
        self._hub.counts.frames_unknown += 1

    def _count_unused(self, frame: Any, now: float) -> None:
        self._hub.counts.frames_unused += 1

    # Out

    def send(self, now: float) -> list[bytes]:
        """The datagrams that leave now."""
        if not self._hub.is_open:
            return []
        out: list[bytes] = []
        planner, recovery = self._planner, self._tracks.recovery
        plan = planner.allocator.plan
        for track, sender in self._tracks.senders.items():
            if not sender.queue.is_idle:
                self._send_media(track, sender, now, plan, out)
        if recovery.resends_wait and not planner.estimator.draining:
            for bundle in recovery.alone(now, plan.bitrate_bps):
                self._ride(bundle, now, alone=False)
                out.append(self._seal(bundle, now))
        if len(out) > 1:
            planner.estimator.paired(now)
        if plan.paused and planner.probe_due(now):
            out += [self._seal(recovery.probe(), now) for _ in range(2)]
        if self._tracks.replay.was_used:
            planner.owing = len(self._tracks.replay) > 0
            if self._tracks.replay.is_active:
                out += self._owed(now)
        reports, repeats = self.reports, self._hub.outgoing.repeats
        if recovery.missed.asking(now, reports.clock.rtt) or reports.due_alone(now) or repeats.due_alone(now):
            bundle = Bundle(others=WIRE_OVERHEAD + HEADER_SIZE)
            self._ride(bundle, now, alone=True)
            out.append(self._seal(bundle, now))
        starved = plan.paused and planner.estimator.state is RateState.STARVED
        clear = starved and planner.estimator.path.delay.standing < SHORT_QUEUE
        speech = clear and any(len(sender.queue) for sender in self._tracks.senders.values())
        knocks = self._knocks.due(now, silent=starved, speech=speech)
        if knocks:
            out += self._spoken(now, plan)
        if (knocks or self.keepalive.due(now)) and not out:
            self._hub.counts.keepalives_sent += 1
            out.append(self._seal(Bundle(others=WIRE_OVERHEAD + HEADER_SIZE), now))
        return out

    def is_idle(self, now: float) -> bool:
        """Whether `send` would surely give nothing."""
        for sender in self._tracks.senders.values():  # first, since it is why most that is sent is sent
            if not sender.queue.is_idle:
                return False
        planner, recovery = self._planner, self._tracks.recovery
        if not self._hub.is_open or planner.allocator.plan.paused or recovery.resends_wait or self._tracks.replay.was_used:
            return False
        self._knocks.due(now, silent=False)
        if recovery.missed.asking(now, self.reports.clock.rtt) or self.reports.due_alone(now):
            return False
        return not (self._hub.outgoing.repeats.due_alone(now) or self.keepalive.due(now))

    def _spoken(self, now: float, plan: SendPlan) -> list[bytes]:
        """The newest of what is said, in what asks a silent path for a sign of life: the first to pass is speech already.

        It is the whole of it as long as the codec follows the plan, so that a path which is dead one way only carries speech the other way.
        """
        out: list[bytes] = []
        recovery = self._tracks.recovery
        for track, sender in self._tracks.senders.items():
            bundle = sender.take_newest(now)
            recovery.keep(track, sender.queue.take_dropped(), now)
            if bundle is not None:
                recovery.left(bundle, now, plan)
                self._ride(bundle, now, alone=False)
                out.append(self._seal(bundle, now))
        return out

    def _send_media(self, track: int, sender: Sender, now: float, plan: SendPlan, out: list[bytes]) -> None:
        """Datagrams of what waits on a track."""
        recovery = self._tracks.recovery
        # Where headers are dear, the frames of one datagram in two of their own are a pair that brings nothing twice.
        apart = plan.bundle > 1 and self._planner.wants_pair(now)
        bundles = sender.take(now, plan.bundle, paused=plan.paused or now < self._planner.estimator.hold_until, apart=apart)
        recovery.keep(track, sender.queue.take_dropped(), now)
        draining = self._planner.estimator.draining
        for bundle in bundles:
            recovery.ride(bundle, now, plan, draining=draining)
            self._ride(bundle, now, alone=False)
            out.append(self._seal(bundle, now))
            if len(out) == 1 and len(bundles) == 1 and self._planner.wants_pair(now):
                out.append(self._seal(recovery.companion(bundle, now, 0 if draining else plan.repair_interval), now))

    def _owed(self, now: float) -> list[bytes]:
        """Datagrams of what is owed after a break."""
        anchors = {track: sender.anchors for track, sender in self._tracks.senders.items()}
        planner = self._planner
        out: list[bytes] = []
        is_over = all(sender.timeline.finished for sender in self._tracks.senders.values())
        live_bps, answered = 0.0 if is_over else wire_rate_bps(planner.plan), planner.estimator.state is not RateState.STARVED
        rtt = self.reports.clock.rtt
        if planner.plan.paused and planner.estimator.draining:
            self._tracks.replay.hold(now)  # where speech is too much the past is, too
        for bundle in self._tracks.replay.bundles(now, planner.event_allowance_bps, live_bps, anchors, answered=answered, rtt=rtt):
            self._ride(bundle, now, alone=False)
            out.append(self._seal(bundle, now))
        return out

    def next_timer(self) -> float | None:
        """When something will have to leave by itself, or None."""
        tracks, planner, rtt = self._tracks, self._planner, self.reports.clock.rtt
        plan = planner.allocator.plan
        self._audio_only = True
        # Asked for many times for each frame, so there is no table and no loop.
        first = self.reports.next_timer()
        if (time := tracks.recovery.missed.next_timer(rtt)) is not None and (first is None or time < first):
            first = time
        if (time := planner.next_timer(rtt)) is not None and (first is None or time < first):
            first = time
        if (time := self.keepalive.next_timer()) is not None and (first is None or time < first):
            first = time
        hold_until = planner.estimator.hold_until
        if (time := tracks.next_timer(None if plan.paused else plan.bundle, hold_until)) is not None and (first is None or time < first):
            first = time
        if (time := self._hub.outgoing.repeats.next_timer()) is not None and (first is None or time < first):
            first = time
        if (time := self._knocks.next_timer()) is not None and (first is None or time < first):
            first = time
        if tracks.replay.was_used and (time := tracks.replay.next_timer()) is not None and (first is None or time < first):
            first = time
        return first

    def is_calm(self, until: float) -> bool:
        """Whether surely nothing leaves, and nothing is due before `until`, the last `next_timer` or a time before it.

        That is so where audio has come in its order since then, with reports, and nothing waits that something else could let go.
        """
        tracks, outgoing, planner = self._tracks, self._hub.outgoing, self._planner
        if not (self._audio_only and self._hub.is_open) or outgoing.control or tracks.replay.was_used or tracks.recovery.resends_wait:
            return False
        if planner.allocator.plan.paused or not self.reports.is_calm(until) or not tracks.recovery.missed.is_calm(until):
            return False
        for sender in tracks.senders.values():
            if not sender.queue.is_idle:
                return False
        starved_at = planner.estimator.path.starved_at(self.reports.clock.rtt or ASSUMED_RTT)
        return (starved_at is None or starved_at >= until) and not len(outgoing.repeats)

    def _ride(self, bundle: Bundle, now: float, *, alone: bool) -> None:
        """Put a report and repeats before the media of a datagram: a clear is known before the audio that follows it."""
        riders: list[frames.Frame] = []
        room = self._hub.peer.max_datagram_size - bundle.size
        schedule = self.reports.schedule
        if not alone:
            schedule.chance(now)
        if schedule.due_alone(now) or schedule.rides(now):
            own_bytes = HEADER_SIZE if alone and not len(self._hub.outgoing.repeats) else 0
            made = self.reports.make(now, room, self._tracks.playout_entries(), own_bytes=own_bytes, may_wait=not alone)
            if made is not None:
                riders.append(made[0])
                bundle.others += made[1]
                room -= made[1]
        for key, version, frame in self._hub.outgoing.repeats.riding(now):
            size = frame_size(frame)
            if size <= room:
                riders.append(frame)
                bundle.others += size
                room -= size
                bundle.tokens.append((key, version))
                self._hub.outgoing.repeats.sent(key, now, self.reports.clock.rtt or 0.0)
        recovery = self._tracks.recovery
        for question in recovery.missed.questions(room) if recovery.missed.asking(now, self.reports.clock.rtt) else ():
            size = frame_size(question)
            riders.append(question)
            self._tracks.asked(question.track, now)
            bundle.others += size
            room -= size
        grease = self._grease.frame()
        if grease is not None and (size := frame_size(grease)) <= room:
            riders.append(grease)
            bundle.others += size
        if riders:
            bundle.frames[:0] = riders

    def _seal(self, bundle: Bundle, now: float) -> bytes:
        sent, counts = self.reports.sent, self._hub.counts
        datagram = Datagram(number=sent.next_number & 0xFFFF, send_tick=ticks(now), frames=tuple(bundle.frames))  # VS-4.1-1 VS-6.3-1
        data = encode_datagram(datagram)
        entry = sent.sent(len(data), now, media=tuple(bundle.media), tokens=tuple(bundle.tokens))
        self._planner.sent(entry, now, other_bytes=bundle.others, eliciting=is_eliciting(datagram))
        self.keepalive.sent(now)
        counts.datagrams_sent += 1
        counts.bytes_sent += len(data)
        self._tracks.recovery.carried(len(data))
        return data
