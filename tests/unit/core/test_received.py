"""Which media have come: full pts, duplicates, holes."""

from __future__ import annotations

from voicestream.core.received import WINDOW_UNITS, ReceivedMedia


def test_the_full_pts_is_the_nearest_to_what_is_known() -> None:
    media = ReceivedMedia()
    assert media.full_pts(100) == 100
    media.add(65530, 8)
    assert media.full_pts(2) == 65538
    assert media.full_pts(65000) == 65000


def test_an_anchor_sets_the_reference_and_an_old_one_does_not() -> None:
    media = ReceivedMedia()
    media.anchor(10_000_000)
    assert media.full_pts(10_000_008 & 0xFFFF) == 10_000_008
    media.anchor(40)
    assert media.full_pts(10_000_008 & 0xFFFF) == 10_000_008


def test_a_frame_is_news_once() -> None:
    media = ReceivedMedia()
    assert media.add(0, 8)
    assert media.add(16, 8)
    assert media.add(8, 8)
    for pts in (0, 8, 16):
        assert not media.add(pts, 8)


def test_a_frame_of_another_length_at_the_same_place_is_no_news() -> None:
    media = ReceivedMedia()
    media.add(0, 24)
    assert not media.add(0, 8)
    assert not media.add(16, 24)
    assert media.add(24, 8)


def test_what_is_too_old_counts_as_received() -> None:
    media = ReceivedMedia()
    media.add(0, 8)
    media.add(WINDOW_UNITS + 100, 8)
    assert not media.add(8, 8)
    assert media.add(116, 8)


def test_holes_are_told_oldest_first() -> None:
    media = ReceivedMedia()
    for pts in (0, 16, 24, 48):
        media.add(pts, 8)
    assert media.holes(0) == [(8, 8), (32, 16)]
    assert media.holes(36) == [(36, 12)]
    assert media.holes(56) == []


def test_a_jump_over_the_whole_window_leaves_nothing_behind() -> None:
    media = ReceivedMedia()
    media.add(0, 8)
    media.add(10 * WINDOW_UNITS, 8)
    assert media.end_pts == 10 * WINDOW_UNITS + 8
    assert not media.add(10 * WINDOW_UNITS, 8)
    assert media.add(10 * WINDOW_UNITS - 8, 8)
    assert media._mask.bit_length() <= WINDOW_UNITS
