"""When to stretch: holds the slack of the frames against the target."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from voicestream.core.playout.sliding import SlidingMin

__all__ = ["StretchControl"]

WINDOW_UNITS = 160.0
"""Calls of the last 400 ms show the least slack."""

WAIT_UNITS = 400.0
"""Nothing is cut that any frame of the last second would have needed (1 s)."""

SETTLE_UNITS = 24.0
"""Time to watch the effect of one step before the next (60 ms)."""

REVERSAL_UNITS = 800.0
"""Lengthening so soon after a cut shows that the cut was one too many (2 s)."""

FAST_EXCESS_UNITS = 24.0
UPPER_MARGIN = 3.5
"""So much more slack than wanted is let be, beside what less than a grain leaves (9 ms): a start by default needs no cut then."""
STEP_UNITS = 4
MIN_CUT_UNITS = 1.0
EXPANSION_PAUSE_UNITS = 12.0
"""From one lengthening to the next (30 ms): every second frame of 20 ms."""

RETRY_UNITS = 40.0
"""Where nothing could be cut, the next frame is seldom better (100 ms)."""

MIN_GAIN_UNITS = 6.0
BACKOFF_UNITS = (800.0, 4000.0)
CUT_RESERVE = 1.0
"""A stretcher works by whole pitch periods and may cut this much more than asked for (2.5 ms)."""

WAIT_MARGIN = 2.5
SPARE_MARGIN = 0.4
SPARE_GAIN = 0.25
"""A grain that costs more than it saves, by this part of it, is cut if every frame of the last second had 1 ms more to spare."""

GRAIN_TOLERANCE = 0.3
GRAIN_REFRESH_TICKS = 64
GRAIN_MEMORY = 256


class StretchControl:
    """Watches the calls of the executor and says by how much the next frame should be longer or shorter. VS-16-4

    The slack of a call is the time since the frame asked for would have arrived had it been as quick as the quickest. A
    device takes audio in blocks and the buffer holds it in frames, so slack moves only in steps of their common measure,
    the grain; what the executor holds beyond a multiple of the grain only adds delay and can be cut free of risk.

    Attributes:
        grain: The common measure, in units.
        excess: How much could have been cut at the last correction that asked for less, in units.
        slack: The least slack of late at the last correction, in units.
        distance: How far the slack was from what is needed, or wanted, at the last correction, in units.
    """

    def __init__(self) -> None:
        self._times: deque[float] = deque()  # of the calls of the last second
        self._slack = SlidingMin(WINDOW_UNITS)
        self._held = SlidingMin(WINDOW_UNITS)
        self._wait = SlidingMin(WAIT_UNITS)
        self._changed_at = float("-inf")
        self._no_cut_before = float("-inf")
        self._no_expansion_before = float("-inf")
        self._backoff = BACKOFF_UNITS[0]
        self._last_direction = 0
        self._last_step_at = float("-inf")
        self._last_reversal_at = float("-inf")
        self._consumed: deque[float] = deque(maxlen=GRAIN_MEMORY)
        self._frame_units = 8
        self._ticks = 0
        self.grain = 8.0
        self.distance = 0.0
        self.excess = 0.0
        self.slack = 0.0

    def consumed(self, units: float, frame_units: int) -> None:
        """The device took `units` since the last tick; frames have `frame_units`."""
        if units > 0.0:
            self._consumed.append(units)
        fits = units <= 0.0 or abs(units / self.grain - round(units / self.grain)) * self.grain < GRAIN_TOLERANCE
        self._ticks += 1
        if fits and frame_units == self._frame_units and self._ticks % GRAIN_REFRESH_TICKS:
            return
        self._frame_units = frame_units
        grain = float(frame_units)
        for taken in dict.fromkeys(self._consumed):  # most blocks are of one length
            grain = _common_measure(grain, taken)
        self.grain = max(1.0, grain)

    def observe(self, now: float, slack: float, held: float, wait: float) -> None:
        """The executor asked for a frame that is here.

        Args:
            now: Time of the call.
            slack: Time since the frame's end on the arrival clock (time minus pts), not yet relative to the quickest.
            held: What the executor still held.
            wait: How long the frame has been here.
        """
        times = self._times
        times.append(now)
        while times[0] < now - WAIT_UNITS:
            times.popleft()
        self._slack.push(now, slack)
        self._held.push(now, held)
        self._wait.push(now, wait)

    def all_waited(self, now: float, units: float) -> bool:
        """Whether every frame of the last second had waited longer than so; no while there is less than half a second to judge by."""
        times, least = self._times, self._wait.value
        if least is None or now - times[0] < WAIT_UNITS / 2 or now - times[-1] > WAIT_UNITS:
            return False
        return least > units

    def moved(self, now: float) -> None:
        """A frame came late or the playhead jumped: what was learnt of the slack is void."""
        self._times.clear()
        for least in (self._slack, self._held, self._wait):
            least.restart()
        self._changed_at = now

    def stretched(self, now: float, units: float) -> None:
        """The executor lengthened (positive) or shortened by `units`; 0: it was asked to and found no place for it."""
        self._no_expansion_before = now + EXPANSION_PAUSE_UNITS
        if not units:
            self._no_cut_before = max(self._no_cut_before, now + RETRY_UNITS)
            return
        direction = 1 if units > 0 else -1
        if direction > 0 and self._last_direction < 0 and now - self._last_step_at < REVERSAL_UNITS:
            # Cut and lengthened again: the cut was one too many. Wait longer each time.
            if now - self._last_reversal_at > 4 * BACKOFF_UNITS[1]:
                self._backoff = BACKOFF_UNITS[0]
            self._last_reversal_at = now
            self._no_cut_before = max(self._no_cut_before, now + self._backoff)
            self._backoff = min(2 * self._backoff, BACKOFF_UNITS[1])
        self._last_direction, self._last_step_at = direction, now
        self._changed_at = now
        self._wait.shift(units)

    def correction(
        self,
        now: float,
        base: float,
        spread: float,
        target: float,
        frame_units: int,
        early: float,
        cost: Callable[[float], float] | None = None,
        *,
        cut_by_cost: bool = True,
    ) -> float:
        """Units to add to the next frame (positive) or to take from it (negative); 0 for neither.

        Args:
            now: Time of the call.
            base: Delay of the quickest frame on the arrival clock.
            spread: Slack that is needed.
            target: Slack that is wanted.
            frame_units: Length of the next frame.
            early: How much earlier than its neighbours the frame was sent; that much is not delay.
            cost: What it costs to have so much slack, in units. Slack changes by whole grains: the cheaper of two neighbours is
                kept, though it be less than what is needed or more than what is wanted.
            cut_by_cost: What is wanted has been measured, so that less of it can be judged by its cost.
        """
        since = max(now - WINDOW_UNITS, self._changed_at)
        least, held, waited = self._slack.since(since), self._held.since(since), self._wait.value
        if least is None or held is None or waited is None:
            return 0.0
        slack = self.slack = least - base
        free = held % self.grain
        self.distance = abs(slack - (spread if slack < spread else target))
        if slack < spread and not self._is_cheap(slack, target, cost):
            if now < self._no_expansion_before:
                return 0.0
            steps = -(-(target - slack) // self.grain)
            return min(steps * self.grain - free, float(STEP_UNITS), max(1.0, frame_units / 2))
        if now - self._changed_at < SETTLE_UNITS:
            return 0.0
        surplus, margin = slack - target - UPPER_MARGIN, WAIT_MARGIN
        less = slack - self.grain
        if cost is not None and cut_by_cost and surplus < self.grain and less >= 0 and cost(less) + SPARE_GAIN * self.grain < cost(slack):
            surplus, margin = self.grain, SPARE_MARGIN
        if surplus >= 0:
            surplus = min(surplus, waited - margin)
        excess = free + (surplus // self.grain * self.grain if surplus >= 0 else 0.0) - early - CUT_RESERVE
        if excess < MIN_CUT_UNITS:
            return 0.0
        if now < self._no_cut_before and excess < 2 * max(self.grain, MIN_GAIN_UNITS):
            return 0.0
        self.excess = excess
        step = frame_units / 2 if excess >= FAST_EXCESS_UNITS else min(float(STEP_UNITS), frame_units / 2)
        return -min(excess, max(1.0, step))

    def _is_cheap(self, slack: float, target: float, cost: Callable[[float], float] | None) -> bool:
        """Whether what comes too late for `slack` costs less than the grains that it lacks."""
        longer = slack - (slack - target) // self.grain * self.grain
        return cost is not None and slack >= 0 and cost(slack) <= cost(longer)


def _common_measure(a: float, b: float) -> float:
    """Greatest common divisor of two lengths that are not quite exact."""
    while b > GRAIN_TOLERANCE:
        a, b = b, a % b
        if a - b < GRAIN_TOLERANCE:
            b = 0.0
    return a
