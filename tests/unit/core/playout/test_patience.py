"""A change waits for a pause, but not for ever and not when it is pressing."""

from __future__ import annotations

import pytest

from voicestream.core.playout.patience import (
    CATCH_UP,
    CUT_PATIENCE_UNITS,
    CUT_PAUSE_UNITS,
    EXPANSION_PATIENCE_UNITS,
    FAR_UNITS,
    FORGET_UNITS,
    LEAST_PATIENCE_UNITS,
    PRESSING_LATE,
    TOO_FAR_UNITS,
    Patience,
)


def first_urgent(change: float, *, step: float = 8.0, distance: float = 16.0, late: int = 0) -> float:
    patience = Patience()
    now = 1000.0
    while not patience.urgent(now, change, distance, late):
        now += step
        assert now < 50_000
    return now - 1000.0


def test_a_wish_for_more_delay_becomes_urgent_in_the_end() -> None:
    assert first_urgent(+4) == EXPANSION_PATIENCE_UNITS


@pytest.mark.parametrize(
    ("distance", "patience"),
    [(4 * FAR_UNITS, 0.0), (FAR_UNITS, LEAST_PATIENCE_UNITS), (FAR_UNITS / 2, CUT_PATIENCE_UNITS), (FAR_UNITS / 4, 3 * CUT_PATIENCE_UNITS)],
)
def test_the_nearer_the_longer_a_cut_waits_for_a_pause(distance: float, patience: float) -> None:
    assert first_urgent(-4, distance=distance) == patience


def test_cuts_in_words_come_one_by_one() -> None:
    patience = Patience()
    cuts = [now for now in range(0, 3000, 8) if patience.urgent(float(now), -4, FAR_UNITS, 0)]
    assert cuts == [LEAST_PATIENCE_UNITS + turn * CUT_PAUSE_UNITS for turn in range(4)]


def test_where_there_is_nothing_to_be_cut_it_never_presses() -> None:
    assert not Patience().urgent(1e9, -4, 0.0, 0)


def test_what_comes_late_again_and_again_presses_and_what_did_so_twice_does_not() -> None:
    assert first_urgent(+4, late=PRESSING_LATE) == 0
    assert first_urgent(+4, late=PRESSING_LATE - 1) == EXPANSION_PATIENCE_UNITS


def test_a_wish_that_turns_or_pauses_begins_anew() -> None:
    patience = Patience()
    assert not patience.urgent(0.0, +4, 16.0, 0)
    assert not patience.urgent(EXPANSION_PATIENCE_UNITS, -4, 16.0, 0)
    assert not patience.urgent(EXPANSION_PATIENCE_UNITS + 8, +4, 16.0, 0)
    assert not patience.urgent(2 * EXPANSION_PATIENCE_UNITS + FORGET_UNITS + 9, +4, 16.0, 0)


def test_far_too_long_a_delay_is_cut_at_once_but_no_faster_than_can_be_understood() -> None:
    patience = Patience()
    cut = sum(-4.0 for step in range(200) if patience.urgent(8.0 * step, -4.0, TOO_FAR_UNITS + 50, 0))
    assert -CATCH_UP * 1600 - 4 <= cut <= -0.8 * CATCH_UP * 1600
