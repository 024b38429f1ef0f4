"""What the short selection has once reached, as bounds that the tests hold: checked here, measured anew here.

    python -m voicestream.testing.bench.bounds tests/sim/bench_bounds.json           what is, beside what was
    python -m voicestream.testing.bench.bounds tests/sim/bench_bounds.json --write   tighten what got better, add what is new
    python -m voicestream.testing.bench.bounds tests/sim/bench_bounds.json --write --loosen chat-quarter   anew, whatever was

The file has one entry a case: ``{"seeds": [1], "at_least": {figure: bound}, "at_most": {figure: bound}}``; the worst seed counts.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

from voicestream.testing.bench.bars import BACK, EQUAL, REACT, START, STEADY, TAKE
from voicestream.testing.bench.case import Bar, Case
from voicestream.testing.bench.cases import CASES
from voicestream.testing.bench.run import run_case

__all__ = ["Bounds", "main", "measured", "worse"]

Bounds = Mapping[str, Any]
"""One entry of the file."""

AT_LEAST: Final = ("utilisation", "jain", "media_share", "tcp_share")
ROOM: Final[Mapping[str, tuple[float, float]]] = {
    "utilisation": (0.03, 0), "jain": (0.02, 0), "media_share": (0.1, 0), "tcp_share": (0.1, 0),
    "queue_p95_ms": (0.15, 8), "react_s": (0.1, 0.25), "take_s": (0.15, 0.5), "back_s": (0.15, 1.0), "start_s": (0.1, 0.25),
    "reversals": (0.2, 0.5),
    "concealed": (0.2, 0.002), "unheard": (0.2, 0.002), "delay_p50_ms": (0.1, 10), "delay_p95_ms": (0.15, 20),
}  # fmt: skip
"""Figures that are bounded, and how far a bound stands from what was measured: a part of it, and so much more."""

SHARES: Final = (Bar("media_share", ">=", 0.5), Bar("tcp_share", ">=", 0.5))
COMMON: Final = {bar.figure: bar for bar in (*STEADY, EQUAL, REACT, TAKE, BACK, START, *SHARES)}
"""Bars that hold for their figures wherever a case has none of its own."""


def measured(case: Case, figures: Sequence[Mapping[str, float]], seeds: Sequence[int]) -> dict[str, Any]:
    """The entry that these figures, one a seed, would make: the bar where it is kept, else what was measured and some room."""
    bars = COMMON | {bar.figure: bar for bar in case.bars}
    entry: dict[str, Any] = {"seeds": list(seeds), "at_least": {}, "at_most": {}}
    for figure, (part, more) in ROOM.items():
        values = [one[figure] for one in figures if figure in one]
        if not values:
            continue
        bar = bars.get(figure)
        if bar is not None and all(map(bar.passed, values)):
            entry["at_least" if figure in AT_LEAST else "at_most"][figure] = bar.limit
        elif figure in AT_LEAST:
            entry["at_least"][figure] = _round(min(values) * (1 - part), math.floor)
        else:
            entry["at_most"][figure] = _round(max(values) * (1 + part) + more, math.ceil)
    return entry


def _round(value: float, to: Any) -> float:
    """To three digits, toward the loose side."""
    scale = 10.0 ** (2 - math.floor(math.log10(abs(value)))) if value else 1.0
    return float(f"{to(value * scale) / scale:.6g}")


def worse(entry: Bounds, figures: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """(now, bound) of the figures that do not keep their bounds; one that is no longer there does not."""
    least = {name: (figures.get(name, -math.inf), bound) for name, bound in entry["at_least"].items()}
    most = {name: (figures.get(name, math.inf), bound) for name, bound in entry["at_most"].items()}
    failed = {name: pair for name, pair in least.items() if pair[0] < pair[1]}
    return failed | {name: pair for name, pair in most.items() if pair[0] > pair[1]}


def _merged(old: Bounds | None, new: dict[str, Any]) -> dict[str, Any]:
    """The tighter of both; figures that are only new are added."""
    if old is None:
        return new
    return {
        "seeds": old["seeds"],
        "at_least": new["at_least"] | {name: max(bound, new["at_least"].get(name, bound)) for name, bound in old["at_least"].items()},
        "at_most": new["at_most"] | {name: min(bound, new["at_most"].get(name, bound)) for name, bound in old["at_most"].items()},
    }


def _text(entries: Mapping[str, Bounds]) -> str:
    """One line a case, so that changes are read and merged line by line."""
    return "{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items()) + "\n}\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns 1 when a bound does not hold and is not written anew, else 0."""
    parser = argparse.ArgumentParser(prog="python -m voicestream.testing.bench.bounds", description="Bounds of the short selection.")
    parser.add_argument("file", type=Path, help="the JSON file")
    parser.add_argument("--write", action="store_true", help="tighten bounds, add figures and cases")
    parser.add_argument("--loosen", nargs="*", default=[], metavar="CASE", help="with --write: bounds anew, whatever they were")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: %(default)s)")
    options = parser.parse_args(argv)
    old: dict[str, Bounds] = json.loads(options.file.read_text(encoding="utf-8")) if options.file.exists() else {}
    cases: list[Case] = [case for case in CASES if case.quick]
    jobs = [(case, seed) for case in cases for seed in (old[case.name]["seeds"] if case.name in old else [1])]
    with ProcessPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(run_case, *zip(*jobs, strict=True)))
    entries, broken = {}, False
    for case in cases:
        own = [outcome for outcome in outcomes if outcome.case == case.name]
        entry = measured(case, [outcome.figures for outcome in own], [outcome.seed for outcome in own])
        before = old.get(case.name)
        entries[case.name] = entry if case.name in options.loosen else _merged(before, entry)
        failed = {} if before is None else {figure: pair for outcome in own for figure, pair in worse(before, outcome.figures).items()}
        broken |= bool(failed) and case.name not in options.loosen
        print(f"{case.name}: {'; '.join(f'{name} is {now:.4g}, bound {bound:g}' for name, (now, bound) in failed.items()) or 'kept'}")
    if options.write:
        options.file.write_text(_text(entries), encoding="utf-8")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
