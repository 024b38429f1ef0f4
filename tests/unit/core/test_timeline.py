"""The pts that a sender gives, and which of them it sends in full."""

from __future__ import annotations

import pytest

from voicestream.core.timeline import ANCHOR_AFTER, ANCHOR_AFTER_UNITS, MAX_PTS, Anchors, Timeline
from voicestream.errors import StateError


def test_frames_follow_each_other_and_the_first_starts_a_talkspurt() -> None:  # VS-6.1-2
    line = Timeline()
    assert line.place(8) == (0, True)
    assert line.place(24) == (8, False)
    assert line.next_pts == 32


def test_silence_takes_its_time() -> None:  # VS-6.1-4
    line = Timeline()
    line.place(8)
    line.skip(100)
    assert line.place(8) == (108, False)


def test_a_pts_is_never_used_again() -> None:  # VS-6.1-1 VS-6.1-2
    line = Timeline()
    line.place(8, 100)
    assert line.place(8, 108) == (108, False)
    for pts in (0, 107, 115):
        with pytest.raises(ValueError, match="never reused"):
            line.place(8, pts)
    assert line.next_pts == 116


def test_absurd_values_are_refused() -> None:  # VS-6.1-3
    line = Timeline()
    with pytest.raises(ValueError, match="pts"):
        line.place(8, MAX_PTS)
    for units in (-1, MAX_PTS):
        with pytest.raises(ValueError, match="units"):
            line.skip(units)


def test_after_a_clear_a_talkspurt_starts_no_earlier_than_where_it_ends() -> None:
    line = Timeline()
    line.place(8)
    assert line.clear() == 8
    assert line.place(8) == (8, True)
    assert line.clear(500) == 500
    assert line.place(8) == (500, True)
    assert line.clear(20) == 508


def test_a_finished_track_takes_nothing() -> None:
    line = Timeline()
    line.finished = True
    with pytest.raises(StateError):
        line.place(8)
    with pytest.raises(StateError):
        line.skip(8)


def live(anchors: Anchors, pts: int, now: float, start: bool = False) -> tuple[int, bool, int] | None:
    return seen(anchors.accompany(pts, now, ahead=False, talkspurt_start=start))


def ahead(anchors: Anchors, pts: int, now: float, start: bool = False) -> tuple[int, bool, int] | None:
    return seen(anchors.accompany(pts, now, ahead=True, talkspurt_start=start))


def seen(found: object) -> tuple[int, bool, int] | None:
    return None if found is None else (found[0].pts, found[0].ahead, found[1])


def test_ordinary_audio_needs_no_anchor() -> None:
    anchors = Anchors()
    assert all(live(anchors, 8 * index, 0.02 * index, start=index == 0) is None for index in range(1000))


def test_after_thirty_seconds_without_audio_an_anchor_goes_along_until_it_is_confirmed() -> None:  # VS-4.8-2 VS-4.8-3
    anchors = Anchors()
    live(anchors, 0, 10.0)
    assert live(anchors, 8, 10.0 + ANCHOR_AFTER - 0.01) is None
    first = live(anchors, 11000, 10.0 + 2 * ANCHOR_AFTER)
    assert first is not None
    assert first[:2] == (11000, False)
    assert live(anchors, 11008, 70.02) == first
    anchors.confirm(first[2] - 1)  # an older one: does not count
    assert live(anchors, 11016, 70.04) == first
    anchors.confirm(first[2])
    assert live(anchors, 11024, 70.06) is None


def test_a_jump_of_the_pts_needs_one_however_little_time_has_passed() -> None:  # VS-4.8-2 VS-6.2-3
    anchors = Anchors()
    assert live(anchors, ANCHOR_AFTER_UNITS - 1, 1.0) is None
    assert live(anchors, 40000, 1.1) is not None


def test_each_talkspurt_that_is_sent_ahead_begins_with_one_and_so_does_the_return_to_live() -> None:  # VS-4.8-2
    anchors = Anchors()
    live(anchors, 0, 1.0, start=True)
    one = ahead(anchors, 8, 1.1, start=True)
    assert one is not None
    assert one[:2] == (8, True)
    anchors.confirm(one[2])
    assert ahead(anchors, 16, 1.1) is None
    two = ahead(anchors, 24, 1.2, start=True)
    assert two is not None
    assert two[:2] == (24, True)
    assert ahead(anchors, 32, 1.2) == two
    three = live(anchors, 40, 2.0, start=True)
    assert three is not None
    assert three[:2] == (40, False)
    anchors.confirm(two[2])  # came too late to matter
    assert live(anchors, 48, 2.02) == three


def test_an_anchor_that_is_never_confirmed_stays_within_reach_of_sixteen_bits() -> None:  # VS-6.2-3
    anchors = Anchors()
    live(anchors, 0, 0.0)
    ahead(anchors, 8, 0.02, start=True)
    for index in range(2, 20000):
        found = ahead(anchors, 8 * index, 0.02 * index)
        assert found is not None
        assert 0 <= 8 * index - found[0] <= 0x7FFF
        assert found[1]


def test_a_new_connection_asks_for_an_anchor() -> None:  # VS-4.8-2
    anchors = Anchors()
    live(anchors, 0, 1.0)
    anchors.renew(8)
    assert live(anchors, 8, 1.02) is not None
