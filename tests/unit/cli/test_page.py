"""The page: whole, self-contained, and true to its data."""

from __future__ import annotations

import base64
import json
import re
import struct
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np

from voicestream.audio.g711 import ulaw_decode
from voicestream.cli.charts import Band, Chart, Lane, Series
from voicestream.cli.page import Check, Clip, Direction, Mark, Page, Table, Tile, render_page

VOID = {"meta", "br", "input", "img", "link", "hr"}
SVG_EMPTY = {"path", "line", "rect"}


class Checker(HTMLParser):
    """Sees to it that elements nest; notes attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page(name: str = "Client to server") -> Page:
    pcm = (np.arange(16000) % 200 * 50).astype(np.int16)
    clip = Clip(title="Said", note="1 s", pcm=pcm, sample_rate_hz=16000)
    delay = Chart(title="Delay", unit="ms", x_max=2, series=[Series(label=name, points=[(0, 1.0), (1, 2.25), (2, None)])])
    loss = Chart(title="Loss", unit="%", x_max=2, series=[Series(label="Lost", points=[(0, 0.0), (2, 3.0)], style="area")])
    return Page(
        title="t",
        heading="h",
        lead="l",
        seconds=2.0,
        phases=[Band(start=0.5, end=1.5, label=name, short="P", kind="loss")],
        marks=[Mark(at=1.0, label=name)],
        checks=[Check(title=name, passed=True, finding=name), Check(title="Second", passed=False, finding="no")],
        tiles=[Tile(label="Lost", value="2", unit="%", note="of 100")],
        directions=[
            Direction(name=name, clips=[clip], charts=[delay, loss], table=Table(title=name, rows=[["", name], ["Lost", "2 %"]])),
            Direction(name="Back", clips=[clip], charts=[delay]),
        ],
        footer="f",
    )


def test_a_page_is_well_formed_and_needs_nothing_from_outside() -> None:
    text = render_page(page())
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert "{{" not in text
    links = [value for _, name, value in checker.attributes if name in {"src", "href", "xlink:href", "data-src"}]
    assert links
    assert all(link.startswith("data:audio/wav;base64,") for link in links)
    assert not re.search(r"https?://|@import|url\(", text)


def test_players_hold_the_samples_that_were_given() -> None:
    shown = page()
    data = re.findall(r"base64,([A-Za-z0-9+/=]+)", render_page(shown))
    assert len(data) == 2
    wav = base64.b64decode(data[0])
    riff, size, kind = struct.unpack_from("<4sI4s", wav)
    assert (riff, size, kind) == (b"RIFF", len(wav) - 8, b"WAVE")
    assert struct.unpack_from("<4sIHHIIHH", wav, 12) == (b"fmt ", 18, 7, 1, 16000, 16000, 1, 8)
    assert struct.unpack_from("<4sI", wav, 50) == (b"data", 16000)
    assert np.abs(ulaw_decode(wav[58:]).astype(int) - shown.directions[0].clips[0].pcm).max() < 260


def test_curves_are_there_for_the_pointer_and_as_a_table() -> None:
    text = render_page(page())
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))  # type: ignore[union-attr]
    assert [c["unit"] for c in data] == ["ms", "%", "ms"]
    assert data[0]["series"][0]["points"] == [[0, 1.0], [1, 2.25], [2, None]]
    rows = re.findall(r'<tr><th scope="row">(\d+)</th>(.*?)</tr>', text)
    assert [seconds for seconds, _ in rows] == ["0", "1", "2"]
    assert re.findall("<td>(.*?)</td>", rows[1][1]) == ["2.2", "–", "2.2"]


def test_each_direction_has_its_charts_above_one_axis_with_the_phases_behind() -> None:
    text = render_page(page("There"))
    ways = re.findall(r'<section class="card timeline" data-way="(\d)" data-x-max="([\d.]+)" aria-label="(\w+)">(.*?)</section>', text)
    assert [(way, x_max, name) for way, x_max, name, _ in ways] == [("0", "2.000", "There"), ("1", "2.000", "Back")]
    charts = [re.findall(r'data-chart="(\d)".*?<h4>(\w+)', inner) for *_, inner in ways]
    assert charts == [[("0", "Delay"), ("1", "Loss")], [("2", "Delay")]]
    assert all('class="band loss" style="left:25.000%;width:50.000%"' in inner for *_, inner in ways)


def test_checks_say_in_words_whether_they_passed() -> None:
    text = render_page(page())
    assert "1 of 2 checks failed" in text
    signs = re.findall(r'<li class="(\w+)"><span class="sign" role="img" aria-label="(\w+)">', text)
    assert signs == [("passed", "Passed"), ("failed", "Failed")]
    assert ">1 check passed<" in render_page(replace(page(), checks=page().checks[:1]))
    assert 'class="card checks"' not in render_page(replace(page(), checks=[]))


def test_a_lane_names_its_stretches_where_there_is_room() -> None:
    lane = Lane(label="Frame length", pieces=[Band(start=0, end=1.99, label="20 ms", short="20"), Band(start=1.99, end=2, label="60 ms")])
    chart = replace(page().directions[0].charts[0], lane=lane)
    text = render_page(replace(page(), directions=[Direction(name="a", clips=[], charts=[chart])]))
    assert re.findall(r'<span class="long">(\d+ ms)</span>', text) == ["20 ms"]
    assert 'title="60 ms"' in text


def test_what_users_name_cannot_break_out_of_the_page() -> None:
    text = render_page(page("</script><script>alert(1)</script>"))
    assert "<script>alert" not in text
    checker = Checker()
    checker.feed(text)
    assert checker.open == []


def test_a_pointer_position_never_divides_by_an_empty_clip() -> None:
    empty = Clip(title="Said", note="", pcm=np.zeros(0, np.int16), sample_rate_hz=16000)
    text = render_page(replace(page(), seconds=0.0, directions=[Direction(name="a", clips=[empty], charts=[])]))
    assert "NaN" not in text
