"""How often a silent path is asked for a sign of life."""

from __future__ import annotations

import itertools

from voicestream.core.knocks import Knocks


def test_a_silent_path_is_asked_ten_times_a_second_and_after_minutes_twice() -> None:
    knocks = Knocks()
    assert knocks.next_timer() is None
    times, now = [], 10.0
    while now < 10.0 + 400.0:
        if knocks.due(now, silent=True):
            times.append(now)
        now = max(now, knocks.next_timer() or now)
        assert knocks.due(now - 0.001, silent=True) is False
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert 0.099 < min(gaps) < gaps[0] + 1e-6 < 0.101
    assert 0.499 < gaps[-1] <= max(gaps) < 0.501


def test_a_path_that_answers_is_left_alone_and_the_next_silence_begins_anew() -> None:
    knocks = Knocks()
    assert knocks.due(0.0, silent=True)
    assert knocks.due(300.0, silent=True)
    assert not knocks.due(300.1, silent=False)
    assert knocks.next_timer() is None
    assert knocks.due(300.2, silent=True)
    assert knocks.next_timer() == 300.3


def test_each_longer_frame_is_taken_along_at_any_time_of_the_clock() -> None:
    for start in (10.0, 1002.07, 1004.093, 86400.7):
        knocks = Knocks()
        assert knocks.due(start, silent=True, speech=True)
        assert all(knocks.due(start + 0.06 * number, silent=True, speech=True) for number in range(1, 50)), start


def test_new_speech_is_taken_along_soon_but_not_at_every_frame() -> None:
    knocks = Knocks()
    assert knocks.due(10.0, silent=True, speech=True)
    assert not knocks.due(10.02, silent=True, speech=True)
    assert not knocks.due(10.06, silent=True)
    assert knocks.due(10.06, silent=True, speech=True)
    assert knocks.next_timer() == 10.06 + 0.1
    assert knocks.due(200.0, silent=True)
    assert not knocks.due(200.15, silent=True, speech=True)  # asked less often by now
