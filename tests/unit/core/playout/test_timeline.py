"""What has been heard, to one unit."""

from __future__ import annotations

from voicestream.core.playout.timeline import Timeline


def test_before_anything_was_made_nothing_was_heard() -> None:
    assert Timeline().heard_pts(0) == 0
    assert Timeline().heard_pts(5) == 0
    assert Timeline().end_pts == 0


def test_held_audio_was_not_heard() -> None:
    timeline = Timeline()
    timeline.append(8, 100, 108)
    timeline.append(8, 108, 116)
    assert [timeline.heard_pts(held) for held in (0, 1, 8, 12, 16, 99)] == [116, 115, 108, 104, 100, 100]
    assert timeline.end_pts == 116


def test_a_stretched_frame_is_counted_in_media_time() -> None:
    timeline = Timeline()
    timeline.append(4, 0, 8)
    timeline.append(16, 8, 16)
    assert timeline.heard_pts(16) == 8
    assert timeline.heard_pts(8) == 12
    assert timeline.heard_pts(18) == 4


def test_silence_and_waiting_take_no_media_time() -> None:
    timeline = Timeline()
    timeline.append(8, 0, 8)
    for _ in range(3):
        timeline.append(8, 8, 8)
    timeline.append(8, 8, 16)
    assert timeline.heard_pts(8) == 8
    assert timeline.heard_pts(20) == 8
    assert timeline.heard_pts(34) == 6


def test_over_a_jump_the_next_sample_counts() -> None:
    timeline = Timeline()
    timeline.append(8, 0, 8)
    timeline.append(8, 1000, 1008)
    assert timeline.heard_pts(8) == 1000
    assert timeline.heard_pts(8.5) == 7


def test_what_was_thrown_away_was_not_heard() -> None:
    timeline = Timeline()
    timeline.append(8, 0, 8)
    timeline.append(8, 8, 16)
    timeline.drop(12)
    assert timeline.heard_pts(0) == 4
    assert timeline.end_pts == 4
    timeline.drop(100)
    assert timeline.heard_pts(0) == 0


def test_only_ten_seconds_are_kept() -> None:
    timeline = Timeline()
    for index in range(10_000):
        timeline.append(8, index * 8, index * 8 + 8)
    assert timeline.heard_pts(4000) == 80_000 - 4000
    assert timeline.heard_pts(1e9) >= 80_000 - 4016


def test_a_piece_of_no_length_does_no_harm() -> None:
    timeline = Timeline()
    timeline.append(0, 0, 8)
    assert timeline.heard_pts(0) == 8
    assert timeline.heard_pts(1) == 0
