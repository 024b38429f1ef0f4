"""The joint choice of bitrate, frame length and bundling."""

from __future__ import annotations

import pytest

from voicestream.config import RateConfig, SessionConfig
from voicestream.core.allocator import SendPlan, allocate, wire_rate_bps


def test_without_a_bound_the_configuration_is_the_plan() -> None:
    assert allocate(SessionConfig(bitrate_bps=32000, frame_ms=40)) == SendPlan(bitrate_bps=32000, frame_ms=40)


def test_the_applications_limits_hold_for_the_bitrate() -> None:
    low = SessionConfig(bitrate_bps=64000, rate=RateConfig(max_bitrate_bps=24000))
    assert allocate(low).bitrate_bps == 24000
    high = SessionConfig(bitrate_bps=8000, rate=RateConfig(min_bitrate_bps=20000))
    assert allocate(high).bitrate_bps == 20000


def test_a_bound_that_is_wide_enough_changes_nothing() -> None:
    assert allocate(SessionConfig(), wire_bps=100_000) == allocate(SessionConfig())


@pytest.mark.parametrize("bound", range(14000, 100_000, 1000))
def test_the_plan_stays_within_the_bound(bound: int) -> None:
    plan = allocate(SessionConfig(), wire_bps=bound)
    assert wire_rate_bps(plan) <= bound


def test_less_room_means_fewer_bits_then_longer_frames_then_bundles() -> None:
    plans = [allocate(SessionConfig(), wire_bps=bound) for bound in (90_000, 50_000, 35_000, 25_000, 16_000)]
    assert [plan.bitrate_bps for plan in plans] == sorted((plan.bitrate_bps for plan in plans), reverse=True)
    assert [plan.frame_ms * plan.bundle for plan in plans] == sorted(plan.frame_ms * plan.bundle for plan in plans)
    assert plans[-1].frame_ms == 60
    assert plans[-1].bundle == 2


def test_in_the_floor_mode_the_wire_takes_thirteen_to_seventeen_kilobits() -> None:
    for bitrate in (8000, 12000):
        assert 12_000 <= wire_rate_bps(SendPlan(bitrate_bps=bitrate, frame_ms=60, bundle=2)) <= 17_000


def test_below_the_floor_the_plan_is_the_floor() -> None:
    plan = allocate(SessionConfig(), wire_bps=5000)
    assert plan == SendPlan(bitrate_bps=8000, frame_ms=60, bundle=2)


def test_frames_never_get_shorter_than_the_application_wants() -> None:
    assert allocate(SessionConfig(frame_ms=60), wire_bps=200_000).frame_ms == 60
