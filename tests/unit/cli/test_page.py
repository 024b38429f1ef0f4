"""The page: whole, self-contained, and true to its data."""

from __future__ import annotations

import base64
import io
import json
import re
import wave
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np

from voicestream.cli.charts import Chart, Series
from voicestream.cli.page import Clip, Direction, Page, Tile, render_page

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
        tiles=[Tile(label="Lost", value="2", unit="%", note="of 100")],
        directions=[Direction(name=name, clips=[clip], charts=[delay, loss]), Direction(name="Back", clips=[clip], charts=[delay])],
        summary=[["", name], ["Lost", "2 %"]],
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
    with wave.open(io.BytesIO(base64.b64decode(data[0]))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16000, 1, 2)
        assert file.readframes(16000) == shown.directions[0].clips[0].pcm.tobytes()


def test_curves_are_there_for_the_pointer_and_as_a_table() -> None:
    text = render_page(page())
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))  # type: ignore[union-attr]
    assert [c["unit"] for c in data] == ["ms", "%", "ms"]
    assert data[0]["series"][0]["points"] == [[0, 1.0], [1, 2.25], [2, None]]
    rows = re.findall(r'<tr><th scope="row">(\d+)</th>(.*?)</tr>', text)
    assert [seconds for seconds, _ in rows] == ["0", "1", "2"]
    assert re.findall("<td>(.*?)</td>", rows[1][1]) == ["2.2", "–", "2.2"]


def test_charts_of_both_ways_stand_beside_each_other_and_keep_their_data() -> None:
    figures = re.findall(r'<figure class="card pair-(\w+)" data-chart="(\d)" data-direction="(\d)">.*?<h3>(\w+)', render_page(page()))
    assert figures == [("first", "0", "0", "Delay"), ("second", "2", "1", "Delay"), ("first", "1", "0", "Loss")]


def test_what_users_name_cannot_break_out_of_the_page() -> None:
    text = render_page(page("</script><script>alert(1)</script>"))
    assert "<script>alert" not in text
    checker = Checker()
    checker.feed(text)
    assert checker.open == []


def test_a_pointer_position_never_divides_by_an_empty_clip() -> None:
    empty = Clip(title="Said", note="", pcm=np.zeros(0, np.int16), sample_rate_hz=16000)
    text = render_page(replace(page(), directions=[Direction(name="a", clips=[empty], charts=[])]))
    assert "NaN" not in text
