from __future__ import annotations

import pytest

from voicestream.testing.bench.limit import STREAMS, Stream, least_unheard, limits
from voicestream.testing.profile import LinkProfile


def test_a_link_that_is_fast_enough_loses_nothing_and_one_with_half_the_rate_half() -> None:
    stream = Stream(wire_bps=24e3, packet_ms=60)
    assert least_unheard(LinkProfile(delay_ms=40, rate_kbps=30), stream, 250, begin=0, end=30) == 0
    assert least_unheard(LinkProfile(delay_ms=40, rate_kbps=12), stream, 350, begin=0, end=30) == pytest.approx(0.5, abs=0.02)
    assert least_unheard(LinkProfile(delay_ms=300), stream, 350, begin=0, end=30) == 1


def test_an_outage_costs_its_length_less_what_may_still_come_late() -> None:
    link = LinkProfile(delay_ms=40, rate_kbps=((0, 100), (10, 0), (12, 100)))
    found = limits(link, begin=0, end=20)
    assert found["limit_150"] == pytest.approx((2 - 0.09) / 20, abs=0.006)
    assert found["limit_350"] == pytest.approx((2 - 0.29) / 20, abs=0.006)


def test_what_a_recorded_delay_holds_up_comes_too_late() -> None:
    link = LinkProfile(delay_ms=40, delay_trace_ms=tuple([0.0] * 50 + [500.0] * 50), delay_trace_step_ms=20)
    assert least_unheard(link, STREAMS[2], 350, begin=0, end=20) > 0.4
