"""The short selection of the bench keeps what it once reached. The bounds lie beside this file; `make bench-bounds` measures them anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from voicestream.testing.bench import run_case
from voicestream.testing.bench.bounds import worse
from voicestream.testing.bench.cases import CASES

BOUNDS = json.loads((Path(__file__).parent / "bench_bounds.json").read_text(encoding="utf-8"))


def test_every_case_of_the_short_selection_has_bounds() -> None:
    assert {case.name for case in CASES if case.quick} == set(BOUNDS)


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_a_case_keeps_its_bounds(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    for seed in BOUNDS[name]["seeds"]:
        outcome = run_case(case, seed)
        assert not outcome.failure, f"seed {seed}: {outcome.failure}"
        failed = worse(BOUNDS[name], outcome.figures)
        assert not failed, f"seed {seed}, (now, bound): {failed}"
