"""The call in figures, phase by phase: one table for the terminal and the page."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from voicestream.cli.charts import Point
from voicestream.cli.demo.record import DemoRecord, EndRecord
from voicestream.cli.demo.relay import Crossing, Way
from voicestream.cli.demo.series import TOOLS, growth, median, mouth_to_ear, unheard_percent

__all__ = ["HEAD", "Figures", "WayFigures", "figure_row", "summarise", "table_rows", "table_text"]

HEAD = ["Phase", "Codec", "Frame", "On the wire", "Packets lost", "Brought back", "Unheard", "Buffer", "Mouth to ear"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """One direction in one stretch of time; None where there is nothing to measure.

    Attributes:
        name: Of the stretch.
        codec_kbps: Median of the codec's bitrate.
        frame_ms: Most frequent frame length.
        wire_kbps: Mean of what entered the link, all headers included.
        packets: Packets that entered it.
        lost: Of these, lost.
        mended: Lost frames that came all the same, by tool.
        unheard_ms: Time in which the ear got what was made up, or nothing.
        level_ms: Median of the playout buffer.
        mouth_to_ear_ms: Median.
    """

    name: str
    codec_kbps: float | None
    frame_ms: int | None
    wire_kbps: float
    packets: int
    lost: int
    mended: dict[str, float]
    unheard_ms: float
    level_ms: float | None
    mouth_to_ear_ms: float | None

    @property
    def lost_percent(self) -> float:
        """Share of the packets that the link lost."""
        return 100.0 * self.lost / max(1, self.packets)


@dataclass(frozen=True, kw_only=True, slots=True)
class WayFigures:
    """One direction: phase by phase, and as a whole."""

    name: str
    phases: Sequence[Figures]
    whole: Figures


def summarise(record: DemoRecord) -> tuple[WayFigures, WayFigures]:
    """Client to server, server to client."""
    return _way(record, record.client, record.server, "up"), _way(record, record.server, record.client, "down")


def _way(record: DemoRecord, sender: EndRecord, receiver: EndRecord, way: Way) -> WayFigures:
    packets = [crossing for crossing in record.log if crossing.way == way]
    delays = mouth_to_ear(record, sender, receiver)
    unheard = unheard_percent(receiver, record.began, record.seconds, UNHEARD_STEP_S)

    def of(name: str, start: float, end: float) -> Figures:
        return _figures(record, sender, receiver, packets, delays, unheard, name, start, end)

    return WayFigures(
        name=f"{sender.name} to {receiver.name.lower()}",
        phases=[of(span.phase.label, span.start, min(span.end, record.seconds)) for span in record.spans],
        whole=of("Whole call", 0.0, record.seconds),
    )


UNHEARD_STEP_S = 0.1


def _figures(
    record: DemoRecord,
    sender: EndRecord,
    receiver: EndRecord,
    packets: Sequence[Crossing],
    delays: Sequence[Point],
    unheard: Sequence[Point],
    name: str,
    start: float,
    end: float,
) -> Figures:
    first, last = record.began + start, record.began + end
    inside = [crossing for crossing in packets if first <= crossing.at < last]
    beats = [beat for index, beat in enumerate(sender.beats) if first <= sender.beat_at(index) < last]
    levels = [(at, reading.playout.level_ms) for at, reading in receiver.readings if first <= at < last]
    return Figures(
        name=name,
        codec_kbps=statistics.median(beat.bitrate_bps / 1e3 for beat in beats) if beats else None,
        frame_ms=statistics.mode(beat.frame_ms for beat in beats) if beats else None,
        wire_kbps=sum(crossing.size_bytes for crossing in inside) * 8 / 1e3 / max(end - start, 1e-3),
        packets=len(inside),
        lost=sum(not crossing.arrives for crossing in inside),
        mended={tool: growth(receiver, (first, last), get)[0] for tool, get in TOOLS.items()},
        unheard_ms=sum((y or 0.0) for x, y in unheard if start < x <= end + 1e-6) * 10 * UNHEARD_STEP_S,
        level_ms=median(levels),
        mouth_to_ear_ms=median((at, delay) for at, delay in delays if start <= at < end),
    )


def table_rows(way: WayFigures) -> list[list[str]]:
    """A head, a row for each phase, and one for the whole."""
    return [list(HEAD)] + [figure_row(figures) for figures in (*way.phases, way.whole)]


def figure_row(figures: Figures) -> list[str]:
    """One stretch in words."""
    return [
        figures.name,
        _text(figures.codec_kbps, "kbps"),
        _text(figures.frame_ms, "ms"),
        _text(figures.wire_kbps, "kbps"),
        f"{figures.lost} of {figures.packets} ({figures.lost_percent:.1f} %)",
        f"{sum(figures.mended.values()):.0f} frames",
        _text(figures.unheard_ms, "ms"),
        _text(figures.level_ms, "ms"),
        _text(figures.mouth_to_ear_ms, "ms"),
    ]


def _text(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{value:.0f} {unit}"


def table_text(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines of aligned columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "─" * max(map(len, lines)))
    return "\n".join(lines)
