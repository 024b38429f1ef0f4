"""The side that faces the network."""

from __future__ import annotations

import pytest

from voicestream.config import PlayoutConfig
from voicestream.core.playout.account import PlayoutAccount
from voicestream.core.playout.intake import Intake
from voicestream.media import MediaFrame, SourceKind


class Feed:
    def __init__(self, max_frames: int = 10) -> None:
        self.account = PlayoutAccount()
        self.intake = Intake(PlayoutConfig(max_frames=max_frames), self.account)

    def insert(
        self, pts: int, now: float = 0.0, *, units: int = 8, kind: SourceKind = SourceKind.AUDIO, sent: float | None = None
    ) -> int | None:
        return self.intake.insert(MediaFrame(pts=pts, units=units, payload=b"speech"), now, kind, sent, idle=False)

    def play(self) -> int:
        entry = self.intake.take()
        self.intake.playhead = entry.end
        return entry.pts


def test_a_frame_behind_the_playhead_is_late_but_its_delay_is_known() -> None:
    feed = Feed()
    feed.intake.playhead = 80
    feed.insert(80, 0.2)
    feed.insert(72, 0.3)
    assert feed.account.frames_late == 1
    feed.intake.delay.update(0.0)
    assert feed.intake.delay.spread > 40


def test_a_frame_that_was_played_is_a_duplicate_and_not_late() -> None:
    feed = Feed()
    feed.insert(0)
    feed.insert(0)
    feed.play()
    feed.insert(0)
    assert (feed.account.frames_duplicate, feed.account.frames_late) == (2, 0)


def test_a_duplicate_says_nothing_of_the_delay() -> None:
    feed = Feed()
    feed.insert(0, 0.0)
    feed.insert(0, 0.1)
    feed.intake.delay.update(0.0)
    assert feed.intake.delay.base == -8


def test_the_frame_itself_takes_the_place_of_its_copy_and_not_the_other_way() -> None:
    feed = Feed()
    feed.insert(0, kind=SourceKind.COPY)
    feed.insert(0)
    feed.insert(0, kind=SourceKind.COPY)
    front = feed.intake.front()
    assert front is not None
    assert front.kind is SourceKind.AUDIO
    assert feed.account.frames_duplicate == 2


def test_when_it_is_full_the_oldest_goes() -> None:
    feed = Feed()
    assert [feed.insert(pts) for pts in range(0, 88, 8)] == [None] * 10 + [8]
    assert feed.account.frames_discarded == 1


def test_a_frame_that_overlaps_what_was_played_is_dropped() -> None:
    feed = Feed()
    feed.insert(0)
    feed.insert(4)
    feed.play()
    assert feed.intake.front() is None
    assert feed.account.frames_discarded == 1


def test_a_frame_without_length_is_dropped() -> None:
    feed = Feed()
    feed.insert(0, units=0)
    assert feed.account.frames_discarded == 1


def test_the_copies_before_a_frame_are_kept_for_warming_up() -> None:
    feed = Feed()
    for pts in (0, 16, 24, 32, 40, 48):
        feed.insert(pts, kind=SourceKind.COPY)
    assert [copy.pts for copy in feed.intake.copies_before(40)] == [16, 24, 32]
    assert [copy.pts for copy in feed.intake.copies_before(56)] == [24, 32, 40, 48]
    assert feed.intake.copies_before(16) == ()
    for pts in range(56, 200, 8):
        feed.insert(pts, kind=SourceKind.COPY)
    assert feed.intake.copies_before(24) == ()


@pytest.mark.parametrize(("spacing", "age"), [(0.02, 24), (0.0, 0), (None, 24)])
def test_the_age_is_what_the_sender_s_clock_says_or_else_pts(spacing: float | None, age: float) -> None:
    feed = Feed()
    for index in range(4):
        feed.insert(index * 8, sent=None if spacing is None else index * spacing)
    front = feed.intake.front()
    assert front is not None
    assert feed.intake.age(front) == pytest.approx(age)


def test_old_frames_expire_but_for_the_newest() -> None:
    feed = Feed()
    for index in range(8):
        feed.insert(index * 8)
    assert feed.intake.expire(16) == 5
    assert feed.intake.expire(-1) == 2
    assert feed.account.frames_expired == 7


def test_prefetched_frames_do_not_expire() -> None:
    feed = Feed()
    feed.intake.gate.set_ahead(16, True)
    for index in range(8):
        feed.insert(index * 8)
    assert feed.intake.expire(0) == 2


def test_what_is_cleared_is_dropped_and_counted() -> None:
    feed = Feed()
    for index in range(4):
        feed.insert(index * 8)
    feed.intake.clear(8, 24, 1)
    assert feed.account.frames_discarded == 3  # two of the range, and the old number behind it
    feed.insert(32)
    assert feed.account.frames_discarded == 4


def test_what_lies_behind_the_finish_is_dropped_and_counted() -> None:
    feed = Feed()
    for index in range(4):
        feed.insert(index * 8)
    feed.intake.finish(16)
    feed.insert(32)
    assert feed.account.frames_discarded == 3
