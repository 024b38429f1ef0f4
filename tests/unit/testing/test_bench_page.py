"""The bench's page: whole, self-contained, and true to the figures."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from voicestream.testing import LinkProfile
from voicestream.testing.bench import Bar, Case, Greedy, Media, Outcome, run_case
from voicestream.testing.bench.__main__ import main
from voicestream.testing.bench.page import render_bench
from voicestream.testing.bench.report import table

CASE = Case(
    name="small.1", about="narrow & busy", seconds=12, group="Some",
    b2a=LinkProfile(delay_ms=30, rate_kbps=((0.0, 150.0), (6.0, 40.0)), loss=0.02), a2b=LinkProfile(delay_ms=30, rate_kbps=300.0),
    media=(Media(speaks="both"),), greedy=(Greedy(start=2, way="a2b"),),
    bars=(Bar("concealed", "<=", 0.9), Bar("jain", ">=", 0.95)),
)  # fmt: skip


@cache
def outcome() -> Outcome:
    return run_case(CASE, 1, draw=True)


class Nesting(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page() -> str:
    return render_bench([CASE], [outcome()], lead="l", footer="f")


def test_elements_nest_and_nothing_is_fetched() -> None:
    text, checker = page(), Nesting()
    checker.feed(text)
    assert checker.open == []
    assert checker.fetched == ["#case-small-1"]
    assert "{{" not in text
    assert "url(" not in text


def test_the_page_says_which_bars_were_kept_and_which_were_missed() -> None:
    text = page()
    assert 'id="case-small-1" data-state="missed"' in text
    assert "narrow &amp; busy" in text
    assert re.search(r'<li class="missed">jain <b>not there</b> ≥ 0.950</li>', text)
    assert re.search(r'<li class="kept">concealed <b>[\d.]+ %</b> ≤ 90.00 %</li>', text)
    assert '<td class="missed">1/2</td>' in text


def test_there_are_curves_of_both_directions_and_of_the_competitor() -> None:
    up, down = outcome().curves
    assert (up.way, down.way) == ("b2a", "a2b")
    assert up.others_kbps == ()
    assert max(y or 0 for _, y in down.others_kbps) > 100
    assert [y for x, y in up.capacity_kbps if x in (5.0, 8.0)] == [150.0, 40.0]
    assert max(y or 0 for _, y in up.wait_ms) > 50
    assert 0 < max(y or 0 for _, y in up.lost) <= 100
    assert up.lengths[0][2] == 20
    assert all(before[1] == after[0] for before, after in zip(up.lengths, up.lengths[1:], strict=False))
    text = page()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))  # type: ignore[union-attr]
    assert len(data) == text.count("<figure") >= 5


def test_what_was_sent_is_all_in_the_curve() -> None:
    (up, _), sent = outcome().curves, outcome().curves[0].sent_kbps[0]
    assert up.seconds == 12
    mean = sum(y or 0 for _, y in sent[1:]) / (len(sent) - 1)
    assert 20 < mean < 150


def test_the_table_puts_bars_below_their_figures() -> None:
    lines = table([CASE], [outcome()]).splitlines()
    assert lines[0] == "== Some"
    head, row, bars = lines[1:4]
    assert row.startswith("small.1")
    assert row.endswith("MISS")
    column = head.index("conc%") + len("conc%")
    assert bars[:column].endswith("<90.00")
    assert bars[: head.index("jain") + 4].endswith(">0.950")


def test_the_command_writes_figures_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link = tmp_path / "mine.json"
    link.write_text('{"both": {"delay_ms": 20, "rate_kbps": 300}}')
    out = tmp_path / "out"
    main(["--profile", str(link), "--seconds", "5", "--json", str(out / "a.json"), "--page", str(out / "a.html")])
    (row,) = json.loads((out / "a.json").read_text())
    assert row["case"] == "mine"
    assert row["bars"] == ["queue_p95_ms <= 150"]
    assert "case-mine" in (out / "a.html").read_text()
    assert "links drawn at random" in capsys.readouterr().out
