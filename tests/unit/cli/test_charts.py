"""Charts: axes are round, curves stay in their frame, gaps stay gaps, text is escaped."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicestream.cli import charts
from voicestream.cli.charts import Band, Chart, Series, nice_ticks, render_chart, render_legend, render_waveform

values = st.floats(0, 1e6, allow_nan=False)
points = st.lists(st.tuples(st.floats(0, 100), st.none() | values), max_size=40)


def chart(*series: Series, **more: object) -> Chart:
    return Chart(**{"title": "Delay", "unit": "ms", "series": series, "x_max": 20.0, **more})  # type: ignore[arg-type]


def coordinates(svg: str) -> list[tuple[float, float]]:
    paths = [e.get("d", "") for e in ElementTree.fromstring(svg).iter("path")]
    return [(float(x), float(y)) for path in paths for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)]


@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-3, 1e6), count=st.integers(2, 8))
def test_ticks_cover_the_span_in_equal_steps(low: float, span: float, count: int) -> None:
    ticks = nice_ticks(low, low + span, count)
    steps = np.diff(ticks)
    # Rounded to ten decimals, and a tick may fall short of an end by a billionth of a step.
    slack = 1e-6 * max(1.0, abs(low), span)
    assert ticks[0] <= low + slack
    assert ticks[-1] >= low + span - slack
    assert np.allclose(steps, steps[0], rtol=1e-6, atol=slack)
    assert len(ticks) <= count + 3


def test_ticks_of_an_empty_span_are_still_an_axis() -> None:
    assert nice_ticks(0.0, 0.0) == [0.0, 1.0]
    assert nice_ticks(0.0, float("nan")) == [0.0, 1.0]


def test_ticks_are_round_numbers() -> None:
    assert nice_ticks(0, 78, 4) == [0, 20, 40, 60, 80]
    assert nice_ticks(0, 9.5, 4) == [0, 2.5, 5, 7.5, 10]


@given(points=points, style=st.sampled_from(["line", "dashed", "area", "step"]), x_max=st.floats(0, 100))
def test_every_chart_is_well_formed_and_its_curves_stay_inside_the_frame(points: list[charts.Point], style: str, x_max: float) -> None:
    svg = render_chart(chart(Series(label="a", points=points, style=style), x_max=x_max))  # type: ignore[arg-type]
    for x, y in coordinates(svg):
        assert charts.LEFT - 0.1 <= x <= charts.WIDTH - charts.RIGHT + 0.1
        assert charts.TOP - 0.1 <= y <= charts.HEIGHT - charts.BOTTOM + 0.1


def test_a_missing_value_interrupts_the_curve() -> None:
    svg = render_chart(chart(Series(label="a", points=[(0, 1.0), (1, 2.0), (2, None), (3, 2.0), (4, 1.0)])))
    (path,) = [e.get("d", "") for e in ElementTree.fromstring(svg).iter("path")]
    assert path.count("M") == 2


def test_a_chart_says_in_words_what_it_shows() -> None:
    svg = render_chart(chart(Series(label="Round trip", points=[(0, 58.0), (1, 64.5)]), Series(label="One way", points=[])))
    label = ElementTree.fromstring(svg).get("aria-label")
    assert label == "Delay over 20 seconds. Round trip: 58 to 64.5 ms; One way: no data."


def test_names_are_escaped() -> None:
    shown = chart(Series(label='<script> & "', points=[(0, 1.0)]), title="a < b", bands=[Band(start=1, end=2, label="<b>")])
    assert "<script" not in render_chart(shown) + render_legend(shown)
    assert "<b>" not in render_chart(shown)
    ElementTree.fromstring(render_chart(shown))
    ElementTree.fromstring(render_legend(shown))


def test_a_band_covers_its_stretch() -> None:
    svg = ElementTree.fromstring(render_chart(chart(bands=[Band(start=5, end=15, label="loss")])))
    (rect,) = list(svg.iter("rect"))
    width = charts.WIDTH - charts.LEFT - charts.RIGHT
    assert float(rect.get("x", "")) == pytest.approx(charts.LEFT + width / 4, abs=0.1)
    assert float(rect.get("width", "")) == pytest.approx(width / 2, abs=0.1)


def test_a_waveform_is_taller_where_it_is_louder() -> None:
    pcm = np.concatenate([np.full(1000, 100, np.int16), np.full(1000, 20000, np.int16)])
    svg = render_waveform(pcm, 2.0, label="w", columns=2, height=100)
    bars = re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", svg)
    heights = [float(b) - float(a) for a, b in bars]
    assert heights[1] > 50 * heights[0]


@given(count=st.integers(0, 500))
def test_a_waveform_takes_any_number_of_samples(count: int) -> None:
    mark = Band(start=0.1, end=0.2)
    svg = render_waveform(np.full(count, -32768, np.int16), 1.0, label='"<', marks=[mark])
    assert len(list(ElementTree.fromstring(svg).iter("rect"))) == 1
