"""One self-contained HTML page about a call: figures, players, charts over time, a table. No external resource."""

from __future__ import annotations

import base64
import io
import json
import wave
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from voicestream.cli.charts import Band, Chart, render_chart, render_legend, render_waveform

__all__ = ["Clip", "Direction", "Page", "Tile", "render_page"]


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
        marks: Stretches to point out, in seconds of the clip.
    """

    title: str
    note: str
    pcm: NDArray[np.int16]
    sample_rate_hz: int
    offset_s: float = 0.0
    marks: Sequence[Band] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Direction:
    """One way of the call: its recordings and its charts. Charts of the same rank stand beside each other."""

    name: str
    clips: Sequence[Clip]
    charts: Sequence[Chart]


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """All that the page shows.

    Attributes:
        title: Of the browser's window.
        heading: On the page.
        lead: What happened, in a few sentences.
        tiles: Key figures.
        directions: One or two ways of the call.
        summary: Rows of a table, the first being its head.
        footer: How the page came about.
    """

    title: str
    heading: str
    lead: str
    tiles: Sequence[Tile]
    directions: Sequence[Direction]
    summary: Sequence[Sequence[str]]
    footer: str


def render_page(page: Page) -> str:
    """The page as HTML text."""
    charts = [chart for direction in page.directions for chart in direction.charts]
    parts = {
        "title": escape(page.title),
        "heading": escape(page.heading),
        "lead": escape(page.lead),
        "tiles": "".join(map(_tile, page.tiles)),
        "clips": "".join(_clips(index, direction) for index, direction in enumerate(page.directions)),
        "charts": _figures(page.directions),
        "summary": _table(page.summary),
        "table": _table(_values(charts, page.directions)),
        "footer": escape(page.footer),
        "data": _chart_data(charts),
    }
    text = resources.files("voicestream.cli").joinpath("page.html").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part, 1)
    return text


def wav_bytes(pcm: NDArray[np.int16], sample_rate_hz: int) -> bytes:
    """A mono 16-bit WAV file of `pcm`."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate_hz)
        file.writeframes(pcm.astype("<i2").tobytes())
    return buffer.getvalue()


def _tile(tile: Tile) -> str:
    unit = f'<span class="unit">{escape(tile.unit)}</span>' if tile.unit else ""
    note = f'<div class="note">{escape(tile.note)}</div>' if tile.note else ""
    value = f'<span class="value">{escape(tile.value)}{unit}</span>'
    return f'<div class="tile"><dt>{escape(tile.label)}</dt><dd>{value}{note}</dd></div>'


def _clips(index: int, direction: Direction) -> str:
    clips = "".join(map(_clip, direction.clips))
    return f'<div data-direction="{index}"><p class="direction">{escape(direction.name)}</p><div class="card">{clips}</div></div>'


def _clip(clip: Clip) -> str:
    seconds = max(len(clip.pcm) / clip.sample_rate_hz, 1e-3)
    data = base64.b64encode(wav_bytes(clip.pcm, clip.sample_rate_hz)).decode()
    wave_form = render_waveform(clip.pcm, seconds, label=f"Waveform: {clip.title}, {seconds:.1f} seconds", marks=clip.marks)
    head = f"<h3>{escape(clip.title)}</h3><p>{escape(clip.note)}</p>"
    player = f'<audio controls preload="metadata" aria-label="{escape(clip.title)}" src="data:audio/wav;base64,{data}"></audio>'
    return f'<div class="clip" data-offset="{clip.offset_s:.3f}">{head}{wave_form}{player}</div>'


def _figures(directions: Sequence[Direction]) -> str:
    """The charts rank by rank, so that both ways of the call share a row (and a y axis, which the caller sees to)."""
    parts = [f'<p class="direction pair-{_rank(number)}">{escape(way.name)}</p>' for number, way in enumerate(directions)]
    first = 0
    starts = []
    for direction in directions:
        starts.append(first)
        first += len(direction.charts)
    for rank in range(max((len(direction.charts) for direction in directions), default=0)):
        for number, direction in enumerate(directions):
            if rank < len(direction.charts):
                parts.append(_figure(direction.charts[rank], starts[number] + rank, number))
    return "".join(parts)


def _figure(chart: Chart, index: int, direction: int) -> str:
    head = f'<figcaption class="head"><h3>{escape(chart.title)}</h3>{render_legend(chart)}</figcaption>'
    data = f'data-chart="{index}" data-direction="{direction}"'
    return f'<figure class="card pair-{_rank(direction)}" {data}>{head}{render_chart(chart)}</figure>'


def _rank(direction: int) -> str:
    return "second" if direction else "first"


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
    curves = [{round(x): y for x, y in series.points} for chart in charts for series in chart.series]
    seconds = sorted({second for curve in curves for second in curve})
    return [head] + [[str(second)] + [_number(curve.get(second)) for curve in curves] for second in seconds]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _chart_data(charts: Sequence[Chart]) -> str:
    rounded = [
        {
            "unit": chart.unit,
            "series": [
                {"label": series.label, "points": [[round(x, 2), None if y is None else round(y, 2)] for x, y in series.points]}
                for series in chart.series
            ],
        }
        for chart in charts
    ]
    # "<" would let a label end the script element.
    return json.dumps(rounded, separators=(",", ":")).replace("<", "\\u003c")
