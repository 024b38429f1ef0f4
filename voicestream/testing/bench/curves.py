"""What one direction of a case was like from half second to half second, for the page."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from voicestream.testing.bench.case import Case, Direction
from voicestream.testing.bench.figures import FlowLog
from voicestream.testing.bench.greedy import GreedyFlow
from voicestream.testing.bench.link_of import capacity_bps

__all__ = ["Curves", "curves"]

Points = tuple[tuple[float, float | None], ...]

FINE_S: Final = 0.5
COARSE_S: Final = 1.0
LONG_S: Final = 60.0
"""A longer case is drawn from second to second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Every value belongs to the interval that ends at its time.

    Attributes:
        way: The direction.
        seconds: Length of the case.
        capacity_kbps: Of the link; empty where nothing limits it.
        sent_kbps: By call.
        target_kbps: Of the first call.
        others_kbps: Of the competitors together; empty where there are none.
        wait_ms: Longest wait of a call's packet in the link's queue.
        playing_ms: Longest time from a frame's capture to its playing.
        dropped: Percentage of the calls' packets that the queue dropped.
        lost: Percentage that was lost at random.
        unheard: Percentage of the speech that nobody heard.
        lengths: (begin, end, milliseconds): how long the first call's frames were.
    """

    way: Direction
    seconds: float
    capacity_kbps: Points
    sent_kbps: tuple[Points, ...]
    target_kbps: Points
    others_kbps: Points
    wait_ms: Points
    playing_ms: Points
    dropped: Points
    lost: Points
    unheard: Points
    lengths: tuple[tuple[float, float, int], ...]


def curves(case: Case, logs: Sequence[FlowLog], greedy: Sequence[GreedyFlow], *, epoch: float) -> tuple[Curves, ...]:
    """One set for each direction in which somebody speaks."""
    found = []
    for way in ("b2a", "a2b"):
        flows = [log for log in logs if log.way == way]
        if flows:
            others = [flow for flow in greedy if case.greedy and case.greedy[0].way == way]
            found.append(_of_way(case, "b2a" if way == "b2a" else "a2b", flows, others, epoch))
    return tuple(found)


def _of_way(case: Case, way: Direction, flows: Sequence[FlowLog], greedy: Sequence[GreedyFlow], epoch: float) -> Curves:
    grid = _Grid(case.seconds)
    packets = [packet for flow in flows for packet in flow.leg.carried]
    frames = [(at - epoch, length, delay, heard) for flow in flows for at, length, delay, heard in flow.heard.frames]
    profile = case.profile(way)
    limited = bool(profile.rate_steps or profile.rate_trace_ms)
    capacity = [(end, capacity_bps(profile, end - grid.step, end) / 1e3) for end in grid.ends] if limited else []
    spoken = grid.sums((at, length) for at, length, _, _ in frames)
    missing = grid.sums((at, length) for at, length, _, heard in frames if not heard)
    offered = grid.sums((packet.at, 1) for packet in packets)
    dropped = grid.sums((packet.at, 1) for packet in packets if packet.left_at is None)
    lost = grid.sums((packet.at, 1) for packet in packets if packet.drop)
    targets = dict(grid.largest(((at, bps / 1e3) for at, bps in flows[0].targets)))
    return Curves(
        way=way,
        seconds=case.seconds,
        capacity_kbps=((0.0, capacity[0][1]), *capacity) if capacity else (),
        sent_kbps=tuple(_rates(grid, ((packet.at, packet.size) for packet in flow.leg.carried)) for flow in flows),
        target_kbps=tuple((end, targets.get(end)) for end in grid.ends),
        others_kbps=_rates(grid, (one for flow in greedy for one in flow.delivered)) if greedy else (),
        wait_ms=grid.largest((packet.at, packet.wait * 1e3) for packet in packets if packet.left_at is not None) if limited else (),
        playing_ms=grid.largest((at, delay) for at, _, delay, _ in frames if delay is not None),
        dropped=_shares(grid, dropped, offered),
        lost=_shares(grid, lost, offered),
        unheard=_shares(grid, missing, spoken),
        lengths=_lengths([(at - epoch, length) for at, length, _, _ in flows[0].heard.frames], case.seconds),
    )


class _Grid:
    """Intervals of equal length."""

    def __init__(self, seconds: float) -> None:
        self.step = COARSE_S if seconds > LONG_S else FINE_S
        self.ends = [round((number + 1) * self.step, 3) for number in range(math.ceil(seconds / self.step - 1e-9))]

    def end_of(self, at: float) -> float:
        return self.ends[min(len(self.ends) - 1, max(0, int(at / self.step)))]

    def sums(self, values: Iterable[tuple[float, float]]) -> dict[float, float]:
        found: dict[float, float] = defaultdict(float)
        for at, value in values:
            found[self.end_of(at)] += value
        return found

    def largest(self, values: Iterable[tuple[float, float]]) -> Points:
        found: dict[float, float] = {}
        for at, value in values:
            end = self.end_of(at)
            found[end] = max(value, found.get(end, value))
        return tuple((end, found.get(end)) for end in self.ends)


def _rates(grid: _Grid, packets: Iterable[tuple[float, float]]) -> Points:
    sums = grid.sums(packets)
    return ((0.0, 0.0), *((end, sums.get(end, 0.0) * 8 / grid.step / 1e3) for end in grid.ends))


def _shares(grid: _Grid, part: dict[float, float], whole: dict[float, float]) -> Points:
    return ((0.0, 0.0), *((end, 100 * part.get(end, 0.0) / whole[end] if whole.get(end) else 0.0) for end in grid.ends))


def _lengths(frames: Sequence[tuple[float, float]], seconds: float) -> tuple[tuple[float, float, int], ...]:
    """Stretches of equal length; what lasts less than a second belongs to its neighbour."""
    runs: list[tuple[float, int]] = []
    for length, members in itertools.groupby(frames, key=lambda frame: round(frame[1])):
        begin = next(iter(members))[0]
        if runs and begin - runs[-1][0] < COARSE_S:
            runs.pop()
        if not runs or runs[-1][1] != length:
            runs.append((begin, length))
    ends = [*(begin for begin, _ in runs[1:]), seconds]
    return tuple((begin, end, length) for (begin, length), end in zip(runs, ends, strict=True))
