"""Numbers that wrap."""

from __future__ import annotations

import pytest

from voicestream.wire.sequence import tick_delta, ticks, unwrap


@pytest.mark.parametrize(
    ("value", "reference", "full"),
    [
        (0, 0, 0),
        (5, 0, 5),
        (0xFFFF, 0x10000, 0xFFFF),
        (0x0000, 0xFFFF, 0x10000),
        (0x8000, 0x0000, 0x8000),
        (0x8000, 0x10000, 0x18000),  # VS-6.2-1: equally near, so the higher
        (0x8001, 0x10000, 0x8001),
        (0xFFFF, 0x0010, 0xFFFF),  # VS-6.2-1: -1 would be nearer, but is no pts
        (0xFFFF, 0x7FFF, 0xFFFF),
        (0x1234, 0x5678_0000, 0x5678_1234),
        (0x1234, 0x5678_9233, 0x5678_1234),
        (0x1234, 0x5678_9235, 0x5679_1234),
    ],
)
def test_the_nearest_number_is_found(value: int, reference: int, full: int) -> None:
    assert unwrap(value, reference) == full


@pytest.mark.parametrize(
    ("now", "tick"), [(0.0, 0), (0.00025, 1), (0.000499, 1), (1.0, 4000), (16.384, 0), (16.3845, 2), (-0.00025, 65535)]
)
def test_a_tick_is_250_microseconds_and_wraps_after_16384_milliseconds(now: float, tick: int) -> None:
    assert ticks(now) == tick


@pytest.mark.parametrize(
    ("later", "earlier", "delta"),
    [(5, 3, 2), (3, 5, -2), (1, 0xFFFF, 2), (0xFFFF, 1, -2), (0x8000, 0, -0x8000), (0x7FFF, 0, 0x7FFF)],
)
def test_the_difference_of_ticks_is_the_shorter_way_round(later: int, earlier: int, delta: int) -> None:
    assert tick_delta(later, earlier) == delta
