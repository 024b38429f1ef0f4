"""Virtual time: a heap of what happens next, and nodes with one timer each.

A call of ten minutes takes seconds, and the same seed gives the same run. Every failure names the seed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import NoReturn, Protocol

__all__ = ["Node", "Simulation", "SimulationError"]

LIVELOCK_FIRINGS = 50
"""Timers of one node that may fire within a microsecond."""


class SimulationError(AssertionError):
    """A run went wrong; the message carries the seed and the virtual time."""


class Node(Protocol):
    """Whatever has a timer: a session with its outputs, an endpoint, a microphone."""

    def next_timer(self) -> float | None:
        """When `handle_timer` wants to be called, in virtual seconds; None for never."""

    def handle_timer(self, now: float) -> None:
        """The time has come."""


class _Armed:
    """The timer of one node as the engine knows it."""

    __slots__ = ("at", "firings", "first", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.at: float | None = None
        self.first = float("-inf")
        self.firings = 0


class Simulation:
    """The engine.

    Args:
        seed: Of everything random in the run.
        start: Virtual time at the beginning, in seconds.

    Attributes:
        now: Virtual time in seconds.
        seed: As given.
        events: How many events have been handled.
    """

    def __init__(self, seed: int = 0, *, start: float = 0.0) -> None:
        self.seed = seed
        self.now = start
        self.events = 0
        self._heap: list[tuple[float, int, Callable[[], None] | None, _Armed | None]] = []
        self._order = 0
        self._nodes: dict[int, _Armed] = {}

    def rng(self, name: str) -> random.Random:
        """A generator of random numbers of its own for whoever is called `name`; the same for the same seed."""
        return random.Random(f"{self.seed}/{name}")

    def entropy(self, name: str) -> Callable[[int], bytes]:
        """Deterministic stand-in for ``os.urandom``."""
        return self.rng(f"{name}/entropy").randbytes

    def world_time(self, time: float) -> float:
        """The world's time when the clock of this engine shows `time`; another only for a host whose clock drifts."""
        return time

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Do `action` at `time` (at once, after what is already due, when that is in the past)."""
        self._order += 1
        heapq.heappush(self._heap, (max(time, self.now), self._order, action, None))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do `action` when `seconds` have passed."""
        self.at(self.now + seconds, action)

    def update(self, node: Node) -> None:
        """Read the timer of `node` again. To be called after everything that may have moved it; also adds a new node."""
        armed = self._nodes.get(id(node))
        if armed is None:
            armed = self._nodes[id(node)] = _Armed(node)
        at = node.next_timer()
        if at is not None and at < self.now:
            at = self.now
        if at == armed.at:
            return
        armed.at = at
        if at is not None:
            self._order += 1
            heapq.heappush(self._heap, (at, self._order, None, armed))

    def run(self, until: float, *, stop: Callable[[], bool] | None = None) -> bool:
        """Let virtual time pass.

        Args:
            until: Virtual time at which to stop, in seconds.
            stop: Asked after each event; true ends the run there.

        Returns:
            Whether `stop` said so.

        Raises:
            SimulationError: A timer fires again and again without time passing.
        """
        heap = self._heap
        while heap and heap[0][0] <= until:
            at, _, action, armed = heapq.heappop(heap)
            if action is not None:
                self.now = at
                self.events += 1
                action()
            elif armed is not None and armed.at == at:
                self.now = at
                self.events += 1
                self._fire(armed)
            else:
                continue
            if stop is not None and stop():
                return True
        self.now = max(self.now, until)
        return False

    def _fire(self, armed: _Armed) -> None:
        if self.now - armed.first > 1e-6:
            armed.first = self.now
            armed.firings = 0
        armed.firings += 1
        if armed.firings > LIVELOCK_FIRINGS:
            self.fail(f"the timer of {armed.node!r} fires again and again without advancing")
        armed.at = None
        armed.node.handle_timer(self.now)
        self.update(armed.node)

    def fail(self, message: str) -> NoReturn:
        """Raise `SimulationError` with the seed and the time."""
        raise SimulationError(f"{message} (seed {self.seed}, at {self.now:.4f} s)")

    def check(self, condition: bool, message: str) -> None:
        """`fail` unless `condition` holds."""
        if not condition:
            self.fail(message)
