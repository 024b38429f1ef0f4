from __future__ import annotations

import random

import pytest

from voicestream.testing import LinkProfile, Simulation
from voicestream.testing.bench import Bar, Case, Greedy, Media
from voicestream.testing.bench.__main__ import main
from voicestream.testing.bench.cases import CASES
from voicestream.testing.bench.figures import _capacity_bps, _turns
from voicestream.testing.bench.greedy import GreedyFlow
from voicestream.testing.bench.shared import Leg, Policer, shared_limit


def test_names_of_cases_are_distinct_and_their_bars_name_figures() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert all(case.bars for case in CASES)


@pytest.mark.parametrize(("sense", "value", "kept"), [(">=", 0.9, True), (">=", 0.8, False), ("<=", 0.8, True), ("<=", 0.9, False)])
def test_a_bar_is_kept_on_its_side(sense: str, value: float, kept: bool) -> None:
    bar = Bar("use", ">=" if sense == ">=" else "<=", 0.85)
    assert bar.passed(value) is kept


def test_steady_windows_leave_out_the_seconds_after_every_change() -> None:
    link = LinkProfile(rate_kbps=((0.0, 100.0), (20.0, 50.0)))
    case = Case(name="x", about="", seconds=40, b2a=link, media=(Media(start=2), Media(start=30)))
    assert case.windows("b2a") == [(7, 20), (25, 30), (35, 40)]


def test_capacity_is_the_mean_over_the_window() -> None:
    case = Case(name="x", about="", seconds=40, b2a=LinkProfile(rate_kbps=((0.0, 100.0), (20.0, 50.0))))
    assert _capacity_bps(case, "b2a", 10, 30) == pytest.approx(75e3)
    assert _capacity_bps(case, "a2b", 10, 30) == float("inf")
    slots = Case(name="x", about="", seconds=40, b2a=LinkProfile(rate_trace_ms=(0, 100, 200, 1000)))
    assert _capacity_bps(slots, "b2a", 0, 0.5) == 3 * 1500 * 8 / 0.5


def test_small_turns_do_not_count_and_large_ones_do() -> None:
    assert _turns([100, 101, 100, 102, 99]) == 0
    assert _turns([100, 120, 100, 120]) == 2
    assert _turns([]) == 0


@pytest.mark.parametrize("kind", ["reno", "cubic"])
def test_a_greedy_flow_fills_its_link_and_two_share_it(kind: str) -> None:
    sim, limit = Simulation(1), shared_limit(LinkProfile(rate_kbps=200.0, queue_ms=300), None)
    spec = Greedy(kind="reno" if kind == "reno" else "cubic")
    flows = [GreedyFlow(sim, limit, spec, epoch=0.0, rng=random.Random(number)) for number in range(2)]
    sim.run(60)
    rates = [sum(size for at, size in flow.delivered if at >= 10) * 8 / 50 for flow in flows]
    assert 0.9 * 200e3 <= sum(rates) <= 200e3 * 1.01
    assert min(rates) >= 0.25 * 200e3


def test_short_transfers_end_and_begin_again() -> None:
    sim, limit = Simulation(1), shared_limit(LinkProfile(rate_kbps=200.0), None)
    flow = GreedyFlow(sim, limit, Greedy(transfer_kb=(10, 20), idle=2.0), epoch=0.0, rng=random.Random(1))
    sim.run(100)
    received = sum(size for _, size in flow.delivered)
    assert 150e3 <= received <= 1e6


def test_a_policer_passes_its_rate_without_delay() -> None:
    policer = Policer(((0.0, 60.0),), 3000)
    passed = sum(500 for step in range(1000) if policer.offer(step * 0.05, 500))
    assert passed * 8 / 50 == pytest.approx(60e3, rel=0.02)


def test_two_legs_wait_for_one_another() -> None:
    profile = LinkProfile(rate_kbps=80.0, delay_ms=10)
    limit = shared_limit(profile, None)
    first, second = (Leg(limit, profile, str(number), epoch=0.0, delay_ms=delay) for number, delay in ((0, None), (1, 50)))
    assert first.send(1.0, 1000) == pytest.approx([1.11])
    assert second.send(1.0, 1000) == pytest.approx([1.25])
    assert second.carried[0].wait == pytest.approx(0.1)


def test_the_command_lists_its_cases_and_refuses_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--quick"]) == 0
    assert "steps-60" in capsys.readouterr().out
    assert main(["nonsense"]) == 2
