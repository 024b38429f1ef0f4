"""What is asked for, when, and what is not worth asking for."""

from __future__ import annotations

import pytest

from voicestream.core.recovery.missing import ECHO_AFTER, MAX_PIECES, REORDER_PATIENCE, MissingTracker

RTT = 0.04


def echoed(deadline: float) -> MissingTracker:
    """Where questions are asked three times, one that has been asked twice: for 8 units from pts 100 on, at time 1."""
    missing = MissingTracker()
    missing.echoes = 2
    missing.hole(100, 8, 1.0, deadline)
    missing.due(1.0 + REORDER_PATIENCE, RTT)
    missing.due(1.0 + REORDER_PATIENCE + ECHO_AFTER, RTT)
    return missing


def test_a_hole_is_asked_for_after_a_moment_in_which_a_reordered_frame_may_come() -> None:
    missing = MissingTracker()
    missing.hole(100, 8, 1.0, 1.13)
    assert missing.due(1.0, RTT) == ()
    timer = missing.next_timer(RTT)
    assert timer == 1.0 + REORDER_PATIENCE
    assert missing.due(timer, RTT) == ((100, 8),)
    assert missing.due(timer, RTT) == ()


def test_a_question_has_an_echo_and_is_repeated_a_round_trip_later_while_there_is_time() -> None:
    missing = MissingTracker()
    missing.hole(100, 8, 1.0, 1.13)
    asked = [now for now in (1.0 + i / 1000 for i in range(200)) if missing.due(now, RTT)]
    assert len(asked) == 4
    assert asked[1] - asked[0] < 2 * ECHO_AFTER
    assert RTT <= asked[2] - asked[0] < 1.6 * RTT
    assert asked[3] - asked[2] < 2 * ECHO_AFTER
    assert missing.asked == 4
    assert len(missing) == 0
    assert missing.next_timer(RTT) is None


def test_what_cannot_come_in_time_is_not_asked_for_and_its_timer_ends() -> None:  # VS-4.10-5
    missing = MissingTracker()
    missing.hole(100, 8, 1.0, 1.13)
    assert missing.due(1.01, 0.2) == ()
    assert missing.given_up == 1
    assert missing.next_timer(0.2) is None


def test_of_a_long_hole_the_part_that_can_still_come_in_time_is_asked_for() -> None:
    missing = MissingTracker()
    missing.hole(100, 24, 1.0, 1.05)  # its last unit is played 57.5 ms after its first
    assert missing.due(1.01, 0.06) == ((110, 14),)


def test_what_arrives_is_no_longer_missed_and_a_piece_may_be_cut_in_two() -> None:
    missing = MissingTracker()
    missing.hole(100, 24, 1.0, 1.5)
    missing.arrived(108, 8)
    assert missing.due(1.01, RTT) == ((100, 8), (116, 8))
    missing.arrived(100, 8)
    missing.arrived(116, 8)
    assert len(missing) == 0


def test_a_clear_leaves_of_a_piece_what_lies_beyond_its_end() -> None:
    missing = MissingTracker()
    missing.hole(80, 80, 0.0, 1.0)
    missing.clear(120)
    assert missing.due(0.1, 0.04) == ((120, 40),)


def test_a_clear_ends_the_search_and_the_pieces_are_bounded() -> None:
    missing = MissingTracker()
    for i in range(MAX_PIECES + 5):
        missing.hole(16 * i, 8, 1.0, 2.0)
    assert len(missing) == MAX_PIECES
    assert missing.given_up == 5
    missing.clear(16 * (MAX_PIECES + 4))
    assert missing.due(1.01, RTT) == ((16 * (MAX_PIECES + 4), 8),)


def test_a_question_that_had_its_echo_rides_once_more_on_the_next_one_where_losses_are_usual() -> None:
    missing = echoed(1.15)
    missing.hole(108, 8, 1.012, 1.17)
    assert missing.due(1.012 + REORDER_PATIENCE, RTT) == ((108, 8), (100, 8))
    asked = [missing.due(1.014 + index / 1000, RTT) for index in range(1, 30)]
    assert [ranges for ranges in asked if ranges] == [((108, 8),), ((108, 8),)], "and not for ever"


def test_in_bursts_a_third_echo_leaves_later_than_the_second() -> None:
    missing = MissingTracker()
    missing.echoes = 3
    missing.hole(100, 8, 1.0, 1.15)
    asked = [index for index in range(60) if missing.due(1.0 + REORDER_PATIENCE + index / 1000, RTT)]
    assert asked == pytest.approx([0, 8, 20, 40], abs=1)


@pytest.mark.parametrize("pieces", [1, 20, MAX_PIECES])
def test_a_timer_that_is_late_asks_for_each_piece_once_and_keeps_the_second_echo_for_later(pieces: int) -> None:
    missing = MissingTracker()
    missing.echoes = 2
    for index in range(pieces):
        missing.hole(100 + 16 * index, 8, 1.0, 1.15)
    first = missing.due(1.0 + REORDER_PATIENCE, RTT)
    echo = missing.due(1.0 + REORDER_PATIENCE + ECHO_AFTER + 0.004, RTT)
    assert sorted(echo) == sorted(first), "named twice, more than fit into one question"
    assert sorted(missing.due(1.0 + REORDER_PATIENCE + 0.021, RTT)) == sorted(first)


def test_what_would_come_too_late_does_not_ride_along() -> None:
    missing = echoed(1.05)
    at = 1.05 - RTT + 0.01
    missing.hole(108, 8, at, 1.3)
    asked = dict(missing.due(at + REORDER_PATIENCE, RTT))
    assert 108 in asked
    assert 100 not in asked
