"""Frames in order, with gaps marked."""

from __future__ import annotations

import pytest

from voicestream.core.playout import Gap, OrderedReader
from voicestream.media import MediaFrame


def frame(pts: int, *, units: int = 8, number: int = 0, start: bool = False, end: bool = False) -> MediaFrame:
    return MediaFrame(pts=pts, units=units, payload=b"speech", clear_number=number, talkspurt_start=start, talkspurt_end=end)


def drain(reader: OrderedReader, now: float) -> list[int | tuple[int, int]]:
    """pts of frames and (from, to) of gaps, and what must hold."""
    out: list[int | tuple[int, int]] = []
    while (item := reader.next(now)) is not None:
        out.append((item.from_pts, item.to_pts) if isinstance(item, Gap) else item.pts)
    a = reader.account
    assert a.frames_received == a.frames_delivered + a.frames_late + a.frames_discarded + a.frames_duplicate + reader.held_frames
    return out


def reader_with(*pts: int, lookahead_ms: float = 100, max_frames: int = 10) -> OrderedReader:
    reader = OrderedReader(lookahead_ms, max_frames)
    for each in pts:
        reader.insert(frame(each), 0.0)
    return reader


@pytest.mark.parametrize(("lookahead_ms", "max_frames"), [(-1, 10), (100, 1)])
def test_bad_arguments_are_refused(lookahead_ms: float, max_frames: int) -> None:
    with pytest.raises(ValueError, match=r"lookahead_ms|max_frames"):
        OrderedReader(lookahead_ms, max_frames)


def test_frames_come_out_in_order_and_at_once() -> None:
    assert drain(reader_with(0, 16, 8), 0.0) == [0, 8, 16]


def test_the_first_frame_may_have_any_pts() -> None:
    reader = reader_with(4000)
    assert drain(reader, 0.0) == [4000]
    assert reader.next_pts == 4008


def test_a_missing_piece_is_waited_for_and_then_a_gap() -> None:
    reader = reader_with(0)
    drain(reader, 0.0)
    reader.insert(frame(24), 1.0)
    reader.insert(frame(32), 1.05)
    assert drain(reader, 1.09) == []
    assert reader.next_timer() == pytest.approx(1.1)
    assert drain(reader, 1.11) == [(8, 24), 24, 32]
    assert (reader.account.gaps, reader.account.lost_units) == (1, 16)
    assert reader.next_timer() is None


def test_a_piece_that_comes_in_time_leaves_no_gap() -> None:
    reader = reader_with(0, 16)
    drain(reader, 0.0)
    reader.insert(frame(8), 0.09)
    assert reader.next_timer() == 0.09
    assert drain(reader, 0.2) == [8, 16]


def test_a_missing_piece_is_waited_for_as_long_as_its_answer_may_take() -> None:
    reader = reader_with(0, 16)
    reader.wait_for(0.6)
    assert drain(reader, 0.55) == [0]
    reader.wait_for(0.05)  # the lookahead is the least
    assert drain(reader, 0.05) == []
    assert drain(reader, 0.11) == [(8, 16), 16]


def test_a_piece_that_comes_after_its_gap_is_late() -> None:
    reader = reader_with(0, 16)
    assert drain(reader, 1.0) == [0, (8, 16), 16]
    reader.insert(frame(8), 1.0)
    assert drain(reader, 1.0) == []
    assert reader.account.frames_late == 1


def test_a_second_copy_is_a_duplicate_and_after_delivery_late() -> None:
    reader = reader_with(0, 0)
    assert reader.account.frames_duplicate == 1
    drain(reader, 0.0)
    reader.insert(frame(0), 0.0)
    assert reader.account.frames_late == 1


def test_silence_between_talkspurts_is_no_gap() -> None:  # VS-6.5-1 VS-6.5-4
    reader = OrderedReader(100)
    for each in (frame(0, end=True), frame(400), frame(800, start=True)):
        reader.insert(each, 0.0)
    assert drain(reader, 0.0) == [0, 400, 800]


def test_a_full_buffer_does_not_wait() -> None:
    reader = reader_with(0, lookahead_ms=1e6)
    drain(reader, 0.0)
    for pts in range(16, 96, 8):
        reader.insert(frame(pts), 0.0)
    assert drain(reader, 0.0) == [(8, 16), *range(16, 96, 8)]


def test_a_reader_that_does_not_read_loses_the_oldest() -> None:
    reader = reader_with(*range(0, 160, 8))
    assert reader.held_frames == 10
    assert reader.account.frames_discarded == 10
    assert drain(reader, 0.0) == list(range(80, 160, 8))


def test_a_frame_that_overlaps_what_was_given_out_is_dropped() -> None:
    reader = OrderedReader(100)
    reader.insert(frame(0, units=24), 0.0)
    reader.insert(frame(8), 0.0)
    reader.insert(frame(24), 0.0)
    assert drain(reader, 0.0) == [0, 24]
    assert reader.account.frames_discarded == 1


def test_gaps_are_held_while_media_are_on_their_way() -> None:
    reader = reader_with(0, 16)
    drain(reader, 0.0)
    reader.hold_gaps(5.0)
    assert reader.next_timer() == 5.0
    assert drain(reader, 4.9) == []
    assert drain(reader, 5.0) == [(8, 16), 16]


def test_gaps_are_held_only_for_what_is_missing_before_the_pts_that_is_named() -> None:
    reader = reader_with(0, 16, 32)
    drain(reader, 0.0)
    reader.hold_gaps(5.0, 16)
    assert drain(reader, 4.9) == []
    reader.insert(frame(8), 4.9)
    assert drain(reader, 4.9) == [8, 16, (24, 32), 32]


def test_no_gap_is_held_for_what_a_clear_has_voided() -> None:
    reader = reader_with(0, 16)
    drain(reader, 0.0)
    reader.hold_gaps(5.0, 40)
    reader.clear(0, 40, 1)
    reader.insert(MediaFrame(pts=48, units=8, payload=b"x", clear_number=1), 1.0)
    assert drain(reader, 1.0) == []
    assert reader.next_timer() == 1.1
    assert drain(reader, 1.2) == [(40, 48), 48]


def test_a_clear_without_arguments_forgets_what_is_held() -> None:
    reader = reader_with(0, 16)
    drain(reader, 0.0)
    assert reader.clear() == 8
    reader.insert(frame(40), 0.0)
    assert drain(reader, 0.0) == [40]
    assert reader.account.gaps == 0


def test_a_clear_closes_its_range_and_older_numbers() -> None:
    reader = reader_with(0, 8, 16, 24)
    assert reader.next(0.0) == frame(0)
    assert reader.clear(8, 24, 1) == 8
    for late in (frame(16), frame(32), frame(16, number=1), frame(24, number=1, start=True)):
        reader.insert(late, 0.0)
    assert drain(reader, 0.0) == [24]
    assert reader.account.frames_discarded == 6


def test_what_lies_before_a_clear_is_still_given_out() -> None:
    reader = reader_with(0, 8, 16)
    reader.clear(16, 100, 1)
    reader.insert(frame(100, number=1, start=True), 0.0)
    assert drain(reader, 0.0) == [0, 8, 100]


def test_the_end_is_reached_after_the_last_frame() -> None:
    reader = reader_with(0, 8)
    assert not reader.finished
    reader.finish(16)
    assert not reader.finished
    assert drain(reader, 0.0) == [0, 8]
    assert reader.finished
    assert reader.next_timer() is None


def test_a_missing_end_is_a_gap_once_it_has_been_waited_for() -> None:
    reader = reader_with(0)
    drain(reader, 1.0)
    reader.finish(24)
    assert drain(reader, 1.05) == []
    assert reader.next_timer() == pytest.approx(1.1)
    assert drain(reader, 1.11) == [(8, 24)]
    assert reader.finished


def test_silence_at_the_end_is_no_gap() -> None:
    reader = OrderedReader(100)
    reader.insert(frame(0, end=True), 0.0)
    drain(reader, 0.0)
    reader.finish(400)
    assert drain(reader, 1.0) == []
    assert reader.finished
    assert reader.account.gaps == 0


def test_a_track_without_any_frame_ends() -> None:
    reader = OrderedReader(100)
    reader.finish()
    assert reader.finished
    later = OrderedReader(100)
    later.insert(frame(0), 0.0)
    later.finish()
    assert drain(later, 0.0) == [0]
    assert later.finished


def test_frames_at_or_behind_the_finish_are_dropped() -> None:
    reader = reader_with(0, 8, 16)
    reader.finish(8)
    reader.insert(frame(8), 0.0)
    assert drain(reader, 0.0) == [0]
    assert reader.account.frames_discarded == 3


def test_a_gap_that_is_given_up_does_not_take_those_behind_it_along() -> None:
    reader = reader_with(0, 16, 32)
    drain(reader, 0.0)
    reader.hold_gaps(5.0)
    assert drain(reader, 1.0) == []
    assert reader.narrows_gap(8)
    assert not reader.narrows_gap(24)
    reader.release_gap()
    assert drain(reader, 1.0) == [(8, 16), 16]
    assert drain(reader, 4.9) == []
    assert drain(reader, 5.0) == [(24, 32), 32]


def test_after_a_clear_what_is_missing_behind_it_is_waited_for() -> None:
    reader = reader_with(0)
    drain(reader, 0.0)
    reader.clear(0, 40, 1)
    reader.insert(MediaFrame(pts=56, units=8, payload=b"x", clear_number=1), 1.0)
    assert drain(reader, 1.0) == []
    reader.insert(MediaFrame(pts=40, units=8, payload=b"x", clear_number=1, talkspurt_start=True), 1.01)
    reader.insert(MediaFrame(pts=48, units=8, payload=b"x", clear_number=1), 1.02)
    assert drain(reader, 1.02) == [40, 48, 56]


def quiet_reader() -> OrderedReader:
    """A piece is missing, and 40 ms after what follows it the path falls silent."""
    reader = reader_with(0)
    reader.outlive(15.0)
    drain(reader, 0.0)
    reader.insert(frame(16), 1.0)
    reader.insert(frame(24), 1.04)
    return reader


def test_nothing_is_given_up_while_the_path_is_silent() -> None:
    reader = quiet_reader()
    assert drain(reader, 9.0) == []
    assert reader.next_timer() == pytest.approx(16.04)
    reader.insert(frame(700), 9.0)
    assert drain(reader, 9.005) == []
    reader.insert(frame(8), 9.005)
    assert drain(reader, 9.005) == [8, 16, 24]


def test_a_silence_that_is_over_has_not_counted_as_waiting() -> None:
    reader = quiet_reader()
    for tick in range(5):
        reader.sign_of_life(9.0 + tick / 50)
        assert (drain(reader, 9.0 + tick / 50) != []) is (tick == 1), tick  # 90 ms before it, and 10 ms after it


def test_a_silence_ends_the_waiting_where_it_was_to_be_expected_or_takes_too_long() -> None:
    reader = quiet_reader()
    assert drain(reader, 16.1) == [(8, 16), 16, 24]
    reader = quiet_reader()
    reader.insert(frame(32, end=True), 1.05)
    assert drain(reader, 1.12) == [(8, 16), 16, 24, 32]
    reader = quiet_reader()
    reader.finish(32)
    assert drain(reader, 1.12) == [(8, 16), 16, 24]


def test_while_a_question_is_not_answered_nothing_is_given_up_even_behind_the_end_of_a_talkspurt() -> None:
    reader = quiet_reader()
    reader.insert(frame(32, end=True), 1.042)
    reader.expect_answer(1.05)
    reader.expect_answer(1.06)
    assert reader.answered(1.049) is None
    for tick in range(500):
        reader.sign_of_life(1.05 + tick / 50)
        assert drain(reader, 1.05 + tick / 50) == []
    assert reader.answered(8.0) == 1.05
    assert reader.answered(9.0) is None
    assert drain(reader, 11.2) == [(8, 16), 16, 24, 32]


def test_a_question_that_is_never_answered_holds_up_no_longer_than_a_silence() -> None:
    reader = quiet_reader()
    reader.expect_answer(1.05)
    for tick in range(800):
        reader.sign_of_life(1.05 + tick / 50)
    assert drain(reader, 16.0) == []
    assert drain(reader, 16.1) == [(8, 16), 16, 24]


def test_a_gap_that_was_given_up_is_not_held_by_questions_that_go_on() -> None:
    reader = quiet_reader()
    reader.expect_answer(1.05)
    reader.sign_of_life(2.0)
    reader.release_gap()
    assert drain(reader, 2.03) == [(8, 16), 16, 24]
