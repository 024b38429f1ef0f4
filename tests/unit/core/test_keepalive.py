"""Keepalive: who sends one, and when."""

from __future__ import annotations

from voicestream.core.keepalive import KEEPALIVE_INTERVAL, Keepalive


def test_a_keepalive_is_due_after_five_seconds_of_silence() -> None:
    keepalive = Keepalive()
    keepalive.sent(10.0)
    assert keepalive.next_timer() == 10.0 + KEEPALIVE_INTERVAL
    assert not keepalive.due(14.99)
    assert keepalive.due(15.0)


def test_whatever_is_sent_puts_it_off() -> None:
    keepalive = Keepalive()
    keepalive.sent(10.0)
    keepalive.sent(14.0)
    assert not keepalive.due(18.9)
    assert keepalive.due(19.0)


def test_none_is_due_before_anything_was_sent() -> None:
    assert Keepalive().next_timer() is None
    assert not Keepalive().due(1e9)


def test_a_side_without_keepalive_never_owes_one() -> None:
    keepalive = Keepalive(None)
    keepalive.sent(10.0)
    assert keepalive.next_timer() is None
    assert not keepalive.due(1e9)
