"""A small part of `make bench-resume`: calls whose path breaks at random, by seed. Its own seeds: 9001 and on."""

from __future__ import annotations

import pytest

from voicestream.testing.break_call import KINDS, BreakReport, break_plan, run_break
from voicestream.testing.breaks import failures, main, summary

SEEDS = range(9001, 9015)
LONGEST_S = 9.0


@pytest.fixture(scope="module")
def reports() -> list[BreakReport]:
    return [run_break(break_plan(seed, longest_s=LONGEST_S)) for seed in SEEDS]


def test_every_call_goes_on_in_its_session(reports: list[BreakReport]) -> None:
    assert all(report.survived for report in reports), failures(reports)
    assert any(report.resumes for report in reports)
    assert len({report.plan.kind for report in reports}) >= len(KINDS) - 2


def test_nothing_comes_twice_or_out_of_order_or_altered_and_nothing_that_was_kept_is_lost(reports: list[BreakReport]) -> None:
    faults = [(report.duplicated, report.disordered, report.altered, report.lost) for report in reports]
    assert faults == [(0, 0, 0, 0)] * len(reports), failures(reports)


def test_speech_is_back_soon_after_the_path(reports: list[BreakReport]) -> None:
    times = [seconds for report in reports for seconds in report.to_speech_s]
    assert max(times) < 2.5, failures(reports) or times


def test_the_bitrate_is_back_soon_after_the_path(reports: list[BreakReport]) -> None:
    after = [report.rate_bps for report in reports if report.resumes and report.plan.kind != "finish" and report.plan.loss == 0]
    assert all(rates[2] >= 0.9 * rates[0] for rates in after), f"before, 2, 4 and 8 s after: {after}"


def test_after_a_short_break_with_a_clear_a_reader_holds_back_nothing_for_later_losses() -> None:
    report = run_break(break_plan(1050))
    assert report.survived, report.notes
    assert report.stray < 20, report


def test_events_come_after_a_break_in_which_the_answer_to_the_resume_was_lost() -> None:
    report = run_break(break_plan(2099))
    assert report.survived, report.notes


def test_the_command_prints_the_figures(reports: list[BreakReport], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "2", "--seed", "9001", "--longest", "1", "--part", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("went on in the same session: 1 of 1 (100.0 %)") < printed.index("went on in the same session: 2 of 2")
    assert "duplicated 0, out of order 0, altered 0" in printed
    assert summary(reports)[1].startswith("went on in the same session")
