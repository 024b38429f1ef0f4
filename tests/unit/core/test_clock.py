"""Round-trip time, offset and its error bound from echoes; send times across wraps."""

from __future__ import annotations

import math
import random

import pytest

from voicestream.core.clock import DRIFT, MAX_HOLD, RemoteClock, SendTimes
from voicestream.wire.sequence import ticks


def echo(clock: RemoteClock, sent_at: float, there: float, hold: float, back: float, offset: float) -> float | None:
    """One exchange: `there` and `back` are one-way delays, `offset` is the far clock less ours."""
    arrival = sent_at + there + offset
    return clock.echo(sent_at, ticks(arrival), ticks(arrival + hold), sent_at + there + hold + back)


def test_nothing_is_known_before_the_first_echo() -> None:
    clock = RemoteClock()
    assert clock.rtt is clock.latest_rtt is clock.min_rtt is None
    assert clock.offset() is None
    assert math.isinf(clock.error(5.0))
    assert clock.path_delay(0, 5.0) is None


def test_the_round_trip_leaves_out_how_long_the_echo_was_held() -> None:
    clock = RemoteClock()
    assert echo(clock, 10.0, 0.030, 0.095, 0.030, 0.0) == pytest.approx(0.060, abs=0.0006)
    assert clock.rtt == pytest.approx(0.060, abs=0.0006)


@pytest.mark.parametrize("offset", [0.0, 1.25, -3.0, 8.0, -8.0])
def test_the_offset_is_right_within_its_bound_on_a_lopsided_path(offset: float) -> None:
    clock = RemoteClock()
    echo(clock, 100.0, 0.080, 0.02, 0.020, offset)
    assert abs(clock.offset() - offset) <= clock.error(100.12)
    assert clock.error(100.12) <= 0.050 + 0.001


def test_an_offset_beyond_the_span_of_ticks_is_known_modulo_it() -> None:
    clock = RemoteClock()
    echo(clock, 100.0, 0.02, 0.0, 0.02, 5000.0)
    assert (clock.offset() - 5000.0 + 8.192) % 16.384 - 8.192 == pytest.approx(0.0, abs=0.001)


def test_the_best_sample_is_kept_until_drift_has_made_it_worse() -> None:
    clock = RemoteClock()
    echo(clock, 10.0, 0.010, 0.0, 0.010, 0.5)
    good = clock.error(10.02)
    echo(clock, 11.0, 0.150, 0.0, 0.010, 0.5)  # a queue on the way there
    assert clock.error(11.2) == pytest.approx(good + DRIFT * 1.18, abs=1e-6)
    assert clock.offset() == pytest.approx(0.5, abs=0.0006)
    echo(clock, 400.0, 0.020, 0.0, 0.020, 0.6)  # the clocks have drifted
    assert clock.offset() == pytest.approx(0.6, abs=0.0006)


def test_the_one_way_delay_of_what_comes_is_right_within_the_bound() -> None:
    clock = RemoteClock()
    echo(clock, 10.0, 0.020, 0.0, 0.020, 2.0)
    assert clock.path_delay(ticks(12.0 + 2.0), 12.0 + 0.075) == pytest.approx(0.075, abs=clock.error(12.0))


@pytest.mark.parametrize(
    ("sent_at", "hold", "now"),
    [(10.0, 0.5, 10.4), (10.0, MAX_HOLD + 0.1, 20.0), (10.0, 0.0, 10.0 + MAX_HOLD + 1.0)],
    ids=["hold longer than the round trip", "hold that may have wrapped", "round trip that may have wrapped"],
)
def test_an_echo_that_cannot_be_true_is_not_used(sent_at: float, hold: float, now: float) -> None:  # VS-9.3-2
    clock = RemoteClock()
    assert clock.echo(sent_at, 0, round(hold * 4000) & 0xFFFF, now) is None
    assert clock.rtt is None
    assert clock.offset() is None


def test_the_smoothed_round_trip_follows_and_the_smallest_stays() -> None:
    clock = RemoteClock()
    echo(clock, 10.0, 0.02, 0.0, 0.02, 0.0)
    for index in range(100):
        echo(clock, 11.0 + index, 0.05, 0.0, 0.05, 0.0)
    assert clock.rtt == pytest.approx(0.1, abs=0.001)
    assert clock.min_rtt == pytest.approx(0.04, abs=0.0006)
    assert clock.latest_rtt == pytest.approx(0.1, abs=0.0006)


def test_send_times_go_on_across_wraps_and_long_silences() -> None:
    times = SendTimes()
    far = 3.0
    first = times.seconds(ticks(far), 50.0)
    rng = random.Random(4)
    passed = 0.0
    for gap in (0.02, 5.0, 16.0, 16.384, 40.0, 300.0, 0.02):
        passed += gap
        delay = rng.random() * 0.2
        assert times.seconds(ticks(far + passed), 50.0 + passed + delay) - first == pytest.approx(passed, abs=0.001)


def test_send_times_of_datagrams_that_were_overtaken_lie_before() -> None:
    times = SendTimes()
    late = times.seconds(ticks(20.0), 50.05)
    assert times.seconds(ticks(19.9), 50.06) == pytest.approx(late - 0.1, abs=0.0006)


def test_what_is_supposed_serves_until_the_first_echo() -> None:
    clock = RemoteClock()
    clock.suppose(None)
    assert clock.rtt is None
    clock.suppose(0.2)
    assert clock.rtt == 0.2
    assert clock.min_rtt is None
    assert clock.echo(1.0, ticks(1.02), ticks(1.02), 1.04) == pytest.approx(0.04)
    assert clock.rtt == pytest.approx(0.04)
    clock.suppose(0.5)
    assert clock.rtt == pytest.approx(0.04)
