"""Breaks that are too short for feedback to be missed."""

from __future__ import annotations

from voicestream.core.bwe.blackout import Blackouts
from voicestream.core.bwe.samples import Sample


def arrived(*numbers: int) -> list[Sample]:
    return [Sample(number, number / 50, number / 50 + 0.03, 160) for number in numbers]


def test_what_a_short_break_has_swallowed_is_no_loss_that_could_answer_to_the_rate() -> None:
    blackouts = Blackouts()
    assert blackouts.beyond(0.1, arrived(*range(-20, 3), 4), [3]) == (3,)
    assert blackouts.beyond(0.6, arrived(24, 25), []) == ()
    assert blackouts.beyond(0.7, arrived(26, 28), [*range(5, 24), 27]) == (27,)


def test_a_path_that_has_carried_nothing_yet_was_broken_and_that_is_the_break_that_is_excused() -> None:
    # A session is resumed, and the path breaks again before anything has come.
    blackouts = Blackouts()
    assert blackouts.beyond(0.1, arrived(35), range(19, 33)) == ()
    assert blackouts.beyond(0.2, arrived(36, 37, 39), [33, 34, 38]) == (38,)
    again = arrived(60)
    assert blackouts.beyond(0.7, again, range(40, 60)) == tuple(range(40, 60))


def test_the_losses_of_a_burst_are_heeded() -> None:
    blackouts = Blackouts()
    blackouts.beyond(0.1, arrived(*range(-20, 1)), [])
    assert blackouts.beyond(0.3, arrived(6, 7, 8), range(1, 6)) == (1, 2, 3, 4, 5)
    sparse = Blackouts()
    sparse.beyond(0.1, arrived(*range(-20, 1)), [])
    assert sparse.beyond(0.9, [Sample(5, 0.6, 0.6, 160)], [1, 2, 3, 4]) == (1, 2, 3, 4)


def test_where_all_but_one_in_many_get_lost_again_and_again_that_is_no_break() -> None:
    blackouts = Blackouts()
    heeded = sum(len(blackouts.beyond(turn / 2, arrived(25 * turn), range(25 * turn - 24, 25 * turn))) for turn in range(1, 20))
    assert heeded == 24 * 18  # the first one could have been a break
    limited = Blackouts()
    limited.beyond(0.1, arrived(*range(-50, 1)), [])  # it was well before
    heeded = sum(len(limited.beyond(turn / 2, arrived(25 * turn), range(25 * turn - 24, 25 * turn))) for turn in range(1, 20))
    assert heeded == 24 * 18
