"""The link of the demo: what it does in which phase."""

from __future__ import annotations

import pytest

from voicestream.cli.demo.phases import BREAK_S, COURSE, Phase, PhasedLink, course, spans

EPOCH = 50.0


def test_the_course_is_a_minute_and_the_break_keeps_its_length() -> None:
    assert sum(phase.seconds for phase in COURSE) == 60.0
    for seconds in (8, 60, 300):
        phases = course(seconds)
        assert sum(phase.seconds for phase in phases) == pytest.approx(seconds)
        assert [phase.seconds for phase in phases if phase.mute] == [BREAK_S]


def test_spans_follow_each_other() -> None:
    found = spans(course(60))
    assert found[0].start == 0.0
    assert [span.end for span in found[:-1]] == [span.start for span in found[1:]]


def offered(phases: list[Phase], start: float, end: float, *, size: int = 100, step: float = 0.02) -> list[list[float]]:
    link = PhasedLink(phases, 30.0, "seed", EPOCH)
    return [link.send(EPOCH + start + n * step, size) for n in range(round((end - start) / step))]


def test_a_good_phase_delays_and_no_more() -> None:
    arrivals = offered([Phase(key="good", label="", seconds=10.0)], 0.0, 2.0)
    assert all(len(at) == 1 for at in arrivals)
    assert arrivals[0][0] - EPOCH == pytest.approx(0.03 + 100 * 8 / 160e3)


def test_a_lossy_phase_loses_its_share_and_the_next_one_nothing() -> None:
    phases = [Phase(key="loss", label="", seconds=100.0, loss=0.05), Phase(key="good", label="", seconds=10.0)]
    arrivals = offered(phases, 0.0, 110.0)
    lost = [not at for at in arrivals]
    assert 0.03 < sum(lost[:5000]) / 5000 < 0.07
    assert not any(lost[5000:])


def test_a_narrow_phase_carries_its_rate_and_queues_no_longer_than_it_may() -> None:
    arrivals = offered([Phase(key="narrow", label="", seconds=20.0, rate_kbps=30.0)], 0.0, 10.0)
    carried = sum(bool(at) for at in arrivals) * 800 / 10.0
    assert 28e3 < carried < 32e3
    assert max(at[0] - (EPOCH + n * 0.02) for n, at in enumerate(arrivals) if at) <= 0.03 + 0.3 + 1e-6


def test_nothing_passes_a_break_and_afterwards_all_does() -> None:
    phases = [Phase(key="break", label="", seconds=3.0, mute=True), Phase(key="again", label="", seconds=1.0)]
    arrivals = offered(phases, 0.0, 6.0)
    assert not any(arrivals[:150])
    assert all(arrivals[150:])  # the last phase goes on
