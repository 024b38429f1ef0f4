"""The rate of a link on which ours waits."""

from __future__ import annotations

import pytest

from voicestream.core.bwe.busy import BusyRate
from voicestream.core.bwe.samples import Sample


def feed(busy: BusyRate, gaps: list[float], *, interval: float = 0.02, size: int = 250, start: int = 0) -> None:
    """Datagrams sent every `interval` that arrive so far apart; the delay of the first is that of the empty path."""
    arrived = start * interval
    for number, gap in enumerate(gaps, start):
        arrived += gap
        sample = Sample(number, number * interval, arrived, size)
        busy.add(sample, sample.delay)


def test_the_rate_is_that_at_which_what_waits_arrives() -> None:
    busy = BusyRate()
    feed(busy, [0.02] * 10 + [0.04] * 5)
    assert busy.rate_bps(0.15) == pytest.approx(50_000, rel=0.01)


def test_an_empty_link_tells_no_rate() -> None:
    busy = BusyRate()
    feed(busy, [0.0] + [0.02] * 30)
    assert busy.rate_bps(0.3) is None


def test_what_is_no_longer_on_its_way_than_its_own_length_has_not_waited() -> None:
    busy = BusyRate()
    for number in range(10):  # 60 ms of its own on the link, one every 120 ms
        sample = Sample(number, 0.12 * number, 0.12 * number + 0.06, 150)
        busy.add(sample, 0.06)
    assert busy.rate_bps(0.5) is None


def test_a_number_that_is_missing_opens_no_gap() -> None:
    busy = BusyRate()
    feed(busy, [0.02, 0.04, 0.04, 0.04])
    feed(busy, [0.3, 0.04, 0.04], start=8)
    assert busy.rate_bps(1.0) == pytest.approx(50_000, rel=0.01)


def test_delays_that_grow_are_counted_until_one_falls() -> None:
    busy = BusyRate()
    feed(busy, [0.02, 0.04, 0.04, 0.04])
    assert (busy.rises, busy.risen) == (3, pytest.approx(0.06))
    busy.add(Sample(4, 0.08, 0.11, 250), 0.03)
    assert (busy.rises, busy.risen) == (0, 0.0)


def test_the_second_of_a_pair_does_not_count_as_growth() -> None:
    busy = BusyRate()
    feed(busy, [0.02, 0.02])
    busy.add(Sample(2, 0.02, 0.06, 250), None)
    assert busy.rises == 0
