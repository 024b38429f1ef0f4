"""What the demo notes while the call goes on, and simple arithmetic on it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from voicestream.call_stats import CallStats
from voicestream.cli.charts import Band, Point
from voicestream.cli.conversation import Pcm
from voicestream.cli.demo.relay import Crossing, Way

__all__ = ["EndRecord", "loss_percent", "per_interval", "share_percent", "values", "wire_kbps"]


@dataclass(kw_only=True, slots=True)
class EndRecord:
    """One end of the call. All times are seconds on the loop's clock.

    Attributes:
        name: "Client" or "Server".
        said: What it says.
        said_at: When the first sample was spoken.
        heard: Blocks that its loudspeaker played.
        heard_at: When the first of them was played.
        readings: (time, figures), a few a second.
        concealed: Stretches of `heard`, in its seconds, in which something was made up.
    """

    name: str
    said: Pcm
    said_at: float = 0.0
    heard: list[Pcm] = field(default_factory=list)
    heard_at: float = 0.0
    readings: list[tuple[float, CallStats]] = field(default_factory=list)
    concealed: list[Band] = field(default_factory=list)

    @property
    def heard_pcm(self) -> Pcm:
        """All of `heard` in one piece."""
        return np.concatenate(self.heard) if self.heard else np.zeros(0, np.int16)


def values(end: EndRecord, began: float, get: Callable[[CallStats], float | None]) -> list[Point]:
    """One figure over time: (seconds since `began`, value)."""
    return [(at - began, get(stats)) for at, stats in end.readings]


def per_interval(log: Iterable[Crossing], way: Way, began: float, seconds: float, step: float) -> list[list[Crossing]]:
    """Packets of one way, sorted into whole intervals of `step` seconds from `began` on."""
    bins: list[list[Crossing]] = [[] for _ in range(max(1, int(seconds / step)))]
    for crossing in log:
        index = int((crossing.at - began) // step)
        if crossing.way == way and 0 <= index < len(bins):
            bins[index].append(crossing)
    return bins


def wire_kbps(bins: Sequence[Sequence[Crossing]], step: float) -> Sequence[Point]:
    """IP bits that entered the link in each interval, a point at its middle."""
    return [((index + 0.5) * step, sum(c.size_bytes for c in row) * 8 / step / 1e3) for index, row in enumerate(bins)]


def loss_percent(bins: Sequence[Sequence[Crossing]], step: float) -> Sequence[Point]:
    """Packets that the link lost in each interval, a point at its end; the first stands at 0 for the step curve."""
    shares = [100.0 * sum(not c.arrives for c in row) / len(row) if row else 0.0 for row in bins]
    return [(0.0, 0.0)] + [((index + 1) * step, share) for index, share in enumerate(shares)]


def share_percent(end: EndRecord, began: float, get: Callable[[CallStats], float], step: float, seconds: float) -> Sequence[Point]:
    """How much a running total in milliseconds grew in each interval, as a share of it."""
    edges = np.arange(0.0, max(1, int(seconds / step)) + 1) * step
    times = [at - began for at, _ in end.readings]
    totals = np.interp(edges, times, [get(stats) for _, stats in end.readings]) if times else np.zeros(len(edges))
    growth = np.diff(totals) / (1e3 * step) * 100.0
    return [(0.0, 0.0)] + [(float(edge), max(0.0, float(value))) for edge, value in zip(edges[1:], growth, strict=True)]


def median(points: Iterable[Point]) -> float | None:
    """Of the values that are there."""
    found = [y for _, y in points if y is not None]
    return statistics.median(found) if found else None
