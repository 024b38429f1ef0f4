"""The plan, and when its change is told."""

from __future__ import annotations

from voicestream.config import SessionConfig
from voicestream.events import PlanChanged


def test_a_plan_as_configured_is_no_change(pair) -> None:
    assert pair.of("client", PlanChanged) == []
    assert pair.logs["client"].named("plan:changed") == []


def test_a_far_end_that_wants_less_changes_the_plan_once(pair) -> None:
    pair.server.update_settings(pair.now, max_rate_bps=30_000)
    pair.server.update_settings(pair.now, max_rate_bps=30_000)
    pair.run(0.1)
    (change,) = pair.of("client", PlanChanged)
    assert change.bitrate_bps == pair.client.plan.bitrate_bps < 30_000
    assert (change.frame_ms, change.bundle) == (pair.client.plan.frame_ms, pair.client.plan.bundle)
    assert len(pair.logs["client"].named("plan:changed")) == 1


def test_a_change_back_is_told_too(kit) -> None:
    pair = kit.Pair(SessionConfig(grease=False, bitrate_bps=24_000)).open()
    pair.server.update_settings(pair.now, max_rate_bps=16_000)
    pair.run(0.1)
    pair.server.update_settings(pair.now, max_rate_bps=1_000_000)
    pair.run(0.1)
    assert [one.bitrate_bps for one in pair.of("client", PlanChanged)][-1] == 24_000
    assert len(pair.of("client", PlanChanged)) == 2
