"""Keeps the estimate of the path and the send plan, and says when they change.

What the path carries is the estimator's business, what to choose the allocator's; here they get what they need to know.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

from voicestream.core.allocator import WIRE_OVERHEAD, Allocator, SendPlan, floor_rate_bps, headers_bps, wire_rate_bps
from voicestream.core.bwe import Estimator, Quality, QualityGauge, Sample, State
from voicestream.core.bwe.samples import WindowedMin
from voicestream.core.eventing import DEFAULT_ALLOWANCE_BPS
from voicestream.core.feedback import Feedback, SentDatagram
from voicestream.core.recovery.budget import ANSWERS
from voicestream.events import PlanChanged, QualityChanged
from voicestream.session.hub import Hub
from voicestream.wire.sequence import TICKS_PER_SECOND

__all__ = ["Planner"]

ASSUMED_RTT: Final = 0.1
"""Seconds, before the first report."""

OTHERS_MEMORY: Final = 2.0
"""Seconds over which the rate of reports and the like is measured."""

ASSUMED_OTHERS_BPS: Final = 2000
ACK_BYTES: Final = 8
"""Bytes of an ACK that rides on a datagram."""

MOST_LOSS_ANSWERED: Final = 0.1
LITTLE_LOSS: Final = 0.03
FULL_REDUNDANCY_BPS: Final = 40000
NO_REDUNDANCY_BPS: Final = 16000
"""Between these wire rates the share of redundancy grows from nothing to what the application allows."""

ESTIMATE_BELOW_FLOOR: Final = 0.6
"""The estimate may fall to this part of the floor, so that a path that does not carry the floor is known as such."""

EVENTS_USE: Final = 0.8
"""Part of the link that audio and events may take together while nothing stands against it."""

PROTECTED_BPS: Final = 124000
"""Up to so much on the wire, what is kept for retransmissions included, redundancy costs no bits of the codec."""

GOOD_BPS: Final = 48000
"""Bits of the codec that there is use for beside much redundancy."""

LEAST_OF_BEGINNING: Final = 0.5
"""Part of the rate of a new call with which a resumed one begins at least, whatever the path carried before."""

OWED_PART: Final = 0.25
"""Part of what there is for audio that goes to what is owed after a break: a reader in order waits for that, and for all behind it."""

OWING_FACTOR: Final = 4.0
"""How much more there is use for while a resumed session catches up."""

LINK_INTERVAL: Final = 0.1
LINK_WINDOW: Final = 3.0
"""Seconds for which the least that was known of the link holds: single answers mislead."""

USEFUL_STEP: Final = 4000
"""Steps of what there is use for of the codec, lest the plan change with every answer."""

PROBE_INTERVAL: Final = 0.4
"""Seconds between two pairs of probes while the audio pauses."""


class Planner:
    """The plan in force, and the estimate behind it.

    Attributes:
        estimator: The rate that the path carries.
        allocator: The choice.
        gauge: The quality in a word.
        owing: After a break media is owed beside the live one, so that there is use for more.
    """

    __slots__ = (
        "_carried_bps",
        "_hub",
        "_links",
        "_links_at",
        "_others_at",
        "_others_bits",
        "_probed_at",
        "_rtt",
        "_traced_at",
        "allocator",
        "estimator",
        "gauge",
        "owing",
    )

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.owing = False
        self.allocator = Allocator(hub.config)
        self.estimator = self._beginner()
        self._carried_bps = self.estimator.target_bps
        self._links = WindowedMin(LINK_WINDOW)
        self._links_at = -math.inf
        self.gauge = QualityGauge()
        self._others_bits = 0.0
        self._others_at = 0.0
        self._probed_at = -math.inf
        self._traced_at = -math.inf
        self._rtt: float | None = None

    def _beginner(self) -> Estimator:
        start = 1.02 * wire_rate_bps(self.plan) / (1 - self._hub.config.rate.redundancy_share) + ASSUMED_OTHERS_BPS
        return Estimator(start, ESTIMATE_BELOW_FLOOR * floor_rate_bps(self._hub.config), self._need_bps(), self._hub.observer)

    def restart(self, now: float) -> None:
        """A new connection: its path is another one, and its datagrams count from 0.

        Begin as with a new call; but where the old path carried less, begin with that, or half of what a new call would.
        """
        before = self.plan
        self.allocator = Allocator(self._hub.config)
        self.estimator = self._beginner()
        begin_bps = self.estimator.target_bps
        self.estimator.target_bps = max(LEAST_OF_BEGINNING * begin_bps, min(begin_bps, self._carried_bps))
        self._probed_at = -math.inf
        self._links.clear()
        self._links_at = -math.inf
        if self.plan != before:
            self._tell(before, now)
        self._choose(now, None)

    @property
    def plan(self) -> SendPlan:
        """How the session sends. The application's codec begins with what the configuration says."""
        return self.allocator.plan

    @property
    def quality(self) -> Quality:
        """The quality of this direction."""
        return self.gauge.level

    # What happens

    def opened(self, now: float, rtt: float | None) -> None:
        """Audio may flow: the plan to begin with is the first decision. `rtt` is what the transport has measured, if it has."""
        self._record_plan(self.plan, now)
        self._choose(now, rtt)

    def sent(self, datagram: SentDatagram, now: float, *, other_bytes: int, eliciting: bool) -> None:
        """A datagram leaves.

        Args:
            datagram: It.
            now: Monotonic seconds.
            other_bytes: Bytes on the wire that are neither audio nor redundancy. Application events are not among them: they get what
                audio leaves.
            eliciting: The far end will report it.
        """
        self.estimator.sent(datagram.number, now, datagram.size + WIRE_OVERHEAD, eliciting=eliciting)
        if now > self._others_at:
            self._others_bits *= math.exp(-(now - self._others_at) / OTHERS_MEMORY)
            self._others_at = now
        self._others_bits += other_bytes * 8

    def reported(self, feedback: Feedback, now: float, rtt: float | None, min_rtt: float | None) -> None:
        """A report came. `rtt` is the smoothed round trip, `min_rtt` that of the empty path."""
        self._rtt = rtt
        samples = [_sample(datagram) for datagram in feedback.acked]
        lost = [datagram.number for datagram in feedback.lost]
        self.estimator.feedback(now, samples, lost, rtt or ASSUMED_RTT, feedback.seen_until)
        self._choose(now, min_rtt)

    def suspect(self, now: float) -> None:
        """What the far end sends waits all at once: it may be the same this way, and the reports that would tell of it wait as well."""
        if self.estimator.suspect(now):
            self._choose(now, None)

    def handle_timer(self, now: float, rtt: float | None) -> None:
        """Do what is due."""
        timer = self.estimator.next_timer(rtt or ASSUMED_RTT)
        if timer is not None and now >= timer:
            self.estimator.tick(now, rtt or ASSUMED_RTT)
            self._choose(now, None)

    def next_timer(self, rtt: float | None) -> float | None:
        """When something is due, or None."""
        timer = self.estimator.path.starved_at(rtt or ASSUMED_RTT)
        if not self.allocator.plan.paused:
            return timer
        probe = self._probed_at + PROBE_INTERVAL
        return probe if timer is None else min(timer, probe)

    def update(self, now: float) -> None:
        """Choose anew after the far end's limits have changed."""
        self._choose(now, None)

    def wants_pair(self, now: float) -> bool:
        """Whether something should leave right behind a datagram of audio, to measure the path."""
        return self._hub.config.rate.pairs and self.estimator.wants_pair(now)

    def probe_due(self, now: float) -> bool:
        """Whether a pair of probes should leave, because no audio does; they count as sent with that. VS-9.3-4"""
        if not self.allocator.plan.paused or now < self._probed_at + PROBE_INTERVAL:
            return False
        self._probed_at = now
        return True

    # What follows from it

    @property
    def event_allowance_bps(self) -> float:
        """Bits per second for audio and application events together.

        The target is no more than audio has use for. Where nothing stands against it, the path may carry more.
        """
        estimator, bound = self.estimator, self._hub.rate_bound
        allowance = estimator.target_bps
        if estimator.state is State.RAMP:
            link = estimator.link_bps
            allowance = max(allowance, DEFAULT_ALLOWANCE_BPS if link is None else min(DEFAULT_ALLOWANCE_BPS, EVENTS_USE * link))
        return allowance if bound is None else min(allowance, bound)

    def redundancy_share(self) -> float:
        """Part of the wire bytes that redundancy may take at present: less where headers leave little, none while a queue drains."""
        if self.estimator.is_overdue or self.estimator.state is State.DRAIN:  # VS-9.4-4
            return 0.0
        room = (self.estimator.target_bps - NO_REDUNDANCY_BPS) / (FULL_REDUNDANCY_BPS - NO_REDUNDANCY_BPS)
        return self.allocator.plan.redundancy_share * max(0.0, min(1.0, room))

    def _answered_loss(self) -> float:
        """Part of the wire bytes that answers to losses take beyond that."""
        if not self._hub.config.rate.redundancy_share:
            return 0.0
        # What a full queue has dropped will not go on.
        usual, lost = self.estimator.background_loss, self.estimator.path.losses.share
        again = (ANSWERS - 1) * min(usual, lost) if usual else 0.0
        return min(MOST_LOSS_ANSWERED, min(max(LITTLE_LOSS, usual), lost) + again)

    def _need_bps(self) -> float:
        """What there is use for at most."""
        rate, frame_ms, most_bps = self._hub.config.rate, self._hub.config.frame_ms, self.allocator.useful_bps
        acks = ACK_BYTES * 8000 / frame_ms
        need = (most_bps + headers_bps(frame_ms, 1) + acks) / (1 - rate.redundancy_share - MOST_LOSS_ANSWERED)
        if self.allocator.wanted_share > rate.redundancy_share:
            # Redundancy comes out of the bits beyond good speech first.
            left = 1 - self.allocator.wanted_share - MOST_LOSS_ANSWERED
            most = most_bps + headers_bps(frame_ms, 1) + acks
            good = min(most_bps, GOOD_BPS) + headers_bps(frame_ms, 1) + acks
            need = max(need, good / left, min(PROTECTED_BPS, most / left))
        if self.owing:
            need *= OWING_FACTOR
        bound = self._hub.rate_bound
        return need if bound is None else min(need, bound)  # VS-9.4-1

    def path_changed(self, now: float) -> None:
        """The packets take another path."""
        self._links.clear()
        self._links_at = -math.inf
        self.estimator.path_changed(now)

    def _most_bps(self, now: float) -> int:
        """Bits of the codec that there is use for: more than the application began with only on a link that carries far more.

        What leaves until it is known that a link carries less has to wait there, and all that follows behind it.
        """
        config, link_bps = self._hub.config, self.estimator.link_bps
        most, rate = config.rate.max_bitrate_bps, config.rate
        if link_bps is not None and not self.estimator.path.blind:
            self._links.add(now, link_bps)
        link_bps = self._links.value
        if link_bps is None or rate.headroom <= 1:
            return most
        media = (1 - rate.redundancy_share) * link_bps / rate.headroom - headers_bps(config.frame_ms, 1)
        return min(most, max(config.bitrate_bps, int(media / USEFUL_STEP) * USEFUL_STEP))

    def _media_bps(self) -> float:
        """What is left for audio and redundancy with their headers."""
        plan = self.allocator.plan
        others = self._others_bits / OTHERS_MEMORY + ACK_BYTES * 8000 / (plan.frame_ms * plan.bundle)  # VS-9.4-2
        return max(0.0, self.estimator.target_bps - others)

    def _audio_bps(self) -> float:
        """What is left for audio with its headers."""
        left = self._media_bps() * (1 - self.redundancy_share() - self._answered_loss())
        return (1 - OWED_PART) * left if self.owing else left

    def _carried_bps_now(self) -> float:
        """What the path is known to carry, as far as it may be used; 0 where nobody answers."""
        if self.estimator.state is State.STARVED:
            return 0.0
        delivered, bound = self.estimator.delivered_bps(), self._hub.rate_bound
        return delivered if bound is None else min(delivered, bound)

    def _choose(self, now: float, min_rtt: float | None) -> None:
        estimator = self.estimator
        if now >= self._links_at:
            self._links_at = now + LINK_INTERVAL
            self.allocator.useful_bps = self._most_bps(now)
        estimator.limit(self._need_bps())
        if estimator.state is not State.STARVED:
            self._carried_bps = estimator.target_bps
        before = self.allocator.plan
        lookahead = self._hub.peer.lookahead_ms / 1000
        protected = self.allocator.protect(now, self._media_bps(), loss=estimator.path.own_losses.pattern, rtt=min_rtt, lookahead=lookahead)
        passing, overdue, audio_bps = estimator.state is State.DRAIN, estimator.is_overdue, self._audio_bps()
        uncertain = estimator.is_uncertain
        carried_bps = 0.0 if self.allocator.suffices(audio_bps) else self._carried_bps_now()
        if self.allocator.update(now, audio_bps, carried_bps, passing=passing, overdue=overdue, uncertain=uncertain) or protected:
            self._tell(before, now)
        rate = self._hub.config.rate
        changed = self.gauge.update(
            now,
            bitrate_bps=self.allocator.plan.bitrate_bps,
            wanted_bps=max(rate.min_bitrate_bps, min(self._hub.config.bitrate_bps, rate.max_bitrate_bps)),
            loss=estimator.path.losses.share,
            paused=self.allocator.plan.paused,
        )
        if changed:
            reason = "audio pauses" if self.plan.paused else "bitrate and loss"
            self._hub.record(now, "bwe:quality", level=self.quality.value, target_bps=round(estimator.target_bps), reason=reason)
            self._hub.events.put(QualityChanged(level=self.quality.value, target_bps=round(estimator.target_bps)))
        if now - self._traced_at >= 0.1:
            self._traced_at = now
            self._trace(now)

    def _trace(self, now: float) -> None:
        if self._hub.observer is None:
            return
        estimator = self.estimator
        self._hub.record(
            now,
            "bwe:estimate",
            target_bps=round(estimator.target_bps),
            delivered_bps=round(estimator.delivered_bps()),
            queue_ms=round(estimator.queue_delay * 1000, 1),
            loss=round(estimator.loss.share, 3),
            rtt_ms=_ms(self._rtt),
            state=estimator.state.value,
        )

    def _tell(self, before: SendPlan, now: float) -> None:
        self._record_plan(before, now)
        plan = self.plan
        if _codec(plan) != _codec(before):
            self._hub.events.put(
                PlanChanged(
                    bitrate_bps=plan.bitrate_bps,
                    frame_ms=plan.frame_ms,
                    bundle=plan.bundle,
                    inband_fec_loss_percent=plan.inband_fec_percent,
                    inband_part=plan.inband_part,
                    copy_bps=plan.copy_bps,
                )
            )

    def _record_plan(self, before: SendPlan, now: float) -> None:
        """The plan, what of it is new, and what it was chosen by."""
        if self._hub.observer is None:
            return
        estimator = self.estimator
        plan, old = dataclasses.asdict(self.plan), dataclasses.asdict(before)
        changed = {name: [old[name], value] for name, value in plan.items() if value != old[name]}
        by_rate = not changed or any(name in changed for name in ("bitrate_bps", "frame_ms", "bundle", "paused"))
        self._hub.record(
            now,
            "allocator:plan",
            reason=self.allocator.reason if by_rate else self.allocator.protection,
            changed=changed,
            audio_bps=round(self._audio_bps()),
            target_bps=round(estimator.target_bps),
            rtt_ms=_ms(self._rtt),
            loss=round(estimator.loss.share, 3),
            loss_burst=round(estimator.loss.mean_burst, 1),
            protection=self.allocator.protection,
            **plan,
        )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


def _codec(plan: SendPlan) -> tuple[float, ...]:
    return plan.bitrate_bps, plan.frame_ms, plan.bundle, plan.inband_fec_percent, plan.inband_part, plan.copy_bps


def _sample(datagram: SentDatagram) -> Sample:
    sent_tick = math.floor(datagram.sent_at * TICKS_PER_SECOND)
    arrived_at = (sent_tick + datagram.delay_ticks) / TICKS_PER_SECOND
    return Sample(datagram.number, datagram.sent_at, arrived_at, datagram.size + WIRE_OVERHEAD)
