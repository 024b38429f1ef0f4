from __future__ import annotations

import pytest

from voicestream.core.bwe.delivery import DeliveryRate
from voicestream.core.bwe.samples import Sample


def test_too_few_arrivals_tell_no_rate() -> None:
    rate = DeliveryRate()
    for index in range(2):
        rate.add(Sample(index, 0.0, 0.02 * index, 100))
    assert rate.rate_bps(1.0) is None


def test_the_rate_is_that_of_the_window() -> None:
    rate = DeliveryRate()
    for index in range(100):
        rate.add(Sample(index, 0.0, 0.02 * index, 250 if index < 50 else 125))
    assert rate.rate_bps(0.5) == pytest.approx(50e3)
    assert rate.rate_bps(2.0) == pytest.approx(75e3, rel=0.02)


def test_a_burst_is_measured_over_more_than_itself() -> None:
    rate = DeliveryRate()
    for number, at in enumerate((0.0, 0.1, 0.2, 0.2, 0.2)):
        rate.add(Sample(number, 0.0, at, 125))
    assert rate.rate_bps(0.05) == pytest.approx(4 * 1000 / 0.2)


def test_arrivals_at_one_moment_tell_no_rate() -> None:
    rate = DeliveryRate()
    for _ in range(5):
        rate.add(Sample(0, 0.0, 1.0, 125))
    assert rate.rate_bps(1.0) is None


def test_time_of_which_no_report_tells_is_not_taken_for_time_without_arrivals() -> None:
    rate = DeliveryRate()
    for index in [*range(20), *range(40, 50)]:
        rate.add(Sample(index, 0.0, 0.02 * index, 125))
    assert rate.rate_bps(2.0) == pytest.approx(50e3)


def test_time_in_which_all_was_lost_counts() -> None:
    rate = DeliveryRate()
    for index in [*range(20), *range(40, 50)]:
        rate.add(Sample(index, 0.0, 0.02 * index, 125))
    rate.lost(range(20, 40))
    assert rate.rate_bps(2.0) == pytest.approx(29 * 1000 / (49 * 0.02))
