"""How long a disturbance counts; all times in pts units of 2.5 ms."""

from __future__ import annotations

from voicestream.core.playout.peaks import Peaks


def fed(*disturbances: tuple[float, float, float]) -> Peaks:
    """What (begin, end, delay) left behind, frame by frame."""
    peaks = Peaks(3200)
    for begin, end, delay in disturbances:
        for position in range(int(begin), int(end), 8):
            peaks.push(position, delay)
    return peaks


def test_a_disturbance_is_forgotten_when_it_has_been_over_for_four_seconds() -> None:
    peaks = fed((0, 800, 50), (800, 2600, 2))
    assert peaks.largest(2200) == 50
    assert peaks.largest(2600) == 2


def test_what_comes_again_is_kept_for_the_whole_span() -> None:
    peaks = fed((0, 200, 50), (1400, 1600, 45))
    assert peaks.largest(3000) == 50
    assert peaks.largest(4000) == 0


def test_a_second_one_that_was_much_less_does_not_keep_the_first() -> None:
    assert fed((0, 200, 50), (1400, 1600, 25)).largest(2400) == 25


def test_what_is_not_yet_pushed_counts_as_the_second() -> None:
    peaks = fed((0, 200, 50))
    assert peaks.largest(2400, 10) == 10
    assert peaks.largest(2400, 45) == 50


def test_nothing_late_leaves_nothing() -> None:
    assert fed((0, 800, 0)).largest(800) == 0
