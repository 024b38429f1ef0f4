"""Delays of speech from send times, pts and playheads."""

from __future__ import annotations

import pytest

from voicestream.core.latency import BOUNDS, CaptureTimes, Distribution, Latency, TurnWatch
from voicestream.media import MediaFrame

UNIT = 0.0025


def frame(pts: int, *, start: bool = False, end: bool = False, track: int = 0, units: int = 8) -> MediaFrame:
    return MediaFrame(track=track, pts=pts, units=units, payload=b"x", talkspurt_start=start, talkspurt_end=end)


def latency() -> Latency:
    found = Latency()
    found.open(sent=0, received=0)
    return found


def test_a_distribution_counts_by_class_and_tells_quantiles() -> None:
    found = Distribution()
    assert found.quantile(0.5) is None
    for index in range(100):
        found.add(index / 100)
    assert found.count == 100
    assert found.counts[BOUNDS.index(0.5)] == 10
    assert found.quantile(0.5) == pytest.approx(0.49, abs=0.02)
    assert found.quantile(0.99) == pytest.approx(0.98, abs=0.02)
    assert found.quantile(1.0) == found.longest == 0.99
    found.add(60.0)
    assert found.counts[-1] == 1
    assert found.quantile(1.0) == 60.0


def test_the_earliest_of_the_send_times_tells_when_a_sample_was_captured() -> None:
    times = CaptureTimes()
    assert times.at(0) is None
    # Three frames in one datagram: only the last leaves as soon as it is captured.
    for pts in (100, 108, 116):
        times.sent(pts, 8, 50.0, begins=pts == 100)
    assert times.at(124) == pytest.approx(50.0)
    assert times.at(100) == pytest.approx(50.0 - 24 * UNIT)
    times.sent(124, 8, 50.2, begins=False)  # it has waited in a queue
    assert times.at(124) == pytest.approx(50.0, abs=1e-3)
    assert times.at(99) is None
    assert times.at(133) is None


def test_a_frame_of_the_talkspurt_before_changes_nothing() -> None:
    times = CaptureTimes()
    times.sent(1000, 8, 10.0, begins=True)
    times.sent(0, 8, 1.0, begins=False)
    times.sent(8, 8, 1.0, begins=True)
    assert times.at(1008) == pytest.approx(10.0)


def test_a_turn_lasts_from_the_end_to_the_first_sample_of_the_reply() -> None:
    watch = TurnWatch()
    watch.stopped(10.0)
    watch.replied(400)
    watch.heard(400, 10.5)  # about to begin, but who knows when
    assert watch.turns.count == 0
    watch.heard(440, 10.9)  # has played for 100 ms
    watch.heard(480, 11.0)
    assert watch.turns.count == 1
    assert watch.turns.latest == pytest.approx(0.8)


@pytest.mark.parametrize("what", ["went on", "nobody stopped", "too late to tell", "before it was said"])
def test_what_is_no_turn_is_not_counted(what: str) -> None:
    watch = TurnWatch()
    if what != "nobody stopped":
        watch.stopped(10.0)
    watch.replied(400)
    if what == "went on":
        watch.went_on()
    at = {"too late to tell": 13.0, "before it was said": 10.05}.get(what, 10.9)
    watch.heard(400 + (800 if what == "too late to tell" else 40), at)
    assert watch.turns.count == 0


def test_a_turn_is_told_right_where_the_far_clock_starts_again_from_zero() -> None:
    watch = TurnWatch()
    watch.stopped(16.3)
    watch.replied(400)
    watch.heard(408, 0.5)
    assert watch.turns.latest == pytest.approx(0.5 - 0.02 + 16.384 - 16.3)


@pytest.mark.parametrize("offset", [0.0, 3.0, -7.9, 8.1])
def test_mouth_to_ear_takes_the_clocks_offset_into_account(offset: float) -> None:
    found = latency()
    now = 100.0
    for index in range(50):
        # Captured completely at `now`, here 60 ms later, heard 40 ms after that.
        found.came(frame(index * 8, start=not index), now + offset, first=True)
        found.heard(0, index * 8, now + 0.1, offset)
        now += 0.02
    assert found.mouth_to_ear.count == 4
    assert found.mouth_to_ear.latest == pytest.approx(0.12, abs=1e-3)


def test_what_is_sent_ahead_or_stands_still_or_without_a_clock_has_no_mouth_to_ear() -> None:
    found = latency()
    found.anchored(0, 0, ahead=True)
    for index in range(50):
        found.came(frame(index * 8, start=not index), 100.0, first=True)
        found.heard(0, index * 8, 100.0 + index / 50, 0.0)
    assert found.mouth_to_ear.count == 0
    found.anchored(0, 400, ahead=False)
    found.came(frame(400, start=True), 105.0, first=True)
    found.heard(0, 404, 105.1, None)
    assert found.mouth_to_ear.count == 0
    for index in range(20):
        found.heard(0, 404, 105.1 + index, 0.0)
    assert found.mouth_to_ear.count == 1


def test_other_tracks_do_not_count() -> None:
    found = Latency()
    found.open(sent=1, received=1)
    found.came(frame(0, start=True, end=True), 1.0, first=True)
    found.said(0, 0, 1.1, begins=True, ends=False, ahead=False)
    found.heard_there(0, 8, 1.5)
    found.heard(0, 4, 1.2, 0.0)
    assert (found.answers.turns.count, found.mouth_to_ear.count) == (0, 0)


def test_our_answer_is_timed_on_the_far_ends_clock() -> None:
    found = latency()
    far = 5000.0
    found.came(frame(0, start=True), far + 0.02, first=True)
    found.came(frame(8, end=True), far + 0.04, first=True)
    found.said(0, 640, 77.0, begins=False, ends=False, ahead=True)  # after a pause, so a beginning
    found.heard_there(0, 640, far + 0.3)
    found.heard_there(0, 660, far + 0.44)
    assert found.answers.turns.latest == pytest.approx(0.44 - 0.05 - 0.04)


def test_an_answer_that_is_voided_or_talked_over_is_none() -> None:
    for spoil in ("void", "talk"):
        found = latency()
        found.came(frame(0, start=True, end=True), 1.0, first=True)
        found.said(0, 0, 77.0, begins=True, ends=False, ahead=False)
        if spoil == "void":
            found.voided(0)
        else:
            found.came(frame(100, start=True), 1.2, first=True)
        found.heard_there(0, 20, 1.5)
        assert found.answers.turns.count == 0, spoil


def test_the_far_ends_answer_is_timed_on_our_own_clock() -> None:
    found = latency()
    found.said(0, 0, 10.0, begins=True, ends=False, ahead=False)
    found.said(0, 8, 10.02, begins=False, ends=True, ahead=False)
    found.came(frame(200, start=True), 9999.0, first=False)
    found.heard(0, 208, 10.52, None)
    assert found.turns.turns.latest == pytest.approx(0.48)
