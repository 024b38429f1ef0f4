"""The rate that may be sent: delay-based, with packet pairs for quick answers and a bound by losses that answer to the rate.

While nothing stands against it the rate ramps up. Where a queue forms it cruises: every flow keeps about one datagram in the queue, so
that equals get equal shares and the rate stands still. A queue that grows fast is drained with a rate well below what arrives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from voicestream.core.bwe import tuning
from voicestream.core.bwe.drain import DrainWatch
from voicestream.core.bwe.growth import Growth
from voicestream.core.bwe.known import Known
from voicestream.core.bwe.pairs import LUMPY
from voicestream.core.bwe.path import FASTER, JITTERY
from voicestream.core.bwe.pause import Pause
from voicestream.core.bwe.samples import Sample
from voicestream.core.bwe.state import State
from voicestream.core.bwe.suspicion import Suspicion
from voicestream.trace import Observer

__all__ = ["Estimator"]

_CALM: Final = (State.RAMP, State.CRUISE, State.REFRESH, State.TEST)


class Estimator(Known):
    """Estimates one direction (VS-9.3-3).

    Args:
        start_bps: Rate to begin with. All rates are whole wire rates: headers, redundancy, reports and all.
        min_bps: Never less.
        max_bps: Never more; see `limit`.
        observer: Takes "bwe:state" records.

    Attributes:
        target_bps: The rate that may be sent.
        max_bps: The most that there is use for.
        path: What is measured.
        state: What is being done.
        is_overdue: What should have arrived has not, so that as little as possible should be sent until it is known why.
        is_uncertain: That may be chance: one datagram came late.
    """

    def __init__(self, start_bps: float, min_bps: float, max_bps: float, observer: Observer | None = None) -> None:
        super().__init__(min(max(start_bps, min_bps), max_bps), max_bps, min_bps)
        self._observer = observer
        self._state_at = 0.0
        self._watch = DrainWatch()
        self._resume_bps = 0.0
        self._pause = Pause()
        self.is_overdue = self.is_uncertain = False
        self._suspicion = Suspicion()
        self._before: tuple[State, float | None, float | None, float] | None = None  # state, share, pair and moment when the drain began
        self._undone_at = -math.inf
        self._restarts = 0  # drains that were begun anew because it was less than thought
        self._since: float | None = None  # ramp: a queue has been there

    @property
    def draining(self) -> bool:
        """Whether the path should have less for a moment: a queue is being emptied, or may have begun."""
        return self.state is State.DRAIN or self.is_overdue

    @property
    def hold_until(self) -> float:
        """Nothing that can wait should leave before: what waits on the path already would be heard too late as it is."""
        return self._pause.until

    # What happens

    def sent(self, number: int, now: float, wire_bytes: int, *, eliciting: bool = True) -> None:
        """A datagram leaves; `eliciting` when the far end will report it."""
        self.path.sent(now, wire_bytes, eliciting=eliciting)

    def feedback(self, now: float, samples: Sequence[Sample], lost: Sequence[int], rtt: float, seen_until: float | None = None) -> None:
        """A report came.

        Args:
            now: Monotonic seconds.
            samples: Datagrams now known to have arrived, oldest first.
            lost: Numbers of those now held for lost.
            rtt: Smoothed round trip in seconds.
            seen_until: When the far end made the report, on the clock of the arrivals.
        """
        self.path.told(now, samples, lost, seen_until)
        if samples:
            self._decide(now, rtt)
        self.is_overdue = self.state in _CALM and self._suspicion.holds(now, self.path.told_to)
        if self.path.overdue > tuning.OVERDUE and self.state in _CALM:
            self._something_overdue(now)
        self.is_uncertain = not self.is_overdue and self.state in _CALM and self._steps(now)
        self.is_overdue |= self.is_uncertain

    def suspect(self, now: float) -> bool:
        """A queue has formed the other way all at once; whether as little as possible should be sent from now on, unlike before."""
        if self.is_overdue or self.state not in _CALM or self._rivals.compete(now) or not self._suspicion.begins(now, self._decided_at):
            return False
        self.is_overdue, self.is_uncertain = True, False
        return True

    def _something_overdue(self, now: float) -> None:
        overdue, clear = self.path.overdue - 4 * self.path.delay.jitter, self.path.delay.wait < tuning.CLEAR
        self.is_overdue |= overdue > tuning.OVERDUE and clear and not self._rivals.compete(now)

    def tick(self, now: float, rtt: float) -> None:
        """Time passes: without feedback the rate falls by steps."""
        timer = self.next_timer(rtt)
        if timer is None or now < timer:
            return
        if self.state is not State.STARVED:
            self._resume_bps = self.target_bps if self.state is not State.TEST else self._test.before_bps
            self._enter(State.STARVED, now, "no feedback")
        self.path.waiting_since = now - rtt
        self._set(0.6 * self.target_bps)  # VS-9.5-1

    def limit(self, max_bps: float) -> None:
        """There is no use for more than this (but the estimate never falls below its minimum)."""
        self.max_bps = max(max_bps, self._min_bps)
        self.target_bps = min(self.target_bps, self.max_bps)

    def path_changed(self, now: float) -> None:
        """The packets take another path: nothing that was measured holds."""
        self.path.changed(now)
        self._pause, self._before = Pause(), None
        self._growth = Growth()
        self._ramp_anew(now, "another path")

    def _ramp_anew(self, now: float, reason: str) -> None:
        """What was known of our share does not hold any more."""
        self._share = self._share_pair = None
        self._careful = False
        self._enter(State.RAMP, now, reason)

    # What follows

    def _decide(self, now: float, rtt: float) -> None:
        passed = min(0.2, now - self._decided_at) if self._decided_at is not None else 0.0
        self._decided_at = now
        self._rivals.update(now, self.path.delay.standing)
        if self.state is State.STARVED:
            self._fed_again(now, rtt)
        elif self.state is State.DRAIN:
            self._drain(now, rtt)
        elif self.state is State.REFRESH:
            self._refresh(now, rtt)
        elif self._overused():
            if not self._no_more(now):
                self._congested(now, rtt, "a queue grows")
        elif self._begins():
            self._congested(now, rtt, "each datagram comes later")
        elif self.state is not State.TEST and (reopened := self._reopened_bps(now)) is not None:
            self._ramp_anew(now, "the path is free again")
            self._set(reopened)
        elif self._answers_losses(now, rtt):
            pass
        elif self.state is State.RAMP:
            self._ramp(now, rtt, passed)
        else:
            self._cruise(now, passed)

    def _no_more(self, now: float) -> bool:
        """Go back to where it was well before, where that is all that a small queue asks for: more than our share was tried."""
        path, before = self.path, self.target_bps
        if self.state is not State.RAMP or max(path.delay.standing, path.delay.newest) > 2 * self._aim() + 0.02:
            return False
        window = 0.4 + tuning.UNREST_RATE * path.delay.unrest
        told = path.delivery.rate_bps(window) if self._uses(before) else None
        arriving = min(before, path.busy.rate_bps(0.3) or told or before)
        if (above := self._growth.turned_back(now, arriving)) is None:
            return False
        self._note_share(now, max(arriving, min(above, before)))
        self._enter(State.CRUISE, now, "no more than before")
        self._set(min(before, max(tuning.GENTLE * arriving, above)))
        return True

    def _congested(self, now: float, rtt: float, reason: str) -> None:
        """A queue has formed: note our share and go below it until the queue is gone."""
        before = self.target_bps
        if self.state is State.STARVED:
            before = self._resume_bps
        elif self.state is State.TEST:
            before = self._test.before_bps
        self._test.abandon(now)
        state = self.state if self.state is State.RAMP or self._share is None else State.CRUISE
        self._before = (state, self._share, self._share_pair, now)
        busy = self.path.busy.rate_bps(0.15) or self.path.busy.rate_bps(0.3)
        window = max(0.4, min(rtt, 0.3) + 0.2) + tuning.UNREST_RATE * self.path.delay.unrest
        arriving = busy or self.path.delivery.rate_bps(window) or before
        self._note_share(now, max(tuning.LEAST_SHARE * before, min(arriving, before)))
        self._growth.turned_back(now, self._share or before)
        self._resume_bps = before
        self._restarts = 0
        self._pause.may_begin = self.state is not State.STARVED  # what a standstill held up may come all at once
        self._watch.highest = 0.0
        self._begin_drain(now, rtt, reason)

    def _begin_drain(self, now: float, rtt: float, reason: str) -> None:
        self._watch.start(now, self.path.delay.standing, rtt + 0.15)
        self._enter(State.DRAIN, now, reason)
        self._set(self._drain_rate(now))
        self._holding(now)

    def _holding(self, now: float) -> None:
        path = self.path
        finding = self._before is not None and now - self._before[3] < tuning.FINDING  # later it is others who keep a queue
        telling = path.pairs.lumps < LUMPY and not self._rivals.compete(now) and (finding or now < self._pause.until)
        known = path.busy.rate_bps(0.2) if telling and path.is_fresh else None
        backlog = path.backlog(now, known or self._share or self.target_bps)
        drains_in = known and backlog / max(0.05, 1 - tuning.LEAST_SPEECH * self._min_bps / known)
        self._pause.update(now, backlog, path.delay.wait, path.told_to, drains_in=drains_in)

    def _drain(self, now: float, rtt: float) -> None:
        delay, watch = self.path.delay, self._watch
        queue, share = delay.standing, self._share or self.target_bps
        watch.update(now, queue)
        busy = self.path.busy.rate_bps(0.2)
        if busy is not None and self._before is not None and now - self._before[3] < tuning.FINDING and busy < 0.9 * share:
            self._note_share(now, busy)  # the first datagrams that waited told too much
            self._set(min(self.target_bps, self._drain_rate(now)))
        self._holding(now)
        if queue < max(0.006, 0.6 * self._aim()) and delay.newest < tuning.BEGUN:
            if not self._undone(now):
                self._leave_drain(now)
        elif watch.settled(now):
            arriving = self.path.busy.rate_bps(0.5) or self.path.delivery.rate_bps(0.5) or share
            growing = (queue > 0.05 and delay.trend > 0.03) or self.path.losing(now, self._test.background)
            less = arriving < 0.97 * share and self._uses(self.target_bps)
            if growing and less and self._restarts < tuning.MOST_RESTARTS:
                self._restarts += 1
                self._note_share(now, arriving)
                self._begin_drain(now, rtt, "it is less than thought")
            elif watch.unmoved(now, queue, delay.trend, 1 - self.target_bps / share, tuning.UNREST_DRAIN * delay.unrest):
                self._not_ours(now)
            elif queue < 0.5 * watch.peak and watch.rests(now, delay.trend):
                delay.rebase(self.path.fast(now))  # what is left is the length of datagrams on a slower link
                self._leave_drain(now)

    def _undone(self, now: float) -> bool:
        """Go back to what was before, where the queue went away before less was sent: it was none of ours, or chance."""
        if self._before is None or self.path.told_to > self._before[3] or now - self._undone_at < tuning.UNDO_INTERVAL:
            return False
        state, self._share, self._share_pair, _ = self._before
        self._undone_at = now
        self._enter(state, now, "the queue went away by itself")
        self._set(self._resume_bps)
        return True

    def _refresh(self, now: float, rtt: float) -> None:
        """Look at the path without our queue for a moment."""
        queue = self.path.delay.standing
        waited = now - self._state_at - rtt
        if queue >= 0.003 and waited < 1.0:
            return
        if queue > 0.7 * self._watch.peak:
            self.path.delay.rebase(self.path.fast(now))  # it is none
        self.path.delay.base_at = self.path.delay.newest_at
        self._enter(State.CRUISE, now, "the empty path was seen")
        self._set(self._resume_bps)

    def _leave_drain(self, now: float) -> None:
        share = self._share or self.target_bps
        self._share = share = max(share, min(self.path.busy.rate_bps(0.5) or 0.0, self._resume_bps))
        drained = 1.5 if self._before is None else min(1.5, now - self._before[3])  # older pairs may tell of a link that was faster
        self._rivals.drained(now, self._watch.highest, share, self.path.pairs.newest_bps(now, age=drained))
        if self._rivals.compete(now):
            self._not_ours(now)
            return
        self.path.delay.base_at = self.path.delay.newest_at
        self._enter(State.CRUISE, now, "the queue is gone")
        self._set(0.92 * share)

    def _not_ours(self, now: float) -> None:
        """The queue does not answer to us: the path has become longer, or others keep it."""
        self.path.delay.rebase(self.path.fast(now))
        self._rivals.sign(now)
        self._ramp_anew(now, "the queue does not answer")
        limit = self._fair_guess(now)
        self._set(self._resume_bps if limit is None else min(max(self._resume_bps, 0.8 * limit), limit))

    def _ramp(self, now: float, rtt: float, passed: float) -> None:
        fast, steady = self.path.fast(now), self.path.pairs.capacity_bps(now)
        target = self.target_bps
        if steady is not None and self.path.first_at is not None and now - self.path.first_at < 2.0 and tuning.PAIR_USE * steady < target:
            self._set(0.9 * steady)  # begun too high
            return
        ceiling = self._ceiling(now)
        if self._rivals.compete(now) and target > ceiling:
            self._set(ceiling)
            return
        proven = fast is not None and fast > 1.2 * target
        if not self._clear() and not self._rivals.compete(now):
            if self._since is None:
                self._since = now
            elif now - self._since > 1.0 and self._uses(target):  # that is how it is going to be
                self._note_share(now, min(self.path.delivery.rate_bps(1.0) or target, target))
                self._growth.turned_back(now, self._share or target)
                self._enter(State.CRUISE, now, "a queue stays")
            return
        self._since = None
        if not self._uses(target) and not proven:
            return
        growth = tuning.RAMP_SLOW if fast is None else tuning.RAMP_FAST if fast > 1.5 * target else 0.25
        if self._careful or now < self._policed_until + 4 * tuning.HOLD:
            growth = max(tuning.CAREFUL, tuning.CAREFUL_BPS / target)
        self._set(max(target, min(ceiling, target * (1 + growth * passed))))

    def _cruise(self, now: float, passed: float) -> None:
        queue, aim, target = self.path.delay.standing, self._aim(), self.target_bps
        steady = self.path.pairs.capacity_bps(now)
        if steady is not None and self._share is not None:  # the pairs before the congestion may have told of a faster link
            self._share_pair = steady if self._share_pair is None else min(self._share_pair, steady)
        fast = self.path.surely_fast(now, clear=queue < aim)
        if fast is not None and self._share_pair is not None and fast > FASTER * self._share_pair and self._growth.believes_pairs(now):
            self._growth.look(self._share, by_jitter=self.path.delay.jitter > JITTERY)
            self.path.delay.rebase(fast)
            self._policed_until = -math.inf
            self._ramp_anew(now, "pairs tell of a faster link")
            return
        if self.path.delay.base_at and self.path.delay.newest_at - self.path.delay.base_at > tuning.REFRESH:
            self._resume_bps = target
            self._watch.start(now, queue, 0.0)
            self._enter(State.REFRESH, now, "the empty path was not seen for long")
            self._set(0.8 * target)
            return
        grown = target + self._change(now, passed) * passed
        if grown > target:
            used = self._uses(target) or (fast is not None and fast > 1.5 * target)
            grown = max(target, min(grown, self._ceiling(now))) if used else target
        self._set(grown)
        part = self._is_part()
        if self._growth.is_time(now, self.target_bps, self._share, part=part, unrest=self.path.blind):
            # Where pairs tell of more than our share, others have the rest.
            self._careful = part and self.target_bps > 2 * self._min_bps
            self._growth.look(self._share)
            self._share = self._share_pair = None
            self._enter(State.RAMP, now, "no queue above the old share")

    def _answers_losses(self, now: float, rtt: float) -> bool:
        """Test whether losses answer to our rate, and heed them if they do."""
        test = self._test
        if not test.running:
            if not test.suspects(self.path.losses, now):
                return False
            self._resume_bps = self.target_bps
            self._set(test.start(now, self.target_bps))
            self._enter(State.TEST, now, "losses: do they answer to the rate?")
            return True
        worse = test.worse(self.path.losses, now, rtt)
        if worse is not None:
            self._set(worse)
            return True
        answered = test.verdict(self.path.losses, now, rtt)
        if answered is None:
            return True
        if answered:
            self._note_share(now, tuning.POLICED_USE * (self.path.delivery.rate_bps(1.5) or self.target_bps))
            if self._is_part():  # else it is the link that is slow
                self._policed_until = now + tuning.HOLD
            self._enter(State.CRUISE, now, "fewer datagrams get lost at less rate")
            self._set(min(self.target_bps, self._share or self.target_bps))
        else:
            reason = "losses may have answered: once more" if test.unsure else "losses do not answer to the rate"
            self._enter(State.CRUISE if self._share is not None else State.RAMP, now, reason)
            self._set(test.before_bps)
        return True

    def _fed_again(self, now: float, rtt: float) -> None:
        if self.path.delay.standing > 2 * self._aim() + 0.02:
            self._congested(now, rtt, "a queue stands after silence")
            return
        self._test.abandon(now)  # what the break swallowed says nothing about the rate
        self._enter(State.CRUISE if self._share is not None else State.RAMP, now, "feedback again")
        self._set(0.9 * self._resume_bps)  # VS-9.5-3

    def _set(self, rate: float) -> None:
        self.target_bps = max(self._min_bps, min(self.max_bps, rate))

    def _enter(self, state: State, now: float, reason: str) -> None:
        changed = state is not self.state
        self._since = None
        self._growth.begin()
        self.is_overdue = False
        self.state, self._state_at = state, now
        if changed and self._observer is not None:
            self._observer.record(
                now,
                "bwe:state",
                {
                    "state": state.value,
                    "reason": reason,
                    "target_bps": round(self.target_bps),
                    "share_bps": None if self._share is None else round(self._share),
                    "queue_ms": round(self.path.delay.standing * 1e3, 1),
                    "loss": round(self.path.losses.share, 3),
                },
            )
