"""What a standstill held up: how old it may be to be played."""

from __future__ import annotations

from voicestream.core.playout.backlog import FOLLOWS_UNITS, OLD_PART, OLD_UNITS, STANDSTILL_UNITS, Standstills


def test_after_the_first_standstill_only_what_is_nearly_new_is_played() -> None:
    assert Standstills().limit(1000.0, 60.0) == OLD_PART * 60.0


def test_where_one_follows_another_more_of_it_is_played() -> None:
    standstills = Standstills()
    standstills.ended(1000.0, STANDSTILL_UNITS)
    assert standstills.limit(1000.0 + FOLLOWS_UNITS - 1, 60.0) == OLD_UNITS > OLD_PART * 60.0
    assert standstills.limit(1000.0 + FOLLOWS_UNITS + 1, 60.0) == OLD_PART * 60.0


def test_a_frame_that_was_a_little_late_is_no_standstill() -> None:
    standstills = Standstills()
    standstills.ended(1000.0, STANDSTILL_UNITS - 1)
    assert standstills.limit(1100.0, 60.0) == OLD_PART * 60.0


def test_a_longer_lookahead_allows_more_by_itself() -> None:
    standstills = Standstills()
    standstills.ended(1000.0, STANDSTILL_UNITS)
    assert standstills.limit(1100.0, 200.0) == OLD_PART * 200.0
