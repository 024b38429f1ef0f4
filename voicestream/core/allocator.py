"""The joint choice of bitrate, frame length, bundling and redundancy. The only place with that policy."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Final

from voicestream.codepoints import CodecId
from voicestream.config import FRAME_MS_CHOICES, SessionConfig
from voicestream.core.bwe.loss import LossPattern
from voicestream.core.bwe.samples import WindowedMin
from voicestream.core.recovery.budget import ANSWERS, MOST
from voicestream.core.recovery.choice import BURSTS, ENOUGH, SHARE_STEP, Choice, LossMemory, Tools, choose

__all__ = [
    "DATAGRAM_BYTES",
    "WIRE_OVERHEAD",
    "Allocator",
    "SendPlan",
    "allocate",
    "floor_rate_bps",
    "headers_bps",
    "wire_rate_bps",
]

WIRE_OVERHEAD: Final = 58
"""Bytes of IPv4, UDP and QUIC around one datagram in a packet of its own."""

DATAGRAM_BYTES: Final = 7
"""VoiceStream's own bytes of a datagram with one audio frame."""

BUNDLED_BYTES: Final = 4
"""VoiceStream's own bytes of each further audio frame of a datagram."""

SPEECH_FLOOR_BPS: Final = 16000
"""Below this a longer frame, which saves headers, is worth more than its delay costs."""

BUNDLE_FLOOR_BPS: Final = 12000
"""Below this two of the longest frames go into one datagram: the floor mode."""

MAX_BUNDLE_MS: Final = 120  # VS-4.2-4

LOWER_SHARE: Final = 0.985
"""Down to this part of what the plan takes, the plan stands: the estimate itself keeps more than that in reserve."""

RAISE_SHARE: Final = 1.03
"""A bitrate is raised by this much at least, or to what is wanted, lest the plan change with every report."""

RAISE_INTERVAL: Final = 0.3
RAISE_WINDOW: Final = 0.5
"""Seconds for which there must have been so much before the plan makes use of it."""

SHORTEN_INTERVAL: Final = 1.5
"""Seconds after a change of the frame length before a shorter one is chosen."""

SHORTEN_MARGIN: Final = 0.93
"""Part of the rate that must suffice for a shorter frame, so that the choice stands."""

PAUSE_SHARE: Final = 0.8
"""Below this part of the floor nothing is sent: a queue of speech that comes too late helps nobody."""

PAUSE_AFTER: Final = 1.0  # VS-9.5-2
RESUME_SHARE: Final = 0.95

FEC_OFF: Final = 0.5
"""Part of the concealment that switches in-band FEC on below which it goes off again."""

FEC_MAX_PERCENT: Final = 10
INBAND_COST: Final = 0.15
"""Part of the wire bytes that in-band copies of all frames take."""

FEC_BITRATES: Final = (14000, 40000)
"""Codec bitrates between which in-band FEC is worth its bits; above them the codec has none."""

ASSUMED_RTT: Final = 0.1
"""Seconds, before anything is known."""

LOOKAHEAD: Final = 0.15
"""Seconds that a playout waits at most, as long as the far end has not told its own."""

USUAL_ANSWERS: Final = 0.06
"""Part of the wire bytes that answers take at most, as a rule; twice that with their echoes."""

KEEP_LENGTH: Final = 0.1
KEEP_FROM_BPS: Final = 40000
"""Seconds of a drain in which frames keep their length, where the codec had so many bits before: on such a path most queues are gone in a
moment, while a few long frames would have the far end's playout wait for them in the middle of a word."""

UNCERTAIN_BPS: Final = 24000
"""Bits of the codec that are sent until it is known what one late datagram means."""

RICH_BPS: Final = 20000
"""More than so many bits of the codec give way to redundancy that keeps frames from being concealed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SendPlan:
    """How a session sends.

    Attributes:
        bitrate_bps: Of the codec.
        frame_ms: Length of a frame.
        bundle: Consecutive frames of a track in one datagram.
        redundancy_share: Part of the wire bytes that redundancy may take.
        repair_interval: Frames from one repair to the next at least; 0 for no repairs.
        copy_bps: Bitrate of low-rate copies; 0 for none.
        copy_offset_frames: Frames by which a copy follows its frame.
        inband_fec_percent: Loss that the codec's own FEC is told of; 0 turns it off.
        inband_part: Part of the frames, the louder ones, that it is for.
        retransmit: Lost frames are sent again.
        paused: No audio leaves.
    """

    bitrate_bps: int
    frame_ms: int
    bundle: int = 1
    redundancy_share: float = 0.0
    repair_interval: int = 0
    copy_bps: int = 0
    copy_offset_frames: int = 0
    inband_fec_percent: int = 0
    inband_part: float = 1.0
    retransmit: bool = True
    paused: bool = False


def wire_rate_bps(plan: SendPlan) -> float:
    """Bits per second that the audio of one track takes on the wire, headers included."""
    return plan.bitrate_bps + headers_bps(plan.frame_ms, plan.bundle)


@functools.cache
def headers_bps(frame_ms: int, bundle: int) -> float:
    """Bits per second that the headers of one track's datagrams take."""
    own = WIRE_OVERHEAD + DATAGRAM_BYTES + BUNDLED_BYTES * (bundle - 1)
    return own * 8 * 1000 / (frame_ms * bundle)


def floor_rate_bps(config: SessionConfig) -> float:
    """Wire rate of the least plan."""
    frame_ms, bundle = _steps(config.frame_ms)[-1]
    return wire_rate_bps(SendPlan(bitrate_bps=config.rate.min_bitrate_bps, frame_ms=frame_ms, bundle=bundle))


def allocate(config: SessionConfig, *, wire_bps: float | None = None, wanted_bps: int | None = None) -> SendPlan:
    """Choose a plan without regard to the past.

    Args:
        config: What the application wants and allows.
        wire_bps: Bits per second on the wire that the audio may use, headers included; None when no bound is known.
        wanted_bps: Codec bitrate that there is use for; that of the configuration by default.
    """
    rate = config.rate
    wanted = min(max(wanted_bps or config.bitrate_bps, rate.min_bitrate_bps), rate.max_bitrate_bps)
    if wire_bps is None:
        return SendPlan(bitrate_bps=wanted, frame_ms=config.frame_ms)
    bitrate, frame_ms, bundle = _fitting(config, wire_bps, wanted)
    return SendPlan(bitrate_bps=bitrate, frame_ms=frame_ms, bundle=bundle)


def _fitting(config: SessionConfig, wire_bps: float, wanted: int, passing: bool = False) -> tuple[int, int, int]:
    """(codec bitrate, frame_ms, bundle) that fit into so many bits per second on the wire; `passing`: for a moment."""
    least = config.rate.min_bitrate_bps
    steps = _steps(config.frame_ms)
    bitrate, frame_ms, bundle = least, config.frame_ms, 1
    for index, (frame_ms, bundle) in enumerate(steps):
        bitrate = int(min(wanted, wire_bps - headers_bps(frame_ms, bundle)))
        # The last step but one gives way to the floor mode later, for that one doubles the delay of a datagram.
        worth = BUNDLE_FLOOR_BPS if index == len(steps) - 2 else SPEECH_FLOOR_BPS
        worth = least if passing and index == len(steps) - 2 else worth  # waiting for company makes a queue's delay longer still
        if bitrate >= min(wanted, max(worth, least)):
            break
    return max(bitrate, least), frame_ms, bundle


@functools.cache
def _steps(frame_ms: int) -> tuple[tuple[int, int], ...]:
    """(frame_ms, bundle) from least delay to least overhead."""
    longer = [choice for choice in FRAME_MS_CHOICES if choice >= frame_ms]
    return (*((choice, 1) for choice in longer), (longer[-1], MAX_BUNDLE_MS // longer[-1]))


class Allocator:
    """Plans over time: down at once, up by steps that are worth a change, a shorter frame only where it will last.

    Args:
        config: What the application wants and allows.

    Attributes:
        plan: The plan in force.
        reason: Why it was chosen.
        protection: Why its redundancy was chosen.
        wanted_share: Part of the wire bytes that redundancy would take if there were room.
        copies: The source makes low-rate copies when it is asked to.
        useful_bps: Bits of the codec that there is use for.
    """

    __slots__ = (
        "_config", "_copied", "_floor_bps", "_inband", "_least", "_length_at", "_low_since", "_memory", "_most_bps", "_passing",
        "_passing_from", "_passing_since", "_raised_at", "_rtt", "copies", "plan", "protection", "reason", "useful_bps", "wanted_share",
    )  # fmt: skip

    def __init__(self, config: SessionConfig) -> None:
        self._config = config
        self._floor_bps = floor_rate_bps(config)
        self._memory = LossMemory()
        self._inband = any(track.codec == CodecId.OPUS for track in config.tracks)
        self._most_bps = self.useful_bps = config.rate.max_bitrate_bps
        self._copied = False
        self._rtt = ASSUMED_RTT
        self.copies = True
        self.wanted_share = config.rate.redundancy_share
        self.plan = allocate(config)
        self.reason = "configuration"
        self.protection = ""
        self._least = WindowedMin(RAISE_WINDOW)
        self._raised_at = float("-inf")
        self._length_at = float("-inf")
        self._low_since: float | None = None
        self._passing = False
        self._passing_since, self._passing_from = 0.0, 0
        self._protect(self._chosen(0.0, LOOKAHEAD))

    def protect(self, now: float, media_bps: float, *, loss: LossPattern, rtt: float | None, lookahead: float) -> bool:
        """Choose the redundancy anew; whether the plan changed.

        Args:
            now: Monotonic seconds.
            media_bps: Bits per second on the wire that audio and redundancy may use together.
            loss: How datagrams get lost.
            rtt: Round trip in seconds, None when nothing new is known.
            lookahead: Seconds that the far end's playout waits at most.
        """
        self._rtt = self._rtt if rtt is None else rtt
        self._memory.update(now, loss.share, loss.mean_burst, far=self._rtt >= lookahead)
        before = self.plan
        self.wanted_share = self._chosen(self._config.rate.redundancy_cap, lookahead).share
        self._protect(self._chosen(self._room(media_bps, lookahead), lookahead))
        return self.plan is not before

    def _chosen(self, most: float, lookahead: float) -> Choice:
        share, plan = self._config.rate.redundancy_share, self.plan
        return choose(
            Tools(
                share=share, most=max(share, most) if share else 0.0, copies=self.copies,
                inband=self._inband, inband_before=self._copied,
            ),
            loss=self._memory.possible,
            burst=self._memory.burst,
            rtt=self._rtt,
            lookahead=lookahead,
            frame_ms=plan.frame_ms * plan.bundle,
            bitrate_bps=min(plan.bitrate_bps, max(RICH_BPS, self._config.bitrate_bps)),
        )

    @property
    def echoes(self) -> int:
        """How many times an answer is sent once more: in bursts the first of them is often lost with its answer."""
        return 1 if self._memory.burst < BURSTS else 2

    def _room(self, media_bps: float, lookahead: float) -> float:
        """Part of the wire bytes that redundancy may take without making the codec poor."""
        rate = self._config.rate
        # What has been granted stays while speech keeps its floor, lest the plan flap.
        least = SPEECH_FLOOR_BPS if self.plan.redundancy_share > rate.redundancy_share else RICH_BPS
        kept = min(least, rate.max_bitrate_bps) + headers_bps(self._config.frame_ms, 1)
        memory = self._memory
        in_time = self._rtt + self._config.frame_ms / 1000 < lookahead
        answers = ANSWERS * min(USUAL_ANSWERS, memory.share) if in_time else 0.0
        share = min(rate.redundancy_cap, 1 - kept / max(media_bps, 1.0)) - answers
        return max(0.0, int(share / SHARE_STEP + 0.01) * SHARE_STEP)

    def _protect(self, choice: Choice) -> None:
        most = self._config.rate.max_bitrate_bps
        self._most_bps, self._copied = min(choice.most_bps or most, most), choice.inband
        old, inband = self.plan, self._inband_fec(self.plan, choice)
        plan = dataclasses.replace(
            old,
            redundancy_share=choice.share,
            repair_interval=choice.repair_interval,
            copy_bps=choice.copy_bps,
            copy_offset_frames=choice.copy_offset_frames,
            retransmit=choice.retransmit,
            inband_fec_percent=inband,
            inband_part=choice.inband_part,
        )
        if plan != old:
            memory, self.plan = self._memory, plan
            self.protection = (
                f"{memory.share:.1%} lost, {memory.burst:.1f} together, round trip {self._rtt * 1000:.0f} ms: "
                f"{choice.concealed:.1%} will be concealed"
            )

    def update(self, now: float, audio_bps: float, carried_bps: float = 0.0, *, passing: bool = False, overdue: bool = False,
               uncertain: bool = False) -> bool:  # fmt: skip
        """Choose bitrate and frames anew; whether the plan changed.

        Args:
            now: Monotonic seconds.
            audio_bps: Bits per second on the wire that the audio may use, headers included.
            carried_bps: What the path is known to carry at present. Less is sent while a queue drains, but that is no reason to pause.
            passing: The rate is low for a moment only, while a queue drains: what follows is not measured by it.
            overdue: What should have arrived has not: until it is known why, frames are as small as can be, but no longer.
            uncertain: All that is known of it is one datagram that came late: good speech is not given up for that.
        """
        little = uncertain and self.plan.bitrate_bps <= UNCERTAIN_BPS and audio_bps < wire_rate_bps(self.plan)
        if overdue and not little:
            least = self._config.rate.min_bitrate_bps
            if uncertain:
                least = min(self.plan.bitrate_bps, max(least, UNCERTAIN_BPS))
            plan = dataclasses.replace(self.plan, bitrate_bps=least)
            changed, self.plan, self.reason = plan != self.plan, plan, "something is overdue"
            return changed
        if passing:
            if not self._passing:
                self._passing_since, self._passing_from = now, self.plan.bitrate_bps
            self._least.clear()
            self._passing = True
        else:
            self._least.add(now, audio_bps)
        plan, reason = self._steady(audio_bps, now, passing)
        paused = self._paused(audio_bps if self.plan.paused else max(audio_bps, carried_bps), now)
        if paused != plan.paused:
            plan, reason = dataclasses.replace(plan, paused=paused), "below the floor" if paused else "above the floor"
        if plan == self.plan:
            return False
        if plan.bitrate_bps > self.plan.bitrate_bps and not passing:
            self._raised_at = now
        if (plan.frame_ms, plan.bundle) != (self.plan.frame_ms, self.plan.bundle) and not passing:
            self._length_at = now
        self.plan, self.reason = plan, reason
        return True

    def _steady(self, audio_bps: float, now: float, passing: bool) -> tuple[SendPlan, str]:
        """The new plan, or the old one where the difference is not worth a change; and why."""
        old, most = self.plan, min(self._most_bps, self.useful_bps)
        if self._passing and not passing:
            self._passing = False
            after = _fitting(self._config, SHORTEN_MARGIN * audio_bps, most)
            if after[1] * after[2] < old.frame_ms * old.bundle:
                return self._with(*after), "the queue is gone"
        wanted = _fitting(self._config, audio_bps, most, passing)
        headers = headers_bps(old.frame_ms, old.bundle)
        least = max(self._config.rate.min_bitrate_bps, int(audio_bps - headers))
        if wanted[1] * wanted[2] > old.frame_ms * old.bundle:
            if passing and self._keeps_length(now):
                return dataclasses.replace(old, bitrate_bps=min(least, old.bitrate_bps)), "less rate for a moment"
            return self._with(*wanted), "too little for these frames"
        if audio_bps < LOWER_SHARE * wire_rate_bps(old) and old.bitrate_bps > self._config.rate.min_bitrate_bps:
            return dataclasses.replace(old, bitrate_bps=min(least, most)), "less rate"
        if old.bitrate_bps > most:
            return dataclasses.replace(old, bitrate_bps=most), "no use for more"
        lasting = self._least.value or audio_bps
        if not passing and now - self._length_at >= SHORTEN_INTERVAL and old.frame_ms * old.bundle > self._config.frame_ms:
            careful = _fitting(self._config, SHORTEN_MARGIN * lasting, most)
            if careful[1] * careful[2] < old.frame_ms * old.bundle:
                return self._with(*careful), "room for shorter frames"
        # More than this is worth single frames, which follow soon.
        useful = most if old.bundle == 1 else min(most, SPEECH_FLOOR_BPS)
        bitrate = min(useful, int(lasting - headers))
        worth = bitrate >= RAISE_SHARE * old.bitrate_bps or bitrate == useful > old.bitrate_bps
        if worth and not passing and now - self._raised_at >= RAISE_INTERVAL:
            return dataclasses.replace(old, bitrate_bps=bitrate), "more rate"
        return old, ""

    def _keeps_length(self, now: float) -> bool:
        return self._passing_from >= KEEP_FROM_BPS and now - self._passing_since < KEEP_LENGTH

    def _with(self, bitrate_bps: int, frame_ms: int, bundle: int) -> SendPlan:
        return dataclasses.replace(self.plan, bitrate_bps=bitrate_bps, frame_ms=frame_ms, bundle=bundle)

    def suffices(self, audio_bps: float) -> bool:
        """Whether so much for the audio is no reason to pause, whatever the path is known to carry."""
        return self.plan.paused or audio_bps >= PAUSE_SHARE * self._floor_bps

    def _paused(self, audio_bps: float, now: float) -> bool:
        floor = self._floor_bps
        if self.plan.paused:
            return audio_bps < RESUME_SHARE * floor
        if audio_bps >= PAUSE_SHARE * floor:
            self._low_since = None
            return False
        if self._low_since is None:
            self._low_since = now
        return now - self._low_since >= PAUSE_AFTER

    def _inband_fec(self, plan: SendPlan, choice: Choice) -> int:
        """A low hint, only where the codec has it and the other tools leave too much."""
        low, high = FEC_BITRATES
        if not low <= plan.bitrate_bps <= high or not choice.share:
            return 0
        if choice.retransmit and ANSWERS * self._memory.share + INBAND_COST > MOST:
            return 0  # answers need it more
        if not choice.inband and choice.concealed <= (FEC_OFF * ENOUGH if plan.inband_fec_percent else ENOUGH):
            return 0
        return plan.inband_fec_percent or min(FEC_MAX_PERCENT, max(5, round(self._memory.share * 100)))
