from __future__ import annotations

import pytest

from voicestream.core.bwe.loss import LossLog
from voicestream.core.bwe.losstest import LossTest


def tell(log: LossLog, begin: float, seconds: float, lost_of_ten: int) -> None:
    for step in range(int(seconds * 5)):
        number = round(begin * 1000) + step * 10
        log.told(begin + step / 5, 10 - lost_of_ten, tuple(range(number, number + lost_of_ten)))


def test_few_losses_start_no_test() -> None:
    log, test = LossLog(), LossTest()
    log.told(0.0, 30, (1, 2, 3))
    assert not test.suspects(log, 0.1)
    log.told(0.1, 100, (7,))
    assert not test.suspects(log, 0.2)


def test_losses_that_fall_with_the_rate_answer() -> None:
    log, test = LossLog(), LossTest()
    tell(log, 0.0, 2.0, 4)
    assert test.suspects(log, 2.0)
    assert test.start(2.0, 80e3) == pytest.approx(0.95 * 0.6 * 80e3), "low enough for nothing to be dropped"
    assert not test.suspects(log, 2.1)
    tell(log, 2.0, 2.4, 0)
    assert test.verdict(log, 3.0, 0.1) is None
    assert test.verdict(log, 4.4, 0.1) is True
    assert test.background == 0.0


def test_losses_that_stay_are_background_and_start_no_other_test() -> None:
    log, test = LossLog(), LossTest()
    tell(log, 0.0, 2.0, 2)
    assert test.suspects(log, 2.0)
    test.start(2.0, 80e3)
    tell(log, 2.0, 2.4, 2)
    assert test.verdict(log, 4.4, 0.1) is False
    assert 0.15 < test.background < 0.25
    tell(log, 4.4, 6.0, 2)
    assert not test.suspects(log, 10.3)
    tell(log, 10.4, 2.0, 8)
    assert test.suspects(log, 12.3)


def test_heavy_losses_lower_the_rate_by_as_much() -> None:
    log, test = LossLog(), LossTest()
    tell(log, 0.0, 2.0, 6)
    assert test.suspects(log, 1.9)
    assert 30e3 < test.start(1.9, 80e3) < 35e3


def test_a_test_may_be_given_up_and_the_next_one_waits() -> None:
    log, test = LossLog(), LossTest()
    tell(log, 0.0, 2.0, 3)
    test.suspects(log, 1.9)
    test.start(1.9, 80e3)
    test.abandon(2.0)
    assert not test.running
    assert not test.suspects(log, 2.1)


def test_few_losses_must_answer_twice_for_they_may_have_ended_by_chance() -> None:
    test = LossTest()
    answers = []
    for now in (2.0, 10.0):
        log = LossLog()
        tell(log, now - 2.0, 2.0, 2)  # two at once
        assert test.suspects(log, now - 0.15)
        test.start(now, 80e3)
        tell(log, now, 5.6, 0)
        answers.append((test.verdict(log, now + 5.6, 0.1), test.unsure))
    assert answers == [(False, True), (True, False)]
    assert test.background == 0.0


def test_a_few_bursts_on_a_radio_link_start_no_test() -> None:
    log, test = LossLog(), LossTest()
    for step in range(15):
        lost = (10 * step, 10 * step + 1, 10 * step + 2) if step % 5 == 0 else ()
        log.told(step / 10, 10 - len(lost), lost)
        assert not test.suspects(log, step / 10)


def test_four_bursts_on_a_radio_link_after_which_none_comes_for_as_long_are_no_answer_yet() -> None:
    log, test = LossLog(), LossTest()
    for step in range(8):
        lost = tuple(range(10 * step, 10 * step + 7)) if step % 2 else ()
        log.told(step / 5, 10 - len(lost), lost)
    assert test.suspects(log, 1.5)
    test.start(1.5, 80e3)
    answer, now = None, 1.5
    while answer is None:
        now += 0.2
        log.told(now, 10, ())
        answer = test.verdict(log, now, 0.1)
    assert answer is False
    assert test.unsure


def test_where_a_burst_is_rare_the_test_lasts_until_the_next_ones_were_to_be_expected() -> None:
    log, test = LossLog(), LossTest()
    for step in range(8):
        lost = tuple(range(10 * step, 10 * step + 10)) if step in (1, 2, 6) else ()
        log.told(step / 5, 10 - len(lost), lost)
    assert test.suspects(log, 1.5)
    test.start(1.5, 80e3)
    for step in range(1, 15):
        log.told(1.5 + step / 5, 10, ())
        assert test.verdict(log, 1.5 + step / 5, 0.1) is None, "two bursts in a second and a half: in less than 2.2 s one may fail to come"
