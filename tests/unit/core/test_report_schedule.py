"""Reports that leave sooner than usual, because a queue grows."""

from __future__ import annotations

import random

from voicestream.core.report_schedule import GrowthWatch, ReportSchedule


def grown(delays: list[float], interval: float = 0.02) -> list[bool]:
    watch = GrowthWatch()
    return [watch.arrived(number * interval, number * interval + delay) for number, delay in enumerate(delays)]


def test_two_rises_of_the_delay_are_told() -> None:
    assert grown([0.03, 0.03, 0.05, 0.07]) == [False, False, False, True]


def test_one_late_datagram_is_not_where_others_come_late_too() -> None:
    assert not any(grown([0.03, 0.06] * 10 + [0.03, 0.08, 0.06, 0.04, 0.03])[2:])


def test_where_all_come_alike_one_step_is_told() -> None:
    assert grown([0.03, 0.031, 0.058, 0.03]) == [False, False, True, False]
    assert not any(grown([0.03, 0.031, 0.05, 0.03]))


def test_the_usual_variation_is_seldom_told() -> None:
    rng = random.Random(5)
    told = grown([0.03 + abs(rng.gauss(0, 0.01)) for _ in range(2000)])
    assert sum(told) < 20


def test_the_second_of_a_pair_tells_nothing() -> None:
    watch = GrowthWatch()
    assert not watch.arrived(0.0, 0.03)
    assert not watch.arrived(0.02, 0.07)
    assert not watch.arrived(0.0205, 0.11)


def test_a_hurried_report_leaves_at_once_and_the_next_a_little_later() -> None:
    schedule = ReportSchedule()
    for at in (0.0, 0.02):
        schedule.arrived(300, at, eliciting=True)
    schedule.left(20, 0.02, with_playout=False)
    schedule.arrived(300, 0.05, eliciting=True)
    assert not schedule.due_alone(0.05)
    schedule.hurry(0.05)
    assert schedule.due_alone(0.05)
    assert schedule.next_timer() == 0.05
    schedule.left(20, 0.05, with_playout=False)
    schedule.arrived(300, 0.06, eliciting=True)
    schedule.hurry(0.06)
    assert not schedule.due_alone(0.06)


def test_where_our_own_way_is_scarce_nothing_hurries() -> None:
    schedule = ReportSchedule()
    schedule.scarce = True
    schedule.left(20, 0.0, with_playout=False)
    schedule.arrived(300, 0.05, eliciting=True)
    schedule.hurry(0.05)
    assert not schedule.due_alone(0.09)
    schedule.hurry(0.11)
    assert schedule.due_alone(0.11)


def test_a_queue_that_forms_at_once_is_long_and_a_slow_or_a_short_one_is_not() -> None:
    def is_long(delays: list[float]) -> bool:
        watch, found = GrowthWatch(), False
        for number, delay in enumerate(delays):
            watch.arrived(number * 0.02, number * 0.02 + delay)
            found |= watch.is_long
        return found

    assert is_long([0.03] * 20 + [0.07, 0.11, 0.15])
    assert not is_long([0.03] * 20 + [0.09, 0.15])
    assert not is_long([0.03] * 20 + [0.05, 0.07, 0.09])
    rng = random.Random(7)
    assert not is_long([0.03 + abs(rng.gauss(0, 0.02)) for _ in range(2000)])


def test_a_hurried_report_waits_for_a_datagram_that_is_about_to_leave() -> None:
    schedule = ReportSchedule()
    schedule.chance(0.0)
    schedule.chance(0.02)
    schedule.left(20, 0.0, with_playout=False)
    schedule.arrived(300, 0.03, eliciting=True)
    schedule.hurry(0.03)
    assert not schedule.due_alone(0.03)
    assert schedule.rides(0.04)
    assert schedule.due_alone(0.05)


def test_far_beyond_the_share_nothing_is_hurried() -> None:
    schedule = ReportSchedule()
    for turn in range(20):
        schedule.left(60, 0.1 * turn, with_playout=False)
    schedule.arrived(100, 2.0, eliciting=True)
    schedule.hurry(2.0)
    assert not schedule.due_alone(2.0)


def test_the_lack_of_a_datagram_where_they_came_steadily_is_told_once_and_so_is_its_end() -> None:
    watch = GrowthWatch()
    for number in range(10):
        assert not watch.arrived(0.02 * number, 0.02 * number + 0.03, more=True)
    assert watch.due_at is not None
    assert 0.23 < watch.due_at < 0.27
    assert not watch.overdue(0.23)
    assert watch.overdue(watch.due_at)
    assert not watch.overdue(1.0)
    assert watch.arrived(0.2, 0.4, more=True)


def test_nothing_is_missed_after_the_end_of_speech_nor_where_datagrams_are_far_apart() -> None:
    watch = GrowthWatch()
    for number in range(10):
        watch.arrived(0.02 * number, 0.02 * number + 0.03, more=number < 9)
    assert watch.due_at is None
    for number in range(10):
        watch.arrived(1 + 0.12 * number, 1.03 + 0.12 * number, more=True)
    assert watch.due_at is None
