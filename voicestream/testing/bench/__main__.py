"""The command line of the bench."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from voicestream.testing.bench.case import Bar, Case
from voicestream.testing.bench.cases import CASES
from voicestream.testing.bench.cases_recorded import recorded
from voicestream.testing.bench.page import render_bench
from voicestream.testing.bench.report import LEGEND, summary, table
from voicestream.testing.bench.run import Outcome, run_case
from voicestream.testing.profile import NetworkProfile

LEAD = (
    "Whole calls over real QUIC on emulated links, faster than time: rate control, recovery and playout on shared and changing "
    "capacity, beside competitors, under loss, jitter and drifting clocks. Every figure stands beside its bar where it has one."
)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m voicestream.testing.bench", description="Rate control in virtual time.")
    parser.add_argument("cases", nargs="*", help="names of cases; all by default")
    parser.add_argument("--list", action="store_true", help="say what cases there are")
    parser.add_argument("--quick", action="store_true", help="only the short selection")
    parser.add_argument("--seeds", default="1", help="numbers with commas, or FIRST-LAST (default: %(default)s)")
    parser.add_argument("--jobs", "--processes", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument(
        "--traces", type=Path, metavar="DIR", default=os.environ.get("VOICESTREAM_TRACES") or None,
        help="recorded capacities and delays in it and below are cases too (default: VOICESTREAM_TRACES)",
    )  # fmt: skip
    parser.add_argument("--profile", action="append", default=[], metavar="FILE", help="a link from a JSON profile as one more case")
    parser.add_argument("--seconds", type=float, default=60, help="length of such cases (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every figure there")
    parser.add_argument("--page", metavar="FILE", type=Path, help="write an HTML page with figures and plots there")
    return parser.parse_args(argv)


def _seeds(text: str) -> list[int]:
    if "-" in text:
        first, last = text.split("-")
        return list(range(int(first), int(last) + 1))
    return [int(part) for part in text.split(",")]


def _from_profile(name: str, seconds: float) -> Case:
    profile = NetworkProfile.from_json(name)
    bars = (Bar("queue_p95_ms", "<=", 150),)
    return Case(name=Path(name).stem, about="from a profile", seconds=seconds, b2a=profile.b2a, a2b=profile.a2b, settle=3, bars=bars)


def _run(jobs: Sequence[tuple[Case, int]], processes: int, *, draw: bool) -> list[Outcome]:
    run = partial(run_case, draw=draw)
    if processes > 1 and len(jobs) > 1:
        with ProcessPoolExecutor(processes) as pool:
            return list(_told(pool.map(run, *zip(*jobs, strict=True)), len(jobs)))
    return list(_told((run(*job) for job in jobs), len(jobs)))


def _told(outcomes: Iterable[Outcome], count: int) -> Iterator[Outcome]:
    """Tell a user at a terminal how far things are."""
    for number, outcome in enumerate(outcomes, 1):
        if sys.stderr.isatty():
            print(f"\r{number} of {count} runs", end="\n" if number == count else "", file=sys.stderr, flush=True)
        yield outcome


def _json(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> str:
    """A row a run: its figures, its bars, those missed."""
    by_name = {case.name: case for case in cases}
    rows = [
        {
            "case": one.case, "group": by_name[one.case].group, "about": by_name[one.case].about, "seed": one.seed,
            "figures": dict(one.figures), "bars": [str(bar) for bar in by_name[one.case].bars], "missed": list(one.missed),
            "failure": one.failure,
        }
        for one in outcomes
    ]  # fmt: skip
    return json.dumps(rows, indent=1) + "\n"


def _recordings(cases: Sequence[Case], folder: Path | None) -> str:
    """What the links that change all the time were made of."""
    count = sum(case.recording is not None for case in cases)
    if count:
        return f"{count} recorded links"
    if folder is not None:
        return "no recorded links among these cases"
    return "no folder of recorded links named (--traces DIR or VOICESTREAM_TRACES): links drawn at random in their manner stand for them"


def main(argv: Sequence[str] | None = None) -> int:
    """Run; returns 0 when every bar was kept, else 1."""
    options = _arguments(argv)
    cases = [_from_profile(name, options.seconds) for name in options.profile]
    offered = (*CASES, *recorded(options.traces and Path(options.traces)))
    if options.cases or options.quick or not cases:
        known = {case.name: case for case in offered}
        unknown = [name for name in options.cases if name not in known]
        if unknown:
            print(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}", file=sys.stderr)
            return 2
        cases += [case for case in offered if (case.name in options.cases if options.cases else case.quick or not options.quick)]
    if options.list:
        for case in cases:
            print(f"{case.name:26} {case.about}; {', '.join(map(str, case.bars))}")
        return 0
    began = time.monotonic()
    # The longest first, so that the processes end together.
    jobs = sorted(((case, seed) for case in cases for seed in _seeds(options.seeds)), key=lambda job: -job[0].seconds * len(job[0].media))
    outcomes = _run(jobs, options.jobs, draw=options.page is not None)
    order = {case.name: index for index, case in enumerate(cases)}
    outcomes.sort(key=lambda outcome: (order[outcome.case], outcome.seed))
    print(LEGEND, table(cases, outcomes), "", sep="\n")
    print(summary(cases, outcomes, time.monotonic() - began))
    print(_recordings(cases, options.traces))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(_json(cases, outcomes), encoding="utf-8")
    if options.page:
        options.page.parent.mkdir(parents=True, exist_ok=True)
        footer = f"{len(outcomes)} runs in {time.monotonic() - began:.0f} s; {_recordings(cases, options.traces)}."
        options.page.write_text(render_bench(cases, outcomes, lead=LEAD, footer=footer), encoding="utf-8")
    return int(any(outcome.missed or outcome.failure for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
