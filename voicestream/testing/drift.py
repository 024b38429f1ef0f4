"""A host whose clock runs fast or slow: the engine as it sees it."""

from __future__ import annotations

from collections.abc import Callable

from voicestream.testing.sim import Node, Simulation

__all__ = ["DriftingSimulation", "drifting"]


class DriftingSimulation(Simulation):
    """Passes everything on to the world's engine, in the time of a clock that began right and does not run right.

    Args:
        world: The engine.
        ppm: By how much the clock is fast, in parts per million; negative for slow.
    """

    def __init__(self, world: Simulation, ppm: float) -> None:
        self._world = world
        self._origin = world.now
        self._pace = 1 + ppm / 1e6
        self._reached = world.now
        self._hosted: dict[int, _Hosted] = {}
        super().__init__(world.seed, start=world.now)

    @property
    def now(self) -> float:
        """What the clock shows; never goes back."""
        self._reached = max(self._reached, self._origin + (self._world.now - self._origin) * self._pace)
        return self._reached

    @now.setter
    def now(self, time: float) -> None:
        """Rounding must not let a timer come a hair too early."""
        self._reached = max(self._reached, time)

    def world_time(self, time: float) -> float:
        """The world's time when this clock shows `time`."""
        return self._origin + (time - self._origin) / self._pace

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Do `action` when the clock shows `time`."""
        self._world.at(self.world_time(time), action)

    def update(self, node: Node) -> None:
        """Read the timer of `node` again, which tells time by this clock."""
        hosted = self._hosted.get(id(node))
        if hosted is None:
            hosted = self._hosted[id(node)] = _Hosted(self, node)
        self._world.update(hosted)


class _Hosted:
    """A node of the drifting host, as the world's engine sees it."""

    def __init__(self, clock: DriftingSimulation, node: Node) -> None:
        self._clock = clock
        self._node = node
        self._asked = clock.now

    def next_timer(self) -> float | None:
        asked = self._node.next_timer()
        if asked is None:
            return None
        self._asked = asked
        return self._clock.world_time(asked)

    def handle_timer(self, now: float) -> None:
        self._clock.now = self._asked
        self._node.handle_timer(self._clock.now)


def drifting(world: Simulation, ppm: float) -> Simulation:
    """The engine as a host sees it whose clock is fast by `ppm` parts per million; the engine itself where that is 0."""
    return DriftingSimulation(world, ppm) if ppm else world
