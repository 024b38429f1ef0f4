"""What the far end is told of the playing: progress, the end, and what was heard before a clear."""

from __future__ import annotations

from voicestream.core.played import CLEARED_GRACE, PROGRESS_INTERVAL, PlayedLog
from voicestream.wire.message_values import Cleared, Finished, Progress


def test_progress_is_told_four_times_a_second() -> None:  # VS-8.3-1
    log = PlayedLog(1)
    told = [message for step in range(100) for message in log.played(8 * step, 10 + step * 0.02)]
    assert all(isinstance(message, Progress) and message.track == 1 for message in told)
    assert len(told) == 8
    assert PROGRESS_INTERVAL == 0.25


def test_nothing_is_told_while_nothing_plays() -> None:
    log = PlayedLog(0)
    assert log.played(0, 10.0) == []
    log.played(80, 10.1)
    assert [message for step in range(100) for message in log.played(80, 11 + step * 0.02)] == []


def test_the_last_progress_before_a_pause_is_told_too() -> None:
    log = PlayedLog(0)
    log.played(80, 10.0)
    assert log.played(120, 10.1) == []
    assert log.played(120, 10.3) == [Progress(played_pts=120)]


def test_what_was_played_never_goes_back() -> None:  # VS-8.3-2
    log = PlayedLog(0)
    log.played(100, 10.0)
    assert log.played(60, 11.0) == []
    assert log.played_pts == 100


def test_a_clear_is_answered_with_what_the_player_reports_next() -> None:
    log = PlayedLog(0)
    log.played(100, 10.0)
    log.clear(1, 400, 130, 10.1)
    assert log.played(140, 10.12) == [Cleared(number=1, heard_pts=140)]
    assert log.next_timer() is None


def test_the_players_word_counts_more_than_the_estimate_but_takes_nothing_back() -> None:
    log = PlayedLog(0)
    log.played(100, 10.0)
    log.clear(1, 400, 130, 10.1)
    assert log.played(110, 10.12)[0] == Cleared(number=1, heard_pts=110)
    log.clear(2, 500, 130, 10.3)
    assert log.played(90, 10.32)[0] == Cleared(number=2, heard_pts=110)


def test_what_was_reported_as_played_was_heard_though_the_playout_knows_less() -> None:
    log = PlayedLog(0)
    log.played(100, 10.0)
    log.clear(1, 400, 0, 10.1)
    assert log.due(11.0) == [Cleared(number=1, heard_pts=100)]


def test_a_report_from_beyond_the_clear_says_nothing_about_what_was_heard_before() -> None:
    log = PlayedLog(0)
    log.played(100, 10.0)
    log.clear(1, 400, 130, 10.1)
    assert Cleared(number=1, heard_pts=130) in log.played(400, 10.12)


def test_without_a_report_the_best_estimate_goes_after_a_grace() -> None:
    log = PlayedLog(0)
    log.clear(1, 400, 130, 10.0)
    assert log.next_timer() == 10.0 + CLEARED_GRACE
    assert log.due(10.09) == []
    assert log.due(10.1) == [Cleared(number=1, heard_pts=130)]
    assert log.due(20.0) == []


def test_without_a_playout_what_was_reported_before_counts() -> None:
    log = PlayedLog(0)
    log.played(100, 10.0)
    log.clear(1, 400, None, 10.0)
    assert log.due(11.0) == [Cleared(number=1, heard_pts=100)]
    log = PlayedLog(0)
    log.clear(1, 400, None, 10.0)
    assert log.due(11.0) == [Cleared(number=1, heard_pts=0)]


def test_nothing_beyond_the_end_of_a_clear_was_heard() -> None:  # VS-8.2-3
    log = PlayedLog(0)
    log.clear(1, 400, 520, 10.0)
    assert log.due(11.0) == [Cleared(number=1, heard_pts=400)]


def test_one_answer_settles_clears_that_follow_each_other_at_once() -> None:
    log = PlayedLog(0)
    log.clear(1, 400, 130, 10.0)
    log.clear(2, 480, 135, 10.05)
    assert log.next_timer() == 10.0 + CLEARED_GRACE
    assert log.played(135, 10.06)[0] == Cleared(number=2, heard_pts=135)


def test_what_the_player_knows_exactly_is_told_at_once() -> None:
    log = PlayedLog(0)
    log.played(100, 10.0)
    assert log.clear(1, 400, 130, 10.1, exact=True) == [Cleared(number=1, heard_pts=130)]
    assert log.next_timer() is None
    assert log.clear(1, 480, 200, 10.2, exact=True) == []


def test_a_clear_that_is_answered_is_not_answered_again_when_its_end_moves() -> None:
    log = PlayedLog(0)
    log.clear(1, 400, 130, 10.0)
    log.clear(1, 480, 200, 10.01)
    assert log.due(11.0) == [Cleared(number=1, heard_pts=130)]
    log.clear(1, 500, 200, 11.1)
    assert log.next_timer() is None


def test_the_end_is_told_once_it_was_played_and_progress_ceases() -> None:  # VS-8.6-2
    log = PlayedLog(0)
    log.finish_pts = 200
    assert log.played(199, 10.0) == [Progress(played_pts=199)]
    assert log.played(200, 10.01) == [Finished(played_pts=200)]
    assert log.played(210, 11.0) == []
    assert log.finished
