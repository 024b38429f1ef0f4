"""Low-rate copies on their way out."""

from __future__ import annotations

from voicestream.core.recovery.copies import PATIENCE, CopyQueue
from voicestream.media import MediaFrame


def frame(number: int) -> MediaFrame:
    return MediaFrame(pts=8 * number, units=8, payload=b"main", clear_number=5, talkspurt_start=number == 0)


def test_a_copy_follows_its_frame_by_the_offset() -> None:
    queue = CopyQueue()
    beside: dict[int, list[int]] = {}
    for number in range(10):
        queue.offer(8 * number, b"copy%d" % number)
        beside[number] = [copy.pts // 8 for copy in queue.due(4)]
        queue.left(frame(number), wanted=True)
    assert beside == {number: [number - 4] if number >= 4 else [] for number in range(10)}


def test_a_copy_has_the_marks_of_its_frame_and_its_own_bytes() -> None:  # VS-4.7-3
    queue = CopyQueue()
    queue.offer(0, b"copy")
    queue.left(frame(0), wanted=True)
    (copy,) = queue.due(1)
    assert (copy.pts, copy.units, copy.clear_number, copy.talkspurt_start, copy.payload) == (0, 8, 5, True, b"copy")


def test_nothing_waits_beyond_the_end_of_a_talkspurt() -> None:
    queue = CopyQueue()
    for number in range(3):
        queue.offer(8 * number, b"copy")
        queue.left(frame(number), wanted=True)
    assert [copy.pts for copy in queue.due(6, last=True)] == [0, 8, 16]
    assert queue.due(1) == []


def test_copies_that_are_not_wanted_any_more_or_void_never_leave() -> None:
    queue = CopyQueue()
    for number in range(3):
        queue.offer(8 * number, b"copy")
        queue.left(frame(number), wanted=number < 2)
    assert queue.due(1) == []
    queue.offer(80, b"copy")
    queue.left(frame(10), wanted=True)
    queue.clear()
    assert queue.due(1) == []


def test_a_source_that_makes_no_copies_is_noticed() -> None:
    queue = CopyQueue()
    for number in range(PATIENCE):
        assert queue.has_source
        queue.left(frame(number), wanted=True)
    assert not queue.has_source


def test_what_is_offered_for_frames_that_never_leave_is_bounded() -> None:
    queue = CopyQueue()
    for number in range(1000):
        queue.offer(8 * number, b"copy")
    assert queue.dropped > 800
