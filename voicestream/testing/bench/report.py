"""The table."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

from voicestream.testing.bench.case import Bar, Case
from voicestream.testing.bench.heard import FRAME_MS
from voicestream.testing.bench.run import Outcome

__all__ = ["COLUMNS", "LEGEND", "bars_asked", "summary", "table"]

COLUMNS: Final = (
    ("use", "utilisation", "{:.2f}"),
    ("q50", "queue_p50_ms", "{:.0f}"),
    ("q95", "queue_p95_ms", "{:.0f}"),
    ("q99", "queue_p99_ms", "{:.0f}"),
    ("react", "react_s", "{:.1f}"),
    ("take", "take_s", "{:.1f}"),
    ("back", "back_s", "{:.1f}"),
    ("start", "start_s", "{:.1f}"),
    ("turns", "reversals", "{:.1f}"),
    ("jain", "jain", "{:.3f}"),
    ("media", "media_share", "{:.2f}"),
    ("tcp", "tcp_share", "{:.2f}"),
    ("conc%", "concealed", "{:.2%}"),
    ("unhd%", "unheard", "{:.2%}"),
    ("late%", "unheard_350", "{:.1%}"),
    ("l150%", "limit_150", "{:.1%}"),
    ("l250%", "limit_250", "{:.1%}"),
    ("l350%", "limit_350", "{:.1%}"),
    ("drop%", "dropped", "{:.1%}"),
    ("d50", "delay_p50_ms", "{:.0f}"),
    ("d95", "delay_p95_ms", "{:.0f}"),
    ("kbps", "bitrate_kbps", "{:.1f}"),
    ("red%", "redundancy", "{:.1%}"),
    ("rec", "recovery_ms", "{:.0f}"),
    ("resnt", "recovery_resent_ms", "{:.0f}"),
    ("repr", "recovery_repair_ms", "{:.0f}"),
    ("copy", "recovery_copy_ms", "{:.0f}"),
)
"""Heading, figure, form."""

LEGEND: Final = """\
use: least part of min(capacity, need) in steady windows; q: own queueing delay there, ms; react: seconds until a drop of capacity has left
no long wait; take: until nine tenths of new capacity are used; back: until speech plays as early as before the drop again; start: from
accept to a full rate; turns: reversals of the target in 10 s; media, tcp: parts of their fair share; conc: made up; unhd: played by no
tool; late: not heard within 350 ms; l: the limit, what nobody could have had within 150, 250 and 350 ms at 13, 24 or 40 kbps, knowing all
that was to come; drop: dropped by the queue; d: capture to playing, ms; red: redundancy's part of the wire; rec: ms from when a lost frame
would have come to when it came, whole and by tool (sent again, repair, low-rate copy); frames: share of the time in frames of 10/20/40/60
ms.
Bars on use are of what 64 kbps need, so calls here run with RateConfig(headroom=1): by default the codec leaves links below 290 kbps a
reserve, which uses less of them. Below a row stand its bars; * is a miss."""

NAME: Final = 22


def table(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> str:
    """A line a run and under the last of a case its bars; figures that miss theirs are marked with a star."""
    by_name = {case.name: case for case in cases}
    lines: list[str] = []
    heading = f"{'case':{NAME}} seed " + " ".join(f"{heading:>6}" for heading, _, _ in COLUMNS) + f" {'frames':>12}"
    for group, members in itertools.groupby(outcomes, key=lambda outcome: by_name[outcome.case].group):
        lines += ["", f"== {group or 'Given links'}", heading]
        for name, runs in itertools.groupby(members, key=lambda outcome: outcome.case):
            lines += [_row(outcome) for outcome in runs]
            bars = {bar.figure: bar for bar in by_name[name].bars}
            if bars:
                bounds = " ".join(f"{_bound(bars.get(figure), form):>6}" for _, figure, form in COLUMNS)
                lines.append(f"{'':{NAME}}      {bounds}".rstrip())
    return "\n".join(lines[1:])


def _row(outcome: Outcome) -> str:
    if outcome.failure:
        return f"{outcome.case:{NAME}} {outcome.seed:4} {outcome.failure}"
    missed = {text.split()[0] for text in outcome.missed}
    cells = " ".join(_cell(outcome.figures, figure, form, figure in missed) for _, figure, form in COLUMNS)
    frames = "/".join(f"{100 * outcome.figures.get(f'frames_{length}', 0.0):.0f}" for length in FRAME_MS)
    return f"{outcome.case:{NAME}} {outcome.seed:4} {cells} {frames:>12}" + ("  MISS" if missed else "")


def _cell(figures: Mapping[str, float], figure: str, form: str, missed: bool) -> str:
    if figure not in figures:
        return f"{'?*' if missed else '-':>6}"
    text = form.format(figures[figure]).rstrip("%")
    return f"{text + ('*' if missed else ''):>6}"


def _bound(bar: Bar | None, form: str) -> str:
    return "" if bar is None else bar.sense[0] + form.format(bar.limit).rstrip("%")


def bars_asked(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """(bars kept, bars asked for); a run that failed keeps none of its."""
    asked = {case.name: len(case.bars) for case in cases}
    whole = sum(asked[outcome.case] for outcome in outcomes)
    return whole - sum(asked[outcome.case] if outcome.failure else len(outcome.missed) for outcome in outcomes), whole


def summary(cases: Sequence[Case], outcomes: Sequence[Outcome], seconds: float) -> str:
    """What was asked for and missed."""
    lines = [f"{outcome.case} seed {outcome.seed}: {outcome.failure or '; '.join(outcome.missed)}"
             for outcome in outcomes if outcome.missed or outcome.failure]  # fmt: skip
    kept, asked = bars_asked(cases, outcomes)
    lines.append(f"{len(outcomes)} runs in {seconds:.0f} s, {kept} of {asked} bars kept")
    return "\n".join(lines)
