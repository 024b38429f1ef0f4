"""The send queue: deadlines, bounds, and that no drop goes uncounted."""

from __future__ import annotations

import pytest

from voicestream.core.pacer import AHEAD_DEADLINE, SendQueue
from voicestream.media import MediaFrame


def frame(pts: int, **flags: bool) -> MediaFrame:
    return MediaFrame(pts=pts, units=8, payload=b"x", **flags)


def queue(max_frames: int = 5, deadline: float = 0.15) -> SendQueue:
    return SendQueue(max_frames=max_frames, deadline=deadline)


def test_frames_leave_in_the_order_in_which_they_came() -> None:  # VS-4.2-3
    waiting = queue()
    for pts in (0, 8, 16):
        waiting.push(frame(pts), 1.0)
    assert [waiting.pop().frame.pts for _ in range(3)] == [0, 8, 16]
    with pytest.raises(IndexError):
        waiting.pop()


def test_nothing_older_than_its_deadline_leaves() -> None:  # VS-9.4-5
    waiting = queue()
    waiting.push(frame(0), 1.0)
    waiting.push(frame(8), 1.1)
    assert waiting.expire(1.15) == 0  # exactly at the deadline is still in time
    assert waiting.expire(1.16) == 1
    assert waiting.expired == 1
    assert waiting.pop().frame.pts == 8


def test_a_full_queue_drops_the_oldest() -> None:
    waiting = queue(max_frames=3)
    for pts in range(0, 40, 8):
        waiting.push(frame(pts), 1.0)
    assert len(waiting) == 3
    assert waiting.overflowed == 2
    assert waiting.pop().frame.pts == 16


def test_a_frame_sent_ahead_of_time_may_wait_longer() -> None:
    waiting = queue()
    waiting.push(frame(0), 1.0, ahead=True)
    waiting.push(frame(8), 1.0)
    assert waiting.expire(1.5) == 1
    assert waiting.pop().frame.pts == 0
    waiting.push(frame(16), 1.0, ahead=True)
    assert waiting.expire(1.0 + AHEAD_DEADLINE + 0.01) == 1


def test_the_start_of_a_talkspurt_is_handed_on_when_its_frame_is_dropped() -> None:  # VS-6.5-3
    waiting = queue()
    waiting.push(frame(0, talkspurt_start=True), 1.0)
    waiting.push(frame(8), 1.1)
    waiting.expire(1.2)
    assert waiting.peek(0).frame.talkspurt_start
    assert waiting.pop().frame.talkspurt_start
    waiting.push(frame(16), 1.2)
    assert not waiting.pop().frame.talkspurt_start


def test_the_start_is_handed_on_across_an_empty_queue_and_an_overflow() -> None:
    waiting = queue(max_frames=1)
    waiting.push(frame(0, talkspurt_start=True), 1.0)
    waiting.expire(2.0)
    assert not len(waiting)
    waiting.push(frame(8), 2.0)
    assert waiting.peek(0).frame.talkspurt_start
    waiting.push(frame(16), 2.0)  # drops the one at 8, which had inherited the start
    assert waiting.pop().frame.talkspurt_start


def test_a_clear_empties_the_queue_and_counts() -> None:
    waiting = queue()
    waiting.push(frame(0, talkspurt_start=True), 1.0)
    waiting.push(frame(8), 1.0)
    assert waiting.clear() == 2
    assert waiting.cleared == 2
    assert waiting.oldest_at is None
    waiting.push(frame(16), 1.0)
    assert not waiting.pop().frame.talkspurt_start


def test_every_frame_is_sent_or_counted_once() -> None:
    waiting = queue(max_frames=4)
    sent = 0
    for step in range(200):
        now = step * 0.02
        waiting.push(frame(step * 8), now, ahead=step % 7 == 0)
        if step % 11 == 0:
            waiting.clear()
        if step % 9 == 0:
            now += 0.2
        waiting.expire(now)
        while len(waiting) and step % 5 == 0:
            waiting.pop()
            sent += 1
    assert sent + len(waiting) + waiting.expired + waiting.overflowed + waiting.cleared == 200


def test_it_tells_since_when_the_oldest_waits_and_whether_silence_follows() -> None:
    waiting = queue()
    assert waiting.oldest_at is None
    assert not waiting.ends_talkspurt
    waiting.push(frame(0), 1.0)
    assert not waiting.ends_talkspurt
    waiting.push(frame(8, talkspurt_end=True), 1.02)
    assert waiting.oldest_at == 1.0
    assert waiting.ends_talkspurt


def test_a_start_that_a_break_has_swallowed_is_not_moved_over_more_than_a_second() -> None:  # VS-6.5-3
    queue = SendQueue(max_frames=200, deadline=0.1)
    queue.push(MediaFrame(pts=0, units=8, payload=b"x", talkspurt_start=True), 0.0)
    for number in range(1, 60):
        now = number * 0.02
        queue.push(MediaFrame(pts=8 * number, units=8, payload=b"x"), now)
        queue.expire(now)
    first = queue.peek(0).frame
    assert (first.pts, first.talkspurt_start) == (54 * 8, False)
    assert not queue.pop().frame.talkspurt_start


def test_a_start_moves_over_frames_that_are_dropped_one_after_another() -> None:
    queue = SendQueue(max_frames=200, deadline=0.1)
    queue.push(MediaFrame(pts=0, units=8, payload=b"x", talkspurt_start=True), 0.0)
    for number in range(1, 30):
        now = number * 0.02
        queue.push(MediaFrame(pts=8 * number, units=8, payload=b"x"), now)
        queue.expire(now)
    assert queue.peek(0).frame.talkspurt_start
    assert queue.pop().frame.talkspurt_start
    assert not queue.pop().frame.talkspurt_start


def test_the_newest_frames_are_kept_as_far_as_there_is_room_and_one_in_any_case() -> None:
    waiting = queue()
    for pts in (0, 8, 16, 24):
        waiting.push(MediaFrame(pts=pts, units=8, payload=bytes(40), talkspurt_start=pts == 0), 1.0)
    waiting.keep_newest(100)
    assert [dropped.pts for dropped in waiting.take_dropped()] == [0, 8]
    assert (len(waiting), waiting.expired) == (2, 2)
    assert waiting.peek(0).frame.talkspurt_start
    waiting.keep_newest(10)
    assert waiting.pop().frame.pts == 24
