"""How much may be sent ahead of time."""

from __future__ import annotations

import pytest

from voicestream.core.ahead import AheadBudget


def test_at_first_a_whole_lookahead_may_be_sent() -> None:
    assert AheadBudget(0.15).allowance(10.0, None) == pytest.approx(0.15)


def test_what_was_sent_counts_until_it_is_played() -> None:
    budget = AheadBudget(0.15)
    for index in range(7):
        budget.sent(8 * (index + 1), 8, 10.0, 0.1)
    assert budget.level(10.0, 0.1) == pytest.approx(0.14)
    assert budget.allowance(10.0, 0.1) == pytest.approx(0.01)
    assert budget.allowance(10.1, 0.1) == pytest.approx(0.11)
    assert budget.allowance(11.0, 0.1) == pytest.approx(0.15)


@pytest.mark.parametrize("rtt", [None, 0.02, 0.3])
def test_over_a_long_utterance_the_far_end_holds_the_lookahead_and_no_more(rtt: float | None) -> None:  # VS-8.5-1
    budget = AheadBudget(0.15)
    way = (rtt or 0.0) / 2
    sent = 0
    arrived: list[tuple[float, int]] = []
    now = 10.0
    for _ in range(1000):
        while budget.allowance(now, rtt) >= 0.02:
            sent += 1
            budget.sent(8 * sent, 8, now, rtt)
            arrived.append((now + way, sent))
        now += 0.005
        there = max((count for at, count in arrived if at <= now), default=0)
        played = max(0.0, now - 10.0 - way)
        if now > 10.2 + way:
            assert 0.12 <= there * 0.02 - played <= 0.15 + 1e-6


def test_a_report_of_the_playhead_sets_the_estimate_right() -> None:
    budget = AheadBudget(0.15)
    for index in range(5):
        budget.sent(8 * (index + 1), 8, 10.0, 0.02)
    budget.playhead(12, 10.2, 0.02)  # the far end began late: it is in the middle of the second frame
    assert budget.level(10.2, 0.02) == pytest.approx((40 - 12) / 400 - 0.02)
    budget.playhead(40, 10.3, 0.02)
    assert budget.allowance(10.3, 0.02) == pytest.approx(0.15)


def test_silence_between_talkspurts_is_not_counted_as_held() -> None:
    budget = AheadBudget(0.15)
    budget.sent(8, 8, 10.0, None)
    budget.sent(4008, 8, 10.0, None)
    budget.playhead(0, 10.0, None)
    assert budget.level(10.0, None) == pytest.approx(0.04)


def test_after_a_clear_the_far_end_holds_nothing() -> None:
    budget = AheadBudget(0.15)
    for index in range(7):
        budget.sent(8 * (index + 1), 8, 10.0, None)
    budget.clear(10.01)
    assert budget.allowance(10.01, None) == pytest.approx(0.15)


def test_memory_is_bounded_when_nobody_reports() -> None:
    budget = AheadBudget(0.15)
    for index in range(5000):
        budget.sent(8 * (index + 1), 8, 10.0 + index * 0.02, None)
    assert len(budget._sent) == 2000
    assert budget._units == 16000


def test_a_far_end_that_stands_still_gets_nothing_more_until_it_goes_on() -> None:
    budget = AheadBudget(0.15)
    for number in range(7):
        budget.sent(8 + 8 * number, 8, 10.0, 0.0)
    budget.playhead(0, 10.0, 0.0)
    for step in range(1, 60):
        now = 10 + step * 0.05
        budget.playhead(0, now, 0.0)
        if now > 10.2:
            assert budget.allowance(now + 0.04, 0.0) < 0.02, now
    budget.playhead(8, 13.5)  # its PROGRESS
    assert budget.allowance(13.5, 0.0) == pytest.approx(0.03)
    assert budget.allowance(13.6, 0.0) == pytest.approx(0.13)


def test_news_that_was_overtaken_changes_nothing() -> None:
    budget = AheadBudget(0.15)
    for number in range(7):
        budget.sent(8 + 8 * number, 8, 10.0, 0.0)
    budget.playhead(24, 10.06, 0.0)
    level = budget.level(10.07, 0.0)
    budget.playhead(8, 10.07, 0.0)
    assert budget.level(10.07, 0.0) == level
