"""Drawn links differ by the seed and are what their names say."""

from __future__ import annotations

import random
import statistics

import pytest

from voicestream.testing.bench.link_of import capacity_bps
from voicestream.testing.synthetic import DELAYS, DRIVES, synthetic


@pytest.mark.parametrize("name", DRIVES)
def test_a_drive_carries_about_its_middle_and_has_gaps(name: str) -> None:
    rates = []
    for seed in range(20):
        link = synthetic(name, 60, random.Random(seed))
        assert list(link.rate_trace_ms) == sorted(link.rate_trace_ms)
        assert link.rate_steps or link.rate_trace_ms[-1] < 60000
        rates.append(capacity_bps(link, 0, 60) / 1e3)
    assert DRIVES[name].middle_kbps / 2 < statistics.median(rates) < DRIVES[name].middle_kbps * 4
    assert len(set(rates)) > 10


def test_the_same_seed_draws_the_same_link() -> None:
    for name in (*DRIVES, *DELAYS):
        assert synthetic(name, 30, random.Random(3)) == synthetic(name, 30, random.Random(3))
        assert synthetic(name, 30, random.Random(3)) != synthetic(name, 30, random.Random(4))


def test_a_swell_grows_to_hundreds_of_milliseconds_and_is_gone_again() -> None:
    delays = synthetic("swell", 60, random.Random(1)).delay_trace_ms
    assert max(delays) > 300
    assert sum(delay < 30 for delay in delays) > len(delays) / 5


def test_other_names_are_refused() -> None:
    with pytest.raises(KeyError):
        synthetic("nowhere", 10, random.Random(1))
