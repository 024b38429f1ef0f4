"""A bound on how often the peer may do something."""

from __future__ import annotations

from voicestream.core.rate_limit import WINDOW, RateLimit


def test_a_burst_of_ten_seconds_worth_is_allowed_and_one_more_is_not() -> None:
    limit = RateLimit(20)
    assert all(limit.allow(5.0) for _ in range(round(20 * WINDOW)))
    assert not limit.allow(5.0)


def test_in_the_long_run_the_mean_rate_is_allowed() -> None:
    limit = RateLimit(20)
    while limit.allow(5.0):
        pass
    assert sum(limit.allow(5.0 + step * 0.01) for step in range(1, 10001)) == 2000


def test_rest_does_not_add_up_beyond_the_burst() -> None:
    limit = RateLimit(1)
    limit.allow(0.0)
    assert sum(limit.allow(1e6) for _ in range(100)) == 10


def test_something_may_count_for_several_and_is_not_counted_when_it_is_too_much() -> None:
    limit = RateLimit(10, window=2)
    assert limit.allow(0.0, 15)
    assert not limit.allow(0.0, 6)
    assert limit.allow(0.0, 5)
    assert not limit.allow(0.0)
    assert limit.allow(1.0, 10)


def test_what_has_been_done_already_is_made_up_for() -> None:
    limit = RateLimit(10, window=1)
    assert limit.allow(0.0)
    limit.spend(39)
    assert not limit.allow(2.9)
    assert not limit.allow(3.05)
    assert limit.allow(3.2)
