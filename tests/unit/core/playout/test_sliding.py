"""The least value of late."""

from __future__ import annotations

from voicestream.core.playout.sliding import Expected, SlidingMin


def test_the_least_of_the_span_is_known_and_forgotten_with_it() -> None:
    least = SlidingMin(10.0)
    assert least.value is None
    assert [least.push(float(at), value) for at, value in enumerate((5.0, 3.0, 4.0))] == [5.0, 3.0, 3.0]
    assert least.push(11.5, 7.0) == 4.0
    assert least.push(30.0, 9.0) == least.value == 9.0


def test_a_restart_forgets_all() -> None:
    least = SlidingMin(10.0)
    least.push(0.0, 1.0)
    least.restart()
    assert least.value is None
    assert least.push(1.0, 2.0) == 2.0


def test_what_is_expected_is_the_most_said_of_late_and_then_what_was_said_last() -> None:
    expected = Expected(holds=100.0, settles=20.0)
    assert expected.at(0.0) is None
    expected.push(0.0, 30.0)
    expected.push(10.0, 20.0)
    assert expected.at(20.0) == 30.0
    assert expected.at(21.0) == 20.0
    assert expected.at(110.0) == 20.0, "though nothing was said for long"
    assert expected.at(111.0) is None
    expected.push(112.0, 40.0)
    assert expected.at(112.0) == 40.0
