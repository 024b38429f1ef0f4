"""Frames that are repeated until a report confirms one of them."""

from __future__ import annotations

import pytest

from voicestream.core.repeats import GIVE_UP_AFTER, REPEAT_INTERVAL, RIDE_INTERVAL, URGENT_INTERVAL, URGENT_REPEATS, Repeats
from voicestream.wire.frame_values import ProgressFrame
from voicestream.wire.message_values import Progress


def frame(pts: int) -> ProgressFrame:
    return ProgressFrame(message=Progress(played_pts=pts))


def riding(repeats: Repeats, now: float) -> list[int]:
    found = []
    for key, _, one in repeats.riding(now):
        assert isinstance(one, ProgressFrame)
        found.append(one.message.played_pts)
        repeats.sent(key, now)
    return found


def test_a_new_frame_leaves_at_once_even_alone() -> None:
    repeats = Repeats()
    repeats.put("a", frame(1), 10.0)
    assert repeats.due_alone(10.0)
    assert riding(repeats, 10.0) == [1]
    assert not repeats.due_alone(10.0)


def test_a_patient_one_waits_for_company_and_then_leaves_alone() -> None:  # VS-8.4-2
    repeats = Repeats()
    repeats.put("a", frame(1), 10.0, patience=0.1)
    assert not repeats.due_alone(10.09)
    assert repeats.next_timer() == pytest.approx(10.1)
    assert riding(repeats, 10.05) == [1]


def test_it_is_repeated_until_it_is_confirmed() -> None:  # VS-8.4-1
    repeats = Repeats()
    repeats.put("a", frame(1), 10.0)
    ((key, version, _),) = repeats.riding(10.0)
    repeats.sent(key, 10.0)
    assert riding(repeats, 10.0 + RIDE_INTERVAL / 2) == []
    later = 10.001 + RIDE_INTERVAL
    assert riding(repeats, later) == [1]
    assert repeats.next_timer() == pytest.approx(later + REPEAT_INTERVAL)
    repeats.confirm(key, version)
    assert riding(repeats, 11.0) == []
    assert repeats.next_timer() is None


def test_what_is_urgent_is_repeated_soon_and_alone_a_few_times() -> None:
    # VS-8.4-4
    repeats = Repeats()
    repeats.put("a", frame(1), 10.0, urgent=True)
    now, waits = 10.0, []
    for _ in range(URGENT_REPEATS + 3):
        assert riding(repeats, now) == [1]
        timer = repeats.next_timer()
        assert timer is not None
        waits.append(timer - now)
        now = timer + 1e-9
    assert waits == pytest.approx([URGENT_INTERVAL] * URGENT_REPEATS + [REPEAT_INTERVAL] * 3, abs=1e-6)


def test_a_newer_frame_takes_the_place_of_an_older_and_an_old_confirmation_does_not_settle_it() -> None:
    repeats = Repeats()
    repeats.put("a", frame(1), 10.0)
    ((key, old, _),) = repeats.riding(10.0)
    repeats.put("a", frame(2), 10.1)
    repeats.confirm(key, old)
    assert riding(repeats, 10.1) == [2]
    assert len(repeats) == 1


def test_kinds_do_not_disturb_each_other() -> None:
    repeats = Repeats()
    repeats.put("a", frame(1), 10.0)
    repeats.put("b", frame(2), 10.0)
    repeats.withdraw("a")
    repeats.withdraw("c")
    repeats.confirm("c", 1)
    assert riding(repeats, 10.0) == [2]


def test_repeating_ends_after_a_while_without_confirmation() -> None:
    repeats = Repeats()
    repeats.put("a", frame(1), 10.0)
    riding(repeats, 10.0)
    assert repeats.due_alone(10.0 + GIVE_UP_AFTER)
    assert not repeats.due_alone(10.0 + GIVE_UP_AFTER + 0.01)
    assert repeats.next_timer() is None


def test_sending_something_that_has_gone_is_harmless() -> None:
    repeats = Repeats()
    repeats.sent("a", 10.0)
    assert repeats.next_timer() is None


def test_a_patient_one_is_not_repeated_before_an_answer_can_have_come() -> None:
    repeats = Repeats()
    repeats.put("progress", frame(1), 10.0, patience=0.1)
    repeats.put("cleared", frame(2), 10.0)
    for key in ("progress", "cleared"):
        repeats.sent(key, 10.0, 0.3)
    assert [key for key, _, _ in repeats.riding(10.25)] == ["cleared"]
    repeats.confirm("cleared", 2)
    assert not repeats.due_alone(10.25)
    assert [key for key, _, _ in repeats.riding(10.3)] == ["progress"]
    assert repeats.due_alone(10.3)
