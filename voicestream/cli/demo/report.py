"""From the demo's records to figures: a table for the terminal, a page for the browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from voicestream.cli.charts import Band, Chart, Point, Series
from voicestream.cli.demo.measure import delays_ms
from voicestream.cli.demo.record import EndRecord, loss_percent, median, per_interval, share_percent, values, wire_kbps
from voicestream.cli.demo.relay import Crossing, Way
from voicestream.cli.page import Clip, Direction, Page, Tile

__all__ = ["DemoRecord", "Figures", "make_page", "summarise", "table_text"]

STEP_S: Final = 0.5
SHARE_STEP_S: Final = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoRecord:
    """All that a demo call left behind.

    Attributes:
        client: The client's end.
        server: The server's end.
        log: Packets that entered the link.
        began: When the call was accepted, in loop seconds.
        seconds: How long it lasted.
        sample_rate_hz: Of all PCM.
        rtt_ms: Round trip of the emulated link.
        loss: Share of packets that it was to lose.
        seed: Of its random numbers.
        phases: Named stretches of the call.
    """

    client: EndRecord
    server: EndRecord
    log: Sequence[Crossing]
    began: float
    seconds: float
    sample_rate_hz: int
    rtt_ms: float
    loss: float
    seed: int
    phases: Sequence[Band] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """One direction in numbers; None where there is nothing to measure."""

    name: str
    speech_s: float
    codec_kbps: float | None
    wire_kbps: float
    packets: int
    lost: int
    rtt_ms: float | None
    one_way_ms: float | None
    level_ms: float | None
    target_ms: float | None
    concealed_ms: float
    concealed_percent: float
    mouth_to_ear_ms: float | None

    @property
    def lost_percent(self) -> float:
        """Share of the packets that the link lost."""
        return 100.0 * self.lost / max(1, self.packets)


def summarise(record: DemoRecord) -> tuple[Figures, Figures]:
    """Client to server, server to client."""
    return _figures(record, record.client, record.server, "up"), _figures(record, record.server, record.client, "down")


def _figures(record: DemoRecord, sender: EndRecord, receiver: EndRecord, way: Way) -> Figures:
    packets = [crossing for crossing in record.log if crossing.way == way and crossing.at >= record.began]
    heard, last = receiver.heard_pcm, receiver.readings[-1][1] if receiver.readings else None
    concealed_ms = last.playout.concealed_ms if last else 0.0
    talking = [(at, r) for at, r in sender.readings if sender.said_at <= at <= sender.said_at + len(sender.said) / record.sample_rate_hz]
    return Figures(
        name=f"{sender.name} to {receiver.name.lower()}",
        speech_s=len(sender.said) / record.sample_rate_hz,
        codec_kbps=median((at, r.sent.bitrate_bps / 1e3) for at, r in talking),
        wire_kbps=sum(crossing.size_bytes for crossing in packets) * 8 / 1e3 / max(record.seconds, 1e-3),
        packets=len(packets),
        lost=sum(not crossing.arrives for crossing in packets),
        rtt_ms=median((at, r.path.rtt_ms) for at, r in sender.readings),
        one_way_ms=median((at, r.path.one_way_delay_ms) for at, r in receiver.readings),
        level_ms=median((at, r.playout.level_ms) for at, r in receiver.readings),
        target_ms=median((at, r.playout.target_ms) for at, r in receiver.readings),
        concealed_ms=concealed_ms,
        concealed_percent=100.0 * concealed_ms * record.sample_rate_hz / 1e3 / max(1, len(heard)),
        mouth_to_ear_ms=median(_mouth_to_ear(record, sender, receiver)),
    )


def _mouth_to_ear(record: DemoRecord, sender: EndRecord, receiver: EndRecord) -> list[Point]:
    """Milliseconds over the seconds of the call."""
    shift, offset_s = sender.said_at - record.began, receiver.heard_at - sender.said_at
    delays = delays_ms(sender.said, receiver.heard_pcm, record.sample_rate_hz, offset_s=offset_s)
    return [(at + shift, delay) for at, delay in delays]


def _text(value: float | None, unit: str, digits: int = 0) -> str:
    return "–" if value is None else f"{value:.{digits}f} {unit}"


def summary_rows(figures: Sequence[Figures]) -> list[list[str]]:
    """A table with a column for each direction."""
    rows = [
        ["", *(f.name for f in figures)],
        ["Speech", *(_text(f.speech_s, "s", 1) for f in figures)],
        ["Mouth to ear, median", *(_text(f.mouth_to_ear_ms, "ms") for f in figures)],
        ["One-way delay, median", *(_text(f.one_way_ms, "ms") for f in figures)],
        ["Round trip, median", *(_text(f.rtt_ms, "ms") for f in figures)],
        ["Playout buffer, median of level / target", *(f"{_text(f.level_ms, 'ms')} / {_text(f.target_ms, 'ms')}" for f in figures)],
        ["Codec bitrate, median", *(_text(f.codec_kbps, "kbps", 1) for f in figures)],
        ["On the wire with all headers, mean", *(_text(f.wire_kbps, "kbps", 1) for f in figures)],
        ["Packets lost in the link", *(f"{f.lost} of {f.packets} ({f.lost_percent:.1f} %)" for f in figures)],
        ["Audio concealed", *(f"{f.concealed_ms:.0f} ms ({f.concealed_percent:.2f} %)" for f in figures)],
    ]
    return rows


def table_text(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines of aligned columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "─" * max(map(len, lines)))
    return "\n".join(lines)


def make_page(record: DemoRecord, figures: Sequence[Figures], version: str) -> Page:
    """The page about a demo call."""
    up, down = figures
    lead = (
        f"A client and a server talked to each other for {record.seconds:.0f} seconds, in real time, over real UDP sockets and through an "
        f"emulated link with a round trip of {record.rtt_ms:.0f} ms that loses {100 * record.loss:g} % of all packets. "
        "Hear what was said and what arrived, and see how the call coped."
    )
    directions = [
        _direction(record, up.name, record.client, record.server, "up"),
        _direction(record, down.name, record.server, record.client, "down"),
    ]
    return Page(
        title="VoiceStream demo",
        heading="A call through an imperfect link",
        lead=lead,
        tiles=_tiles(record, up, down),
        directions=_same_axes(directions),
        summary=summary_rows(figures),
        footer=f"VoiceStream {version}. Seed {record.seed}; make it again with: voicestream demo --seed {record.seed}",
    )


def _mean(first: float | None, second: float | None) -> float | None:
    found = [value for value in (first, second) if value is not None]
    return sum(found) / len(found) if found else None


def _tiles(record: DemoRecord, up: Figures, down: Figures) -> list[Tile]:
    delay, codec = _mean(up.mouth_to_ear_ms, down.mouth_to_ear_ms), _mean(up.codec_kbps, down.codec_kbps)
    packets, lost = up.packets + down.packets, up.lost + down.lost
    return [
        Tile(
            label="Mouth to ear",
            value="–" if delay is None else f"{delay:.0f}",
            unit="ms",
            note=f"of which {record.rtt_ms / 2:.0f} ms are the link's",
        ),
        Tile(label="Packets lost", value=f"{100 * lost / max(1, packets):.1f}", unit="%", note=f"{lost} of {packets}"),
        Tile(
            label="Audio concealed",
            value=f"{(up.concealed_percent + down.concealed_percent) / 2:.2f}",
            unit="%",
            note=f"{up.concealed_ms + down.concealed_ms:.0f} ms in both directions",
        ),
        Tile(
            label="On the wire",
            value=f"{(up.wire_kbps + down.wire_kbps) / 2:.0f}",
            unit="kbps",
            note=f"each way; the codec makes {'–' if codec is None else f'{codec:.0f}'}",
        ),
    ]


def _direction(record: DemoRecord, name: str, sender: EndRecord, receiver: EndRecord, way: Way) -> Direction:
    heard, rate = receiver.heard_pcm, record.sample_rate_hz
    made_up = f"{len(receiver.concealed)} concealed pieces are marked" if receiver.concealed else "nothing had to be concealed"
    clips = [
        Clip(
            title=f"What the {sender.name.lower()} said",
            note=f"{len(sender.said) / rate:.1f} s",
            pcm=sender.said,
            sample_rate_hz=rate,
            offset_s=sender.said_at - record.began,
        ),
        Clip(
            title=f"What the {receiver.name.lower()} heard",
            note=f"{len(heard) / rate:.1f} s as its loudspeaker played it; {made_up}",
            pcm=heard,
            sample_rate_hz=rate,
            offset_s=receiver.heard_at - record.began,
            marks=receiver.concealed,
        ),
    ]
    return Direction(name=name, clips=clips, charts=_charts(record, sender, receiver, way))


def _charts(record: DemoRecord, sender: EndRecord, receiver: EndRecord, way: Way) -> list[Chart]:
    began, seconds, bands = record.began, record.seconds, record.phases
    rates = wire_kbps(per_interval(record.log, way, began, seconds, STEP_S), STEP_S)
    losses = loss_percent(per_interval(record.log, way, began, seconds, SHARE_STEP_S), SHARE_STEP_S)
    concealed = share_percent(receiver, began, lambda r: r.playout.concealed_ms, SHARE_STEP_S, seconds)
    return [
        Chart(
            title="Bitrate",
            unit="kbps",
            x_max=seconds,
            bands=bands,
            series=[
                Series(label="On the wire, with headers", points=rates, colour=1),
                Series(label="Codec", points=values(sender, began, lambda r: r.sent.bitrate_bps / 1e3), style="dashed", colour=2),
            ],
        ),
        Chart(
            title="Delay",
            unit="ms",
            x_max=seconds,
            bands=bands,
            series=[
                Series(label="Round trip", points=values(sender, began, lambda r: r.path.rtt_ms), colour=1),
                Series(label="Mouth to ear", points=_mouth_to_ear(record, sender, receiver), style="dashed", colour=2),
                Series(label="One way", points=values(receiver, began, lambda r: r.path.one_way_delay_ms), colour=3),
            ],
        ),
        Chart(
            title="Playout buffer",
            unit="ms",
            x_max=seconds,
            bands=bands,
            series=[
                Series(label="Level", points=values(receiver, began, lambda r: r.playout.level_ms), colour=1),
                Series(label="Target", points=values(receiver, began, lambda r: r.playout.target_ms), style="dashed", colour=2),
            ],
        ),
        Chart(
            title="Loss and concealment",
            unit="%",
            x_max=seconds,
            y_max=5.0,
            bands=bands,
            series=[
                Series(label="Packets lost", points=losses, style="area", colour=1),
                Series(label="Audio concealed", points=concealed, style="step", colour=2),
            ],
        ),
    ]


def _same_axes(directions: Sequence[Direction]) -> list[Direction]:
    """Charts that stand beside each other get the same y axis, or comparing them would mislead."""
    tops: dict[str, float] = {}
    for direction in directions:
        for chart in direction.charts:
            highest = max((y for series in chart.series for _, y in series.points if y is not None), default=0.0)
            tops[chart.title] = max(tops.get(chart.title, 0.0), highest, chart.y_max)
    return [
        Direction(name=d.name, clips=d.clips, charts=[_with_top(chart, tops[chart.title]) for chart in d.charts]) for d in directions
    ]


def _with_top(chart: Chart, top: float) -> Chart:
    return Chart(title=chart.title, unit=chart.unit, series=chart.series, x_max=chart.x_max, y_max=top, bands=chart.bands)
