"""What an estimator knows, and when it wants to know more."""

from __future__ import annotations

import math

from voicestream.core.bwe import tuning
from voicestream.core.bwe.growth import Growth
from voicestream.core.bwe.loss import LossPattern
from voicestream.core.bwe.losstest import LossTest
from voicestream.core.bwe.pair_schedule import PairSchedule
from voicestream.core.bwe.pairs import LUMPY
from voicestream.core.bwe.path import FASTER, JITTERY, PathView
from voicestream.core.bwe.rivals import PART, Rivals
from voicestream.core.bwe.state import State

__all__ = ["Known"]


class Known:
    """The state of an estimate, without what changes it.

    Args:
        target_bps: Rate to begin with.
        max_bps: The most that there is use for.
        min_bps: The least that is ever sent.

    Attributes:
        target_bps: The rate that may be sent.
        max_bps: The most that there is use for.
        path: What is measured.
        state: What is being done.
    """

    def __init__(self, target_bps: float, max_bps: float, min_bps: float) -> None:
        self.target_bps = target_bps
        self.max_bps = max_bps
        self._min_bps = min_bps
        self.path = PathView()
        self.state = State.RAMP
        self._test = LossTest()
        self._share: float | None = None  # what arrived at the last congestion
        self._share_pair: float | None = None  # what pairs said then
        self._decided_at: float | None = None
        self._schedule = PairSchedule()
        self._rivals = Rivals()
        self._growth = Growth()
        self._careful = False  # ramp: pairs tell of nothing new
        self._policed_until = -math.inf  # no more than our share until then: a policer drops what exceeds it

    @property
    def loss(self) -> LossPattern:
        """How datagrams get lost."""
        return self.path.losses.pattern

    @property
    def background_loss(self) -> float:
        """Share of losses that a test has shown not to answer to our rate."""
        return self._test.background

    @property
    def queue_delay(self) -> float:
        """Standing queue on the path in seconds."""
        return self.path.delay.standing

    @property
    def link_bps(self) -> float | None:
        """Rate of the bottleneck, whoever uses it; None when unknown."""
        return self.path.pairs.capacity_bps(self._decided_at or 0.0)

    def sent_bps(self, now: float) -> float:
        """Rate at which datagrams left over the last second or so."""
        return self.path.sent_bps_at(now)

    def delivered_bps(self) -> float:
        """Rate at which what was sent arrived over the last second or so; 0 before that is known."""
        return self.path.delivery.rate_bps(1.0) or 0.0

    def next_timer(self, rtt: float) -> float | None:
        """When `tick` has something to do, or None."""
        return self.path.starved_at(rtt)

    def wants_pair(self, now: float) -> bool:
        """Whether something useful should leave right behind the next datagram of audio; call `paired` when it does."""
        if not self._schedule.may_be_due(now):
            return False
        path, faster = self.path, False
        if self._share_pair is not None:
            newest = path.pairs.newest_bps(now, age=1.2, least=1)
            faster = newest is not None and newest > FASTER * self._share_pair
        return self._schedule.due(
            now,
            None if path.first_at is None else now - path.first_at,
            rising=self.state is State.RAMP and self.target_bps < 0.9 * self.max_bps,
            faster=faster,
            target_bps=self.target_bps,
        )

    def paired(self, now: float) -> None:
        """A pair leaves."""
        self._schedule.paired(now)

    # What follows from it

    def _aim(self) -> float:
        """Queue to aim at while cruising, in seconds."""
        # Less than jitter makes of no queue at all could not be held.
        least = max(tuning.LEAST_QUEUE, tuning.UNREST_QUEUE * self.path.delay.unrest)
        return min(tuning.MOST_QUEUE, max(least, tuning.QUEUED_BITS / self.target_bps))

    def _uses(self, rate: float) -> bool:
        """Whether so much of this rate is sent that what arrives tells of the path, and not of a silence."""
        return self.path.sent_bps > 0.6 * rate

    def _clear(self) -> bool:
        """Whether so little of a queue is there that the rate may ramp up."""
        return self.path.delay.standing <= (tuning.CLEAR_UNREST if self.path.blind else tuning.CLEAR_RAMP) * self._aim()

    def _overused(self) -> bool:
        """Whether the queue is longer than it should be, and grows; jitter looks like growth at times."""
        delay, queue, aim = self.path.delay, self.path.delay.standing, self._aim()
        if self._rivals.compete(delay.newest_at):
            return False  # the queue is theirs; losses and the guess bound the rate
        least, steep, most = (aim + 0.007, 0.02, 2 * aim + 0.02) if self.state is State.RAMP else (2 * aim + 0.02, 0.03, 2 * aim + 0.06)
        if queue <= least:
            return False  # mostly, and a trend is much work
        if not self._uses(self.target_bps):  # a silence makes no queue, and its few datagrams tell little of the jitter
            return queue > 2 * aim + 0.06
        return queue > most or delay.trend - tuning.UNREST_TREND * delay.unrest > steep

    def _begins(self) -> bool:
        """Whether a queue begins to grow: sooner known than that it stands, and undone where nothing comes of it."""
        busy, delay = self.path.busy, self.path.delay
        # Where the link is shared some queue is always there, and datagrams of others come in between.
        shared = self._careful if self.state is State.RAMP else self._is_part()
        begun = tuning.BEGUN + (tuning.SHARED * self._aim() if shared else 0.0)
        if self._rivals.compete(delay.newest_at) or delay.newest < begun:
            return False
        return busy.rises >= tuning.RISES and busy.risen > begun + 4 * delay.jitter

    def _change(self, now: float, passed: float) -> float:
        """Bits per second each second by which the rate should change while it cruises, `passed` seconds after the last time."""
        delay, aim, target, blind = self.path.delay, self._aim(), self.target_bps, self.path.blind
        queue = delay.standing / aim
        self._growth.see(now, passed, queue, target, unrest=blind)
        add = self._growth.add_bps(now, target, self._share, unrest=blind, link=self._share_pair if self._is_part() else None)
        damped = tuning.DAMPING * target * max(-0.1, min(0.3, delay.trend)) if queue > 0.2 else 0.0
        return add * max(-2.0, min(1.0, 1 - queue)) - damped

    def _note_share(self, now: float, share: float) -> None:
        self._share = share
        self._share_pair = self.path.pairs.newest_bps(now) or self.path.pairs.capacity_bps(now)

    def _fair_guess(self, now: float) -> float | None:
        """Part of the link to be taken whatever the queue says while others keep it full."""
        pair = self.path.pairs.capacity_bps(now)
        return tuning.RIVAL_USE * pair if self._rivals.compete(now) and pair is not None else None

    def _ceiling(self, now: float) -> float:
        fast = None if self.path.blind else self.path.fast(now)
        ceiling = self.max_bps if fast is None else tuning.PAIR_USE * fast
        if now < self._policed_until and self._share is not None:
            ceiling = min(ceiling, self._share)
        guess = self._fair_guess(now)
        return ceiling if guess is None else min(ceiling, guess)

    def _drain_rate(self, now: float) -> float:
        """Less than what arrives, so that the queue gets shorter."""
        share, delay = self._share or self.target_bps, self.path.delay
        queue = max(delay.standing, delay.newest, self.path.backlog(now, share))
        # Not so low that speech would have to pause, if the queue gets shorter without.
        return max(share * min(tuning.DRAIN_USE, max(0.4, 0.9 - queue / 0.4)), min(0.65 * share, 2.75 * self._min_bps))

    def _reopened_bps(self, now: float) -> float | None:
        """Rate to go on with where speech has no room at present, but what little is sent finds no queue any more; else None.

        What such a path carried while it was blocked says nothing of what it carries now, and to grow from there takes seconds.
        """
        least, path = tuning.REOPEN * self._min_bps, self.path
        if self.target_bps > tuning.LEAST_SPEECH * self._min_bps:
            return None
        if not path.is_fresh or self._rivals.compete(now) or now < self._policed_until:
            return None
        if path.delay.wait > tuning.FREE or path.losing(now, self._test.background):
            return None
        pair = path.pairs.newest_bps(now, age=tuning.REOPENED)
        if pair is None and path.pairs.lumps > LUMPY:
            return least  # pairs tell nothing there; that there is no queue has to do
        if pair is None or tuning.PAIR_USE * pair < least:
            return None
        return max(least, min(tuning.REOPEN_USE * pair, tuning.REOPEN_BPS))

    def _is_part(self) -> bool:
        """Whether the link carries more than what is ours of it."""
        return self._share is not None and self._share_pair is not None and self._share_pair > PART * self._share

    def _steps(self, now: float) -> bool:
        """Whether the newest datagram came so much later than the one before that jitter is no reason: the next ones will show."""
        busy, delay = self.path.busy, self.path.delay
        if busy.rises != 1 or delay.usual > JITTERY or self._rivals.compete(now):
            return False
        return min(busy.risen, delay.wait) > tuning.STEP + tuning.STEP_NOISE * delay.usual
