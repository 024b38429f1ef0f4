"""Charts over time, lanes and waveforms as HTML text: small pure functions, no dependency, no state.

Curves are SVG that stretches to whatever room there is; words and numbers are HTML beside it, so that they never do. Colours, fonts
and the dark theme are the page's: an element only names its class (``line-1``, ``fill-2``, ``grid`` ...).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Band",
    "Chart",
    "Lane",
    "Point",
    "Series",
    "describe",
    "nice_ticks",
    "render_chart",
    "render_lane",
    "render_legend",
    "render_waveform",
]

WIDTH: Final = 1000.0
HEIGHT: Final = 200.0

NARROWEST_NAME: Final = 3.0
"""Percent of the axis below which a stretch of a lane stands without its name."""

Point = tuple[float, float | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One curve.

    Attributes:
        label: What the legend calls it.
        points: (x, y); a y of None interrupts the curve.
        style: "line", "dashed", "step" (for values per interval, each at its interval's end), "area", a step curve filled to the
            axis, or "stack", bars per interval on top of those of the stacked series before it.
        colour: Number of the page's series colour, 0 (neutral) to 6.
    """

    label: str
    points: Sequence[Point]
    style: Literal["line", "dashed", "area", "step", "stack"] = "line"
    colour: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Band:
    """A stretch of the x axis with a name, for example a phase of a link; `short` is the name where there is little room."""

    start: float
    end: float
    label: str = ""
    short: str = ""
    kind: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """Something that has a name rather than a height: stretches in a row."""

    label: str
    pieces: Sequence[Band]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """A chart over time.

    Attributes:
        title: Its heading.
        unit: Unit of the y axis.
        series: One to six curves.
        x_max: Right end of the x axis in seconds.
        y_max: The y axis reaches at least this far.
        cut: It ends there, whatever lies above.
        note: A line below the heading.
        lane: A row under the chart.
    """

    title: str
    unit: str
    series: Sequence[Series]
    x_max: float
    y_max: float = 0.0
    cut: bool = False
    note: str = ""
    lane: Lane | None = None


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round values from `low` to at least `high`, about `count` steps of 1, 2, 2.5 or 5 times a power of ten."""
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low, low + 1.0]
    rough = span / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def render_chart(chart: Chart) -> str:
    """The chart's frame: curves with a text alternative, and the numbers of the y axis."""
    highest = chart.y_max if chart.cut else max(_highest(chart.series), chart.y_max)
    ticks = nice_ticks(0.0, max(highest, 1e-9), 5)
    x_max, y_max = max(chart.x_max, 1e-9), ticks[-1]
    lines = "".join(f'<path class="{"grid" if value else "base"}" d="M0 {_y(value, y_max):.1f}H{WIDTH:.0f}"/>' for value in ticks)
    curves, below = "", dict[float, float]()
    for series in chart.series:
        curves += _stack(series, x_max, y_max, below) if series.style == "stack" else _curve(series, x_max, y_max)
    numbers = "".join(f'<span style="bottom:{100 * value / y_max:.2f}%">{value:g}</span>' for value in ticks)
    box = f'viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" preserveAspectRatio="none"'
    picture = f'<svg class="chart" {box} role="img" aria-label="{escape(describe(chart))}">{lines}{curves}</svg>'
    return f'<div class="frame">{picture}<div class="numbers" aria-hidden="true">{numbers}</div></div>'


def render_lane(lane: Lane, x_max: float) -> str:
    """A row of named stretches."""
    pieces = ""
    for piece in lane.pieces:
        left, right = (100 * min(max(x, 0.0), x_max) / max(x_max, 1e-9) for x in (piece.start, piece.end))
        names = ""
        if right - left >= NARROWEST_NAME:
            short = f'<span class="short" aria-hidden="true">{escape(piece.short)}</span>'
            names = f'<span class="long">{escape(piece.label)}</span>{short}'
        kind = f" {escape(piece.kind)}" if piece.kind else ""
        pieces += f'<li class="piece{kind}" style="left:{left:.2f}%;width:{right - left:.2f}%" title="{escape(piece.label)}">{names}</li>'
    return f'<ul class="lane" aria-label="{escape(lane.label)}">{pieces}</ul>'


def describe(chart: Chart) -> str:
    """The chart in words: the range of every curve."""
    parts = []
    for series in chart.series:
        values = [y for _, y in series.points if y is not None]
        reach = f"{min(values):.4g} to {max(values):.4g} {chart.unit}" if values else "no data"
        parts.append(f"{series.label}: {reach}")
    return f"{chart.title} over {chart.x_max:.0f} seconds. {'; '.join(parts)}."


def render_legend(chart: Chart) -> str:
    """The names of the chart's curves, each beside a sample of its stroke and room for its value."""
    items = []
    for series in chart.series:
        shape = f'<path class="{_stroke(series)}" d="M1 5H21"/>'
        if series.style in ("area", "stack"):
            shape = f'<rect class="fill-{series.colour} {series.style}" x="2" y="0" width="18" height="10" rx="2"/>'
        swatch = f'<svg class="swatch" viewBox="0 0 22 10" aria-hidden="true">{shape}</svg>'
        items.append(f'<li>{swatch}<span>{escape(series.label)}</span><output class="now"></output></li>')
    return f'<ul class="legend">{"".join(items)}</ul>'


def render_waveform(
    pcm: NDArray[np.int16], *, start: float, end: float, x_max: float, label: str, columns: int = 480, marks: Sequence[Band] = ()
) -> str:
    """Loudness of `pcm` as an ``<svg>`` element that spans the whole x axis.

    Args:
        pcm: Mono samples.
        start: Where on the axis they begin, in seconds.
        end: Where they end.
        x_max: Right end of the axis.
        label: Text alternative.
        columns: Number of bars.
        marks: Stretches to point out, in seconds of the axis.
    """
    bounds = np.linspace(0, len(pcm), columns + 1).astype(int)
    levels = np.abs(pcm.astype(np.int32))
    peaks = [int(levels[a:b].max()) if b > a else 0 for a, b in itertools.pairwise(bounds)]
    scale, step, middle = max(max(peaks, default=0), 1000), (end - start) / columns, HEIGHT / 2
    bars = []
    for index, peak in enumerate(peaks):
        half = max(1.5, peak / scale * (middle - 4))
        bars.append(f"M{_x(start + (index + 0.5) * step, x_max):.1f} {middle - half:.1f}V{middle + half:.1f}")
    pointers = ""
    for mark in marks:
        left, right = _x(mark.start, x_max), _x(mark.end, x_max)
        pointers += f'<rect class="mark" x="{left:.1f}" y="0" width="{max(1.5, right - left):.1f}" height="{HEIGHT:.0f}"/>'
    box = f'viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" preserveAspectRatio="none"'
    return f'<svg class="wave" {box} role="img" aria-label="{escape(label)}">{pointers}<path class="bars" d="{"".join(bars)}"/></svg>'


def _highest(series: Sequence[Series]) -> float:
    single = max((y for curve in series if curve.style != "stack" for _, y in curve.points if y is not None), default=0.0)
    totals: dict[float, float] = {}
    for curve in series:
        for x, y in curve.points if curve.style == "stack" else ():
            totals[x] = totals.get(x, 0.0) + (y or 0.0)
    return max(single, max(totals.values(), default=0.0))


def _x(value: float, x_max: float) -> float:
    return min(max(value, 0.0), x_max) / max(x_max, 1e-9) * WIDTH


def _y(value: float, y_max: float) -> float:
    return HEIGHT - min(max(value, 0.0), y_max) / y_max * HEIGHT


def _stroke(series: Series) -> str:
    return f"line-{series.colour} dashed" if series.style == "dashed" else f"line-{series.colour}"


def _curve(series: Series, x_max: float, y_max: float) -> str:
    pieces = [[(_x(x, x_max), _y(y, y_max)) for x, y in run] for run in _runs(series.points)]
    if series.style in ("line", "dashed"):
        path = "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in piece) for piece in pieces)
        return f'<path class="{_stroke(series)}" d="{path}"/>'
    outline, filling = "", ""
    for piece in pieces:
        # A value belongs to the interval before its point, so the step rises at the point before.
        steps = f"M{piece[0][0]:.1f} {piece[0][1]:.1f}" + "".join(f"V{y:.1f}H{x:.1f}" for x, y in piece[1:])
        outline += steps
        filling += f"{steps}V{HEIGHT:.0f}H{piece[0][0]:.1f}Z"
    line = f'<path class="{_stroke(series)}" d="{outline}"/>'
    return line if series.style == "step" else f'<path class="fill-{series.colour} area" d="{filling}"/>{line}'


def _stack(series: Series, x_max: float, y_max: float, below: dict[float, float]) -> str:
    """Bars between each point and the one before; `below` holds what stands there already, and takes these."""
    path = ""
    for (before, _), (x, y) in itertools.pairwise(series.points):
        if y:
            low = below.get(x, 0.0)
            below[x] = low + y
            left, right = _x(before, x_max), _x(x, x_max)
            path += f"M{left + 0.1 * (right - left):.1f} {_y(low, y_max):.1f}V{_y(low + y, y_max):.1f}H{right - 0.1 * (right - left):.1f}"
            path += f"V{_y(low, y_max):.1f}Z"
    return f'<path class="fill-{series.colour} stack" d="{path}"/>'


def _runs(points: Sequence[Point]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is not None:
            runs[-1].append((x, y))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
