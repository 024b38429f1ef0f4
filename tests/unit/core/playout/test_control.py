"""When to stretch; all times in pts units of 2.5 ms."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from voicestream.core.playout.control import StretchControl


def watched(slack: float, held: float = 0.0, wait: float = 100.0, ticks: int = 60, block: float = 8) -> tuple[StretchControl, float]:
    """A control that saw `ticks` calls, and the time of the last."""
    control = StretchControl()
    now = 0.0
    for tick in range(ticks):
        now = tick * block
        control.consumed(block if tick else 0.0, 8)
        control.observe(now, slack, held, wait)
    return control, now


def correction(
    control: StretchControl,
    now: float,
    *,
    spread: float = 2.0,
    base: float = 0.0,
    early: float = 0.0,
    cost: Callable[[float], float] | None = None,
) -> float:
    return control.correction(now, base, spread, spread + 1, 8, early, cost)


def test_slack_that_suffices_is_left_alone() -> None:
    assert correction(*watched(4.0)) == 0


def test_nothing_is_decided_without_a_call() -> None:
    assert correction(StretchControl(), 0.0) == 0


def test_too_little_slack_lengthens_by_small_steps_with_pauses() -> None:
    control, now = watched(1.0)
    assert correction(control, now) == 4
    control.stretched(now, 4)
    control.observe(now + 8, 1.0, 4.0, 100)
    assert correction(control, now + 8) == 0
    control.observe(now + 16, 1.0, 4.0, 100)
    assert correction(control, now + 16) == 4


def test_lengthening_ends_at_the_next_whole_grain() -> None:
    assert correction(*watched(1.0, held=6.0)) == 2


def test_a_grain_too_much_slack_is_cut_by_small_steps() -> None:
    assert correction(*watched(16.0)) == -4


def test_slack_within_one_grain_of_the_target_cannot_be_had_smaller() -> None:
    assert correction(*watched(11.0)) == 0


def test_a_little_too_little_is_kept_where_a_whole_grain_more_would_cost_more() -> None:
    control, now = watched(3.0)
    assert correction(control, now, spread=4) > 0
    assert correction(control, now, spread=4, cost=lambda slack: slack + (7 if slack < 4 else 0)) == 0
    assert correction(control, now, spread=4, cost=lambda slack: slack + (9 if slack < 4 else 0)) > 0


def test_a_grain_that_saves_less_than_it_costs_is_cut_though_the_rest_is_no_more_than_needed() -> None:
    control, now = watched(11.0)
    assert correction(control, now) == 0
    assert correction(control, now, cost=lambda slack: slack) == -4
    assert correction(control, now, cost=lambda slack: slack + (7 if slack < 4 else 0)) == 0  # not worth the stretching
    control.observe(now, 11.0, 0.0, 8.1)
    assert correction(control, now, cost=lambda slack: slack) == 0  # a frame of late needed it


def test_what_the_executor_holds_beyond_the_grain_is_cut_but_for_a_reserve() -> None:
    assert correction(*watched(4.0, held=4.0)) == -3
    assert correction(*watched(4.0, held=1.9)) == 0


def test_slack_counts_against_the_base() -> None:
    control, now = watched(104.0)
    assert correction(control, now, base=100) == 0
    assert correction(control, now, base=103) > 0


def test_nothing_is_cut_that_a_frame_of_the_last_second_needed() -> None:
    control, now = watched(40.0)
    assert correction(control, now) < 0
    control.observe(now, 40.0, 0.0, 5.0)
    assert correction(control, now) == 0


def test_what_the_source_sent_early_is_not_cut() -> None:
    control, now = watched(40.0)
    assert correction(control, now, early=40.0) == 0


def test_much_too_much_is_cut_by_half_frames_only_after_the_last_step_is_seen() -> None:
    control, now = watched(60.0)
    assert correction(control, now) == -4
    control.stretched(now, -4)
    control.observe(now + 8, 60.0, 0.0, 100)
    assert correction(control, now + 8) == 0
    control.observe(now + 24, 60.0, 0.0, 100)
    assert correction(control, now + 24) < 0


def test_where_nothing_could_be_cut_the_next_try_waits() -> None:
    control, now = watched(16.0)
    control.stretched(now, 0)
    control.observe(now + 32, 16.0, 0.0, 100)
    assert correction(control, now + 32) == 0
    control.observe(now + 48, 16.0, 0.0, 100)
    assert correction(control, now + 48) < 0


def test_a_cut_that_proved_too_much_is_not_tried_again_soon() -> None:
    control, now = watched(16.0)
    control.stretched(now, -4)
    control.stretched(now + 100, 4)
    control.observe(now + 800, 16.0, 0.0, 100)
    assert correction(control, now + 800) == 0
    control.observe(now + 1000, 16.0, 0.0, 100)
    assert correction(control, now + 1000) < 0


def test_a_large_surplus_is_cut_even_then() -> None:
    control, now = watched(60.0)
    control.stretched(now, -4)
    control.stretched(now + 100, 4)
    control.observe(now + 200, 60.0, 0.0, 100)
    assert correction(control, now + 200) < 0


def test_after_a_jump_old_calls_do_not_count() -> None:
    control, now = watched(60.0)
    control.moved(now)
    assert correction(control, now) == 0


@pytest.mark.parametrize(
    ("blocks", "frame_units", "grain"),
    [([8, 8], 8, 8), ([4, 4], 8, 4), ([8, 12, 8], 8, 4), ([16, 16], 8, 8), ([8, 8], 24, 8), ([8.5333] * 4, 8, 1), ([4, 4], 24, 4)],
)
def test_the_grain_is_the_common_measure_of_blocks_and_frames(blocks: list[float], frame_units: int, grain: float) -> None:
    control = StretchControl()
    for block in blocks:
        control.consumed(block, frame_units)
    assert control.grain == pytest.approx(grain)


def test_the_grain_follows_a_new_frame_length() -> None:
    control = StretchControl()
    control.consumed(8, 8)
    control.consumed(8, 4)
    assert control.grain == 4
    control.consumed(8, 8)
    assert control.grain == 8


def test_that_all_waited_shows_after_half_a_second_of_calls() -> None:
    control, now = watched(4.0, wait=30.0, ticks=20)
    assert not control.all_waited(now, 20)
    control, now = watched(4.0, wait=30.0, ticks=60)
    assert control.all_waited(now, 29)
    assert not control.all_waited(now, 30)
    assert not control.all_waited(now + 500, 20)
