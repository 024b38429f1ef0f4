"""Line charts and waveforms as SVG text: small pure functions, no dependency, no state.

Colours, fonts and the dark theme are the page's: an element only names its class (``line-1``, ``grid``, ``tick`` ...).
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

__all__ = ["Band", "Chart", "Series", "nice_ticks", "render_chart", "render_legend", "render_waveform"]

WIDTH: Final = 560
HEIGHT: Final = 206
LEFT: Final = 44
RIGHT: Final = 12
TOP: Final = 18
BOTTOM: Final = 26

Point = tuple[float, float | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One curve.

    Attributes:
        label: What the legend calls it.
        points: (x, y); a y of None interrupts the curve.
        style: "line", "dashed", "step" (for values per interval, each at its interval's end), or "area", a step curve filled to the axis.
        colour: Number of the page's series colour, 1 to 3.
    """

    label: str
    points: Sequence[Point]
    style: Literal["line", "dashed", "area", "step"] = "line"
    colour: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Band:
    """A stretch of the x axis with a name, for example a phase of a link."""

    start: float
    end: float
    label: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """A chart over time.

    Attributes:
        title: Its heading.
        unit: Unit of the y axis.
        series: One to three curves.
        x_max: Right end of the x axis in seconds.
        y_max: The y axis reaches at least this far.
        bands: Stretches drawn behind the curves.
    """

    title: str
    unit: str
    series: Sequence[Series]
    x_max: float
    y_max: float = 0.0
    bands: Sequence[Band] = ()


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
    """The chart as an ``<svg>`` element with a text alternative."""
    ticks = nice_ticks(0.0, max(_highest(chart.series), chart.y_max, 1e-9), 4)
    x_max, y_max = max(chart.x_max, 1e-9), ticks[-1]
    parts = [_band(band, x_max) for band in chart.bands]
    parts += [_y_tick(value, y_max) for value in ticks]
    parts += [_x_tick(value, x_max) for value in nice_ticks(0.0, x_max, 6) if value <= x_max * (1 + 1e-9)]
    parts += [_curve(series, x_max, y_max) for series in chart.series]
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text class="unit" x="11" y="{middle:.0f}" transform="rotate(-90 11 {middle:.0f})">{escape(chart.unit)}</text>')
    parts.append(f'<line class="cursor" x1="0" x2="0" y1="{TOP}" y2="{HEIGHT - BOTTOM}" hidden=""/>')
    geometry = f'data-left="{LEFT}" data-right="{WIDTH - RIGHT}" data-width="{WIDTH}" data-x-max="{x_max:.3f}"'
    label = escape(describe(chart))
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}" {geometry}>{"".join(parts)}</svg>'


def describe(chart: Chart) -> str:
    """The chart in words: the range of every curve."""
    parts = []
    for series in chart.series:
        values = [y for _, y in series.points if y is not None]
        reach = f"{min(values):.4g} to {max(values):.4g} {chart.unit}" if values else "no data"
        parts.append(f"{series.label}: {reach}")
    return f"{chart.title} over {chart.x_max:.0f} seconds. {'; '.join(parts)}."


def render_legend(chart: Chart) -> str:
    """The names of the chart's curves, each beside a sample of its stroke."""
    items = []
    for series in chart.series:
        shape = f'<path class="{_stroke(series)}" d="M1 5H23"/>'
        if series.style == "area":
            shape = f'<rect class="fill-{series.colour} solid" x="2" y="1" width="20" height="8"/>'
        items.append(f'<li><svg class="swatch" viewBox="0 0 24 10" aria-hidden="true">{shape}</svg>{escape(series.label)}</li>')
    return f'<ul class="legend">{"".join(items)}</ul>'


def render_waveform(
    pcm: NDArray[np.int16],
    seconds: float,
    *,
    label: str,
    width: int = 560,
    height: int = 72,
    columns: int = 280,
    marks: Sequence[Band] = (),
) -> str:
    """Loudness of `pcm` over `seconds` as an ``<svg>`` element.

    Args:
        pcm: Mono samples that fill the whole width.
        seconds: Their length, the scale of `marks`.
        label: Text alternative.
        width: Of the picture, in its own units.
        height: Of the picture.
        columns: Number of bars.
        marks: Stretches to point out, for example concealed pieces.
    """
    bounds = np.linspace(0, len(pcm), columns + 1).astype(int)
    levels = np.abs(pcm.astype(np.int32))
    peaks = [int(levels[a:b].max()) if b > a else 0 for a, b in itertools.pairwise(bounds)]
    scale, step, middle = max(max(peaks, default=0), 1000), width / columns, height / 2
    bars = []
    for index, peak in enumerate(peaks):
        half = max(0.5, peak / scale * (middle - 6))
        bars.append(f"M{(index + 0.5) * step:.1f} {middle - half:.1f}V{middle + half:.1f}")
    pointers = [_mark(mark, width / seconds, height) for mark in marks]
    return (
        f'<svg class="wave" viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" aria-label="{escape(label)}">'
        f'{"".join(pointers)}<path class="bars" d="{"".join(bars)}"/>'
        f'<line class="cursor" x1="0" x2="0" y1="0" y2="{height}" hidden=""/></svg>'
    )


def _mark(mark: Band, scale: float, height: int) -> str:
    left, width = mark.start * scale, max(2.5, (mark.end - mark.start) * scale)
    return f'<rect class="mark" x="{left:.1f}" y="0" width="{width:.1f}" height="{height}"/>'


def _highest(series: Sequence[Series]) -> float:
    return max((y for curve in series for _, y in curve.points if y is not None), default=0.0)


def _x(value: float, x_max: float) -> float:
    return LEFT + min(max(value, 0.0), x_max) / x_max * (WIDTH - LEFT - RIGHT)


def _y(value: float, y_max: float) -> float:
    return HEIGHT - BOTTOM - min(max(value, 0.0), y_max) / y_max * (HEIGHT - TOP - BOTTOM)


def _band(band: Band, x_max: float) -> str:
    left, right = _x(band.start, x_max), _x(band.end, x_max)
    text = f'<text class="band-label" x="{left + 1:.1f}" y="{TOP - 5}">{escape(band.label)}</text>' if band.label else ""
    return f'<rect class="band" x="{left:.1f}" y="{TOP}" width="{right - left:.1f}" height="{HEIGHT - TOP - BOTTOM}"/>{text}'


def _y_tick(value: float, y_max: float) -> str:
    y = _y(value, y_max)
    line = f'<line class="{"grid" if value else "axis"}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return f'{line}<text class="tick y" x="{LEFT - 6}" y="{y + 3.5:.1f}">{value:g}</text>'


def _x_tick(value: float, x_max: float) -> str:
    x, base, unit = _x(value, x_max), HEIGHT - BOTTOM, "" if value else " s"
    line = f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{base}" y2="{base + 4}"/>'
    return f'{line}<text class="tick x" x="{x:.1f}" y="{base + 17}">{value:g}{unit}</text>'


def _stroke(series: Series) -> str:
    return f"line-{series.colour} dashed" if series.style == "dashed" else f"line-{series.colour}"


def _curve(series: Series, x_max: float, y_max: float) -> str:
    pieces = [[(_x(x, x_max), _y(y, y_max)) for x, y in run] for run in _runs(series.points)]
    if series.style in ("line", "dashed"):
        path = "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in piece) for piece in pieces)
        return f'<path class="{_stroke(series)}" d="{path}"/>'
    base, outline, filling = HEIGHT - BOTTOM, "", ""
    for piece in pieces:
        # A value belongs to the interval before its point, so the step rises at the point before.
        steps = f"M{piece[0][0]:.1f} {piece[0][1]:.1f}" + "".join(f"V{y:.1f}H{x:.1f}" for x, y in piece[1:])
        outline += steps
        filling += f"{steps}V{base}H{piece[0][0]:.1f}Z"
    if series.style == "step":
        return f'<path class="{_stroke(series)}" d="{outline}"/>'
    return f'<path class="fill-{series.colour}" d="{filling}"/><path class="{_stroke(series)} thin" d="{outline}"/>'


def _runs(points: Sequence[Point]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is not None:
            runs[-1].append((x, y))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
