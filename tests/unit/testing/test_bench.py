from __future__ import annotations

import random
from types import SimpleNamespace
from typing import cast

import pytest

from voicestream.testing import LinkProfile, Simulation
from voicestream.testing.bench import Bar, Case, Greedy, Media, run_case
from voicestream.testing.bench.__main__ import main
from voicestream.testing.bench.bounds import measured, worse
from voicestream.testing.bench.cases import CASES
from voicestream.testing.bench.figures import FlowLog, _delays_back, _turns
from voicestream.testing.bench.greedy import GreedyFlow
from voicestream.testing.bench.heard import FRAME_MS, TOOLS, Hearing
from voicestream.testing.bench.link_of import capacity_bps, prepared
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
    assert capacity_bps(case.b2a, 10, 30) == pytest.approx(75e3)
    assert capacity_bps(case.a2b, 10, 30) == float("inf")
    slots = LinkProfile(rate_trace_ms=(0, 100, 200, 1000))
    assert capacity_bps(slots, 0, 0.5) == 3 * 1500 * 8 / 0.5
    assert capacity_bps(slots, 1.0, 1.5) == 4 * 1500 * 8 / 0.5  # its end and its next beginning


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


def test_the_pauses_of_a_conversation_are_part_of_what_is_steady_and_long_silences_are_not() -> None:
    chat = Case(name="x", about="", seconds=40, b2a=LinkProfile(), media=(Media(talk=((2, 1), (1, 3))),))
    assert chat.windows("b2a") == [(5, 40)]
    silent = Case(name="x", about="", seconds=40, b2a=LinkProfile(), media=(Media(talk=((15, 5), (20, 1))),))
    assert silent.windows("b2a") == [(5, 15), (25, 40)]


def test_a_drawn_link_is_another_for_another_seed() -> None:
    case = next(case for case in CASES if case.synthetic)
    first, second = (prepared(case, seed) for seed in (1, 2))
    assert first.b2a != second.b2a
    assert first == prepared(case, 1)
    assert first.b2a.delay_ms == case.b2a.delay_ms


def test_a_delay_is_back_when_speech_plays_as_soon_as_before_capacity_went_away() -> None:
    case = Case(name="x", about="", seconds=30, b2a=LinkProfile(rate_kbps=((0.0, 100.0), (10.0, 30.0), (20.0, 100.0))))
    delays = [(1000 + at / 10, 20.0, 300.0 if 100 <= at < 235 else 80.0, True) for at in range(300)]
    side = SimpleNamespace(name="client0")
    log = cast("FlowLog", SimpleNamespace(way="b2a", side=side, heard=Hearing(frames=tuple(delays)), active=lambda *_: True))
    found: dict[str, float] = {}
    _delays_back(case, [log], found, epoch=1000.0)
    assert found["back_s"] == pytest.approx(3.4, abs=0.11)


def test_a_figure_that_is_missing_keeps_no_bar() -> None:
    assert not Bar("jain", ">=", 0.9).kept_by({})
    assert Bar("jain", ">=", 0.9).kept_by({"jain": 0.95})


def test_what_lossy_links_lose_is_accounted_for_by_tool() -> None:
    case = Case(name="x", about="", seconds=12, b2a=LinkProfile(delay_ms=30, loss=0.08), a2b=LinkProfile(delay_ms=30))
    figures = run_case(case, 3).figures
    assert 0.03 < figures["lost"] < 0.15
    assert figures["unheard"] < figures["lost"]
    mended = sum(figures[f"mended_{tool}"] for tool in TOOLS)
    assert mended == pytest.approx(1 - figures["unheard"] / figures["lost"], abs=0.02)
    assert figures["recovery_resent_ms"] >= 60
    assert sum(figures[f"frames_{length}"] for length in FRAME_MS) == pytest.approx(1)
    assert sum(figures[f"redundancy_{tool}"] for tool in (*TOOLS, "pair")) == pytest.approx(figures["redundancy"])


def test_delays_are_the_same_whatever_the_clocks_show() -> None:
    right, wrong = (
        run_case(Case(name="x", about="", seconds=15, b2a=LinkProfile(delay_ms=30), media=(Media(drift_ppm=ppm),)), 1).figures
        for ppm in (0, 2000)
    )
    assert wrong["delay_p50_ms"] == pytest.approx(right["delay_p50_ms"], abs=15)
    assert wrong["concealed"] <= 0.01


def test_bounds_stand_at_the_bar_where_that_is_kept_and_near_what_was_measured_elsewhere() -> None:
    case = Case(name="x", about="", seconds=1, b2a=LinkProfile(), bars=(Bar("concealed", "<=", 0.01),))
    runs = [{"utilisation": 0.9, "concealed": 0.005, "queue_p95_ms": 100.0}, {"utilisation": 0.88, "queue_p95_ms": 90.0}]
    entry = measured(case, runs, [1, 2])
    assert entry["at_least"] == {"utilisation": 0.85}
    assert entry["at_most"] == {"queue_p95_ms": 123.0, "concealed": 0.01}
    assert worse(entry, {"utilisation": 0.86, "queue_p95_ms": 120.0, "concealed": 0.0}) == {}
    assert set(worse(entry, {"utilisation": 0.8, "queue_p95_ms": 130.0})) == {"utilisation", "queue_p95_ms", "concealed"}
