"""What an estimator knows, and when it wants to know more."""

from __future__ import annotations

import math

from voicestream.core.bwe import tuning
from voicestream.core.bwe.loss import LossPattern
from voicestream.core.bwe.losstest import LossTest
from voicestream.core.bwe.pair_schedule import PairSchedule
from voicestream.core.bwe.path import FASTER, JITTERY, PathView
from voicestream.core.bwe.rivals import PART, Rivals
from voicestream.core.bwe.state import State

__all__ = ["Known"]


class Known:
    """The state of an estimate, without what changes it.

    Args:
        target_bps: Rate to begin with.
        max_bps: The most that there is use for.

    Attributes:
        target_bps: The rate that may be sent.
        max_bps: The most that there is use for.
        path: What is measured.
        state: What is being done.
    """

    def __init__(self, target_bps: float, max_bps: float) -> None:
        self.target_bps = target_bps
        self.max_bps = max_bps
        self.path = PathView()
        self.state = State.RAMP
        self._test = LossTest()
        self._share: float | None = None  # what arrived at the last congestion
        self._share_pair: float | None = None  # what pairs said then
        self._decided_at: float | None = None
        self._schedule = PairSchedule()
        self._rivals = Rivals()
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
        return min(tuning.MOST_QUEUE, max(tuning.LEAST_QUEUE, tuning.QUEUED_BITS / self.target_bps))

    def _fair_guess(self, now: float) -> float | None:
        """Part of the link to be taken whatever the queue says while others keep it full."""
        pair = self.path.pairs.capacity_bps(now)
        return tuning.RIVAL_USE * pair if self._rivals.compete(now) and pair is not None else None

    def _ceiling(self, now: float) -> float:
        fast = self.path.fast(now)
        ceiling = self.max_bps if fast is None else tuning.PAIR_USE * fast
        if now < self._policed_until and self._share is not None:
            ceiling = min(ceiling, self._share)
        guess = self._fair_guess(now)
        return ceiling if guess is None else min(ceiling, guess)

    def _is_part(self) -> bool:
        """Whether the link carries more than what is ours of it."""
        return self._share is not None and self._share_pair is not None and self._share_pair > PART * self._share

    def _overused(self, now: float, rtt: float) -> bool:
        delay, queue, aim = self.path.delay, self.path.delay.standing, self._aim()
        if self._rivals.compete(now):
            return False  # the queue is theirs; losses and the guess bound the rate
        if self.state is State.RAMP:
            return (queue > aim + 0.007 and delay.trend > 0.02) or queue > 2 * aim + 0.02
        return (queue > 2 * aim + 0.02 and delay.trend > 0.03) or queue > 2 * aim + 0.06

    def _begins(self) -> bool:
        """Whether a queue begins to grow: sooner known than that it stands, and undone where nothing comes of it."""
        busy, delay = self.path.busy, self.path.delay
        if self._rivals.compete(delay.newest_at) or delay.newest < tuning.BEGUN:
            return False
        return busy.rises >= tuning.RISES and busy.risen > tuning.BEGUN + 4 * delay.jitter

    def _steps(self, now: float) -> bool:
        """Whether the newest datagram came so much later than the one before that jitter is no reason: the next ones will show."""
        busy, delay = self.path.busy, self.path.delay
        if busy.rises != 1 or delay.usual > JITTERY or self._rivals.compete(now):
            return False
        return min(busy.risen, delay.wait) > tuning.STEP + tuning.STEP_NOISE * delay.usual
