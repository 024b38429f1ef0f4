from __future__ import annotations

import pytest

from voicestream.testing.sim import Simulation, SimulationError


class Ticker:
    """A node that wants to be called every `step` seconds."""

    def __init__(self, step: float, first: float = 0.0) -> None:
        self.step = step
        self.at: float | None = first
        self.calls: list[float] = []

    def __repr__(self) -> str:
        return f"Ticker({self.step})"

    def next_timer(self) -> float | None:
        return self.at

    def handle_timer(self, now: float) -> None:
        self.calls.append(now)
        self.at = now + self.step


def test_actions_happen_in_order_of_time_and_of_asking() -> None:
    sim = Simulation()
    done: list[str] = []
    sim.at(2.0, lambda: done.append("late"))
    sim.at(1.0, lambda: done.append("first"))
    sim.at(1.0, lambda: done.append("second"))
    sim.after(0.5, lambda: done.append("early"))
    sim.run(10)
    assert done == ["early", "first", "second", "late"]
    assert sim.now == 10
    assert sim.events == 4


def test_the_run_ends_at_its_bound_and_can_go_on() -> None:
    sim = Simulation(start=100.0)
    ticker = Ticker(1.0, first=100.0)
    sim.update(ticker)
    sim.run(102.5)
    assert ticker.calls == [100, 101, 102]
    sim.run(104)
    assert ticker.calls == [100, 101, 102, 103, 104]


def test_the_run_ends_when_told() -> None:
    sim = Simulation()
    ticker = Ticker(1.0)
    sim.update(ticker)
    assert sim.run(10, stop=lambda: len(ticker.calls) == 3)
    assert sim.now == 2.0
    assert not sim.run(2.5, stop=lambda: False)


def test_a_moved_timer_fires_at_its_new_time_only() -> None:
    sim = Simulation()
    ticker = Ticker(100.0, first=1.0)
    sim.update(ticker)
    ticker.at = 3.0
    sim.update(ticker)
    ticker.at = 2.0
    sim.update(ticker)
    sim.run(10)
    assert ticker.calls == [2.0]


def test_a_removed_timer_does_not_fire() -> None:
    sim = Simulation()
    ticker = Ticker(1.0, first=1.0)
    sim.update(ticker)
    ticker.at = None
    sim.update(ticker)
    sim.run(10)
    assert ticker.calls == []


def test_a_time_in_the_past_means_now() -> None:
    sim = Simulation(start=5.0)
    seen: list[float] = []
    sim.at(1.0, lambda: seen.append(sim.now))
    ticker = Ticker(100.0, first=2.0)
    sim.update(ticker)
    sim.run(10)
    assert seen == ticker.calls == [5.0]


def test_a_timer_that_does_not_advance_is_an_error_that_names_seed_and_node() -> None:
    sim = Simulation(4711)
    sim.update(Ticker(0.0, first=1.0))
    with pytest.raises(SimulationError, match=r"Ticker\(0.0\) fires again and again.*seed 4711.*1\.0000 s"):
        sim.run(10)


def test_a_failed_check_names_the_seed() -> None:
    sim = Simulation(17)
    sim.check(True, "fine")
    with pytest.raises(SimulationError, match=r"too late \(seed 17, at 0\.0000 s\)"):
        sim.check(False, "too late")


def test_random_numbers_depend_on_seed_and_name_only() -> None:
    assert Simulation(1).rng("a").random() == Simulation(1).rng("a").random()
    assert Simulation(1).rng("a").random() != Simulation(1).rng("b").random()
    assert Simulation(1).entropy("a")(16) != Simulation(2).entropy("a")(16)
    assert len(Simulation(1).entropy("a")(16)) == 16
