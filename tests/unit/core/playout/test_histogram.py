"""The delay that serves the delays seen best."""

from __future__ import annotations

import pytest

from voicestream.core.playout.histogram import DelayHistogram


def filled(*groups: tuple[float, int], ceiling: int = 60) -> DelayHistogram:
    histogram = DelayHistogram(ceiling)
    for delay, count in groups:
        for _ in range(count):
            histogram.add(delay, 8)
    return histogram


def test_nothing_seen_needs_no_delay() -> None:
    assert DelayHistogram(60).best_delay() == 0


def test_a_bucket_holds_delays_up_to_its_number() -> None:
    histogram = DelayHistogram(60)
    assert [histogram.bucket(delay) for delay in (-3.0, 0.0, 0.2, 1.0, 1.1, 60.0, 60.1, 1e9)] == [0, 0, 1, 1, 2, 60, 61, 61]


def test_a_share_of_late_frames_is_waited_for_when_it_is_worth_the_delay() -> None:
    # 2 % at 20 units cost 80 units of delay if they are given up and 20 if they are waited for.
    assert filled((0, 980), (20, 20)).best_delay() == 20


def test_a_rare_late_frame_is_not_waited_for() -> None:
    assert filled((0, 999), (20, 1)).best_delay() == 0


def test_what_no_allowed_delay_can_serve_does_not_count() -> None:
    assert filled((0, 500), (61, 500)).best_delay() == 0


def test_the_ceiling_itself_can_be_the_answer() -> None:
    assert filled((0, 500), (60, 500)).best_delay() == 60


def test_old_delays_fade_out() -> None:
    histogram = filled((20, 100))
    assert histogram.best_delay() == 20
    for _ in range(20000):
        histogram.add(0, 8)
    assert histogram.best_delay() == 0


def test_weights_stay_finite_for_days() -> None:
    histogram = DelayHistogram(4)
    for _ in range(200_000):
        histogram.add(1, 48)
    assert histogram.best_delay() == 1


def test_recent_frames_count_as_often_as_asked() -> None:
    histogram = filled((0, 1000))
    recent = [(20, 8.0)] * 3
    assert histogram.best_delay(recent) == 0
    assert histogram.best_delay(recent, 4.0) == 20


def test_a_lower_delay_must_be_worth_the_change() -> None:
    def with_late(every: int) -> DelayHistogram:
        histogram = DelayHistogram(60)
        for index in range(2000):
            histogram.add(20 if index % every == 0 else 0, 8)
        return histogram

    # To give up 0.5 % saves a delay of 20 units and costs nearly as much; to give up 0.2 % costs 8.
    assert with_late(200).best_delay(present=0) == 0
    assert with_late(200).best_delay(present=20) == 20
    assert with_late(500).best_delay(present=20) == 0


def test_the_costs_tell_what_each_delay_saves_and_little_is_not_made_much_of() -> None:
    histogram = DelayHistogram(60)
    for _ in range(40):
        histogram.add(0.0, 8)
    histogram.add(10.0, 8)
    assert histogram.best_delay() == 10
    # One late frame in a third of a second's speech may be one in 4 s as well: it is worth 20 units, rather than a hundred.
    assert histogram.cost(9) == pytest.approx(9 + 4000 * 8 / 1600, rel=0.05)
    assert histogram.cost(10) == 10
