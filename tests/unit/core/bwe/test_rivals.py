from __future__ import annotations

from voicestream.core.bwe.pair_schedule import PairSchedule
from voicestream.core.bwe.rivals import Rivals


def test_one_sign_may_be_a_longer_route_and_two_are_competition() -> None:
    rivals = Rivals()
    rivals.sign(10.0)
    assert not rivals.compete(10.0)
    rivals.sign(15.0)
    assert rivals.compete(15.1)
    assert not rivals.compete(46.0), "after a while the queue counts again"


def test_signs_far_apart_are_none() -> None:
    rivals = Rivals()
    rivals.sign(10.0)
    rivals.sign(40.0)
    assert not rivals.compete(40.0)


def test_a_long_queue_is_a_sign_only_where_others_have_a_part_of_the_link() -> None:
    rivals = Rivals()
    for at in (10.0, 12.0):
        rivals.drained(at, 0.2, 50e3, 52e3)
        rivals.drained(at, 0.05, 50e3, 200e3)
    assert not rivals.compete(12.0)
    rivals.drained(13.0, 0.2, 50e3, 200e3)
    rivals.drained(15.0, 0.2, 50e3, 200e3)
    assert rivals.compete(15.0)


def test_without_any_queue_nobody_competes_for_long() -> None:
    rivals = Rivals()
    rivals.sign(10.0)
    rivals.sign(11.0)
    rivals.update(12.0, 0.0)
    rivals.update(14.0, 0.0)
    assert rivals.compete(14.0)
    rivals.update(15.1, 0.0)
    assert not rivals.compete(15.1)


def test_pairs_leave_often_at_the_beginning_and_seldom_where_headers_are_dear() -> None:
    schedule = PairSchedule()
    schedule.paired(10.0)
    assert schedule.due(10.15, 0.5, rising=False, faster=False, target_bps=80e3)
    assert not schedule.due(10.4, 5.0, rising=False, faster=False, target_bps=80e3)
    assert schedule.due(10.4, 5.0, rising=True, faster=False, target_bps=80e3)
    assert not schedule.due(10.6, 5.0, rising=False, faster=False, target_bps=20e3)
