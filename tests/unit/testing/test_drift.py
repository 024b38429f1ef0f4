"""A host whose clock does not run right sees its own time, and the world sees the world's."""

from __future__ import annotations

import pytest

from voicestream.testing import Simulation
from voicestream.testing.drift import DriftingSimulation, drifting


class Ticker:
    """Ticks each 10 ms of its own clock."""

    def __init__(self, sim: Simulation) -> None:
        self.ticks: list[float] = []
        self._next = sim.now + 0.01
        self._sim = sim
        sim.update(self)

    def next_timer(self) -> float | None:
        return self._next

    def handle_timer(self, now: float) -> None:
        assert now >= self._next
        self.ticks.append(now)
        self._next += 0.01


@pytest.mark.parametrize("ppm", [500, -500, 100000])
def test_a_clock_that_is_fast_ticks_more_often(ppm: float) -> None:
    world = Simulation(1, start=1000.0)
    clock = DriftingSimulation(world, ppm)
    ticker = Ticker(clock)
    world.run(1100.0)
    assert len(ticker.ticks) == pytest.approx(10000 * (1 + ppm / 1e6), abs=2)
    assert clock.now == pytest.approx(1000 + 100 * (1 + ppm / 1e6))
    assert clock.world_time(clock.now) == pytest.approx(1100)


def test_what_is_to_be_done_at_a_time_is_done_when_the_clock_shows_it() -> None:
    world = Simulation(1)
    clock = DriftingSimulation(world, 1000)
    seen: list[float] = []
    clock.at(10.01, lambda: seen.append(world.now))
    clock.after(1.001, lambda: seen.append(world.now))
    world.run(20)
    assert seen == pytest.approx([1.0, 10.0], abs=1e-6)


def test_without_drift_there_is_no_other_clock() -> None:
    world = Simulation(1)
    assert drifting(world, 0.0) is world
