"""From arrival times to the delay target."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from voicestream.core.playout.histogram import DelayHistogram
from voicestream.core.playout.peaks import Peaks
from voicestream.core.playout.sliding import Expected, SlidingMin

__all__ = ["DelayEstimator"]

WINDOW_UNITS = 800.0
"""Span of active time in which the quickest frame is looked for (2 s)."""

PEAK_UNITS = 4200.0
REPAIR_PEAK_UNITS = 4800.0
"""The target never exceeds the largest delay of the last 8 s of active time that counts, see `Peaks`, or that of a repaired frame of
the last 12 s: it is released when its reason has gone."""

SETTLE_UNITS = 1200.0
"""For so long the largest of what was expected of repairs holds, and then what was said last (3 s)."""

REPAIR_FACTOR = 2.5
"""What a frame that came as a repair weighs: for each there may be others that nothing brought."""

ACTIVE_STEP_UNITS = 40.0
"""A pause in the arrivals counts as at most this much active time, so that the quickest frame survives silence (100 ms)."""

FORGET_UNITS = 4000.0
"""After so long a pause clocks may have drifted apart and the path changed: start anew (10 s)."""

REALIGN_UNITS = 8.0
"""A talkspurt whose pts are off by more than this (20 ms) stands in a new relation to time."""

RECENT_FACTOR = 3.0
"""Frames of the last two seconds count three times: fast attack; two seconds later they count once: the release."""

UPDATE_UNITS = 40.0
START_UNITS = 400.0
LASTING_UNITS = 2400.0
"""So long what is supposed of a path holds that would need much delay if anything were lost on it (6 s)."""

START_TOLERANCE_UNITS = 2.0
EXPECTED_TOLERANCE_UNITS = 8.0
MARGIN_UNITS = 1.0


@dataclass(slots=True)
class _Sample:
    position: float
    arrival: float
    delay: float
    quickest_before: float
    units: int
    repaired: bool


class DelayEstimator:
    """Measures how much later than the quickest ones frames arrive and derives the target. All times in pts units.

    A frame's delay is its arrival time minus the pts of its end: clocks' offset and path together, meaningful only against
    other frames. A frame is compared with the quickest frame of the two seconds before it or of the two seconds after it,
    whichever was slower: so a lasting change of the path in either direction does not pass for jitter. It is compared
    provisionally when it comes and for good when the two seconds after it have gone by.

    Args:
        start_units: Target before anything is known.
        ceiling_units: Largest target.

    Attributes:
        ceiling: Largest target.
        spread: Delay behind the quickest that is worth waiting for, without margin.
        worth_waiting: Delay behind the quickest up to which the next gap is waited for, in the middle of a word. Where no answer comes
            in time, a wait is heard more than the frame that it may save: the delay grows in the pauses.
        needed: Delay behind the quickest with less than which it is lengthened: what was only supposed is not taken so exactly.
        target: Delay behind the quickest to play at: the spread and a margin, at most the ceiling.
        is_measured: The target follows from frames that came late; on a path that was supposed to need much delay it can also follow
            from what is expected of those that will be lost.
        first_wait: So long behind the quickest the very first frame is held, if the spread asks for it.
    """

    def __init__(self, start_units: float, ceiling_units: int) -> None:
        self.first_wait = 0.0
        self._start = self._least_start = start_units
        self._holds = START_UNITS
        self.ceiling = ceiling_units
        self._histogram = DelayHistogram(ceiling_units)
        self._quickest = SlidingMin(WINDOW_UNITS)
        self._network = SlidingMin(WINDOW_UNITS)
        self._tardiest = SlidingMin(WINDOW_UNITS)
        self._samples: deque[_Sample] = deque()
        self._peak = Peaks(PEAK_UNITS)
        self._repair_peak = SlidingMin(REPAIR_PEAK_UNITS)
        self._position = 0.0
        self._last_arrival: float | None = None
        self._observed = 0.0
        self._next_update = 0.0
        self._spread = 0.0
        self.is_measured = False
        self._expected = Expected(REPAIR_PEAK_UNITS, SETTLE_UNITS)
        self._at_once = Expected(REPAIR_PEAK_UNITS, SETTLE_UNITS)
        self._settle_target()

    @property
    def base(self) -> float | None:
        """Delay of the quickest recent frame; None before the first."""
        return self._quickest.value

    def _settle_target(self) -> None:
        """What follows from the spread that was measured, and from what is left of the delay supposed in the beginning."""
        ceiling = float(self.ceiling)
        later, at_once = self._expected.at(self._position) or 0.0, self._at_once.at(self._position) or 0.0
        supposed = self._start * (1.0 - max(0.0, self._observed - self._holds) / (2 * START_UNITS))
        self._answers = min(ceiling, at_once)
        self.spread = min(ceiling, max(self._spread, supposed, at_once))
        self.worth_waiting = self.spread if at_once > 0 else min(ceiling, supposed)
        self.needed = min(ceiling, max(self._spread, supposed - START_TOLERANCE_UNITS, later - EXPECTED_TOLERANCE_UNITS))
        self.target = min(ceiling, max(self.spread, later) + MARGIN_UNITS)  # VS-16-2
        self.is_measured = not self.first_wait or max(self.spread, later) <= self._spread

    def suppose(self, wait: float) -> None:
        """What gets lost on this path would be worth waiting for up to `wait` units behind the quickest frame, if anything does.

        Delay to begin with is heard by nobody, and what is too much of it goes in the first pauses; lengthening later is heard. With 0
        that was wrong.
        """
        self._start = max(self._least_start, min(wait, float(self.ceiling)))
        self._holds = LASTING_UNITS if wait else START_UNITS
        self.first_wait = self._start if wait else 0.0
        self._settle_target()

    def expect(self, wait: float, *, at_once: bool) -> None:
        """What is lost is worth waiting for up to `wait` behind the quickest frame, and no longer; forgotten when no more gets lost.

        Args:
            wait: Units; 0: it was not lost after all.
            at_once: The next gap is worth it already.
        """
        if not wait:
            self._expected.restart()
            self._at_once.restart()
        else:
            self._expected.push(self._position, wait)
        if at_once:
            self._at_once.push(self._position, wait)
        self._settle_target()

    def observe(self, end_pts: int, units: int, arrival: float, send_time: float | None, *, talkspurt_start: bool, repaired: bool) -> float:
        """Take the arrival of a live frame.

        Returns:
            How much earlier than its neighbours the source sent the frame, against its pts. So long it has to wait here though
            nothing delays anything (a model that speaks in bursts). 0 without a send time.

        Args:
            end_pts: pts of the frame's end.
            units: Its length.
            arrival: When it came.
            send_time: When it was sent, on the sender's clock.
            talkspurt_start: Whether its pts may stand in a new relation to time.
            repaired: Whether it did not come the plain way.
        """
        self._advance(arrival)
        position, delay = self._position, arrival - end_pts
        early = 0.0
        if send_time is not None:
            self._network.push(position, arrival - send_time)
            if talkspurt_start:
                self._tardiest.restart()
            ahead = end_pts - send_time
            early = ahead - self._tardiest.push(position, ahead)
        if talkspurt_start:
            self._realign(delay, None if send_time is None else send_time - end_pts)
        self._samples.append(_Sample(position, arrival, delay, self._quickest.push(position, delay), units, repaired))
        self._observed += units
        if self._observed <= self._holds + 2 * START_UNITS + units:  # later it is the spread alone that counts
            self._settle_target()
        self._commit(position - WINDOW_UNITS)
        return early

    def observe_ahead(self, units: int, arrival: float, send_time: float | None) -> None:
        """Take the arrival of a frame that was sent before its time: only the network's part says something."""
        self._advance(arrival)
        if send_time is None:
            return
        transit = arrival - send_time
        self._settle(self._position, transit - self._network.push(self._position, transit), units, False)

    def excuse(self, now: float, device_late: float) -> None:
        """The device came for its block `device_late` too late: frames that came only then were in time for all that.

        Whoever plays in the thread that receives stands still together with it, and then all comes at once.
        """
        due = now - device_late
        for sample in reversed(self._samples):
            if sample.arrival <= due:
                break
            base = min(sample.delay, self._quickest.value if self._quickest.value is not None else sample.delay)
            sample.delay = max(base, sample.delay - (sample.arrival - due))
            sample.arrival = due

    @property
    def cost(self) -> Callable[[float], float] | None:
        """What delay and late frames cost at a slack, in units, for choosing among the steps that a device allows.

        None while the delay supposed in the beginning holds: too little is known. What is less than repairs take that come when they are
        asked for costs too much.
        """
        return self._cost if self._histogram.is_known and self.spread <= max(self._spread, self._answers) else None

    def _cost(self, slack: float) -> float:
        return math.inf if slack < self._answers else self._histogram.cost(max(0, min(int(slack), self.ceiling)))

    def late_events(self, slack: float) -> int:
        """How many times within the last two seconds frames came more than `slack` behind the quickest; neighbours count once."""
        base = self._quickest.value
        count, before = 0, False
        for sample in self._samples:
            late = base is not None and sample.delay - max(base, sample.quickest_before) > slack
            count += late and not before
            before = late
        return count

    @property
    def is_settled(self) -> bool:
        """Whether the delay supposed in the beginning does not count any more."""
        return self._observed > self._holds + 2 * START_UNITS

    def restart(self, delay: float) -> None:
        """Begin anew with `delay` as that of the quickest frame: pts stands in a new relation to time, or the path changed."""
        self._commit(float("inf"))
        self._quickest.restart()
        self._quickest.push(self._position, delay)

    def update(self, now: float) -> bool:
        """Compute the target anew if it is time; returns whether that was done."""
        if now < self._next_update and self._next_update - now <= UPDATE_UNITS:
            return False
        self._next_update = now + UPDATE_UNITS
        base = self._quickest.value
        recent: list[tuple[int, float]] = []
        latest, repair_peak = 0.0, -(self._repair_peak.value or 0.0)
        if base is not None:
            ceiling = self.ceiling
            most = self._expected.at(self._position) or math.inf
            take, ceil = recent.append, math.ceil
            for sample in self._samples:
                before, weight = sample.quickest_before, float(sample.units)
                behind = sample.delay - (base if base > before else before)
                if sample.repaired:
                    behind, weight = min(behind, most), sample.units * REPAIR_FACTOR
                    repair_peak = max(repair_peak, behind)
                elif behind > latest:
                    latest = behind
                # The histogram's bucket, without a call for each of a hundred.
                take((0 if behind <= 0 else ceil(behind) if behind <= ceiling else ceiling + 1, weight))
        best = self._histogram.best_delay(recent, RECENT_FACTOR, round(self._spread + 0.49))
        self._spread = min(float(best), max(self._peak.largest(self._position, latest), repair_peak))
        self._settle_target()
        return True

    def _advance(self, arrival: float) -> None:
        last = self._last_arrival
        self._last_arrival = arrival
        if last is None:
            return
        pause = arrival - last
        if pause > FORGET_UNITS or pause < -FORGET_UNITS:
            self._commit(float("inf"))
            self._quickest.restart()
            self._network.restart()
            self._tardiest.restart()
        self._position += min(max(pause, 0.0), ACTIVE_STEP_UNITS)

    def _realign(self, delay: float, source_offset: float | None) -> None:
        """At the start of a talkspurt: keep the quickest if pts kept its relation to the sender's clock, else derive it."""
        base, network = self._quickest.value, self._network.value
        if base is None:
            return
        if source_offset is None or network is None:
            if not base <= delay <= base + self.ceiling:
                self.restart(delay)
        elif not base - 1.0 <= network + source_offset <= base + REALIGN_UNITS:
            self.restart(min(network + source_offset, delay))

    def _commit(self, until: float) -> None:
        samples = self._samples
        while samples and samples[0].position < until:
            sample = samples.popleft()
            base = self._quickest.value
            behind = sample.delay - max(sample.quickest_before, base if base is not None else sample.delay)
            self._settle(sample.position, behind, sample.units, sample.repaired)

    def _settle(self, position: float, behind: float, units: int, repaired: bool) -> None:
        if repaired:
            expected = self._expected.at(self._position)
            behind = behind if expected is None else min(behind, expected)
        self._histogram.add(behind, units * (REPAIR_FACTOR if repaired else 1.0))
        if repaired:
            self._repair_peak.push(position, -behind)
        else:
            self._peak.push(position, behind)
            self._repair_peak.expire(position)  # repairs may not come any more: their reason goes with time all the same
