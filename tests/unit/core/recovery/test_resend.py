"""What is asked for is sent again, once for each time that it is missed."""

from __future__ import annotations

from voicestream.core.recovery.resend import DEADLINE, ECHO_AFTER, ECHO_WITHIN, MAX_ECHOES, MAX_WAITING, ResendQueue
from voicestream.media import MediaFrame


def media(pts: int) -> MediaFrame:
    return MediaFrame(pts=pts, units=8, payload=b"x")


def test_frames_leave_in_the_order_in_which_they_were_asked_for() -> None:  # VS-4.10-4
    queue = ResendQueue()
    queue.asked([media(8), media(16)], 1.0, 0.04)
    first = queue.peek(1.0)
    assert first is not None
    assert (first.pts, queue.pop(1.0).pts, queue.pop(1.0).pts, queue.peek(1.0)) == (8, 8, 16, None)


def test_a_question_that_crosses_its_answer_changes_nothing_but_one_after_a_round_trip_does() -> None:
    queue = ResendQueue()
    queue.asked([media(8)], 1.0, 0.04)
    queue.pop(1.0)
    queue.asked([media(8)], 1.03, 0.04)
    assert len(queue) == 0
    queue.asked([media(8)], 1.05, 0.04)
    assert len(queue) == 1


def test_an_answer_leaves_once_more_a_moment_later_but_not_long_after() -> None:
    queue = ResendQueue()
    queue.asked([media(8)], 1.0, 0.04)
    queue.pop(1.0)
    assert queue.echoes(1.0) == []
    assert queue.echoes(1.0 + 2 * ECHO_AFTER) == [media(8)]
    assert queue.echoes(1.0 + 3 * ECHO_AFTER) == []
    queue.asked([media(8 * i) for i in range(MAX_ECHOES + 4)], 2.0, 0.04)
    for _ in range(MAX_ECHOES + 4):
        queue.pop(2.0)
    assert len(queue.echoes(2.0 + 2 * ECHO_AFTER)) == MAX_ECHOES
    queue.asked([media(800)], 3.0, 0.04)
    queue.pop(3.0)
    assert queue.echoes(3.0 + 2 * ECHO_WITHIN) == []


def test_an_answer_that_waited_too_long_is_not_sent_and_counted() -> None:  # VS-4.10-5
    queue = ResendQueue()
    queue.asked([media(8)], 1.0, 0.04)
    assert queue.peek(1.0 + DEADLINE + 0.01) is None
    assert queue.expired == 1


def test_what_waits_is_bounded_and_a_clear_empties_it() -> None:
    queue = ResendQueue()
    queue.asked([media(8 * i) for i in range(MAX_WAITING + 3)], 1.0, 0.04)
    assert (len(queue), queue.expired) == (MAX_WAITING, 3)
    queue.clear()
    assert queue.peek(1.0) is None


def test_what_is_too_large_by_now_is_dropped_and_counted() -> None:
    queue = ResendQueue()
    large = MediaFrame(pts=24, units=8, payload=bytes(160))
    queue.asked([media(8), large, media(16)], 1.0, 0.04)
    assert queue.drop_larger(100) == 1
    assert queue.expired == 1
    assert [queue.pop(1.0).pts, queue.pop(1.0).pts] == [8, 16]
    assert queue.drop_larger(0) == 0


def test_where_bursts_are_usual_an_answer_is_sent_once_more_twice() -> None:
    queue = ResendQueue()
    queue.asked([media(8)], 1.0, 0.05)
    queue.pop(1.0)
    echoes = [len(queue.echoes(1.0 + at, 2)) for at in (0.001, 0.01, 0.03, 0.04)]
    assert echoes == [0, 1, 1, 0]
