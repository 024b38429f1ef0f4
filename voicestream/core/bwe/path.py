"""All that is measured of the path, in one place."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Final

from voicestream.core.bwe.blackout import Blackouts
from voicestream.core.bwe.busy import BusyRate
from voicestream.core.bwe.delay import QueueDelay
from voicestream.core.bwe.delivery import DeliveryRate
from voicestream.core.bwe.loss import LossLog
from voicestream.core.bwe.pairs import PacketPairs
from voicestream.core.bwe.samples import Sample, WindowedMin

__all__ = ["FASTER", "JITTERY", "PathView"]

FASTER: Final = 1.35
"""Pairs this much faster than before mean that the link has changed."""

STARVED: Final = 0.5
"""Seconds without feedback, beyond a round trip, that mean something."""

QUEUE_DROPS: Final = 0.06
"""Seconds of queue from which losses may be its own, and say nothing of what repairs are worth."""

QUEUE_MEMORY: Final = 0.6
"""Seconds after it for which that holds: reports are late then, and the base of the delay may have been taken anew."""

MOST_UNDER_WAY: Final = 256
"""Datagrams remembered until a report tells of something that left later."""

LATE: Final = 1
"""Datagrams under way that may be lost, and are not waited for."""

LOSSY: Final = 0.01
"""Share of losses from which what does not come is likely to be lost."""

LASTING_LOSS: Final = 0.0025
"""Share of the last several hundred from which it is: one burst of three is remembered for a few seconds, two for ten."""

LAG_WINDOW: Final = 30.0
FRESH: Final = 0.15
"""Seconds by which reports may come later than the soonest of the last half minute, and still tell of what is."""

JITTERY: Final = 0.003
"""Seconds of jitter from which single pairs tell little."""

BLIND: Final = 0.005
"""Seconds of the path's own jitter from which no number of pairs tells anything: their datagrams come apart by chance."""

SEES_AGAIN: Final = 0.0015
"""The same below which they do again."""

UNREST_WAIT: Final = 4.0
"""A wait that jitter explains, in parts of that."""


class PathView:
    """What was sent, and what reports and pairs tell of it.

    Attributes:
        blind: The path has so much jitter of its own that pairs tell nothing, and lengths of datagrams matter little.
        busy: What the link carries while ours has to wait.
        delay: The queue.
        delivery: What arrives.
        losses: What does not, but for short breaks.
        own_losses: The path's own: without those reported while a queue stood, which drops what it has no room for.
        pairs: What pairs tell.
        first_at: When the first datagram left; None before.
        overdue: Seconds that the next but one of those under way has waited at least, as the newest report shows; the next one may be lost.
        told_to: When the newest datagram that arrived had left.
        sent_bps: Bits per second sent over the last second or so.
        waiting_since: Since when something sent has not been reported; None when all was.
    """

    __slots__ = (
        "_asked_at", "_blackouts", "_lag", "_lags", "_queued_at", "_sent_at", "_slowest", "_under_way", "blind", "busy", "delay",
        "delivery", "first_at", "losses", "overdue", "own_losses", "pairs", "sent_bps", "told_to", "waiting_since",
    )  # fmt: skip

    def __init__(self) -> None:
        self.busy = BusyRate()
        self.delay = QueueDelay()
        self.delivery = DeliveryRate()
        self.losses = LossLog()
        self.own_losses = LossLog()
        self.pairs = PacketPairs()
        self.first_at: float | None = None
        self.overdue = 0.0
        self.told_to = -math.inf
        self.sent_bps = 0.0
        self.waiting_since: float | None = None
        self._sent_at: float | None = None
        self._asked_at = 0.0
        self._blackouts = Blackouts()
        self.blind = False
        self._queued_at = -QUEUE_MEMORY
        self._under_way: deque[tuple[float, int]] = deque(maxlen=MOST_UNDER_WAY)  # (sent at, bytes)
        self._lag = 0.0  # of the news: seconds since the newest datagram that arrived had left, less what it waited
        self._lags = WindowedMin(LAG_WINDOW)
        self._slowest: float | None = None  # rate with which the base was corrected

    def sent(self, now: float, wire_bytes: int, *, eliciting: bool = True) -> None:
        """A datagram leaves; `eliciting` when the far end will report it."""
        if self._sent_at is None:
            self.first_at = now
        else:
            self.sent_bps *= max(0.0, 1 - (now - self._sent_at))
        self.sent_bps += wire_bytes * 8
        self._sent_at = now
        self._under_way.append((now, wire_bytes))
        if eliciting:
            self._asked_at = now
            if self.waiting_since is None:
                self.waiting_since = now

    def backlog(self, now: float, rate_bps: float) -> float:
        """Seconds that a link of this rate needs for what waits at it now, as far as the newest report lets it be known."""
        if not self._under_way or math.isinf(self.told_to):
            return 0.0
        since = now - self.told_to - max(0.0, self.delay.wait)
        return max(0.0, sum(size for _, size in self._under_way) * 8 / rate_bps - since)

    @property
    def is_fresh(self) -> bool:
        """Whether news comes as soon as it can: else what was sent since may be lost as well as wait."""
        return self._lag - (self._lags.value or 0.0) < FRESH

    def sent_bps_at(self, now: float) -> float:
        """`sent_bps`, fallen since the last datagram."""
        return self.sent_bps * max(0.0, 1 - (now - (self._sent_at or now)))

    def told(self, now: float, samples: Sequence[Sample], lost: Sequence[int], seen_until: float | None = None) -> None:
        """A report came; see `Estimator.feedback`."""
        for sample in samples:
            second = self.pairs.add(sample, now)
            self.delivery.add(sample)
            if not second:
                self._measure(sample, now)
            self.busy.add(sample, None if second else sample.delay - self.delay.base - UNREST_WAIT * self.delay.unrest)
        self.delivery.lost(lost)
        if max(self.delay.standing, self.delay.newest) >= QUEUE_DROPS:
            self._queued_at = now
        queued, heeded = now - self._queued_at <= QUEUE_MEMORY, self._blackouts.beyond(now, samples, lost)
        self.losses.told(now, len(samples), tuple(lost) if queued else heeded)
        if not queued:
            self.own_losses.told(now, len(samples), tuple(lost))
        if samples:
            self.told_to = max(self.told_to, samples[-1].sent_at)
            while self._under_way and self._under_way[0][0] <= self.told_to:
                self._under_way.popleft()
            self.waiting_since = now if self._asked_at > samples[-1].sent_at else None
            self._lag = now - self.told_to - max(0.0, self.delay.wait)
            self._lags.add(now, self._lag)
        self.overdue = 0.0
        likely_lost = self.losses.share >= LOSSY or self.own_losses.lasting >= LASTING_LOSS
        if seen_until is not None and len(self._under_way) > LATE and not likely_lost:
            self.overdue = seen_until - self._under_way[LATE][0] - self.delay.base

    def _measure(self, sample: Sample, now: float) -> None:
        """Take a delay. On a link that has become faster the old lengths of datagrams have made the base too low: begin anew."""
        if self.blind is not self._is_blind():
            self.blind = not self.blind
            self.delay.rebase(None if self.blind else self.fast(now))
        fast, sure = self.fast(now), self.surely_fast(now, clear=False)
        if sure is not None and self._slowest is not None and sure > FASTER * self._slowest:
            self.delay.rebase(sure)
            self._slowest = sure
        elif fast is not None:
            self._slowest = fast if self._slowest is None else min(self._slowest, fast)
        self.delay.add(sample, fast, whole=self.blind)

    def _is_blind(self) -> bool:
        return self.delay.unrest > (SEES_AGAIN if self.blind else BLIND)

    def starved_at(self, rtt: float) -> float | None:
        """When the lack of feedback begins to mean something, or None."""
        return None if self.waiting_since is None else self.waiting_since + rtt + STARVED

    def fast(self, now: float) -> float | None:
        """What pairs say of the link's rate, the newest ones first."""
        return self.pairs.fast_bps(now)

    def surely_fast(self, now: float, *, clear: bool) -> float | None:
        """What the newest pairs say, more of them where single ones mislead.

        What looks like a queue (not `clear`) may come of the length that datagrams had on a slower link, so three pairs outweigh it.
        """
        if self.delay.jitter > JITTERY:
            if self.blind:
                return None
            return self.pairs.newest_bps(now, age=3.0, least=4)
        return self.pairs.newest_bps(now) if clear else self.pairs.newest_bps(now, age=2.5, least=3)

    def losing(self, now: float, background: float) -> bool:
        """Whether datagrams get lost right now beyond what always does."""
        count, lost = self.losses.recent(now, 0.6)
        return lost >= 3 and lost > (0.1 + 2 * background) * count

    def changed(self, now: float) -> None:
        """The packets take another path."""
        self.delay.rebase()
        self.pairs.forget()
        self.busy.clear()
        self._lags.clear()
        self._lag = self.overdue = 0.0
        self._under_way.clear()
        self._blackouts = Blackouts()
        self._slowest = None
        self.first_at = now
