"""The checks of the demo: each passes on a good call, and each can fail."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from voicestream.cli import demo
from voicestream.cli.demo.checks import Verdict, gaps, verdicts
from voicestream.cli.demo.record import DemoRecord, Notice

NARROW, FULL, SESSION, GAP, STALE, TIME = range(6)


def check(record: DemoRecord, number: int, took_s: float = 60.0) -> Verdict:
    return verdicts(record, took_s)[number]


def test_a_good_call_passes_every_check_and_says_so_with_figures(record: DemoRecord) -> None:
    found = verdicts(record, 70.0)
    assert [verdict.passed for verdict in found] == [True] * 6
    assert "client after 2.0 s, server after 2.0 s" in found[NARROW].finding
    assert "01234567" in found[SESSION].finding
    assert "the client for 3.1 s, the server for 3.1 s; the call reports an outage of 3.4 s" in found[GAP].finding
    assert "0 of 2200 frames" in found[STALE].finding
    assert "70 s in all" in found[TIME].finding


def test_a_call_of_which_nothing_is_known_fails(kit) -> None:
    assert [verdict.passed for verdict in verdicts(kit.empty(), 70.0)] == [False] * 5 + [True]


@pytest.mark.parametrize("end", ["client", "server"])
def test_a_bitrate_that_comes_down_late_or_not_fails(record: DemoRecord, kit, end: str) -> None:
    one = getattr(record, end)
    one.beats = kit.changed(one.beats, 9.3, 10.5, bitrate_bps=16001)
    assert not check(record, NARROW).passed
    assert f"{end} after 3.2 s" in check(record, NARROW).finding
    one.beats = kit.changed(one.beats, 0, 12, bitrate_bps=20000)
    assert not check(record, NARROW).passed
    assert f"{end} never" in check(record, NARROW).finding


def test_a_bitrate_that_was_low_before_the_narrow_phase_only_does_not_count(record: DemoRecord, kit) -> None:
    record.client.beats = kit.changed(kit.changed(record.client.beats, 0, 22, bitrate_bps=64000), 1, 3, bitrate_bps=8000)
    assert not check(record, NARROW).passed


@pytest.mark.parametrize("end", ["client", "server"])
def test_a_bitrate_that_does_not_come_back_to_stay_fails(record: DemoRecord, kit, end: str) -> None:
    one = getattr(record, end)
    one.beats = kit.changed(one.beats, 17.0, 22.0, bitrate_bps=60000)
    assert not check(record, FULL).passed
    one.beats = kit.changed(one.beats, 15.0, 22.0, bitrate_bps=63000)
    assert not check(record, FULL).passed
    assert f"{end} not again" in check(record, FULL).finding


def test_another_session_another_call_or_no_resumption_fails(record: DemoRecord) -> None:
    for sessions in (["f" * 32], [record.client.sessions[0]] * 2):
        other = replace(record, client=replace(record.client, sessions=sessions))
        assert not check(other, SESSION).passed
    silent = replace(record, client=replace(record.client, notices=[Notice(record.began + 2.0, "resumed", 0.1)]))
    assert not check(silent, SESSION).passed
    assert "not resumed" in check(silent, SESSION).finding


@pytest.mark.parametrize("end", ["client", "server"])
def test_a_gap_elsewhere_fails_and_is_named(record: DemoRecord, kit, end: str) -> None:
    one = getattr(record, end)
    one.beats = kit.silent(one.beats, 5.0, 5.2)
    verdict = check(record, GAP)
    assert not verdict.passed
    assert f"the {end} 200 ms at 5.0 s" in verdict.finding


def test_a_gap_that_outlasts_what_the_call_reports_fails(record: DemoRecord, kit) -> None:
    record.client.beats = kit.silent(record.client.beats, 15.0, 17.0)
    assert not check(record, GAP).passed


def test_concealment_too_short_to_be_a_gap_passes(record: DemoRecord, kit) -> None:
    record.client.beats = kit.silent(record.client.beats, 5.0, 5.1)
    assert check(record, GAP).passed


def test_long_frames_are_no_gaps(record: DemoRecord, kit) -> None:
    """Two of 60 ms in one datagram are decoded one by one; each stands for three blocks."""
    beats = record.client.beats
    record.client.beats = [replace(beat, played_ms=beat.played_ms // 60 * 60) for beat in beats]
    (gap,) = gaps(record.client)
    assert gap.start - record.began == pytest.approx(12.1, abs=0.1)
    assert gap.end - gap.start == pytest.approx(3.1, abs=0.1)


def test_a_stale_frame_fails(record: DemoRecord, kit) -> None:
    record.server.readings.append((record.began + 22.5, kit.stats(22.5, overdue=1)))
    assert not check(record, STALE).passed
    assert check(record, STALE).finding.startswith("1 of ")


def test_more_than_five_minutes_fail(record: DemoRecord) -> None:
    assert not check(record, TIME, 301.0).passed


@pytest.mark.parametrize(("strict", "passed", "status"), [(False, False, 0), (True, False, 1), (True, True, 0)])
def test_a_failed_check_is_an_exit_status_only_where_that_is_asked_for(
    strict: bool, passed: bool, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def no_call(*values: object) -> None:
        return None

    monkeypatch.setattr(demo, "run_demo", no_call)
    monkeypatch.setattr(demo, "verdicts", lambda *values: [Verdict(title="one", passed=passed, finding="")])
    monkeypatch.setattr(demo, "_write", lambda *values: None)
    options = argparse.Namespace(wav=None, out=tmp_path, seconds=8, rtt_ms=60, seed=1, begun=None, strict=strict)
    assert demo.run(options) == status
