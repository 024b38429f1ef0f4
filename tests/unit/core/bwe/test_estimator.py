from __future__ import annotations

from collections.abc import Mapping

import pytest

from voicestream.core.bwe import Estimator, Sample, State
from voicestream.core.bwe.pause import LONGEST

RTT = 0.06


class Recorder:
    def __init__(self) -> None:
        self.records: list[tuple[str, Mapping[str, object]]] = []

    def record(self, now: float, name: str, data: Mapping[str, object]) -> None:
        self.records.append((name, data))


class Driver:
    """Sends 20 ms datagrams that fill the target, and reports them five at a time with a given wait."""

    def __init__(self, *, start: float = 60e3, recorder: Recorder | None = None) -> None:
        self.estimator = Estimator(start, 13e3, 110e3, recorder)
        self.now = 10.0
        self.number = 0

    def run(self, seconds: float, *, wait: float = 0.0, growth: float = 0.0, lost_of_five: int = 0, report: bool = True) -> None:
        samples: list[Sample] = []
        lost: list[int] = []
        for step in range(round(seconds * 50)):
            size = round(self.estimator.target_bps * 0.95 * 0.02 / 8)
            self.estimator.sent(self.number, self.now, size)
            if step % 5 < lost_of_five:
                lost.append(self.number)
            else:
                samples.append(Sample(self.number, self.now, self.now + 3.0 + wait, size))
            wait += growth * 0.02
            self.number += 1
            self.now += 0.02
            if report and step % 5 == 4:
                self.estimator.feedback(self.now + RTT / 2, samples, lost, RTT)
                samples, lost = [], []
            self.estimator.tick(self.now, RTT)

    @property
    def target(self) -> float:
        return self.estimator.target_bps


def test_an_idle_path_lets_the_rate_ramp_up_to_the_maximum_and_no_further() -> None:
    driver = Driver()
    driver.run(5)
    assert driver.estimator.state is State.RAMP
    assert driver.target == 110e3
    driver.estimator.limit(80e3)
    assert driver.target == 80e3
    driver.run(0.2)
    assert driver.target <= 80e3


def test_a_rate_that_is_not_used_is_not_raised() -> None:
    estimator = Estimator(60e3, 13e3, 110e3)
    for step in range(100):
        now = 10 + step * 0.1
        estimator.sent(step, now, 100)
        estimator.feedback(now + RTT, [Sample(step, now, now + 3, 100)], [], RTT)
    assert estimator.target_bps == 60e3


def test_a_growing_queue_is_drained_and_left_again() -> None:
    recorder = Recorder()
    driver = Driver(recorder=recorder)
    driver.run(1)
    before = driver.target
    driver.run(0.5, growth=0.3)
    assert driver.estimator.state is State.DRAIN
    assert driver.target < 0.9 * before
    assert driver.estimator.queue_delay > 0.03
    low = driver.target
    driver.run(0.5)
    assert driver.estimator.state is State.CRUISE
    assert low < driver.target < before
    states = [data["state"] for name, data in recorder.records if name == "bwe:state"]
    assert states == ["drain", "cruise"]


def test_a_delay_that_does_not_answer_becomes_the_base() -> None:
    driver = Driver()
    driver.run(3)
    driver.run(4, wait=0.06)
    assert driver.estimator.state is State.RAMP
    assert driver.target >= 100e3
    assert driver.estimator.queue_delay == pytest.approx(0.0, abs=0.001)


def test_silence_of_the_reports_lowers_the_rate_by_steps_and_the_first_report_restores_it() -> None:  # VS-9.5-1 VS-9.5-3
    driver = Driver()
    driver.run(3)
    driver.run(0.4, report=False)
    assert driver.target == 110e3
    driver.run(0.4, report=False)
    assert driver.estimator.state is State.STARVED
    assert driver.target == pytest.approx(66e3)
    driver.run(5, report=False)
    assert driver.target == 13e3
    driver.run(0.2)
    assert driver.target >= 0.9 * 110e3
    assert driver.estimator.state is State.RAMP


def test_no_timer_runs_while_nothing_is_unreported() -> None:
    estimator = Estimator(60e3, 13e3, 110e3)
    assert estimator.next_timer(RTT) is None
    estimator.tick(100.0, RTT)
    estimator.sent(0, 10.0, 100)
    assert estimator.next_timer(RTT) == pytest.approx(10.0 + RTT + 0.5)
    estimator.feedback(10.1, [Sample(0, 10.0, 13.0, 100)], [], RTT)
    assert estimator.next_timer(RTT) is None


def test_losses_that_stay_when_the_rate_falls_do_not_keep_it_down() -> None:
    driver = Driver()
    driver.run(3)
    driver.run(2, lost_of_five=1)
    assert driver.estimator.state is State.TEST
    assert driver.target < 0.85 * 110e3
    driver.run(2, lost_of_five=1)
    assert driver.estimator.state is State.RAMP
    assert driver.target == pytest.approx(110e3)
    assert 0.1 < driver.estimator.loss.share < 0.3


def test_losses_that_fall_with_the_rate_are_a_bound() -> None:
    driver = Driver()
    driver.run(3)
    while driver.estimator.state is not State.TEST:
        driver.run(0.1, lost_of_five=1)
    while driver.estimator.state is State.TEST:
        driver.run(0.1)
    assert driver.estimator.state is State.CRUISE
    assert driver.target < 0.9 * 110e3


def test_pairs_are_wanted_often_at_first_and_seldom_later() -> None:
    driver = Driver()
    estimator = driver.estimator
    assert estimator.wants_pair(driver.now)
    driver.run(0.02)
    estimator.paired(driver.now)
    assert not estimator.wants_pair(driver.now + 0.05)
    assert estimator.wants_pair(driver.now + 0.11)
    driver.run(5)
    estimator.paired(driver.now)
    assert not estimator.wants_pair(driver.now + 0.4)
    assert estimator.wants_pair(driver.now + 0.6)


def test_another_path_is_measured_anew() -> None:
    driver = Driver()
    driver.run(1)
    driver.run(0.5, growth=0.3)
    driver.estimator.path_changed(driver.now)
    assert driver.estimator.state is State.RAMP
    assert driver.estimator.queue_delay == 0.0


def test_a_start_beyond_the_bounds_is_brought_within() -> None:
    assert Estimator(500e3, 13e3, 110e3).target_bps == 110e3
    assert Estimator(1e3, 13e3, 110e3).target_bps == 13e3


def test_a_far_end_that_wants_nothing_leaves_the_minimum() -> None:
    driver = Driver()
    driver.estimator.limit(0)
    driver.run(1)
    assert driver.target == 13e3


def test_a_queue_that_begins_to_grow_is_answered_before_it_stands_and_undone_where_it_was_a_stall() -> None:
    recorder = Recorder()
    driver = Driver(recorder=recorder)
    driver.run(4)
    before = driver.target
    estimator, samples = driver.estimator, []
    for wait in (0.0, 0.03, 0.06):  # held up for a moment
        samples.append(Sample(driver.number, driver.now, driver.now + 3.0 + wait, 250))
        estimator.sent(driver.number, driver.now, 250)
        driver.number, driver.now = driver.number + 1, driver.now + 0.02
    follow = [Sample(driver.number + turn, driver.now + 0.02 * turn, driver.now + 0.02 * turn + 3.0, 250) for turn in range(9)]
    for sample in follow:
        estimator.sent(sample.number, sample.sent_at, 250)
    driver.now = follow[-1].sent_at + 0.01
    estimator.feedback(driver.now, samples, [], RTT)
    assert estimator.state is State.DRAIN
    assert driver.target < 0.8 * before
    estimator.feedback(driver.now + 0.05, follow, [], RTT)
    assert estimator.state is State.RAMP
    assert driver.target == before
    assert recorder.records[-1][1]["reason"] == "the queue went away by itself"


def test_behind_a_long_queue_nothing_leaves_for_a_while() -> None:
    driver = Driver()
    driver.run(3)
    estimator, begin = driver.estimator, driver.now
    samples = []
    for turn in range(40):  # 20 kbps on which 100 are sent: the first ten have come, each 80 ms after the one before
        at = begin + 0.02 * turn
        estimator.sent(driver.number, at, 250)
        if turn < 10:
            samples.append(Sample(driver.number, at, begin + 3.0 + 0.1 * turn, 250))
        driver.number += 1
    assert estimator.hold_until < begin
    estimator.feedback(begin + 0.95, samples, [], RTT)
    assert begin + 1.3 < estimator.hold_until <= begin + 0.95 + LONGEST
    estimator.path_changed(begin + 1.0)
    assert estimator.hold_until < begin  # the queue is on the path that was left


def test_behind_what_a_silence_held_up_speech_does_not_pause() -> None:
    driver = Driver()
    driver.run(3)
    estimator, begin = driver.estimator, driver.now
    samples = []
    for turn in range(50):  # nothing arrives for a second and a half, and then one comes after the other
        at = begin + 0.02 * turn
        estimator.sent(driver.number, at, 250)
        samples.append(Sample(driver.number, at, begin + 3.0 + 1.5 + 0.02 * turn, 250))
        driver.number += 1
        estimator.tick(at, RTT)
    estimator.tick(begin + 1.1, RTT)
    assert estimator.state is State.STARVED
    for turn in range(10):
        estimator.feedback(begin + 1.6 + 0.1 * turn, samples[5 * turn : 5 * turn + 5], [], RTT)
    assert estimator.state is State.DRAIN
    assert estimator.hold_until < begin


def silent(driver: Driver, *, until: float) -> None:
    """Send on while nothing arrives, and hear of that."""
    estimator, begin = driver.estimator, driver.now
    while driver.now < begin + until:
        estimator.sent(driver.number, driver.now, 250)
        driver.number, driver.now = driver.number + 1, driver.now + 0.02
    estimator.feedback(driver.now + RTT / 2, [], [], RTT, driver.now + 3.0)


def test_what_should_have_come_and_has_not_is_heeded_before_it_comes() -> None:
    driver = Driver()
    driver.run(3)
    target = driver.target
    driver.estimator.feedback(driver.now + RTT / 2, [], [], RTT, driver.now + 3.0)
    assert not driver.estimator.is_overdue
    silent(driver, until=0.1)
    assert driver.estimator.is_overdue
    assert driver.estimator.draining
    assert driver.target == target
    driver.run(0.1)
    assert not driver.estimator.is_overdue
    assert driver.estimator.state is State.RAMP


@pytest.mark.parametrize("lost", [0, 8])
def test_where_a_burst_was_lost_lately_what_has_not_come_is_no_reason(lost: int) -> None:
    driver = Driver()
    driver.run(3)
    first = driver.number
    for number in range(first, first + lost):
        driver.estimator.sent(number, driver.now, 250)
        driver.number, driver.now = driver.number + 1, driver.now + 0.02
    driver.estimator.feedback(driver.now, [], list(range(first, first + lost)), RTT)
    driver.run(4)
    silent(driver, until=0.1)
    assert driver.estimator.is_overdue is (not lost)


def test_a_queue_the_other_way_is_a_reason_to_send_little_until_there_is_news() -> None:
    driver = Driver()
    driver.run(3)
    target, estimator = driver.target, driver.estimator
    assert not estimator.suspect(driver.now)  # there is news of ours
    assert estimator.suspect(driver.now + 0.3)
    assert estimator.is_overdue
    assert not estimator.suspect(driver.now + 0.31)
    driver.now += 0.31
    estimator.feedback(driver.now, [], [], RTT)
    assert estimator.is_overdue
    driver.run(0.3)
    assert not estimator.is_overdue
    assert driver.target >= target
    assert estimator.state is State.RAMP


@pytest.mark.parametrize("late", [0.015, 0.04])
def test_one_datagram_that_comes_late_where_none_does_is_a_reason_for_care(late: float) -> None:
    driver = Driver()
    driver.run(3)
    estimator, left_at = driver.estimator, driver.now
    estimator.sent(driver.number, left_at, 250)
    path = estimator.path.delay
    sample = Sample(driver.number, left_at, left_at + path.base + late, 250)
    driver.number += 1
    estimator.feedback(driver.now + RTT, [sample], [], RTT)
    assert estimator.is_uncertain is estimator.is_overdue is (late > 0.03)
    driver.now += 0.02
    driver.run(0.3)
    assert not estimator.is_overdue
    assert not estimator.is_uncertain


def blocked(estimator: Estimator) -> float:
    """Half a second of speech, and then three without news, after which next to nothing may be sent; returns the time."""
    driver = Driver()
    driver.estimator = estimator
    driver.run(0.5)
    driver.run(3.0, report=False)
    assert estimator.target_bps == 7.5e3
    return driver.now


@pytest.mark.parametrize(
    ("link_bps", "lumps", "least", "most"), [(150e3, 0.0, 40e3, 66e3), (12e3, 0.0, 7e3, 12e3), (150e3, 1.0, 15e3, 24e3)]
)
def test_a_path_that_was_blocked_gets_speech_again_as_soon_as_it_shows_that_it_is_free(
    link_bps: float, lumps: float, least: float, most: float
) -> None:
    estimator = Estimator(60e3, 7.5e3, 110e3)
    now = blocked(estimator)
    estimator._resume_bps = 7.5e3  # what there was before the silence was little already
    estimator.path.pairs.lumps = lumps  # where a link serves in lumps, pairs tell nothing
    for turn in range(3):
        at, number = now + 0.4 * turn, 1000 + 2 * turn
        apart = 126 * 8 / link_bps
        for second in range(2):
            estimator.sent(number + second, at, 126)
        samples = [Sample(number + second, at, at + 3.0 + apart * second, 126) for second in range(2)]
        estimator.feedback(at + RTT / 2, samples, [], RTT)
    assert least <= estimator.target_bps <= most
