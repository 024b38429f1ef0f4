"""From records to the tables and the page."""

from __future__ import annotations

import re

import pytest

from voicestream.cli.demo.checks import verdicts
from voicestream.cli.demo.figures import HEAD, summarise, table_rows, table_text
from voicestream.cli.demo.record import DemoRecord, EndRecord
from voicestream.cli.demo.report import make_page
from voicestream.cli.page import render_page


def page_of(record: DemoRecord):
    return make_page(record, summarise(record), verdicts(record, 70.0), "1.2.3")


def test_figures_belong_to_the_right_direction_and_phase(record: DemoRecord) -> None:
    up, down = summarise(record)
    assert (up.name, down.name) == ("Client to server", "Server to client")
    assert (up.whole.packets, up.whole.lost, down.whole.lost) == (1100, 22, 0)
    assert (up.whole.wire_kbps, down.whole.wire_kbps) == pytest.approx((56.0, 28.0))
    assert [figures.name for figures in up.phases] == ["Good link", "5 % loss", "30 kbps", "Break", "Good again"]
    assert [figures.codec_kbps for figures in up.phases] == [64.0, 64.0, 12.0, 12.0, 64.0]
    assert [figures.frame_ms for figures in up.phases] == [20, 20, 60, 60, 20]
    assert up.phases[0].mouth_to_ear_ms == pytest.approx(90.0, abs=0.2)
    assert up.phases[3].mouth_to_ear_ms is None
    assert up.phases[3].unheard_ms == pytest.approx(2900, abs=110)
    assert up.phases[1].unheard_ms == 0.0
    assert up.whole.mended == {"Sent again": pytest.approx(66.0), "Repair code": pytest.approx(44.0), "Low-rate copy": 0.0, "In-band": 0.0}


def test_a_call_of_which_nothing_is_known_still_has_tables_and_a_page(kit) -> None:
    nothing = kit.empty()
    assert "–" in table_text(table_rows(summarise(nothing)[0]))
    text = render_page(page_of(nothing))
    assert "</html>" in text
    assert "checks failed" in text


def test_the_table_is_aligned(record: DemoRecord) -> None:
    rows = table_rows(summarise(record)[0])
    assert rows[0] == HEAD
    lines = table_text(rows).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= 120
    assert re.search(r"Whole call +64 kbps +20 ms +56 kbps +22 of 1100 \(2\.0 %\) +110 frames", lines[-1])


def test_the_page_tells_the_link_the_checks_and_compares_like_with_like(record: DemoRecord) -> None:
    page = page_of(record)
    assert "60 ms" in page.lead
    assert "1.2.3" in page.footer
    assert [check.passed for check in page.checks] == [True] * 6
    titles = [[chart.title for chart in direction.charts] for direction in page.directions]
    assert titles[0] == titles[1] == ["Rate", "Delay and buffer", "Loss before and after repair"]
    tops = [[chart.y_max for chart in direction.charts] for direction in page.directions]
    assert tops[0] == tops[1]
    assert [len(direction.clips) for direction in page.directions] == [2, 2]
    assert [(band.label, band.kind) for band in page.phases][2] == ("30 kbps", "narrow")
    assert [(mark.label, mark.at) for mark in page.marks] == [("path lost", pytest.approx(14.1)), ("resumed", pytest.approx(15.5))]


def test_the_chart_of_rates_has_capacity_wire_codec_and_frame_length(record: DemoRecord) -> None:
    chart = page_of(record).directions[0].charts[0]
    assert [series.label for series in chart.series] == ["Capacity", "On the wire, all headers", "Codec"]
    capacity = dict(chart.series[0].points)
    assert [round(capacity[at]) for at in sorted(capacity)][-4:] == [160, 30, 0, 160]  # type: ignore[arg-type]
    assert chart.lane is not None
    assert [piece.label for piece in chart.lane.pieces] == ["20 ms", "60 ms", "20 ms"]


def test_the_chart_of_losses_has_every_tool_and_what_is_left(record: DemoRecord) -> None:
    chart = page_of(record).directions[1].charts[2]
    labels = {series.label: series.style for series in chart.series}
    tools = ["Sent again", "Repair code", "Low-rate copy", "In-band"]
    assert labels == {"Packets lost on the link": "step"} | dict.fromkeys([*tools, "Unheard"], "stack")
    assert chart.cut


def test_bulky_records_have_a_short_repr(record: DemoRecord) -> None:
    """asyncio.run makes one of its result."""
    assert len(repr(record)) < 3000
    assert isinstance(record.client, EndRecord)
