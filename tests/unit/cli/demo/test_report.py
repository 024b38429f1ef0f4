"""From records to the table and the page."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from voicestream.call_stats import CallStats, OrderedStats, PathStats, PlayoutStats, ReceivedStats, SentStats
from voicestream.cli.charts import Band
from voicestream.cli.demo.record import EndRecord
from voicestream.cli.demo.relay import Crossing
from voicestream.cli.demo.report import DemoRecord, make_page, summarise, summary_rows, table_text
from voicestream.cli.page import render_page

RATE = 8000
BEGAN = 100.0


def stats(second: int, level_ms: float) -> CallStats:
    return CallStats(
        duration_s=second,
        close_code=None,
        close_reason="",
        path=PathStats(rtt_ms=60.0, one_way_delay_ms=30.0),
        sent=SentStats(bitrate_bps=40000),
        received=ReceivedStats(),
        playout=PlayoutStats(concealed_ms=10.0 * second, level_ms=level_ms, target_ms=40.0),
        ordered=OrderedStats(),
    )


def end(name: str, seed: int, level_ms: float, other_seed: int) -> EndRecord:
    """Says noise; hears the other's noise 90 ms after it was said."""
    noise = [(np.random.default_rng(s).normal(0, 3000, 4 * RATE)).astype(np.int16) for s in (seed, other_seed)]
    heard = np.concatenate([np.zeros(RATE * 90 // 1000, np.int16), noise[1]])
    return EndRecord(
        name=name,
        said=noise[0],
        said_at=BEGAN,
        heard=[heard],
        heard_at=BEGAN,
        readings=[(BEGAN + second, stats(second, level_ms)) for second in range(5)],
        concealed=[Band(start=1.0, end=1.02)],
    )


@pytest.fixture
def record() -> DemoRecord:
    log = [Crossing(BEGAN + 0.02 * n, "up", 140, n % 50 != 7) for n in range(200)]
    log += [Crossing(BEGAN + 0.02 * n, "down", 70, True) for n in range(200)]
    return DemoRecord(
        client=end("Client", 1, 45.0, 2),
        server=end("Server", 2, 35.0, 1),
        log=log,
        began=BEGAN,
        seconds=4.0,
        sample_rate_hz=RATE,
        rtt_ms=60.0,
        loss=0.02,
        seed=1,
    )


def test_figures_belong_to_the_right_direction(record: DemoRecord) -> None:
    up, down = summarise(record)
    assert (up.name, down.name) == ("Client to server", "Server to client")
    assert (up.packets, up.lost, down.lost) == (200, 4, 0)
    assert (up.wire_kbps, down.wire_kbps) == pytest.approx((56.0, 28.0))
    # The buffer is the listener's.
    assert (up.level_ms, down.level_ms) == (35.0, 45.0)
    assert up.mouth_to_ear_ms == pytest.approx(90.0, abs=0.2)
    assert up.concealed_ms == 40.0
    assert up.concealed_percent == pytest.approx(100 * 40 / 4090)


def test_a_call_of_which_nothing_is_known_still_has_a_table_and_a_page(record: DemoRecord) -> None:
    empty = EndRecord(name="Client", said=np.zeros(0, np.int16))
    nothing = replace(record, client=empty, server=replace(empty, name="Server"), log=[], seconds=0.0)
    figures = summarise(nothing)
    assert "–" in table_text(summary_rows(figures))
    assert "</html>" in render_page(make_page(nothing, figures, "0"))


def test_the_table_is_aligned(record: DemoRecord) -> None:
    lines = table_text(summary_rows(summarise(record))).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert re.search(r"Packets lost in the link +4 of 200 \(2\.0 %\) +0 of 200 \(0\.0 %\)", "\n".join(lines))


def test_the_page_tells_the_link_and_compares_like_with_like(record: DemoRecord) -> None:
    page = make_page(record, summarise(record), "1.2.3")
    assert "60 ms" in page.lead
    assert "2 %" in page.lead
    assert "1.2.3" in page.footer
    titles = [[chart.title for chart in direction.charts] for direction in page.directions]
    assert titles[0] == titles[1] == ["Bitrate", "Delay", "Playout buffer", "Loss and concealment"]
    tops = [[chart.y_max for chart in direction.charts] for direction in page.directions]
    assert tops[0] == tops[1]
    assert [len(direction.clips) for direction in page.directions] == [2, 2]


def test_phases_are_drawn_behind_every_chart(record: DemoRecord) -> None:
    phased = replace(record, phases=[Band(start=1.0, end=2.0, label="10 % loss")])
    text = render_page(make_page(phased, summarise(phased), "0"))
    assert text.count("10 % loss</text>") == 8
