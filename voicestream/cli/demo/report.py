"""From the demo's record to its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from voicestream.cli.charts import Band, Chart, Lane, Point, Series
from voicestream.cli.demo.checks import Verdict
from voicestream.cli.demo.figures import WayFigures, table_rows
from voicestream.cli.demo.record import DemoRecord, EndRecord
from voicestream.cli.demo.relay import Way
from voicestream.cli.demo.series import (
    TOOLS,
    concealed_bands,
    loss_percent,
    mended_percent,
    mouth_to_ear,
    per_interval,
    runs,
    stairs,
    unheard_percent,
    values,
    wire_kbps,
)
from voicestream.cli.page import Check, Clip, Direction, Mark, Page, Table, Tile

__all__ = ["make_page"]

STEP_S: Final = 0.5
SHARE_STEP_S: Final = 1.0

LOSS_TOP: Final = 20.0
"""Percent at which the chart of losses ends: a break is 100, and would make all else invisible."""

SHORT_NAMES: Final = {"good": "Good", "loss": "5 %", "narrow": "30k", "break": "×", "again": "Good"}
DELAY_TOP_MS: Final = 300.0


def make_page(record: DemoRecord, ways: Sequence[WayFigures], checks: Sequence[Verdict], version: str) -> Page:
    """The page about a demo call."""
    up, down = ways
    directions = [
        _direction(record, up, record.client, record.server, "up"),
        _direction(record, down, record.server, record.client, "down"),
    ]
    return Page(
        title="VoiceStream demo",
        heading="One call, five kinds of link",
        lead=(
            f"A client and a server talked to each other for {record.seconds:.0f} seconds in real time, over real UDP sockets, while an "
            f"emulated link between them (round trip {record.rtt_ms:.0f} ms) went from good to lossy, to narrow, to dead, and back. "
            "Hear what arrived, and see what the call did about it."
        ),
        checks=[Check(title=check.title, passed=check.passed, finding=check.finding) for check in checks],
        tiles=_tiles(record, up, down),
        directions=_same_axes(directions),
        seconds=record.seconds,
        phases=_phases(record),
        marks=_marks(record),
        footer=f"VoiceStream {version}. Made by voicestream demo --seed {record.seed}; the losses are the same for the same seed, "
        "the timing is that of this machine.",
    )


def _phases(record: DemoRecord) -> list[Band]:
    return [
        Band(
            start=span.start,
            end=min(span.end, record.seconds) if span is not record.spans[-1] else record.seconds,
            label=span.phase.label,
            short=SHORT_NAMES.get(span.phase.key, span.phase.label),
            kind=span.phase.key,
        )
        for span in record.spans
        if span.start < record.seconds
    ]


def _marks(record: DemoRecord) -> list[Mark]:
    """When the client took its path for lost, and when the session went on."""
    marks = []
    for notice in record.client.notices:
        if notice.kind in ("lost", "resumed"):
            lost = notice.kind == "lost"
            marks.append(Mark(at=notice.at - record.began, label="path lost" if lost else "resumed", before=lost))
    return marks


def _tiles(record: DemoRecord, up: WayFigures, down: WayFigures) -> list[Tile]:
    packets, lost = up.whole.packets + down.whole.packets, up.whole.lost + down.whole.lost
    good = [way.phases[0].mouth_to_ear_ms for way in (up, down) if way.phases and way.phases[0].mouth_to_ear_ms is not None]
    rates = [beat.bitrate_bps / 1e3 for end in (record.client, record.server) for beat in end.beats]
    mended = sum(sum(figures.mended.values()) for way in (up, down) for figures in [way.whole])
    outage = next((notice.outage_s for notice in record.client.notices if notice.outage_s), None)
    return [
        Tile(
            label="Mouth to ear",
            value=f"{sum(good) / len(good):.0f}" if good else "–",
            unit="ms",
            note=f"on the good link, of which {record.rtt_ms / 2:.0f} ms are the link's",
        ),
        Tile(
            label="Codec bitrate",
            value=f"{min(rates):.0f}–{max(rates):.0f}" if rates else "–",
            unit="kbps",
            note="from the narrow link to the good one",
        ),
        Tile(
            label="Packets lost",
            value=f"{lost}",
            note=f"of {packets}, in the break and without; {mended:.0f} frames were brought back",
        ),
        Tile(
            label="Outage",
            value="–" if outage is None else f"{outage:.1f}",
            unit="s",
            note="until the same session went on, on a new connection",
        ),
    ]


def _direction(record: DemoRecord, figures: WayFigures, sender: EndRecord, receiver: EndRecord, way: Way) -> Direction:
    heard, rate = receiver.heard_pcm, record.sample_rate_hz
    marks = concealed_bands(receiver, record.began)
    clips = [
        Clip(
            title=f"What the {sender.name.lower()} said",
            note=f"{len(sender.said) / rate:.0f} s, as its microphone had it",
            pcm=sender.said,
            sample_rate_hz=rate,
            offset_s=sender.said_at - record.began,
        ),
        Clip(
            title=f"What the {receiver.name.lower()} heard",
            note=f"{len(heard) / rate:.0f} s, as its loudspeaker played it; marked where concealed",
            pcm=heard,
            sample_rate_hz=rate,
            offset_s=receiver.heard_at - record.began if receiver.heard else 0.0,
            marks=marks,
        ),
    ]
    charts = [
        _rates(record, sender, way),
        _delays(record, sender, receiver),
        _losses(record, receiver, way),
    ]
    table = Table(title=figures.name, rows=table_rows(figures))
    return Direction(name=figures.name, clips=clips, charts=charts, table=table)


def _rates(record: DemoRecord, sender: EndRecord, way: Way) -> Chart:
    began, seconds = record.began, record.seconds
    pieces = [
        Band(start=start, end=end, label=f"{frame_ms} ms", short=f"{frame_ms}", kind=f"length-{frame_ms}")
        for start, end, frame_ms in runs(sender, began, lambda beat: beat.frame_ms)
    ]
    return Chart(
        title="Rate",
        unit="kbps",
        x_max=seconds,
        note="Below: the length of a frame. Longer ones save headers where the link is narrow.",
        series=[
            Series(label="Capacity", points=_capacity(record), style="area", colour=0),
            Series(label="On the wire, all headers", points=wire_kbps(per_interval(record.log, way, began, seconds, STEP_S), STEP_S)),
            Series(label="Codec", points=stairs(sender, began, lambda beat: beat.bitrate_bps / 1e3), colour=2),
        ],
        lane=Lane(label="Frame length", pieces=pieces),
    )


def _capacity(record: DemoRecord) -> list[Point]:
    points: list[Point] = []
    for span in record.spans:
        rate = 0.0 if span.phase.mute else span.phase.rate_kbps
        points += [(span.start, rate)] if not points else []
        points.append((span.end if span is not record.spans[-1] else max(span.end, record.seconds), rate))
    return points


def _delays(record: DemoRecord, sender: EndRecord, receiver: EndRecord) -> Chart:
    began = record.began
    return Chart(
        title="Delay and buffer",
        unit="ms",
        x_max=record.seconds,
        y_max=DELAY_TOP_MS,
        series=[
            Series(label="Mouth to ear", points=mouth_to_ear(record, sender, receiver), colour=3),
            Series(label="One way on the link", points=values(receiver, began, lambda r: r.path.one_way_delay_ms), colour=1),
            Series(label="Buffer level", points=values(receiver, began, lambda r: r.playout.level_ms), colour=4),
            Series(label="Buffer target", points=values(receiver, began, lambda r: r.playout.target_ms), style="dashed", colour=4),
        ],
    )


def _losses(record: DemoRecord, receiver: EndRecord, way: Way) -> Chart:
    began, seconds, step = record.began, record.seconds, SHARE_STEP_S
    losses = loss_percent(per_interval(record.log, way, began, seconds, step), step)
    mended = [
        Series(label=tool, points=mended_percent(receiver, began, seconds, step, get), style="stack", colour=number)
        for number, (tool, get) in zip((1, 3, 4, 6), TOOLS.items(), strict=True)
    ]
    return Chart(
        title="Loss before and after repair",
        unit="%",
        x_max=seconds,
        y_max=LOSS_TOP,
        cut=True,
        note=f"Bars: audio that was lost, by what became of it. The axis ends at {LOSS_TOP:.0f} %.",
        series=[
            Series(label="Packets lost on the link", points=losses, style="step", colour=0),
            *mended,
            Series(label="Unheard", points=unheard_percent(receiver, began, seconds, step), style="stack", colour=5),
        ],
    )


def _same_axes(directions: Sequence[Direction]) -> list[Direction]:
    """Charts of the two ways get the same y axis, or comparing them would mislead."""
    tops: dict[str, float] = {}
    for direction in directions:
        for chart in direction.charts:
            highest = max((y for series in chart.series for _, y in series.points if y is not None), default=0.0)
            tops[chart.title] = chart.y_max if chart.cut else max(tops.get(chart.title, 0.0), highest, chart.y_max)
    return [
        Direction(name=d.name, clips=d.clips, charts=[replace(chart, y_max=tops[chart.title]) for chart in d.charts], table=d.table)
        for d in directions
    ]
