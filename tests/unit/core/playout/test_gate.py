"""Clears, the finish, and marks of talkspurts sent ahead."""

from __future__ import annotations

import pytest

from voicestream.core.playout.gate import Gate
from voicestream.media import MediaFrame


def frame(pts: int, number: int = 0, units: int = 8) -> MediaFrame:
    return MediaFrame(pts=pts, units=units, payload=b"speech", clear_number=number)


def test_without_a_clear_every_number_is_taken() -> None:
    gate = Gate()
    assert gate.number is None
    assert all(gate.admits(frame(0, number)) for number in range(9))


@pytest.mark.parametrize("number", [1, 4, 7])
def test_after_a_clear_its_number_and_the_next_are_taken_from_to_pts_on(number: int) -> None:
    gate = Gate()
    gate.clear(0, 100, number, playhead=50)
    assert gate.number == number
    assert gate.admits(frame(100, number))
    assert gate.admits(frame(100, number % 4))
    assert gate.admits(frame(100, number + 1))
    assert not gate.admits(frame(100, number + 2))
    assert not gate.admits(frame(100, number + 3))
    assert not gate.admits(frame(96, number))


def test_before_a_clear_that_lies_ahead_frames_are_still_wanted() -> None:
    gate = Gate()
    gate.clear(80, 200, 1, playhead=50)
    assert gate.cut == 80
    assert gate.admits(frame(72, 0))
    assert not gate.admits(frame(73, 0))
    assert not gate.admits(frame(100, 1))
    assert gate.admits(frame(200, 1))


def test_an_earlier_clear_moves_the_cut_and_never_the_floor_back() -> None:
    gate = Gate()
    gate.clear(80, 200, 1, playhead=50)
    gate.clear(60, 150, 2, playhead=50)
    assert (gate.cut, gate.floor) == (60, 200)
    gate.clear(0, 300, 3, playhead=50)
    assert (gate.cut, gate.floor) == (None, 300)


def test_nothing_is_taken_at_or_behind_the_finish() -> None:
    gate = Gate()
    gate.finish = 100
    assert gate.admits(frame(92))
    assert not gate.admits(frame(100))


def test_a_mark_holds_until_the_next() -> None:
    gate = Gate()
    gate.set_ahead(100, True)
    gate.set_ahead(200, False)
    assert [gate.is_ahead(pts) for pts in (0, 99, 100, 199, 200, 999)] == [False, False, True, True, False, False]


def test_marks_may_come_again_and_in_any_order() -> None:
    gate = Gate()
    gate.set_ahead(200, False)
    gate.set_ahead(100, True)
    gate.set_ahead(100, True)
    gate.set_ahead(300, True)
    gate.set_ahead(300, False)
    assert [gate.is_ahead(pts) for pts in (50, 150, 250, 350)] == [False, True, False, False]


def test_the_marks_are_bounded() -> None:
    gate = Gate()
    for number in range(1000):
        gate.set_ahead(number, number % 2 == 0)
    assert gate.is_ahead(998)
    assert not gate.is_ahead(10)
