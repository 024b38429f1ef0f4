from __future__ import annotations

import pytest

from voicestream.core.recovery.waiting import LossWatch, waiting_for


def wait(loss: float = 0.01, burst: float = 1.0, rtt: float = 0.04, frame: float = 0.02, lookahead: float = 0.15):
    return waiting_for(loss=loss, burst=burst, rtt=rtt, frame=frame, lookahead=lookahead)


def test_an_answer_takes_a_frame_to_be_missed_and_a_round_trip() -> None:
    waiting = wait(loss=0.0)
    assert waiting.answered
    assert 0.06 <= waiting.seconds <= 0.07


def test_the_more_is_lost_the_longer_a_second_chance_is_worth_it() -> None:
    assert wait(loss=0.0).seconds < wait(loss=0.03).seconds < wait(loss=0.08).seconds == pytest.approx(0.092)
    assert wait(loss=0.2).seconds == wait(loss=0.09).seconds


def test_the_first_of_a_burst_is_missed_at_its_end() -> None:
    assert wait(burst=1.8, rtt=0.02).seconds == pytest.approx(wait(rtt=0.02).seconds + 0.02 * (0.8 + (1.8 * 0.8) ** 0.5))
    assert wait(burst=1.2).seconds == pytest.approx(wait().seconds + 0.004), "two together by chance"


@pytest.mark.parametrize("rtt", [0.04, 0.1, 0.118, 0.2, 0.5])
@pytest.mark.parametrize("lookahead", [0.02, 0.15, 0.3])
def test_nothing_is_worth_more_than_the_lookahead(rtt: float, lookahead: float) -> None:
    waiting = wait(loss=1.0, burst=9, rtt=rtt, lookahead=lookahead)
    assert 0 <= waiting.seconds <= lookahead


def test_where_no_answer_comes_in_time_repairs_are_waited_for_the_longer_the_more_of_them_it_takes() -> None:
    few, many = wait(rtt=0.2), wait(rtt=0.2, loss=0.05)
    assert not few.answered
    assert not many.answered
    assert 0.06 < few.seconds < many.seconds < 0.14


def test_repairs_that_come_seldom_are_waited_for_longer() -> None:
    often, seldom = (waiting_for(loss=0.02, burst=1, rtt=0.2, frame=0.02, lookahead=0.15, repairs=each) for each in (1.0, 0.3))
    assert often.seconds + 0.03 < seldom.seconds


def test_where_no_answer_comes_in_time_little_more_is_waited_for_than_in_the_beginning() -> None:
    far = {"rtt": 0.2, "lookahead": 0.15}
    most = waiting_for(loss=0.1, burst=1, frame=0.02, repairs=0.1, **far)
    assert most.seconds == pytest.approx(0.088)
    assert wait(rtt=0.2, loss=0.03).seconds <= most.seconds, "the beginning"
    assert waiting_for(loss=0.1, burst=2, frame=0.02, repairs=0.1, **far).seconds == pytest.approx(0.108), "behind a burst"
    assert waiting_for(loss=0.1, burst=1, frame=0.06, repairs=0.1, **far).seconds == pytest.approx(0.14), "long frames need more"


def test_the_watch_knows_share_and_burst() -> None:
    watch = LossWatch()
    for _ in range(400):
        for _ in range(38):
            watch.arrived()
        watch.lost(2)
    assert watch.share == pytest.approx(0.05, abs=0.01)
    assert watch.burst == pytest.approx(2.0, abs=0.01)
    for _ in range(1000):
        watch.arrived()
    assert watch.share < 0.001


def test_the_first_losses_tell_more_than_later_ones_but_not_all() -> None:
    watch = LossWatch()
    for _ in range(19):
        watch.arrived()
    watch.lost(1)
    assert 0.01 < watch.share < 0.03, "one of twenty, but one alone"
    watch.lost(3)
    assert 1.2 < watch.burst < 2.0


def test_the_watch_knows_how_often_repairs_come() -> None:
    watch = LossWatch()
    for number in range(600):
        watch.arrived()
        if number % 4 == 0:
            watch.repaired()
    assert watch.repairs == pytest.approx(0.25, abs=0.02)


def test_frames_that_were_merely_overtaken_are_no_loss() -> None:
    watch = LossWatch()
    watch.lost(1)
    assert watch.is_real, "the first is taken for what it looks like"
    for _ in range(20):
        watch.arrived()
        watch.overtaken()
        watch.lost(1)
    assert not watch.is_real
    for _ in range(40):
        watch.lost(1)
    assert watch.is_real


def test_a_hole_shorter_than_a_frame_is_no_burst() -> None:
    watch = LossWatch()
    watch.lost(3)
    before = watch.burst
    for _ in range(12):
        watch.lost(0)
    assert watch.burst == before


def test_what_is_known_by_the_clock_is_waited_for_less() -> None:
    usual = {"rtt": 0.04, "frame": 0.02, "lookahead": 0.15}
    alone = waiting_for(loss=0.01, burst=1.0, overdue=0.005, **usual)
    assert alone.seconds == pytest.approx(0.005 + 0.04 + 0.008)
    burst = waiting_for(loss=0.01, burst=1.7, overdue=0.005, **usual)
    assert burst.seconds == pytest.approx(alone.seconds + 0.04), "the answer may be lost in it, its echo comes a frame later"
    assert burst.seconds < waiting_for(loss=0.01, burst=1.7, **usual).seconds
    longer = waiting_for(loss=0.01, burst=3.0, overdue=0.005, **usual)
    assert longer.seconds == pytest.approx((3 + 6**0.5) * 0.02 + 0.02), "nothing comes before its end"


def test_what_takes_longer_than_the_clock_is_waited_for_where_that_is_not_seldom() -> None:
    usual = {"burst": 1.0, "rtt": 0.04, "lookahead": 0.15}
    often = waiting_for(loss=0.03, frame=0.02, overdue=0.005, **usual)
    assert often == waiting_for(loss=0.03, frame=0.02, **usual), "as if it had been missed by the next frame"
    assert waiting_for(loss=0.03, frame=0.06, overdue=0.005, **usual).seconds == pytest.approx(0.053), "too long for so few"
