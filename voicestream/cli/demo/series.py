"""From what was noted to curves: simple arithmetic. Times are seconds since the call began."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from voicestream.call_stats import CallStats
from voicestream.cli.charts import Band, Point
from voicestream.cli.conversation import BLOCK_MS
from voicestream.cli.demo.checks import gaps
from voicestream.cli.demo.measure import delays_ms
from voicestream.cli.demo.record import Beat, DemoRecord, EndRecord
from voicestream.cli.demo.relay import Crossing, Way

__all__ = [
    "TOOLS",
    "concealed_bands",
    "growth",
    "loss_percent",
    "median",
    "mended_percent",
    "mouth_to_ear",
    "per_interval",
    "runs",
    "stairs",
    "unheard_percent",
    "values",
    "wire_kbps",
]

LONGEST_LINE_S: Final = 3.5
"""Points further apart are not joined."""

TOOLS: Final[dict[str, Callable[[CallStats], float]]] = {
    "Sent again": lambda stats: stats.recovery.retransmissions_received,
    "Repair code": lambda stats: stats.recovery.frames_repaired,
    "Low-rate copy": lambda stats: stats.playout.frames_copied,
    "In-band": lambda stats: stats.playout.frames_inband,
}
"""What can bring back a lost frame, and how many each has, as the receiver counts them."""


def values(end: EndRecord, began: float, get: Callable[[CallStats], float | None], step: float = 0.25) -> list[Point]:
    """One figure over time, read about every `step` seconds."""
    points: list[Point] = []
    for at, stats in end.readings:
        if not points or at - began - points[-1][0] >= step - 0.01:
            points.append((at - began, get(stats)))
    return points


def stairs(end: EndRecord, began: float, get: Callable[[Beat], float]) -> list[Point]:
    """A figure that stays until it changes."""
    points: list[Point] = []
    last: float | None = None
    for index, beat in enumerate(end.beats):
        value = get(beat)
        if value != last:
            at = end.beat_at(index) - began
            points += [(at, value)] if last is None else [(at, last), (at, value)]
            last = value
    if last is not None:
        points.append((end.beat_at(len(end.beats)) - began, last))
    return points


def runs(end: EndRecord, began: float, get: Callable[[Beat], int]) -> list[tuple[float, float, int]]:
    """(start, end, value) of the stretches in which a figure stays as it is."""
    found: list[tuple[float, float, int]] = []
    numbered = enumerate(end.beats)
    for value, group in itertools.groupby(numbered, key=lambda pair: get(pair[1])):
        indices = [index for index, _ in group]
        found.append((end.beat_at(indices[0]) - began, end.beat_at(indices[-1] + 1) - began, value))
    return found


def per_interval(log: Iterable[Crossing], way: Way, began: float, seconds: float, step: float) -> list[list[Crossing]]:
    """Packets of one way, sorted into whole intervals of `step` seconds from `began` on."""
    bins: list[list[Crossing]] = [[] for _ in range(max(1, int(seconds / step)))]
    for crossing in log:
        index = int((crossing.at - began) // step)
        if crossing.way == way and 0 <= index < len(bins):
            bins[index].append(crossing)
    return bins


def wire_kbps(bins: Sequence[Sequence[Crossing]], step: float) -> list[Point]:
    """IP bits that entered the link in each interval, a point at its middle."""
    return [((index + 0.5) * step, sum(c.size_bytes for c in row) * 8 / step / 1e3) for index, row in enumerate(bins)]


def loss_percent(bins: Sequence[Sequence[Crossing]], step: float) -> list[Point]:
    """Packets that the link lost in each interval, a point at its end; the first stands at 0 for the step curve."""
    return _at_ends([100.0 * sum(not c.arrives for c in row) / len(row) if row else 0.0 for row in bins], step)


def growth(end: EndRecord, edges: Sequence[float], get: Callable[[CallStats], float]) -> list[float]:
    """By how much a running total grew between each two of `edges` (loop seconds)."""
    if not end.readings:
        return [0.0] * max(0, len(edges) - 1)
    totals = np.interp(edges, [at for at, _ in end.readings], [get(stats) for _, stats in end.readings])
    return [max(0.0, float(value)) for value in np.diff(totals)]


def mended_percent(end: EndRecord, began: float, seconds: float, step: float, get: Callable[[CallStats], float]) -> list[Point]:
    """Share of each interval's audio that a tool brought back, a point at its end."""
    edges = _edges(began, seconds, step)
    frame_ms = [_frame_ms(end, began, edge - began - step / 2) for edge in edges[1:]]
    frames = growth(end, edges, get)
    return _at_ends([count * ms / (10.0 * step) for count, ms in zip(frames, frame_ms, strict=True)], step)


def _frame_ms(end: EndRecord, began: float, at: float) -> float:
    """Mean length of the frames that came around a time."""
    near = [stats for when, stats in end.readings if abs(when - began - at) <= 0.75]
    if len(near) < 2:
        return 20.0
    frames = near[-1].playout.frames_played - near[0].playout.frames_played
    return (near[-1].playout.played_ms - near[0].playout.played_ms) / frames if frames > 0 else 20.0


def unheard_percent(end: EndRecord, began: float, seconds: float, step: float) -> list[Point]:
    """Share of each interval in which the ear got what was made up, or nothing."""
    edges = _edges(began, seconds, step)
    made_up = growth(end, edges, lambda stats: stats.playout.concealed_ms / 1e3)
    holes = gaps(end)
    shares = []
    for (start, stop), concealed in zip(itertools.pairwise(edges), made_up, strict=True):
        empty = sum(max(0.0, min(hole.end, stop) - max(hole.start, start)) for hole in holes)
        shares.append(100.0 * min(step, max(concealed, empty)) / step)
    return _at_ends(shares, step)


def _at_ends(shares: Iterable[float], step: float) -> list[Point]:
    """A point at the end of each interval, and one at 0."""
    return [(0.0, 0.0), *(((index + 1) * step, share) for index, share in enumerate(shares))]


def _edges(began: float, seconds: float, step: float) -> list[float]:
    return [began + index * step for index in range(max(1, int(seconds / step)) + 1)]


def concealed_bands(end: EndRecord, began: float) -> list[Band]:
    """Stretches in which something was made up or nothing was there; neighbours are one."""
    raw = [Band(start=hole.start - began, end=hole.end - began) for hole in gaps(end)]
    for index, (before, beat) in enumerate(itertools.pairwise(end.beats), start=1):
        if beat.concealed_ms > before.concealed_ms:
            at = end.beat_at(index) - began
            raw.append(Band(start=at, end=at + BLOCK_MS / 1e3))
    merged: list[Band] = []
    for band in sorted(raw, key=lambda one: one.start):
        if merged and band.start <= merged[-1].end + 1e-6:
            merged[-1] = Band(start=merged[-1].start, end=max(merged[-1].end, band.end))
        else:
            merged.append(band)
    return merged


def mouth_to_ear(record: DemoRecord, sender: EndRecord, receiver: EndRecord) -> list[Point]:
    """Milliseconds, once a second of speech that can be found again."""
    if not receiver.heard:
        return []
    shift, offset_s = sender.said_at - record.began, receiver.heard_at - sender.said_at
    delays = delays_ms(sender.said, receiver.heard_pcm, record.sample_rate_hz, offset_s=offset_s)
    holes = [Band(start=hole.start - record.began, end=hole.end - record.began) for hole in gaps(receiver)]
    points: list[Point] = []
    for at, delay in ((at + shift, delay) for at, delay in delays):
        first, last = at - 0.5 + delay / 1e3, at + 0.5 + delay / 1e3
        if any(hole.start < last and first < hole.end for hole in holes):
            continue  # half a second of speech is found anywhere
        if points and at - points[-1][0] > LONGEST_LINE_S:
            points.append(((at + points[-1][0]) / 2, None))
        points.append((at, delay))
    return points


def median(points: Iterable[Point]) -> float | None:
    """Of the values that are there."""
    found = [y for _, y in points if y is not None]
    return statistics.median(found) if found else None
