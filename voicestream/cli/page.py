"""One self-contained HTML page about a call: checks, figures, players, charts over time, tables. No external resource."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Final

import numpy as np
from numpy.typing import NDArray

from voicestream.audio.g711 import ulaw_encode
from voicestream.cli.charts import Band, Chart, Lane, Series, nice_ticks, render_chart, render_lane, render_legend, render_waveform

__all__ = [
    "Check",
    "Clip",
    "Direction",
    "Mark",
    "Page",
    "Table",
    "Tile",
    "chart_data",
    "page_parts",
    "render_axis",
    "render_page",
    "render_plot",
    "render_tile",
    "wav_bytes",
]

MULAW: Final = 7
"""Format tag of G.711 µ-law in a WAV file: half the size of linear samples, and every browser plays it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """Something that had to hold, and what was found."""

    title: str
    passed: bool
    finding: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A figure to read at a glance."""

    label: str
    value: str
    unit: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Clip:
    """A recording to listen to.

    Attributes:
        title: Its heading.
        note: A line about it.
        pcm: Mono samples.
        sample_rate_hz: Their rate.
        offset_s: Where on the charts' axis it begins.
        marks: Stretches to point out, in seconds of the charts' axis.
    """

    title: str
    note: str
    pcm: NDArray[np.int16]
    sample_rate_hz: int
    offset_s: float = 0.0
    marks: Sequence[Band] = ()

    @property
    def seconds(self) -> float:
        """Its length."""
        return len(self.pcm) / self.sample_rate_hz


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A moment to point out on all charts; its name stands before or behind it."""

    at: float
    label: str
    before: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Rows of words, the first being the head."""

    title: str
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Direction:
    """One way of the call: its recordings and its charts, all above one time axis, and a table."""

    name: str
    clips: Sequence[Clip]
    charts: Sequence[Chart]
    table: Table | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """All that the page shows.

    Attributes:
        title: Of the browser's window.
        heading: On the page.
        lead: What happened, in a few sentences.
        checks: What had to hold.
        tiles: Key figures.
        directions: One or two ways of the call.
        seconds: Right end of the time axis.
        phases: Stretches behind all charts.
        marks: Moments in all charts.
        footer: How the page came about.
    """

    title: str
    heading: str
    lead: str
    checks: Sequence[Check]
    tiles: Sequence[Tile]
    directions: Sequence[Direction]
    seconds: float
    phases: Sequence[Band] = ()
    marks: Sequence[Mark] = ()
    footer: str = ""


def render_page(page: Page) -> str:
    """The page as HTML text."""
    charts = [chart for direction in page.directions for chart in direction.charts]
    parts = page_parts() | {
        "title": escape(page.title),
        "heading": escape(page.heading),
        "lead": escape(page.lead),
        "checks": _checks(page.checks),
        "tiles": "".join(map(render_tile, page.tiles)),
        "switch": _switch(page.directions),
        "timelines": "".join(_timeline(page, index) for index in range(len(page.directions))),
        "summary": "".join(_summary(index, direction) for index, direction in enumerate(page.directions)),
        "table": _table(_values(charts, page.directions)),
        "footer": escape(page.footer),
        "data": chart_data(charts),
    }
    text = resources.files("voicestream.cli").joinpath("page.html").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part, 1)
    return text


def page_parts() -> dict[str, str]:
    """What all pages share: "style" and "script"."""
    folder = resources.files("voicestream.cli")
    return {part: folder.joinpath(name).read_text(encoding="utf-8") for part, name in (("style", "page.css"), ("script", "page.js"))}


def wav_bytes(pcm: NDArray[np.int16], sample_rate_hz: int) -> bytes:
    """A mono WAV file of `pcm` in G.711 µ-law, 8 bits a sample."""
    data = ulaw_encode(pcm)
    form = struct.pack("<HHIIHHH", MULAW, 1, sample_rate_hz, sample_rate_hz, 1, 8, 0)
    fact = struct.pack("<I", len(data))
    chunks = b"".join(
        name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)
        for name, body in ((b"fmt ", form), (b"fact", fact), (b"data", data))
    )
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def _checks(checks: Sequence[Check]) -> str:
    if not checks:
        return ""
    passed = sum(check.passed for check in checks)
    items = ""
    for check in checks:
        kind, word = ("passed", "Passed") if check.passed else ("failed", "Failed")
        items += (
            f'<li class="{kind}"><span class="sign" role="img" aria-label="{word}"></span>'
            f"<div><h3>{escape(check.title)}</h3><p>{escape(check.finding)}</p></div></li>"
        )
    head = f"{len(checks) - passed} of {len(checks)} checks failed"
    if passed == len(checks):
        head = f"All {passed} checks passed" if passed > 1 else "1 check passed"
    return f'<section class="card checks" aria-labelledby="checks"><h2 id="checks">{head}</h2><ul>{items}</ul></section>'


def render_tile(tile: Tile) -> str:
    """A key figure on its card."""
    unit = f'<span class="unit">{escape(tile.unit)}</span>' if tile.unit else ""
    note = f'<div class="note">{escape(tile.note)}</div>' if tile.note else ""
    value = f'<span class="value">{escape(tile.value)}{unit}</span>'
    return f'<div class="card tile"><dt>{escape(tile.label)}</dt><dd>{value}{note}</dd></div>'


def _switch(directions: Sequence[Direction]) -> str:
    if len(directions) < 2:
        return ""
    buttons = "".join(
        f'<button type="button" aria-pressed="{"false" if index else "true"}" data-way="{index}">{escape(direction.name)}</button>'
        for index, direction in enumerate(directions)
    )
    return f'<div class="switch" role="group" aria-label="Direction">{buttons}</div>'


def _timeline(page: Page, index: int) -> str:
    """Everything about one direction above one axis."""
    direction, x_max = page.directions[index], max(page.seconds, 1e-9)
    players = "".join(map(_player, direction.clips))
    waves = "".join(_wave(clip, x_max) for clip in direction.clips)
    first = sum(len(before.charts) for before in page.directions[:index])
    plots = "".join(render_plot(chart, first + number) for number, chart in enumerate(direction.charts))
    phases = render_lane(Lane(label="Phases of the link", pieces=page.phases), x_max) if page.phases else ""
    return (
        f'<section class="card timeline" data-way="{index}" data-x-max="{x_max:.3f}" aria-label="{escape(direction.name)}">'
        f'<h3 class="way">{escape(direction.name)}</h3><div class="players">{players}</div>'
        f'<div class="rows"><div class="layer" aria-hidden="true">{_layer(page, x_max)}</div><div class="row phases">{phases}</div>'
        f'{waves}{plots}<div class="row axis" aria-hidden="true">{render_axis(x_max)}</div></div></section>'
    )


def _layer(page: Page, x_max: float) -> str:
    """What lies behind all rows: phases, moments, and the line at the pointer."""
    parts = ""
    for band in page.phases:
        place = f"left:{100 * band.start / x_max:.3f}%;width:{100 * (min(band.end, x_max) - band.start) / x_max:.3f}%"
        parts += f'<div class="band {escape(band.kind)}" style="{place}"></div>'
    for mark in page.marks:
        side = "before" if mark.before else "behind"
        parts += f'<div class="moment {side}" style="left:{100 * mark.at / x_max:.3f}%"><span>{escape(mark.label)}</span></div>'
    return parts + '<div class="cursor" hidden><span></span></div>'


def render_axis(x_max: float) -> str:
    """The numbers of the time axis that all rows share."""
    ticks = [value for value in nice_ticks(0.0, x_max, 7) if value <= x_max * (1 + 1e-9)]
    return "".join(f'<span style="left:{100 * value / x_max:.3f}%">{value:g}{"" if value else " s"}</span>' for value in ticks)


def _player(clip: Clip) -> str:
    data = base64.b64encode(wav_bytes(clip.pcm, clip.sample_rate_hz)).decode()
    sound = f'<audio controls preload="metadata" aria-label="{escape(clip.title)}" src="data:audio/wav;base64,{data}"></audio>'
    return f'<div class="player" data-offset="{clip.offset_s:.3f}"><h4>{escape(clip.title)}</h4><p>{escape(clip.note)}</p>{sound}</div>'


def _wave(clip: Clip, x_max: float) -> str:
    end = clip.offset_s + clip.seconds
    label = f"Waveform: {clip.title}, {clip.seconds:.1f} seconds"
    picture = render_waveform(clip.pcm, start=clip.offset_s, end=end, x_max=x_max, label=label, marks=clip.marks)
    return f'<div class="row sound"><h4>{escape(clip.title)}</h4>{picture}</div>'


def render_plot(chart: Chart, index: int) -> str:
    """A chart as a row; `index` is its place in `chart_data`."""
    note = f'<p class="note">{escape(chart.note)}</p>' if chart.note else ""
    title = f'<h4>{escape(chart.title)} <span class="unit">{escape(chart.unit)}</span></h4>'
    head = f'<figcaption>{title}{render_legend(chart)}{note}</figcaption>'
    lane = "" if chart.lane is None else render_lane(chart.lane, chart.x_max)
    return f'<figure class="row plot" data-chart="{index}">{head}{render_chart(chart)}{lane}</figure>'


def _summary(index: int, direction: Direction) -> str:
    if direction.table is None:
        return ""
    return f'<div class="card scroll" data-way="{index}"><h3>{escape(direction.table.title)}</h3>{_table(direction.table.rows)}</div>'


def _table(rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in rows[0])
    body = ""
    for name, *cells in rows[1:]:
        body += f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _values(charts: Sequence[Chart], directions: Sequence[Direction]) -> list[list[str]]:
    """Every second's values of every curve, for who cannot or will not read charts."""
    names = [direction.name for direction in directions for _ in direction.charts]
    named = zip(names, charts, strict=True)
    head = ["Second"] + [f"{name}: {series.label} ({chart.unit})" for name, chart in named for series in chart.series]
    curves = [_by_second(series) for chart in charts for series in chart.series]
    seconds = sorted({second for curve in curves for second in curve})
    return [head] + [[str(second)] + [_number(curve.get(second)) for curve in curves] for second in seconds]


def _by_second(series: Series) -> dict[int, float | None]:
    return {round(x): y for x, y in series.points}


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def chart_data(charts: Sequence[Chart]) -> str:
    """The values behind the charts as JSON, for the script."""
    rounded = [
        {
            "unit": chart.unit,
            "series": [
                {
                    "interval": series.style in ("step", "area", "stack"),
                    "points": [[round(x, 2), None if y is None else round(y, 2)] for x, y in series.points],
                }
                for series in chart.series
            ],
        }
        for chart in charts
    ]
    # "<" would let a label end the script element.
    return json.dumps(rounded, separators=(",", ":")).replace("<", "\\u003c")
