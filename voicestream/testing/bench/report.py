"""The table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from voicestream.testing.bench.case import Case
from voicestream.testing.bench.run import Outcome

__all__ = ["summary", "table"]

COLUMNS: Final = (
    ("use", "utilisation", "{:.2f}"),
    ("q50", "queue_p50_ms", "{:.0f}"),
    ("q95", "queue_p95_ms", "{:.0f}"),
    ("q99", "queue_p99_ms", "{:.0f}"),
    ("react", "react_s", "{:.1f}"),
    ("take", "take_s", "{:.1f}"),
    ("start", "start_s", "{:.1f}"),
    ("turns", "reversals", "{:.1f}"),
    ("jain", "jain", "{:.3f}"),
    ("media", "media_share", "{:.2f}"),
    ("tcp", "tcp_share", "{:.2f}"),
    ("conc%", "concealed", "{:.2%}"),
    ("kbps", "bitrate_kbps", "{:.1f}"),
    ("red%", "redundancy", "{:.1%}"),
    ("d50", "delay_p50_ms", "{:.0f}"),
    ("d95", "delay_p95_ms", "{:.0f}"),
)
"""Heading, figure, form. use: least utilisation of the steady windows; q: own queueing delay there in ms; react, take, start: seconds;
turns: reversals per 10 s; media, tcp: parts of their fair share; conc: concealed; red: redundancy; d: capture to playing in ms."""


def table(outcomes: Sequence[Outcome]) -> str:
    """One line a run; figures that miss their bar are marked with a star."""
    lines = ["case         seed " + " ".join(f"{heading:>6}" for heading, _, _ in COLUMNS)]
    for outcome in outcomes:
        if outcome.failure:
            lines.append(f"{outcome.case:12} {outcome.seed:4} {outcome.failure}")
            continue
        missed = {text.split()[0] for text in outcome.missed}
        cells = [_cell(outcome, figure, form, figure in missed) for _, figure, form in COLUMNS]
        lines.append(f"{outcome.case:12} {outcome.seed:4} " + " ".join(cells) + ("  MISS" if missed else ""))
    return "\n".join(lines)


def _cell(outcome: Outcome, figure: str, form: str, missed: bool) -> str:
    if figure not in outcome.figures:
        return f"{'-':>6}"
    text = form.format(outcome.figures[figure]).rstrip("%")
    return f"{text + ('*' if missed else ''):>6}"


def summary(cases: Sequence[Case], outcomes: Sequence[Outcome], seconds: float) -> str:
    """What was asked for and missed."""
    bars = sum(len(case.bars) for case in cases for outcome in outcomes if outcome.case == case.name and not outcome.failure)
    lines = [f"{outcome.case} seed {outcome.seed}: {outcome.failure or '; '.join(outcome.missed)}"
             for outcome in outcomes if outcome.missed or outcome.failure]  # fmt: skip
    missed = sum(len(outcome.missed) for outcome in outcomes)
    lines.append(f"{len(outcomes)} runs in {seconds:.0f} s, {bars - missed} of {bars} bars kept")
    return "\n".join(lines)
