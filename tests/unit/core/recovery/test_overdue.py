from __future__ import annotations

import pytest

from voicestream.core.recovery.overdue import LEAST_SLACK, MOST_FRAMES, MOST_SLACK, UNSURE, OverdueWatch

FRAME = 8
PATH = 0.04


def feed(watch: OverdueWatch, first: int, count: int, *, late: float = 0.0, every: int = 1, **flags: bool) -> float:
    """Frames come in their time, each `every`th `late`; returns when the next one would."""
    now = 0.0
    for index in range(first, first + count):
        now = PATH + (index + 1) * 0.02 + (late if index % every == 0 else 0.0)
        watch.came(index * FRAME, FRAME, now, **{"talkspurt_start": False, "talkspurt_end": False, **flags})
    return PATH + (first + count + 1) * 0.02


def expecting(frames: int = 50) -> tuple[OverdueWatch, float]:
    watch = OverdueWatch()
    watch.lost(0.0)
    return watch, feed(watch, 0, frames)


def test_a_frame_is_overdue_a_little_after_its_time_and_told_once() -> None:
    watch, at = expecting()
    timer = watch.next_timer()
    assert timer is not None
    assert at + LEAST_SLACK - 1e-6 <= timer <= at + 0.01
    assert watch.due(timer - 0.001) is None
    assert watch.due(timer) == (50 * FRAME, FRAME)
    assert watch.due(timer) is None


def test_in_a_burst_each_frame_is_told_in_its_turn_up_to_a_bound() -> None:
    watch, _ = expecting()
    told = []
    while (timer := watch.next_timer()) is not None:
        told.append((watch.due(timer), timer))
    assert [frame for frame, _ in told] == [((50 + index) * FRAME, FRAME) for index in range(MOST_FRAMES)]
    assert told[-1][1] - told[0][1] == pytest.approx((MOST_FRAMES - 1) * 0.02)
    feed(watch, 50 + MOST_FRAMES, 1)
    assert watch.next_timer() is not None, "audio goes on"


def test_where_nothing_was_lost_of_late_nothing_is_overdue() -> None:
    watch = OverdueWatch()
    feed(watch, 0, 600)
    assert watch.next_timer() is None
    watch.lost(12.0)
    assert watch.next_timer() is not None
    feed(watch, 600, 1600)
    assert watch.next_timer() is None


def test_in_the_beginning_something_may_be_lost_but_is_given_more_time() -> None:
    watch = OverdueWatch()
    at = feed(watch, 0, 50)
    timer = watch.next_timer()
    assert timer is not None
    assert timer == pytest.approx(at + watch.slack + UNSURE)
    watch.lost(1.0)
    feed(watch, 50, 1)
    assert watch.next_timer() == pytest.approx(at + 0.02 + watch.slack)


def test_in_the_beginning_of_a_path_that_may_have_a_queue_nothing_is_overdue() -> None:
    watch = OverdueWatch()
    feed(watch, 0, 50)
    feed(watch, 50, 10, late=0.015)
    feed(watch, 60, 2)
    assert watch.next_timer() is None
    watch.lost(1.0)
    assert watch.next_timer() is not None


def test_nothing_follows_the_end_of_a_talkspurt_or_what_is_void() -> None:
    watch, _ = expecting()
    feed(watch, 50, 1, talkspurt_end=True)
    assert watch.next_timer() is None
    watch, _ = expecting()
    watch.stop(49 * FRAME)
    assert watch.next_timer() is not None, "what was sent since is not void"
    watch.stop(60 * FRAME)
    assert watch.next_timer() is None


def test_irregular_frames_are_given_more_time_and_in_the_end_all_of_it() -> None:
    watch, _ = expecting()
    at = feed(watch, 50, 200, late=0.008, every=5)
    timer = watch.next_timer()
    assert timer is not None
    assert timer >= at + 0.009
    feed(watch, 250, 400, late=0.03, every=3)
    assert watch.slack >= MOST_SLACK
    assert watch.next_timer() is None


def test_a_frame_that_was_asked_for_in_vain_gives_the_next_ones_its_time_at_once() -> None:
    watch, _ = expecting()
    timer = watch.next_timer()
    assert timer is not None
    watch.due(timer)
    feed(watch, 50, 1, late=0.012)
    assert watch.slack >= 0.013
    feed(watch, 51, 1500)
    watch.lost(31.0)
    assert watch.slack < 0.008, "but not for ever"


def test_a_talkspurt_in_a_new_relation_to_time_begins_anew() -> None:
    watch, _ = expecting()
    for index in range(5):
        watch.came(500 + index * FRAME, FRAME, 9.0 + index * 0.02, talkspurt_start=index == 0, talkspurt_end=False)
    timer = watch.next_timer()
    assert timer is not None
    assert timer == pytest.approx(9.1 + watch.slack)


def test_a_stall_puts_questions_by_the_clock_off_for_20_seconds() -> None:
    watch, at = expecting()
    timer = watch.next_timer()
    assert timer is not None
    watch.due(timer)
    watch.came(50 * FRAME, FRAME, at + 0.8, talkspurt_start=False, talkspurt_end=False)
    assert not watch.is_of_use
    feed(watch, 51, 900)
    assert not watch.is_of_use
    feed(watch, 951, 200)
    assert watch.is_of_use
