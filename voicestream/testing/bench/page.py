"""The bench as one HTML page: a table of figures beside their bars, and for every case what went on from second to second."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Final

from voicestream.cli.charts import Band, Chart, Lane, Series
from voicestream.cli.page import Tile, chart_data, page_parts, render_axis, render_plot, render_tile
from voicestream.testing.bench.case import Bar, Case
from voicestream.testing.bench.curves import Curves
from voicestream.testing.bench.heard import FRAME_MS
from voicestream.testing.bench.report import bars_asked
from voicestream.testing.bench.run import Outcome

__all__ = ["render_bench"]

SENSE: Final = {">=": "≥", "<=": "≤"}
WAYS: Final = {"b2a": "client to server", "a2b": "server to client"}

COLUMNS: Final = (
    ("Utilisation", "utilisation", "{:.2f}"),
    ("Own queue P50\u00a0ms", "queue_p50_ms", "{:.0f}"),
    ("P95", "queue_p95_ms", "{:.0f}"),
    ("P99", "queue_p99_ms", "{:.0f}"),
    ("Drop over\u00a0s", "react_s", "{:.1f}"),
    ("Rise taken\u00a0s", "take_s", "{:.1f}"),
    ("Delay back\u00a0s", "back_s", "{:.1f}"),
    ("Start\u00a0s", "start_s", "{:.1f}"),
    ("Reversals in 10 s", "reversals", "{:.1f}"),
    ("Jain", "jain", "{:.3f}"),
    ("Media's share", "media_share", "{:.2f}"),
    ("TCP's", "tcp_share", "{:.2f}"),
    ("Dropped", "dropped", "{:.1%}"),
    ("Concealed", "concealed", "{:.2%}"),
    ("Unheard", "unheard", "{:.2%}"),
    ("To playing P50\u00a0ms", "delay_p50_ms", "{:.0f}"),
    ("P95", "delay_p95_ms", "{:.0f}"),
    ("Codec kbps", "bitrate_kbps", "{:.1f}"),
    ("Redundancy", "redundancy", "{:.1%}"),
    ("Mended after\u00a0ms", "recovery_ms", "{:.0f}"),
    ("sent again", "recovery_resent_ms", "{:.0f}"),
    ("repair", "recovery_repair_ms", "{:.0f}"),
    ("copy", "recovery_copy_ms", "{:.0f}"),
)
FORMS: Final = {figure: (heading, form) for heading, figure, form in COLUMNS}
NAMES: Final = {
    "queue_p95_ms": "own queue P95, ms", "delay_p50_ms": "to playing P50, ms", "delay_p95_ms": "to playing P95, ms",
    "react_s": "drop over, s", "take_s": "rise taken, s", "back_s": "delay back, s",
    "start_s": "start, s", "media_share": "media's share", "tcp_share": "TCP's share",
    "reversals": "reversals in 10 s",
}  # fmt: skip


def render_bench(cases: Sequence[Case], outcomes: Sequence[Outcome], *, lead: str, footer: str) -> str:
    """The page as HTML text; curves are of the first seed of each case."""
    by_name = {case.name: case for case in cases}
    charts: list[Chart] = []
    sections = ""
    firsts = list({outcome.case: outcome for outcome in reversed(outcomes)}.values())[::-1]
    for group, members in itertools.groupby(firsts, key=lambda outcome: by_name[outcome.case].group):
        cards = "".join(_card(by_name[outcome.case], outcome, charts) for outcome in members)
        sections += f'<div class="section"><h2>{escape(group or "Given links")}</h2></div>{cards}'
    parts = page_parts() | {
        "lead": escape(lead),
        "tiles": "".join(map(render_tile, _tiles(cases, outcomes))),
        "table": _table(by_name, outcomes),
        "sections": sections,
        "footer": escape(footer),
        "data": chart_data(charts),
    }
    text = resources.files("voicestream.testing.bench").joinpath("page.html").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part, 1)
    return text


def _tiles(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> list[Tile]:
    kept, asked = bars_asked(cases, outcomes)
    whole = sum(not outcome.missed and not outcome.failure for outcome in outcomes)
    seeds = sorted({outcome.seed for outcome in outcomes})
    recorded = sum(case.recording is not None for case in cases)
    drawn = sum(bool(case.synthetic) for case in cases)
    return [
        Tile(label="Bars kept", value=str(kept), unit=f"of {asked}", note=f"{asked - kept} missed"),
        Tile(label="Runs without a miss", value=str(whole), unit=f"of {len(outcomes)}", note=f"{len(cases)} cases"),
        Tile(label="Seeds", value=", ".join(map(str, seeds)) if len(seeds) < 4 else f"{seeds[0]}–{seeds[-1]}", note="plots show the first"),
        Tile(label="Links in motion", value=str(recorded + drawn), note=f"{recorded} recorded, {drawn} drawn at random"),
    ]


def _anchor(name: str) -> str:
    return "case-" + re.sub(r"[^A-Za-z0-9]+", "-", name)


def _number(figure: str, value: float) -> str:
    return FORMS[figure][1].format(value).replace("%", " %") if figure in FORMS else f"{value:.3g}"


def _table(cases: Mapping[str, Case], outcomes: Sequence[Outcome]) -> str:
    """One row a run; a figure with a bar stands above it."""
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading, _, _ in COLUMNS)
    several = len({outcome.seed for outcome in outcomes}) > 1
    rows = ""
    for group, members in itertools.groupby(outcomes, key=lambda outcome: cases[outcome.case].group):
        rows += f'<tr class="group"><th scope="rowgroup" colspan="{len(COLUMNS) + 3}">{escape(group or "Given links")}</th></tr>'
        for outcome in members:
            case = cases[outcome.case]
            bars = {bar.figure: bar for bar in case.bars}
            kept = 0 if outcome.failure else len(case.bars) - len(outcome.missed)
            state = "kept" if kept == len(case.bars) else "missed"
            seed = f' <span class="soft">{outcome.seed}</span>' if several else ""
            name = f'<a href="#{_anchor(case.name)}" title="{escape(case.about)}">{escape(case.name)}</a>{seed}'
            cells = "".join(_cell(outcome.figures, figure, bars.get(figure)) for _, figure, _ in COLUMNS)
            lengths = " / ".join(f"{100 * outcome.figures.get(f'frames_{length}', 0.0):.0f}" for length in FRAME_MS)
            bars_kept = f'<td class="{state}">{kept}/{len(case.bars)}</td>'
            rows += f'<tr data-state="{state}"><th scope="row">{name}</th>{bars_kept}{cells}<td>{lengths}</td></tr>'
    frames = f'<th scope="col">% in frames of {" / ".join(map(str, FRAME_MS))} ms</th>'
    return f'<table><thead><tr><th scope="col">Case</th><th scope="col">Bars</th>{head}{frames}</tr></thead><tbody>{rows}</tbody></table>'


def _cell(figures: Mapping[str, float], figure: str, bar: Bar | None) -> str:
    value = _number(figure, figures[figure]) if figure in figures else "–"
    if bar is None:
        return f"<td>{value}</td>"
    state = "kept" if bar.kept_by(figures) else "missed"
    return f'<td class="{state}">{value}<small>{SENSE[bar.sense]} {_number(figure, bar.limit)}</small></td>'


def _card(case: Case, outcome: Outcome, charts: list[Chart]) -> str:
    """A case: its bars, and its curves above one axis."""
    chips = "".join(_chip(outcome.figures, bar) for bar in case.bars)
    if outcome.failure:
        chips = f'<li class="missed">{escape(outcome.failure)}</li>'
    plots = ""
    for one in outcome.curves:
        for chart in _charts(one, named=len(outcome.curves) > 1):
            plots += render_plot(chart, len(charts))
            charts.append(chart)
    state = "missed" if outcome.missed or outcome.failure else "kept"
    return (
        f'<section class="card timeline case" id="{_anchor(case.name)}" data-state="{state}" data-x-max="{case.seconds:.3f}">'
        f'<div class="headline"><h3>{escape(case.name)}</h3><p>{escape(case.about)}</p><ul class="chips">{chips}</ul></div>'
        '<div class="rows"><div class="layer" aria-hidden="true"><div class="cursor" hidden><span></span></div></div>'
        f'{plots}<div class="row axis" aria-hidden="true">{render_axis(case.seconds)}</div></div></section>'
    )


def _chip(figures: Mapping[str, float], bar: Bar) -> str:
    state = "kept" if bar.kept_by(figures) else "missed"
    value = _number(bar.figure, figures[bar.figure]) if bar.figure in figures else "not there"
    name = NAMES.get(bar.figure, bar.figure.replace("_", " "))
    return f'<li class="{state}">{escape(name)} <b>{value}</b> {SENSE[bar.sense]} {_number(bar.figure, bar.limit)}</li>'


def _charts(one: Curves, *, named: bool) -> list[Chart]:
    suffix = f", {WAYS[one.way]}" if named else ""
    pieces = [
        Band(start=begin, end=end, label=f"{length} ms", short=str(length), kind=f"length-{length}")
        for begin, end, length in one.lengths
    ]
    lane = Lane(label="Length of frames", pieces=pieces)
    rates, top = _rates(one)
    charts = [Chart(title=f"Rates{suffix}", unit="kbps", series=rates, x_max=one.seconds, y_max=top, cut=True, lane=lane)]
    delays = [Series(label="Capture to playing, longest", points=one.playing_ms, colour=4)]
    if one.wait_ms:
        delays.insert(0, Series(label="Wait in the queue, longest", points=one.wait_ms, colour=1))
    charts.append(Chart(title=f"Delay{suffix}", unit="ms", series=delays, x_max=one.seconds, y_max=100))
    losses = [
        Series(label="Dropped by the queue", points=one.dropped, style="stack", colour=2),
        Series(label="Lost behind it", points=one.lost, style="stack", colour=6),
        Series(label="Speech unheard", points=one.unheard, style="step", colour=5),
    ]
    shown = [series for series in losses if _highest(series.points) > 0]
    if shown:
        charts.append(Chart(title=f"Loss{suffix}", unit="%", series=shown, x_max=one.seconds, y_max=5))
    return charts


def _rates(one: Curves) -> tuple[list[Series], float]:
    """The curves, and how high the axis reaches: where the capacity is far above what speech needs, it is cut off."""
    several = len(one.sent_kbps) > 1
    series = []
    if one.capacity_kbps:
        series.append(Series(label="Capacity", points=one.capacity_kbps, style="area", colour=0))
    if one.others_kbps:
        series.append(Series(label="Competitors", points=one.others_kbps, style="step", colour=6))
    if not several:
        series.append(Series(label="Target", points=one.target_kbps, style="dashed", colour=2))
    for number, points in enumerate(one.sent_kbps[:4]):
        series.append(Series(label=f"Call {number + 1}" if several else "Sent", points=points, style="step", colour=(1, 2, 3, 4)[number]))
    sent = max(_highest(points) for points in (*one.sent_kbps, one.others_kbps))
    return series, max(20.0, min(max(1.15 * sent, _highest(one.capacity_kbps) * 1.05), 2.5 * sent))


def _highest(points: Sequence[tuple[float, float | None]]) -> float:
    return max((y for _, y in points if y is not None), default=0.0)
