from __future__ import annotations

import pytest

from voicestream.core.bwe.pause import IN_VAIN, LONGEST, SHORT_QUEUE, Pause


def test_a_queue_that_was_seen_to_be_long_is_emptied_by_a_pause() -> None:
    pause = Pause()
    pause.update(10.0, 0.5, 0.3, 9.5, drains_in=None)
    assert pause.until < 10.0
    pause.update(10.0, 0.5, 0.4, 9.5, drains_in=None)
    assert pause.until == pytest.approx(10.5 - SHORT_QUEUE)


def test_where_the_rate_is_known_a_long_queue_need_not_be_seen_first() -> None:
    pause = Pause()
    pause.update(10.0, 0.9, 0.2, 9.8, drains_in=2.0)
    assert pause.until == pytest.approx(10.9 - SHORT_QUEUE)


def test_a_queue_that_less_speech_empties_soon_needs_no_pause() -> None:
    pause = Pause()
    pause.update(10.0, 0.9, 0.2, 9.8, drains_in=1.7)
    assert pause.until < 10.0


def test_it_gets_longer_as_the_queue_turns_out_to_be_and_ends_at_a_bound() -> None:
    pause = Pause()
    pause.update(10.0, 0.7, 0.2, 9.8, drains_in=2.0)
    pause.update(10.3, 0.8, 0.5, 9.85, drains_in=2.0)
    assert pause.until == pytest.approx(11.1 - SHORT_QUEUE)
    pause.update(10.9, 3.0, 1.0, 9.9, drains_in=2.0)
    assert pause.until == 10.0 + LONGEST


def test_it_ends_when_the_queue_is_short_and_there_is_one_for_each_queue() -> None:
    pause = Pause()
    pause.update(10.0, 0.7, 0.2, 9.8, drains_in=2.0)
    pause.update(10.2, 0.7, 0.05, 9.9, drains_in=2.0)
    assert pause.until == 10.2
    pause.update(10.3, 0.7, 0.5, 9.9, drains_in=2.0)
    assert pause.until == 10.2


def test_after_one_in_vain_nothing_is_guessed_for_long() -> None:
    pause = Pause()
    pause.update(10.0, 0.7, 0.2, 9.8, drains_in=2.0)
    pause.update(11.0, 0.7, 0.5, 10.8, drains_in=2.0)  # what left after it has waited all the same
    pause.may_begin = True
    pause.update(11.2, 0.7, 0.3, 11.0, drains_in=2.0)
    assert pause.until < 11.0
    pause.update(11.1 + IN_VAIN, 0.7, 0.3, 11.0 + IN_VAIN, drains_in=2.0)
    assert pause.until > 11.1 + IN_VAIN


@pytest.mark.parametrize("drains_in", [2.0, None])
def test_it_gets_shorter_where_less_waits_than_was_thought(drains_in: float | None) -> None:
    pause = Pause()
    pause.update(10.0, 1.1, 0.2, 9.8, drains_in=2.0)
    pause.update(10.1, 0.3, 0.28, 9.9, drains_in=drains_in)  # the queue was full, and dropped the rest
    assert pause.until == pytest.approx(10.4 - SHORT_QUEUE)
    pause.update(10.2, 0.0, 0.28, 9.95, drains_in=drains_in)
    assert pause.until == 10.2
