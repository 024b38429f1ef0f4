"""How a flow grows that holds its share."""

from __future__ import annotations

from voicestream.core.bwe.growth import MOST_PATIENCE, PATIENCE, Growth

SHARE = 50e3


def seen(growth: Growth, queue: float, seconds: float, begin: float = 0.0, *, unrest: bool = False) -> float:
    """Show it the same queue for so long; returns the moment afterwards."""
    now = begin
    for _ in range(round(seconds / 0.1)):
        now += 0.1
        growth.see(now, 0.1, queue, SHARE, unrest=unrest)
    return now


def looks_after(growth: Growth, begin: float = 0.0) -> float:
    """Seconds without a queue, well above the share, after which more is tried."""
    growth.begin()
    now = begin
    while not growth.is_time(now, 1.1 * SHARE, SHARE):
        now = seen(growth, 0.0, 0.1, now)
        assert now < begin + 60
    return now - begin


def test_it_grows_slowly_where_others_may_be_and_fast_where_no_queue_has_been_for_long() -> None:
    growth = Growth()
    at_first = growth.add_bps(0.0, SHARE, SHARE, unrest=False)
    now = seen(growth, 0.0, 4.0)
    assert 300 <= at_first <= 1000
    assert growth.add_bps(now, SHARE, SHARE, unrest=False) > 2 * at_first


def test_what_is_known_to_be_there_is_taken_again_sooner_than_more() -> None:
    growth = Growth()
    now = seen(growth, 0.0, 1.6)
    assert growth.add_bps(now, 0.8 * SHARE, SHARE, unrest=False) > growth.add_bps(now, SHARE, SHARE, unrest=False)


def test_each_look_in_vain_doubles_the_wait_for_the_next_one_within_bounds() -> None:
    growth, waits = Growth(), []
    for _ in range(5):
        waits.append(looks_after(growth))
        growth.look(SHARE)
        assert growth.turned_back(100.0, 1.1 * SHARE) == SHARE
    assert waits[0] < PATIENCE + 1
    assert waits[1] > 1.5 * waits[0]
    assert waits[-1] < MOST_PATIENCE + 1


def test_a_look_that_finds_more_makes_the_next_one_quick_again() -> None:
    growth = Growth()
    first = looks_after(growth)
    for share in (1.0 * SHARE, 1.0 * SHARE, 2.0 * SHARE):
        growth.look(SHARE)
        growth.turned_back(100.0, share)
    assert looks_after(growth) == first


def test_a_queue_that_was_not_looked_for_teaches_nothing() -> None:
    growth = Growth()
    first = looks_after(growth)
    assert growth.turned_back(100.0, SHARE) is None
    assert looks_after(growth) == first


def test_pairs_that_jitter_has_moved_are_believed_again_where_the_queue_agrees() -> None:
    growth = Growth()
    growth.look(SHARE, by_jitter=True)
    growth.turned_back(10.0, SHARE)
    now = seen(growth, 1.0, 3.0, 10.0)
    assert not growth.believes_pairs(now)
    now = seen(growth, 0.0, 4.0, now)
    assert growth.believes_pairs(now)


def test_pairs_that_nothing_has_moved_are_believed_whatever_came_of_them() -> None:
    growth = Growth()
    growth.look(SHARE)
    growth.turned_back(10.0, SHARE)
    assert growth.believes_pairs(10.1)


def test_single_longer_queues_are_taken_for_jitter_where_there_is_much_of_it() -> None:
    calm, restless = Growth(), Growth()
    for growth, unrest in ((calm, False), (restless, True)):
        now = 0.0
        for _ in range(10):
            now = seen(growth, 0.2, 0.3, now, unrest=unrest)
            now = seen(growth, 0.9, 0.1, now, unrest=unrest)
    assert not calm.is_time(4.0, 1.1 * SHARE, SHARE)
    assert restless.is_time(4.0, 1.1 * SHARE, SHARE)


def test_what_was_learnt_of_one_link_says_nothing_of_another() -> None:
    growth = Growth()
    first = looks_after(growth)
    for _ in range(3):
        growth.look(SHARE)
        growth.turned_back(100.0, SHARE)
    assert looks_after(growth) > 2 * first
    growth.turned_back(200.0, 0.5 * SHARE)
    assert looks_after(growth) == first


def test_where_jitter_hides_all_else_a_look_in_vain_does_not_make_the_next_one_later() -> None:
    growth = Growth()
    growth.look(SHARE)
    growth.turned_back(100.0, SHARE)
    now = seen(growth, 0.0, 2.5)
    assert not growth.is_time(now, 1.1 * SHARE, SHARE)
    assert growth.is_time(now, 1.1 * SHARE, SHARE, unrest=True)
