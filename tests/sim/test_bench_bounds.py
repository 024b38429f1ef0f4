"""The short selection of the bench keeps what it once reached. The bounds lie beside this file; tighten them when things get better."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from voicestream.testing.bench import run_case
from voicestream.testing.bench.cases import CASES

BOUNDS = json.loads((Path(__file__).parent / "bench_bounds.json").read_text(encoding="utf-8"))
AT_LEAST = {"utilisation", "jain", "media_share", "tcp_share", "bitrate_kbps"}


def test_every_case_of_the_short_selection_has_bounds() -> None:
    assert {case.name for case in CASES if case.quick} == set(BOUNDS)


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_a_case_keeps_its_bounds(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    outcome = run_case(case, seed=1)
    assert not outcome.failure, outcome.failure
    worse = {
        figure: (round(outcome.figures[figure], 4), bound)
        for figure, bound in BOUNDS[name].items()
        if (outcome.figures[figure] < bound if figure in AT_LEAST else outcome.figures[figure] > bound)
    }
    assert not worse, f"(now, bound): {worse}"
