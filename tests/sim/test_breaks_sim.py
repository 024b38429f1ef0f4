"""A small part of `make bench-resume`: calls whose path breaks at random, by seed. Its own seeds: 9001 and on."""

from __future__ import annotations

import pytest

from voicestream.testing.break_call import KINDS, BreakReport, break_plan, run_break
from voicestream.testing.break_real import RealReport
from voicestream.testing.break_table import case_plans, real_lines, table
from voicestream.testing.breaks import failures, main, summary

SEEDS = (9001, 9002, 9003, 9008, 9011, 9014)
LONGEST_S = 5.0


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


def test_what_a_break_swallowed_comes_soon_although_the_path_breaks_again_right_after_the_resume() -> None:
    report = run_break(break_plan(990451))
    assert report.survived, report.notes
    assert report.lost == 0, report


def test_a_path_that_breaks_in_the_handshake_of_a_dial_has_carried_nothing_and_tells_nothing_about_its_rate() -> None:
    # What was owed crawled over what had passed for a path that loses half of everything.
    report = run_break(break_plan(2700258))
    assert report.survived, report.notes
    assert (report.lost, report.stray) == (0, 0), report


def test_gaps_that_nobody_can_fill_any_more_do_not_hold_up_all_that_came_since() -> None:
    # One way was dead for 56 s, the other one lost a frame here and there, which are kept no more: each was waited for, 2 s a gap.
    report = run_break(break_plan(4200678))
    assert report.survived, report.notes
    assert (report.lost, report.stray) == (0, 0), report


@pytest.mark.parametrize("seed", [2700000, 2700005, 2700010])
def test_the_last_words_of_a_track_that_ends_in_a_short_break_come_after_it(seed: int) -> None:
    # Less than what passes for a break otherwise is missing, and nothing that is sent afterwards brings it along.
    report = run_break(break_plan(seed))
    assert report.survived, report.notes
    assert (report.lost, report.stray) == (0, 0), report


def test_events_come_after_a_break_in_which_the_answer_to_the_resume_was_lost() -> None:
    report = run_break(break_plan(2099))
    assert report.survived, report.notes


def test_a_request_to_resume_that_is_older_and_comes_later_still_gets_its_events() -> None:
    report = run_break(break_plan(1200178))
    assert report.survived, report.notes


def test_the_command_prints_the_figures(
    reports: list[BreakReport], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = {report.plan.seed: report for report in reports}
    monkeypatch.setattr("voicestream.testing.breaks.run_break", lambda plan: calls[plan.seed])  # they have been made already
    assert main(["--count", "2", "--seed", "9001", "--longest", "5", "--part", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("went on in the same session: 1 of 1 (100.0 %)") < printed.index("went on in the same session: 2 of 2")
    assert "duplicated 0, out of order 0, altered 0" in printed
    assert summary(reports)[1].startswith("went on in the same session")


@pytest.mark.parametrize("case", ["5 s, again in the handshake for 2 s", "5 s, the reply lost for 3 s", "5 s, twice, 3 s more"])
def test_speech_is_back_soon_where_the_resumption_itself_was_broken(case: str) -> None:
    (plan,) = [plan for name, plan in case_plans(1, 9001) if name == case]
    report = run_break(plan)
    assert report.survived, report.notes
    assert len(report.to_speech_s) == 2
    assert max(report.to_speech_s) < 0.6
    (row,) = [line for line in table([(case, report)]) if line.startswith(case)]
    assert row.split()[-2:] == ["0", "0"]


def test_a_frame_that_a_second_break_has_swallowed_is_not_given_up() -> None:
    report = run_break(break_plan(9001, longest_s=9.0))
    assert (report.lost, report.resumes) == (0, 1), report


def test_the_end_of_a_track_that_a_long_break_has_swallowed_is_waited_for() -> None:
    report = run_break(break_plan(2597))
    assert (report.survived, report.lost) == (True, 0), report


def test_calls_on_real_sockets_are_judged_by_when_they_speak_again() -> None:
    good = RealReport(seed=1, seconds=2.0, to_speech_s=[0.1, 0.2], to_live_s=[1.0, 6.0])
    assert good.succeeded
    assert not RealReport(seed=1, seconds=2.0, to_speech_s=[0.1, 5.2], to_live_s=[1.0, 6.0]).succeeded
    assert not RealReport(seed=1, seconds=2.0, to_speech_s=[0.1, 0.2], to_live_s=[1.0]).succeeded
    twice = RealReport(seed=2, seconds=2.0, to_speech_s=[0.1, 0.2], to_live_s=[1.0, 6.0], duplicated=1)
    assert "1 of 2 calls" in real_lines([good, twice])[1]
