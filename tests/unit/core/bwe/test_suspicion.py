from __future__ import annotations

from voicestream.core.bwe.suspicion import INTERVAL, LONGEST, NEWS, Suspicion


def test_a_queue_the_other_way_is_suspicious_where_no_news_comes() -> None:
    suspicion = Suspicion()
    assert not suspicion.begins(10.0, None)
    assert not suspicion.begins(10.0, 10.0 - NEWS / 2)
    assert not suspicion.holds(10.0, 9.9)
    assert suspicion.begins(10.0, 9.9 - NEWS)
    assert suspicion.holds(10.1, 9.9)


def test_it_holds_until_there_is_news_of_what_left_after_it_began() -> None:
    suspicion = Suspicion()
    suspicion.begins(10.0, 9.8)
    assert suspicion.holds(10.3, 9.99)
    assert not suspicion.holds(10.3, 10.01)


def test_it_holds_for_a_while_at_most_and_the_next_one_waits() -> None:
    suspicion = Suspicion()
    suspicion.begins(10.0, 9.8)
    assert suspicion.holds(10.0 + 0.9 * LONGEST, 9.9)
    assert not suspicion.holds(10.0 + 1.1 * LONGEST, 9.9)
    assert not suspicion.begins(10.0 + 0.9 * INTERVAL, 9.8)
    assert suspicion.begins(10.0 + 1.1 * INTERVAL, 9.8)
