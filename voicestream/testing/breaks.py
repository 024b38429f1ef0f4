"""Breaks calls in virtual time, at random and by seed, and prints what became of them: ``python -m voicestream.testing.breaks``."""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from voicestream.testing.break_call import KINDS, BreakPlan, BreakReport, break_plan, run_break
from voicestream.testing.break_real import real_breaks
from voicestream.testing.break_table import beyond_rtt, case_plans, percentile, real_lines, table

__all__ = ["main", "summary"]

BAR = 0.999
"""Share of the calls that have to survive; below a thousand of them one may not."""

SPEECH_BAR_S = 0.1
"""Seconds beyond one round trip in which half of them have to hear live speech after the path's return."""


def _run(plan: BreakPlan) -> BreakReport:
    try:
        return run_break(plan)
    except Exception as error:
        report = BreakReport(plan=plan)
        report.notes.append(f"{type(error).__name__}: {error}")
        return report


def _times(name: str, values: Sequence[float]) -> str:
    shares = ", ".join(f"P{round(share * 100)} {percentile(values, share):.2f} s" for share in (0.5, 0.95, 1.0))
    return f"{name}: {shares} ({len(values)} measured)"


def _worst(reports: Sequence[BreakReport], most: int = 5) -> str:
    """The calls that lost most outside their breaks."""
    worst = sorted((report for report in reports if report.stray), key=lambda report: -report.stray)[:most]
    return f" (seeds {', '.join(f'{report.plan.seed}: {report.stray}' for report in worst)})" if worst else ""


def summary(reports: Sequence[BreakReport]) -> list[str]:
    """The figures, as lines to print."""
    survived = [report for report in reports if report.survived]
    needed = [report for report in reports if report.resumes]
    by_kind = Counter(report.plan.kind for report in reports)
    lived = Counter(report.plan.kind for report in survived)
    faults = {name: sum(getattr(report, name) for report in reports) for name in ("duplicated", "disordered", "altered")}
    lines = [
        f"calls {len(reports)}, breaks {sum(report.breaks for report in reports)}, of 0.3 to {max(r.plan.seconds for r in reports):.0f} s",
        f"went on in the same session: {len(survived)} of {len(reports)} ({100 * len(survived) / len(reports):.1f} %)",
        "  by kind: " + ", ".join(f"{kind} {lived[kind]}/{by_kind[kind]}" for kind in KINDS if by_kind[kind]),
        f"resumed on a new connection: {len(needed)} calls, {sum(report.resumes for report in reports)} times, "
        f"{sum(report.dials for report in reports)} dials; the others outlived the break on their old one",
        _times("from the path's return to live speech, resumed", [s for r in needed for s in r.to_speech_s]),
        _times("from the path's return to live speech, not resumed", [s for r in reports if not r.resumes for s in r.to_speech_s]),
        _times("the same, all, beyond one round trip", [s for r in reports for s in beyond_rtt(r)]),
        _times("the same, to what was said since the return", [s - 2 * r.plan.delay_ms / 1000 for r in reports for s in r.to_fresh_s]),
        _times("from the path's return to the next frame in order", [s for r in reports for s in r.to_reading_s]),
        f"frames in order: {sum(r.lost for r in reports)} lost, {sum(r.too_old for r in reports)} older than what is kept, "
        f"{sum(r.stray for r in reports)} lost outside the breaks{_worst(reports)}; "
        f"{sum(r.replayed for r in reports)} sent again",
        f"duplicated {faults['duplicated']}, out of order {faults['disordered']}, altered {faults['altered']}",
    ]
    after = [report.rate_bps for report in needed if len(report.rate_bps) == 4]
    if after:
        medians = [percentile([rates[index] / 1000 for rates in after], 0.5) for index in range(4)]
        least = [min(rates[index] for rates in after) / 1000 for index in range(4)]
        columns = zip(("before", "2 s after", "4 s", "8 s"), medians, least, strict=True)
        lines.append("bitrate, kbps (median/least): " + ", ".join(f"{when} {middle:.0f}/{low:.0f}" for when, middle, low in columns))
    return lines


def failures(reports: Sequence[BreakReport]) -> list[str]:
    """What went wrong, a line for each call."""
    found = []
    for report in reports:
        faults = [f"{name} {getattr(report, name)}" for name in ("duplicated", "disordered", "altered", "lost") if getattr(report, name)]
        if faults or report.notes:
            found.append(f"seed {report.plan.seed}: {'; '.join([*faults, *report.notes])} ({report.plan})")
    return found


def _collect(reports: list[BreakReport], done: Iterable[BreakReport], options: argparse.Namespace, began: float, count: int) -> None:
    """Take the reports as they come, and print failures at once and the figures of every part: a run may be cut off."""
    for report in done:
        reports.append(report)
        for line in failures([report]):
            print(line, flush=True)
        if len(reports) % options.part == 0 and len(reports) < count and count == options.count:
            print(f"--- so far, {time.monotonic() - began:.0f} s", *summary(reports), sep="\n", flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m voicestream.testing.breaks", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many calls with breaks at random (default 200)")
    parser.add_argument("--cases", type=int, default=0, metavar="N", help="first the named cases, N calls of each (default 0)")
    parser.add_argument("--real", type=int, default=0, metavar="N", help="then N calls on real sockets whose link goes mute (default 0)")
    parser.add_argument("--redis", metavar="URL", help="those go on at a second server, which shares this Redis (or 'own') with the first")
    parser.add_argument("--seed", type=int, default=1, help="of the first; the others have the numbers that follow (default 1)")
    parser.add_argument("--longest", type=float, default=60.0, help="seconds of the longest break (default 60)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--part", type=int, default=25, help="print the figures so far after every so many calls (default 25)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status, 1 if a promise was broken."""
    options = _options(arguments)
    began = time.monotonic()
    cases: list[BreakReport] = []
    reports: list[BreakReport] = []
    named = case_plans(options.cases, options.seed)
    plans = [break_plan(options.seed + number, longest_s=options.longest) for number in range(options.count)]
    with multiprocessing.get_context("spawn").Pool(options.jobs) if options.jobs > 1 else contextlib.nullcontext() as pool:
        for work, into in (([plan for _, plan in named], cases), (plans, reports)):
            _collect(into, map(_run, work) if pool is None else pool.imap(_run, work, chunksize=1), options, began, len(work))
            if work and into is cases:
                print(*table(list(zip((name for name, _ in named), cases, strict=True))), sep="\n", flush=True)
    real = real_breaks(range(options.seed, options.seed + options.real), redis=options.redis) if options.real else []
    if reports:
        print(*failures(reports), *summary(reports), sep="\n")
    print(*(real_lines(real) if real else ()), f"{time.monotonic() - began:.0f} s", sep="\n")
    return 0 if _kept([*cases, *reports]) and _is_soon(reports) and all(one.succeeded for one in real) else 1


def _kept(reports: Sequence[BreakReport]) -> bool:
    died = sum(not report.survived for report in reports)
    wrong = sum(report.duplicated + report.disordered + report.altered for report in reports)
    return died <= max(1, (1 - BAR) * len(reports)) and not wrong


def _is_soon(reports: Sequence[BreakReport]) -> bool:
    """Whether speech is back in time; a handful of calls tells nothing."""
    beyond = [seconds for report in reports for seconds in beyond_rtt(report)]
    return len(beyond) < 20 or percentile(beyond, 0.5) <= SPEECH_BAR_S


if __name__ == "__main__":
    sys.exit(main())
