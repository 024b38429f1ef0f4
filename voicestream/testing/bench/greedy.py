"""Competitors: flows that take what they can get, in the manner of TCP Reno and Cubic. Segments and windows only, no connection."""

from __future__ import annotations

import random

from voicestream.testing.bench.case import Greedy
from voicestream.testing.bench.shared import Limit
from voicestream.testing.sim import Simulation

__all__ = ["GreedyFlow"]

SEGMENT = 1500
REORDERING = 3
CUBIC_C = 0.4
CUBIC_BETA = 0.7


class GreedyFlow:
    """One flow.

    Args:
        sim: The engine.
        limit: What it shares with others.
        spec: What it is like.
        epoch: Virtual time at which the case begins.
        rng: For lengths of transfers and pauses.

    Attributes:
        delivered: (second of the case, bytes) of every segment that arrived.
        busy_s: Seconds in which it had something to send, up to the end of the last transfer.
    """

    def __init__(self, sim: Simulation, limit: Limit, spec: Greedy, *, epoch: float, rng: random.Random) -> None:
        self.delivered: list[tuple[float, int]] = []
        self.busy_s = 0.0
        self._busy_since: float | None = None
        self._sim = sim
        self._limit = limit
        self._spec = spec
        self._epoch = epoch
        self._rng = rng
        self._window = 4.0
        self._threshold = 64.0
        self._flying: dict[int, float] = {}
        self._next = 0
        self._recover = -1
        self._left: float = 0.0
        self._most = 0.0  # Cubic: the window at the last loss, and when that was
        self._cut_at = 0.0
        self._rtt = 2 * spec.delay_ms / 1e3
        self._timeout_at = 0.0
        wait = rng.expovariate(1 / spec.idle) if spec.transfer_kb else rng.uniform(0.0, 0.2)
        sim.at(epoch + spec.start + wait, self._begin)

    def _begin(self) -> None:
        kb = self._spec.transfer_kb
        self._left = float("inf") if kb is None else self._rng.uniform(*kb) * 1e3 / SEGMENT
        self._window, self._threshold = 4.0, 64.0
        self._busy_since = self._sim.now
        self._fill()

    def end(self) -> None:
        """Nothing more is counted."""
        if self._busy_since is not None:
            self.busy_s += self._sim.now - self._busy_since
            self._busy_since = None

    def _fill(self) -> None:
        """Send what the window allows; a packet that the limit drops is known as lost only by those behind it."""
        while self._left > 0 and len(self._flying) < int(self._window):
            now, number = self._sim.now, self._next
            self._next += 1
            self._left -= 1
            self._flying[number] = now
            served = self._limit.offer(now - self._epoch, SEGMENT)
            if served is not None:
                there = self._epoch + served[0] + self._spec.delay_ms / 1e3
                self._sim.at(there, lambda number=number: self._arrive(number))  # type: ignore[misc]
        self._arm()

    def _arrive(self, number: int) -> None:
        self.delivered.append((self._sim.now - self._epoch, SEGMENT))
        self._sim.after(self._spec.delay_ms / 1e3, lambda: self._acked(number))

    def _acked(self, number: int) -> None:
        sent_at = self._flying.pop(number, None)
        if sent_at is None:
            return
        self._rtt += 0.125 * (self._sim.now - sent_at - self._rtt)
        lost = [other for other in self._flying if other < number - REORDERING]
        for other in lost:
            del self._flying[other]
            self._left += 1
        if lost and max(lost) > self._recover:
            self._cut()
        elif not lost:
            self._grow()
        if self._left <= 0 and not self._flying and self._spec.transfer_kb:
            self.end()
            self._sim.after(self._rng.expovariate(1 / self._spec.idle), self._begin)
        self._fill()

    def _cut(self) -> None:
        self._recover = self._next - 1
        self._most, self._cut_at = self._window, self._sim.now
        self._window = max(2.0, self._window * (CUBIC_BETA if self._spec.kind == "cubic" else 0.5))
        self._threshold = self._window

    def _grow(self) -> None:
        if self._window < self._threshold:
            self._window += 1
        elif self._spec.kind == "reno":
            self._window += 1 / self._window
        else:
            peak = (self._most * (1 - CUBIC_BETA) / CUBIC_C) ** (1 / 3)
            aim = CUBIC_C * (self._sim.now - self._cut_at + self._rtt - peak) ** 3 + self._most
            self._window += min(0.5, max(0.01, (aim - self._window) / self._window))

    def _arm(self) -> None:
        """Everything in flight may have been dropped: begin anew after a while without any acknowledgement."""
        self._timeout_at = self._sim.now + max(1.0, 3 * self._rtt)
        if self._flying:
            self._sim.at(self._timeout_at, self._timed_out)

    def _timed_out(self) -> None:
        if not self._flying or self._sim.now < self._timeout_at:
            return
        self._left += len(self._flying)
        self._flying.clear()
        self._threshold, self._window = max(2.0, self._window / 2), 1.0
        self._recover = self._next - 1
        self._fill()
