"""When a path is dead and when to dial."""

from __future__ import annotations

import pytest

from voicestream.core.path_watch import PathState, PathWatch


@pytest.mark.parametrize(
    ("silence", "state"),
    [(None, "connected"), (0.59, "connected"), (0.6, "degraded"), (1.99, "degraded"), (2.0, "lost")],
)
def test_the_state_follows_the_silence(silence: float | None, state: str) -> None:
    watch = PathWatch()
    watch.look(silence or 0.0, None if silence is None else 0.0)
    assert watch.state.value == state
    assert watch.dial_due(100.0) is (state == "lost")


def test_an_error_of_the_socket_is_enough() -> None:
    watch = PathWatch()
    assert watch.look(1.0, None, broken=True)
    assert watch.dial_due(1.0)


def test_dials_become_rarer_and_each_gets_its_time() -> None:
    watch = PathWatch()
    now, pauses = 10.0, []
    watch.look(now, 0.0)
    for _ in range(7):
        assert watch.dial_due(now)
        watch.dialled(now)
        assert not watch.dial_due(now + 3.9)
        assert not watch.timed_out(now + 3.9)
        assert watch.timed_out(now + 4.0)
        failed = now + 1.0
        watch.failed(failed)
        now = failed
        while not watch.dial_due(now):
            now += 0.125
        pauses.append(now - failed)
    assert pauses == [0.25, 0.5, 1.0, 2.0, 2.0, 2.0, 2.0]
    assert watch.attempts == 7


def test_a_dial_that_had_its_time_in_silence_is_followed_by_the_next_at_once() -> None:
    watch = PathWatch()
    watch.look(10.0, 0.0)
    for now in (10.0, 14.0, 18.0):
        assert watch.dial_due(now)
        watch.dialled(now)
        watch.failed(now + 4.0)
    watch.dialled(22.0)
    watch.failed(26.0, retry_after=3.0)  # but not where the far end has asked for a pause
    assert not watch.dial_due(28.9)
    assert watch.dial_due(29.0)


def test_after_a_change_of_network_the_path_has_to_answer_soon() -> None:
    watch = PathWatch()
    assert not watch.network_changed(10.0)
    assert not watch.look(10.5, 10.0)
    assert watch.look(10.61, 10.0)
    assert watch.state is PathState.LOST
    assert watch.dial_due(10.61)


def test_after_a_change_of_network_an_answer_is_enough() -> None:
    watch = PathWatch()
    watch.network_changed(10.0)
    watch.look(10.3, 10.2)  # what left before has been answered
    assert not watch.look(10.75, 10.2)
    watch.look(10.8, None)
    watch.look(11.5, 11.4)
    assert watch.state is PathState.CONNECTED


def test_a_change_of_network_ends_the_pause_of_a_lost_path_and_the_dial_on_the_old_one() -> None:
    watch = PathWatch()
    watch.look(10.0, 0.0)
    watch.dialled(10.0)
    watch.failed(10.5)
    assert not watch.dial_due(10.51)
    assert not watch.network_changed(10.52)
    assert watch.dial_due(10.52)
    watch.dialled(10.52)
    assert watch.network_changed(11.0)
    assert watch.dial_due(11.0)


def test_pauses_vary_by_chance_between_half_and_whole() -> None:
    for chance, pause in ((0.0, 0.125), (0.5, 0.1875), (1.0, 0.25)):
        watch = PathWatch(lambda chance=chance: chance)
        watch.look(10.0, 0.0)
        watch.dialled(10.0)
        watch.failed(12.0)
        assert not watch.dial_due(12.0 + pause - 0.001)
        assert watch.dial_due(12.0 + pause)


def test_a_lost_path_is_lost_since_it_has_been_silent() -> None:
    watch = PathWatch()
    assert watch.lost_since is None
    watch.look(12.5, 10.0)
    assert watch.lost_since == 10.0
    watch.resumed()
    assert watch.lost_since is None


def test_a_hint_that_the_network_is_back_ends_the_pause() -> None:
    watch = PathWatch()
    watch.look(10.0, 0.0)
    watch.dialled(10.0)
    watch.failed(10.0)
    assert not watch.dial_due(10.1)
    watch.hurry(10.1)
    assert watch.dial_due(10.1)


def test_a_lost_path_that_answers_again_is_resumed_by_the_dial_under_way() -> None:
    watch = PathWatch()
    watch.look(10.0, 0.0)
    watch.dialled(10.0)
    assert not watch.look(12.0, None)
    assert not watch.timed_out(13.9)
    watch.failed(14.0)
    assert watch.state is PathState.CONNECTED, "the far end takes no new connection: the old path serves on"


def test_a_lost_path_that_answers_when_a_dial_has_little_time_left_is_dialled_anew() -> None:
    watch = PathWatch()
    watch.look(10.0, 0.0)
    watch.dialled(10.0)
    assert not watch.look(12.1, None)
    assert watch.timed_out(12.1)
    watch.failed(12.1)
    assert watch.dial_due(12.1)
    watch.dialled(12.1)
    watch.resumed()
    assert watch.state is PathState.CONNECTED
    assert not watch.dial_due(99.0)


def test_an_old_path_serves_on_when_the_far_end_takes_no_new_connection() -> None:
    watch = PathWatch()
    watch.look(10.0, 0.0)
    watch.look(10.1, None)
    watch.dialled(10.1)
    watch.failed(14.1)
    assert watch.state is PathState.CONNECTED


def test_the_next_loss_begins_anew() -> None:
    watch = PathWatch()
    watch.look(10.0, 0.0)
    watch.dialled(10.0)
    watch.resumed()
    assert not watch.look(10.5, None)
    watch.look(20.0, 17.0)
    assert watch.attempts == 0
    assert watch.dial_due(20.0)


def test_a_dial_of_a_path_that_falls_silent_again_does_not_prove_that_the_old_one_serves() -> None:
    watch = PathWatch()
    watch.look(10.0, 8.0)
    watch.dialled(10.0)
    watch.look(11.5, None)  # it answers, and the dial has time enough left
    watch.look(13.6, 11.5)  # silent again
    watch.look(13.7, None)
    assert watch.timed_out(13.7)  # there is too little time left for another handshake
    watch.failed(13.7)
    assert watch.state is PathState.LOST
    assert watch.dial_due(13.7)
