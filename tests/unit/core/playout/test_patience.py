"""A change waits for a pause, but not for ever and not when it is pressing."""

from __future__ import annotations

from voicestream.core.playout.patience import (
    CUT_PATIENCE_UNITS,
    EXPANSION_PATIENCE_UNITS,
    FAR_UNITS,
    FORGET_UNITS,
    SHORT_UNITS,
    Patience,
)


def first_urgent(change: float, *, step: float = 8.0, distance: float = 2.0) -> float:
    patience = Patience()
    now = 1000.0
    while not patience.urgent(now, change, distance):
        now += step
        assert now < 10_000
    return now - 1000.0


def test_a_lasting_wish_becomes_urgent_sooner_for_more_delay_than_for_less() -> None:
    assert first_urgent(+4) == EXPANSION_PATIENCE_UNITS
    assert first_urgent(-4) == CUT_PATIENCE_UNITS


def test_what_is_far_off_is_urgent_at_once() -> None:
    assert first_urgent(+4, distance=SHORT_UNITS) == 0
    assert first_urgent(-4, distance=FAR_UNITS) == 0


def test_a_wish_that_turns_or_pauses_begins_anew() -> None:
    patience = Patience()
    assert not patience.urgent(0.0, +4, 1.0)
    assert not patience.urgent(EXPANSION_PATIENCE_UNITS, -4, 1.0)
    assert not patience.urgent(EXPANSION_PATIENCE_UNITS + 8, +4, 1.0)
    assert not patience.urgent(2 * EXPANSION_PATIENCE_UNITS + FORGET_UNITS + 9, +4, 1.0)
