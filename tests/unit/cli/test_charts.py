"""Charts: axes are round, curves stay in their frame, gaps stay gaps, text is escaped."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from voicestream.cli import charts
from voicestream.cli.charts import (
    Band,
    Chart,
    Lane,
    Series,
    nice_ticks,
    render_chart,
    render_lane,
    render_legend,
    render_waveform,
)

values = st.floats(0, 1e6, allow_nan=False)
points = st.lists(st.tuples(st.floats(0, 100), st.none() | values), max_size=40)


def chart(*series: Series, **more: object) -> Chart:
    return Chart(**{"title": "Delay", "unit": "ms", "series": series, "x_max": 20.0, **more})  # type: ignore[arg-type]


def coordinates(svg: str) -> list[tuple[float, float]]:
    paths = [e.get("d", "") for e in ElementTree.fromstring(svg).iter("path")]
    return [(float(x), float(y)) for path in paths for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)]


def curves(html: str) -> list[str]:
    """Paths that are neither grid nor axis."""
    return [e.get("d", "") for e in ElementTree.fromstring(html).iter("path") if e.get("class") not in ("grid", "base")]


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


@given(points=points, style=st.sampled_from(["line", "dashed", "area", "step", "stack"]), x_max=st.floats(0, 100))
def test_every_chart_is_well_formed_and_its_curves_stay_inside_the_frame(points: list[charts.Point], style: str, x_max: float) -> None:
    svg = render_chart(chart(Series(label="a", points=points, style=style), x_max=x_max))  # type: ignore[arg-type]
    for x, y in coordinates(svg):
        assert -0.1 <= x <= charts.WIDTH + 0.1
        assert -0.1 <= y <= charts.HEIGHT + 0.1


def test_a_missing_value_interrupts_the_curve() -> None:
    svg = render_chart(chart(Series(label="a", points=[(0, 1.0), (1, 2.0), (2, None), (3, 2.0), (4, 1.0)])))
    (path,) = curves(svg)
    assert path.count("M") == 2


def test_a_chart_says_in_words_what_it_shows() -> None:
    svg = render_chart(chart(Series(label="Round trip", points=[(0, 58.0), (1, 64.5)]), Series(label="One way", points=[])))
    label = next(ElementTree.fromstring(svg).iter("svg")).get("aria-label")
    assert label == "Delay over 20 seconds. Round trip: 58 to 64.5 ms; One way: no data."


def test_names_are_escaped() -> None:
    shown = chart(Series(label='<script> & "', points=[(0, 1.0)]), title="a < b")
    lane = render_lane(Lane(label="<b>", pieces=[Band(start=1, end=2, label="<b>", short="<b>")]), 20.0)
    assert "<script" not in render_chart(shown) + render_legend(shown)
    assert "<b>" not in lane
    ElementTree.fromstring(lane)
    ElementTree.fromstring(render_chart(shown))
    ElementTree.fromstring(render_legend(shown))


def test_stacked_bars_stand_on_each_other_and_a_cut_axis_cuts_them() -> None:
    first = Series(label="a", points=[(0, 0.0), (1, 3.0), (2, 0.0)], style="stack")
    second = Series(label="b", points=[(0, 0.0), (1, 2.0), (2, 99.0)], style="stack")
    low, high = curves(render_chart(chart(first, second, y_max=10.0, cut=True)))
    assert re.findall(r"[\d.]+V([\d.]+)H", low) == ["140.0"]
    assert re.findall(r" ([\d.]+)V([\d.]+)H", high) == [("140.0", "100.0"), ("200.0", "0.0")]


def test_an_axis_that_is_not_cut_reaches_the_top_of_the_bars() -> None:
    bars = [Series(label=name, points=[(0, 0.0), (1, 40.0)], style="stack") for name in "ab"]
    assert ">80</span>" in render_chart(chart(*bars))


def test_a_lane_covers_its_stretches() -> None:
    html = render_lane(Lane(label="l", pieces=[Band(start=5, end=15, label="loss", kind="bad")]), 20.0)
    assert 'class="piece bad" style="left:25.00%;width:50.00%"' in html


def test_a_waveform_is_taller_where_it_is_louder_and_lies_where_it_belongs() -> None:
    pcm = np.concatenate([np.full(1000, 100, np.int16), np.full(1000, 20000, np.int16)])
    svg = render_waveform(pcm, start=1.0, end=3.0, x_max=4.0, label="w", columns=2)
    bars = re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", svg)
    assert [float(x) for x, _, _ in bars] == [375.0, 625.0]
    heights = [float(b) - float(a) for _, a, b in bars]
    assert heights[1] > 50 * heights[0]


@given(count=st.integers(0, 500))
def test_a_waveform_takes_any_number_of_samples(count: int) -> None:
    mark = Band(start=0.1, end=0.2)
    svg = render_waveform(np.full(count, -32768, np.int16), start=0.0, end=1.0, x_max=1.0, label='"<', marks=[mark])
    assert len(list(ElementTree.fromstring(svg).iter("rect"))) == 1
