"""The plan, the estimate behind it, and when a change is told."""

from __future__ import annotations

import dataclasses

import pytest

from voicestream.config import RateConfig, SessionConfig
from voicestream.core.bwe.state import State
from voicestream.core.recovery.budget import Tool
from voicestream.events import PlanChanged, QualityChanged
from voicestream.media import MediaFrame
from voicestream.session.sender import Bundle
from voicestream.wire.frame_values import AudioFrame, ProbeFrame, RepairFrame, RetransmissionFrame


def test_a_plan_as_configured_is_no_change(pair) -> None:
    assert pair.of("client", PlanChanged) == []
    (first,) = pair.logs["client"].named("allocator:plan")
    assert first["reason"] == "configuration"
    assert first["changed"] == {}


def test_a_far_end_that_wants_less_changes_the_plan_once(pair) -> None:
    pair.server.update_settings(pair.now, max_rate_bps=30_000)
    pair.server.update_settings(pair.now, max_rate_bps=30_000)
    pair.run(0.1)
    (change,) = pair.of("client", PlanChanged)
    assert change.bitrate_bps == pair.client.plan.bitrate_bps < 30_000
    assert (change.frame_ms, change.bundle) == (pair.client.plan.frame_ms, pair.client.plan.bundle)
    _, record, *_ = pair.logs["client"].named("allocator:plan")
    assert record["reason"] == "too little for these frames"
    assert record["changed"]["bitrate_bps"] == [40_000, change.bitrate_bps]
    assert {"target_bps", "rtt_ms", "loss", "frame_ms", "bundle"} <= record.keys()
    assert pair.client.target_bps == 30_000


def test_a_change_back_is_followed_once_the_path_has_shown_that_it_carries_more(kit) -> None:
    pair = kit.Pair(SessionConfig(grease=False, bitrate_bps=24_000, rate=RateConfig(max_bitrate_bps=24_000))).open()
    pair.server.update_settings(pair.now, max_rate_bps=16_000)
    pair.run(0.1)
    assert pair.client.plan.bitrate_bps < 12_000
    pair.server.update_settings(pair.now, max_rate_bps=1_000_000)
    pair.talk(6.0, size=60)
    assert pair.client.plan.bitrate_bps == 24_000
    assert pair.client.plan.frame_ms == 20


def test_an_open_path_takes_the_plan_to_the_applications_most(pair) -> None:
    pair.talk(5.0, "client", size=160)
    assert pair.client.plan.bitrate_bps == 64_000
    assert pair.of("client", PlanChanged)[-1].bitrate_bps == 64_000
    assert pair.server.plan.bitrate_bps == 40_000, "the directions are independent"
    assert pair.logs["client"].named("bwe:estimate")[-1]["queue_ms"] < 5


def test_the_applications_cap_holds(kit) -> None:
    pair = kit.Pair(SessionConfig(grease=False, rate=RateConfig(max_bitrate_bps=32_000))).open()
    pair.talk(5.0, size=80)
    assert pair.client.plan.bitrate_bps == 32_000


def test_a_pair_carries_a_repair_of_the_newest_frames_and_is_paid_from_the_budget(kit) -> None:
    pair = kit.Pair(pairs=True).open()
    before = len(pair.sent["client"])
    pair.talk(2.0)
    pairs = [
        (one, other)
        for one, other in zip(pair.sent["client"][before:], pair.sent["client"][before + 1 :], strict=False)
        if any(isinstance(frame, AudioFrame) for frame in one.frames)
        and not any(isinstance(frame, AudioFrame) for frame in other.frames)
        and one.send_tick == other.send_tick
    ]
    assert len(pairs) >= 6
    for one, other in pairs:
        audio = next(frame for frame in one.frames if isinstance(frame, AudioFrame))
        (spare,) = other.frames
        assert isinstance(spare, RepairFrame)
        assert spare.newest_pts == audio.pts
    recovery = pair.client.stats(pair.now).recovery
    assert recovery.pair_bytes_sent > 0
    assert recovery.repairs_sent >= len(pairs)
    assert recovery.copy_bytes_sent == 0


def test_without_repairs_a_pair_carries_the_frame_before(kit) -> None:
    pair = kit.Pair().open()
    recovery = pair.client._tracks.recovery
    plan = dataclasses.replace(pair.client.plan, repair_interval=0)
    for pts in (0, 8):
        bundle = Bundle(sources=[MediaFrame(pts=pts, units=8, payload=bytes((9 << 3,)) + bytes(59))])
        recovery.ride(bundle, pair.now, plan)
        (frame,) = recovery.companion(bundle, pair.now, 0).frames
        if not pts:
            assert isinstance(frame, ProbeFrame), "there is no frame before the first"
    assert isinstance(frame, ProbeFrame), "nothing has been saved up for it"
    recovery.carried(2000)
    (frame,) = recovery.companion(bundle, pair.now, 0).frames
    assert isinstance(frame, RetransmissionFrame)
    assert frame.pts == 0
    assert recovery.budget.spent[Tool.PAIR] > 60


def test_without_redundancy_a_pair_is_filler(kit) -> None:
    pair = kit.Pair(SessionConfig(grease=False, rate=RateConfig(redundancy_share=0.0)), pairs=True).open()
    pair.talk(1.0)
    kinds = {type(frame) for datagram in pair.sent["client"] for frame in datagram.frames}
    assert ProbeFrame in kinds
    assert RetransmissionFrame not in kinds


def test_a_dead_path_pauses_the_audio_and_an_answer_resumes_it(kit) -> None:  # VS-9.5-2
    """VS-9.3-4"""
    dead = [False]
    pair = kit.Pair(to_server=lambda count, datagram: [] if dead[0] else [0.02]).open()
    pair.talk(2.0)
    dead[0] = True
    pair.talk(8.0)
    assert pair.client.plan.paused
    assert [event.level for event in pair.of("client", QualityChanged)][-1] == "paused"
    sent = len(pair.sent["client"])
    pair.talk(2.0)
    tail = pair.sent["client"][sent:]
    assert 8 <= sum(isinstance(frame, ProbeFrame) for datagram in tail for frame in datagram.frames) <= 12
    with_audio = [datagram for datagram in tail if any(isinstance(frame, AudioFrame) for frame in datagram.frames)]
    assert 20 <= len(with_audio) <= 40, "a question every 50 to 100 ms, with the newest speech"
    assert len(tail) - len(with_audio) <= 40, "probes, and reports of what comes the other way"
    dead[0] = False
    pair.talk(2.0)
    assert not pair.client.plan.paused
    received = pair.server.stats(pair.now).tracks[0].frames_received
    pair.talk(2.0)
    assert pair.server.stats(pair.now).tracks[0].frames_received - received >= 95
    pair.talk(3.0)
    assert [event.level for event in pair.of("client", QualityChanged)][-1] == "good"


def test_events_get_what_audio_leaves_of_the_target(pair) -> None:
    pair.server.update_settings(pair.now, max_rate_bps=50_000)
    pair.run(0.1)
    assert pair.client.stats(pair.now).event_rate_bps == pytest.approx(50_000, rel=0.01)
    pair.talk(5.0)
    assert 2_000 <= pair.client.stats(pair.now).event_rate_bps < 15_000


def test_the_numbers_tell_of_the_estimate(pair) -> None:
    pair.talk(3.0)
    stats = pair.client.stats(pair.now)
    assert stats.quality == "good"
    assert stats.target_bps == pair.client.target_bps > 66_000
    assert stats.wire_rate_bps == pytest.approx(stats.delivered_bps, rel=0.1)
    assert 45_000 < stats.wire_rate_bps < 65_000
    assert stats.queue_delay_ms < 2
    assert stats.recent_loss_share == 0.0
    assert stats.loss_burst_datagrams == 1.0


def test_events_do_not_take_from_the_audio(pair) -> None:
    pair.client.send_event(bytes(200_000), pair.now, kind=0)
    pair.talk(3.0, "client", size=100)
    assert pair.client.plan.bitrate_bps >= 40_000


def test_a_far_end_that_wants_nothing_hears_nothing(pair) -> None:
    pair.server.update_settings(pair.now, max_rate_bps=0)
    pair.talk(3.0, "client")
    assert pair.client.plan.paused
    before = pair.server.stats(pair.now).tracks[0].frames_received
    pair.talk(1.0, "client")
    assert pair.server.stats(pair.now).tracks[0].frames_received == before


def test_while_a_queue_drains_no_redundancy_rides_along(pair) -> None:  # VS-9.4-4
    planner = pair.client._planner
    planner.estimator.target_bps = 60000.0
    assert planner.redundancy_share() > 0.05
    planner.estimator.state = State.DRAIN
    assert planner.redundancy_share() == 0.0
