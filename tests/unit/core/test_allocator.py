"""The joint choice of bitrate, frame length and bundling."""

from __future__ import annotations

import pytest

from voicestream.config import RateConfig, SessionConfig
from voicestream.core.allocator import UNCERTAIN_BPS, Allocator, SendPlan, allocate, floor_rate_bps, wire_rate_bps
from voicestream.core.bwe import LossPattern


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
def test_the_plan_stays_within_the_bound(bound: int) -> None:  # VS-9.4-1
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


def test_a_narrow_link_gets_at_most_sixteen_kilobits_before_the_floor_mode() -> None:
    plan = allocate(SessionConfig(), wire_bps=24_000, wanted_bps=64_000)
    assert (plan.frame_ms, plan.bundle) == (60, 1)
    assert plan.bitrate_bps <= 16_000
    floor = allocate(SessionConfig(), wire_bps=16_000, wanted_bps=64_000)
    assert (floor.frame_ms, floor.bundle) == (60, 2)
    assert 8_000 <= floor.bitrate_bps <= 12_000


def steady(allocator: Allocator, begin: float, seconds: float, audio_bps: float, **more: object) -> int:
    """Changes of the plan while the rate stands."""
    return sum(allocator.update(begin + step * 0.1, audio_bps, **more) for step in range(round(seconds * 10)))


def test_the_plan_begins_as_configured() -> None:
    allocator = Allocator(SessionConfig(bitrate_bps=24_000))
    assert (allocator.plan.bitrate_bps, allocator.plan.frame_ms, allocator.plan.bundle) == (24_000, 20, 1)
    assert allocator.plan.redundancy_share == 0.1
    assert not allocator.protect(0.0, 60_000, loss=LossPattern(), rtt=0.04, lookahead=0.15)
    assert not allocator.update(0.0, 50_100)


def test_less_rate_is_heeded_at_once_and_more_by_steps_worth_a_change() -> None:
    allocator = Allocator(SessionConfig())
    assert allocator.update(0.0, 60_000)
    assert wire_rate_bps(allocator.plan) <= 60_000
    assert allocator.reason == "less rate"
    assert not allocator.update(0.5, 61_000)
    assert allocator.update(1.05, 70_000)
    assert allocator.reason == "more rate"
    assert not allocator.update(1.1, 80_000)
    assert steady(allocator, 1.5, 2.0, 120_000) <= 2
    assert allocator.plan.bitrate_bps == 64_000


def test_shorter_frames_wait_until_they_will_last() -> None:
    allocator = Allocator(SessionConfig())
    allocator.update(0.0, 26_000)
    assert allocator.plan.frame_ms == 60
    steady(allocator, 0.1, 0.5, 29_400)
    assert allocator.plan.frame_ms == 60
    steady(allocator, 0.6, 0.8, 100_000)
    assert (allocator.plan.frame_ms, allocator.plan.bitrate_bps) == (60, 64_000)
    steady(allocator, 1.4, 1.0, 100_000)
    assert allocator.plan.frame_ms == 20
    steady(allocator, 2.4, 0.5, 100_000)
    assert allocator.plan.bitrate_bps == 64_000


def test_a_rate_that_wavers_does_not_make_the_plan_flap() -> None:
    allocator = Allocator(SessionConfig())
    changes = sum(allocator.update(step * 0.1, 42_000 + 1_000 * (-1) ** step) for step in range(200))
    assert changes <= 4


def test_below_the_floor_the_audio_pauses_after_a_second_and_comes_back() -> None:
    allocator = Allocator(SessionConfig())
    floor = floor_rate_bps(SessionConfig())
    assert 12_000 < floor < 13_500
    steady(allocator, 0.0, 5.0, 0.9 * floor)
    assert not allocator.plan.paused
    steady(allocator, 5.0, 0.9, 0.7 * floor)
    assert not allocator.plan.paused
    steady(allocator, 6.0, 0.5, 0.7 * floor)
    assert allocator.plan.paused
    assert allocator.reason == "below the floor"
    steady(allocator, 7.0, 1.0, 0.9 * floor)
    assert allocator.plan.paused
    allocator.update(8.0, floor)
    assert not allocator.plan.paused


def test_what_is_carried_while_less_is_sent_keeps_the_audio_from_pausing() -> None:
    allocator = Allocator(SessionConfig())
    floor = floor_rate_bps(SessionConfig())
    for step in range(40):
        allocator.update(0.1 * step, 0.2 * floor, 0.9 * floor)
        assert not allocator.plan.paused
    for step in range(40, 55):
        allocator.update(0.1 * step, 0.2 * floor, 0.5 * floor)
    assert allocator.plan.paused
    allocator.update(6.0, 0.2 * floor, 2 * floor)
    assert allocator.plan.paused, "what probes bring is no reason to go on"


def protect(allocator: Allocator, now: float, media_bps: float, loss: LossPattern, rtt: float) -> SendPlan:
    allocator.protect(now, media_bps, loss=loss, rtt=rtt, lookahead=0.15)
    return allocator.plan


def test_inband_fec_is_for_losses_that_no_other_tool_mends_in_time() -> None:
    lossy = LossPattern(0.05)
    allocator = Allocator(SessionConfig(bitrate_bps=24_000, rate=RateConfig(max_bitrate_bps=24_000)))
    assert protect(allocator, 0.0, 60_000, lossy, 0.04).inband_fec_percent == 0
    assert protect(allocator, 1.0, 45_000, lossy, 0.2).inband_fec_percent == 5
    assert "5.0% lost" in allocator.protection
    assert protect(allocator, 2.0, 45_000, LossPattern(0.03), 0.2).inband_fec_percent == 5
    assert protect(allocator, 90.0, 60_000, LossPattern(0.002), 0.2).inband_fec_percent == 0


def test_there_is_more_redundancy_where_the_path_has_room_and_retransmissions_come_too_late() -> None:
    allocator = Allocator(SessionConfig())
    near = protect(allocator, 0.0, 150_000, LossPattern(0.03), 0.04)
    assert (near.redundancy_share, near.retransmit) == (0.1, True)
    far = protect(allocator, 1.0, 150_000, LossPattern(0.05), 0.2)
    assert 0.15 <= far.redundancy_share <= 0.3
    assert far.repair_interval < near.repair_interval
    assert not far.retransmit
    assert far.inband_fec_percent == 0


def test_where_there_is_no_room_redundancy_keeps_its_ordinary_share() -> None:  # VS-9.4-3
    allocator = Allocator(SessionConfig())
    assert protect(allocator, 0.0, 45_000, LossPattern(0.05), 0.2).redundancy_share == 0.1
    assert allocator.wanted_share > 0.1


def test_the_application_bounds_the_share() -> None:
    allocator = Allocator(SessionConfig(rate=RateConfig(redundancy_cap=0.2)))
    assert protect(allocator, 0.0, 300_000, LossPattern(0.1), 0.2).redundancy_share == pytest.approx(0.2)
    modest = Allocator(SessionConfig(rate=RateConfig(redundancy_cap=0.0)))
    assert protect(modest, 0.0, 300_000, LossPattern(0.1), 0.2).redundancy_share == pytest.approx(0.1)


def test_bursts_get_low_rate_copies_that_follow_after_the_burst() -> None:
    plan = protect(Allocator(SessionConfig()), 0.0, 150_000, LossPattern(0.05, 3.0), 0.12)
    assert plan.copy_bps == 8000
    assert 4 <= plan.copy_offset_frames <= 7
    without = Allocator(SessionConfig())
    without.copies = False
    assert protect(without, 0.0, 150_000, LossPattern(0.05, 3.0), 0.12).copy_bps == 0


def test_redundancy_outlasts_a_lull() -> None:
    allocator = Allocator(SessionConfig())
    raised = protect(allocator, 0.0, 150_000, LossPattern(0.08), 0.2).redundancy_share
    assert protect(allocator, 2.0, 150_000, LossPattern(0.0), 0.2).redundancy_share == raised
    assert protect(allocator, 120.0, 150_000, LossPattern(0.0), 0.2).redundancy_share == 0.1


def test_without_redundancy_there_is_none_whatever_is_lost() -> None:
    allocator = Allocator(SessionConfig(bitrate_bps=24_000, rate=RateConfig(max_bitrate_bps=24_000, redundancy_share=0.0)))
    plan = protect(allocator, 0.0, 200_000, LossPattern(0.1, 2.0), 0.3)
    assert (plan.redundancy_share, plan.repair_interval, plan.copy_bps, plan.inband_fec_percent) == (0.0, 0, 0, 0)


def test_what_a_draining_queue_leaves_is_forgotten_when_it_is_gone() -> None:
    allocator = Allocator(SessionConfig())
    allocator.update(0.0, 100_000)
    allocator.update(1.0, 18_000, passing=True)
    allocator.update(1.2, 18_000, passing=True)
    assert (allocator.plan.frame_ms, allocator.plan.bundle) == (60, 1)
    allocator.update(1.4, 45_000)
    assert allocator.plan.frame_ms <= 40
    assert allocator.plan.bitrate_bps >= 20_000


@pytest.mark.parametrize(("before_bps", "lengths"), [(100_000, [20, 20, 60]), (50_000, [60, 60, 60])])
def test_in_a_queue_of_a_moment_good_speech_keeps_the_length_of_its_frames(before_bps: int, lengths: list[int]) -> None:
    allocator = Allocator(SessionConfig(bitrate_bps=before_bps // 2))
    allocator.update(0.0, before_bps)
    found = []
    for at in (1.0, 1.06, 1.12):
        allocator.update(at, 18_000, passing=True)
        found.append(allocator.plan.frame_ms)
    assert found == lengths
    assert allocator.plan.bitrate_bps <= 16_000


def test_for_one_late_datagram_good_speech_is_not_given_up() -> None:
    allocator = Allocator(SessionConfig(bitrate_bps=40000))
    assert allocator.update(10.0, 80e3, overdue=True, uncertain=True)
    assert allocator.plan.bitrate_bps == UNCERTAIN_BPS
    assert allocator.update(10.1, 80e3, overdue=True)
    assert not allocator.update(10.15, 80e3, overdue=True, uncertain=True)
    assert allocator.plan.bitrate_bps == 8000


def test_where_something_is_overdue_frames_get_small_and_no_longer_and_all_is_as_before_when_it_has_come() -> None:
    allocator = Allocator(SessionConfig(bitrate_bps=40000))
    before = allocator.plan
    assert allocator.update(10.0, 80e3, overdue=True)
    assert (allocator.plan.bitrate_bps, allocator.plan.frame_ms, allocator.plan.bundle) == (8000, before.frame_ms, 1)
    assert not allocator.update(10.05, 80e3, overdue=True)
    assert allocator.update(10.1, 80e3)
    assert allocator.plan.bitrate_bps >= before.bitrate_bps


def test_a_held_share_on_a_far_and_lossy_path_gives_the_codec_in_band_copies_and_the_bits_for_them() -> None:
    allocator = Allocator(SessionConfig(rate=RateConfig(redundancy_cap=0.1)))
    lossy = LossPattern(share=0.08, mean_burst=1.0)
    for tick in range(100):
        now = tick / 10
        allocator.protect(now, 110_000, loss=lossy, rtt=0.2, lookahead=0.15)
        allocator.update(now, 99_000)
    plan = allocator.plan
    assert (plan.bitrate_bps, plan.repair_interval) == (30000, 0)
    assert plan.inband_fec_percent
    assert plan.inband_part < 0.8
    for tick in range(100, 1000):
        now = tick / 10
        allocator.protect(now, 110_000, loss=LossPattern(), rtt=0.2, lookahead=0.15)
        allocator.update(now, 99_000)
    assert allocator.plan.bitrate_bps == 64000
    assert not allocator.plan.inband_fec_percent


def test_in_band_copies_leave_the_budget_to_answers_where_those_come_in_time_and_much_is_lost() -> None:
    def percent(share: float) -> int:
        allocator = Allocator(SessionConfig(rate=RateConfig(max_bitrate_bps=32000), bitrate_bps=32000))
        for tick in range(100):
            allocator.protect(tick / 10, 60_000, loss=LossPattern(share=share, mean_burst=3.0), rtt=0.08, lookahead=0.15)
            allocator.update(tick / 10, 60_000)
        return allocator.plan.inband_fec_percent

    assert percent(0.06)
    assert not percent(0.12)
