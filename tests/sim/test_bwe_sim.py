"""Rate control against a small model of a bottleneck in virtual time; no session, no wire format.

Cases of RFC 8867, scaled to the rates of speech, and the ways in which a path misleads an estimator.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from voicestream.core.bwe import Estimator, Sample, State

Steps = list[tuple[float, float]]
NEED_BPS = 92e3
"""What 64 kbps take on the wire."""


def codec(target_bps: float) -> tuple[float, int]:
    """(bitrate, milliseconds a datagram), as an allocator would choose."""
    for ms, frames in ((20, 1), (40, 1), (60, 1), (120, 2)):
        bitrate = 0.92 * target_bps - (58 + 7 + 4 * (frames - 1)) * 8000 / ms
        if bitrate >= 16000 or ms == 120:
            break
    return max(8000.0, min(64000.0, bitrate)), ms


def rate_at(steps: Steps, at: float) -> float:
    return steps[max(0, bisect.bisect_right([start for start, _ in steps], at) - 1)][1]


class Bottleneck:
    def __init__(self, steps: Steps, queue_s: float) -> None:
        self.steps, self.queue_s, self.free_at = steps, queue_s, 0.0

    def send(self, now: float, size: int) -> tuple[float | None, float]:
        """(when the last bit leaves or None for a drop, seconds waited)"""
        wait = max(0.0, self.free_at - now)
        if wait > self.queue_s:
            return None, wait
        at, bits = max(now, self.free_at), size * 8.0
        for end, (_, bps) in zip([start for start, _ in self.steps[1:]] + [1e9], self.steps, strict=True):
            if at >= end:
                continue
            if at + bits / bps <= end:
                self.free_at = at + bits / bps
                break
            bits -= bps * (end - at)
            at = end
        return self.free_at, wait


@dataclass
class Path:
    steps: Steps
    delay: float = 0.05
    queue_s: float = 0.3
    jitter: float = 0.0
    loss: float = 0.0
    report_loss: float = 0.0
    shift: tuple[float, float] = (1e9, 0.0)  # from this moment on, so much longer
    pairs_pass: bool = True  # False: pairs arrive together, as behind a token bucket or in a radio's aggregate


@dataclass
class Flow:
    start: float = 0.0
    stop: float = 1e9
    sent: dict[int, tuple[float, int]] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)
    pending: list[Sample] = field(default_factory=list)
    arrivals: list[tuple[float, int]] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)
    targets: list[tuple[float, float]] = field(default_factory=list)
    last_arrival: float = -1.0
    report_at: float = 0.0
    owed_ms: int = 0
    heavy: int = 0  # every so manieth datagram is twice as long, because of what rides on it
    made: int = 0
    estimator: Estimator = field(default_factory=lambda: Estimator(66e3, 13e3, 110e3))

    def rate(self, begin: float, end: float) -> float:
        return sum(size for at, size in self.arrivals if begin <= at < end) * 8 / (end - begin)

    def queue_p95(self, begin: float, end: float) -> float:
        found = sorted(wait for at, wait in self.waits if begin <= at < end)
        return found[int(0.95 * len(found))]

    def reached(self, begin: float, bps: float) -> float:
        """Seconds from `begin` until one second has carried so much."""
        for step in itertools.count():
            if self.rate(begin + step / 4, begin + step / 4 + 1) >= bps:
                return step / 4 + 1
            assert step < 400, f"{bps / 1e3:.0f} kbps was never reached"
        raise AssertionError

    def above(self, begin: float, end: float, wait: float) -> float:
        """Seconds after `begin` of the last datagram that waited longer."""
        return max((at - begin for at, one in self.waits if begin <= at < end and one > wait), default=0.0)

    def reversals(self, begin: float, end: float) -> int:
        """Turns of the target by more than 5 %."""
        values = [target for at, target in self.targets if begin <= at < end]
        turns, direction, extreme = 0, 0, values[0]
        for value in values:
            if (direction >= 0 and value > extreme) or (direction <= 0 and value < extreme):
                direction, extreme = (direction or (1 if value > extreme else -1)), value
            elif abs(value - extreme) > 0.05 * extreme:
                turns, direction, extreme = turns + 1, -direction, value
        return turns


class World:
    def __init__(self, path: Path, flows: list[Flow], seed: int) -> None:
        self.path = path
        self.link = Bottleneck(path.steps, path.queue_s)
        self.rng = random.Random(seed)
        self.events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self.count = itertools.count()
        for index, flow in enumerate(flows):
            self.at(flow.start + 0.0037 * index, self.tick, flow)

    def at(self, moment: float, act: Callable[..., None], *args: Any) -> None:
        heapq.heappush(self.events, (moment, next(self.count), act, args))

    def run(self, seconds: float) -> None:
        """Until `seconds` have passed since the beginning."""
        while self.events and self.events[0][0] <= seconds:
            now, _, act, args = heapq.heappop(self.events)
            act(now, *args)

    def tick(self, now: float, flow: Flow) -> None:
        if now > flow.stop:
            return
        self.at(now + 0.02, self.tick, flow)
        estimator = flow.estimator
        estimator.tick(now, 2 * self.path.delay)
        bitrate, ms = codec(estimator.target_bps * (flow.heavy / (flow.heavy + 1) if flow.heavy else 1))
        flow.owed_ms += 20
        flow.targets.append((now, estimator.target_bps))
        if flow.owed_ms >= ms:
            flow.made += 1
            ridden = 2 if flow.heavy and flow.made % flow.heavy == 0 else 1
            self.emit(now, flow, round(bitrate * flow.owed_ms / 8000) * ridden + 65)
            flow.owed_ms = 0
            if estimator.wants_pair(now):
                estimator.paired(now)
                self.emit(now + 1e-5, flow, 125, pair=True)

    def emit(self, now: float, flow: Flow, size: int, *, pair: bool = False) -> None:
        path, number = self.path, len(flow.sent)
        flow.sent[number] = (now, size)
        flow.estimator.sent(number, now, size)
        left, wait = self.link.send(now, size)
        if left is None or self.rng.random() < path.loss:
            flow.lost.append(number)
            return
        flow.waits.append((now, wait))
        at = left + path.delay + abs(self.rng.gauss(0, path.jitter)) + (path.shift[1] if now >= path.shift[0] else 0.0)
        if pair and not path.pairs_pass:
            at = flow.last_arrival
        flow.last_arrival = max(at, flow.last_arrival)
        self.at(flow.last_arrival, self.arrive, flow, number)

    def arrive(self, now: float, flow: Flow, number: int) -> None:
        sent_at, size = flow.sent[number]
        flow.pending.append(Sample(number, sent_at, round(now * 4000) / 4000, size))
        flow.arrivals.append((now, size))
        if len(flow.pending) == 1:
            self.at(max(now, flow.report_at + 0.1), self.report, flow)

    def report(self, now: float, flow: Flow) -> None:
        flow.report_at = now
        samples, flow.pending = flow.pending, []
        if self.rng.random() < self.path.report_loss:
            flow.pending = samples  # the next report covers them again
            self.at(now + 0.1, self.report, flow)
            return
        self.at(now + self.path.delay, self.told, flow, samples)

    def told(self, now: float, flow: Flow, samples: list[Sample]) -> None:
        newest = samples[-1].number
        lost = [number for number in flow.lost if number < newest - 2]
        flow.lost = [number for number in flow.lost if number >= newest - 2]
        flow.estimator.feedback(now, samples, lost, 2 * self.path.delay)


def simulate(path: Path, seconds: float, *, flows: list[Flow] | None = None, seed: int = 1) -> list[Flow]:
    flows = flows or [Flow()]
    World(path, flows, seed).run(seconds)
    return flows


@pytest.mark.parametrize("jitter", [0.0, 0.01])
def test_one_flow_follows_a_variable_capacity(jitter: float) -> None:  # VS-9.3-3 VS-9.4-1
    """RFC 8867 section 5.1, a tenth of its rates."""
    steps = [(0.0, 100e3), (40.0, 250e3), (60.0, 60e3), (80.0, 100e3)]
    (flow,) = simulate(Path(steps, jitter=jitter), 100)
    for (begin, bps), end in zip(steps, (40, 60, 80, 100), strict=True):
        need = min(bps, NEED_BPS)
        assert flow.rate(begin + 6, end) >= 0.85 * need, f"from {begin} s: {flow.rate(begin + 6, end):.0f} bps"
        assert flow.queue_p95(begin + 3, end) <= 0.06, f"from {begin} s: {flow.queue_p95(begin + 3, end):.3f} s"
        # Jitter blurs what pairs tell, so more of them are needed.
        assert flow.reached(begin, 0.85 * need) <= (8.0 if jitter else 5.0), f"from {begin} s"
    assert flow.above(60, 80, 0.1) <= 2.0


def test_a_flow_comes_back_from_a_narrow_link_within_seconds() -> None:
    steps = [(0.0, 200e3), (20.0, 50e3), (40.0, 30e3), (60.0, 200e3)]
    (flow,) = simulate(Path(steps, delay=0.03), 80)
    assert flow.rate(24, 40) >= 0.85 * 50e3
    assert flow.rate(44, 60) >= 0.85 * 30e3
    assert flow.above(20, 40, 0.1) <= 2.0
    assert flow.above(40, 60, 0.1) <= 2.0
    assert flow.reached(60, 0.9 * NEED_BPS) <= 5.0
    assert all(flow.reversals(begin, begin + 14) <= 1 for begin in (6, 26, 46, 66))


def test_a_drop_to_a_fifth_empties_the_queue_within_two_seconds() -> None:
    (flow,) = simulate(Path([(0.0, 100e3), (20.0, 20e3), (40.0, 100e3)]), 60)
    assert flow.above(20, 40, 0.15) <= 2.0  # at 20 kbps a datagram alone takes 100 ms
    assert flow.reached(40, 0.85 * NEED_BPS) <= 5.0


@pytest.mark.parametrize("seed", [1, 2])
def test_random_loss_does_not_bring_the_rate_down(seed: int) -> None:
    (flow,) = simulate(Path([(0.0, 200e3)], loss=0.1), 60, seed=seed)
    assert flow.rate(10, 60) >= 0.75 * NEED_BPS  # 90 % of what is sent arrives
    assert min(target for at, target in flow.targets if at > 10) >= 0.7 * NEED_BPS
    assert 0.05 < flow.estimator.loss.share < 0.2


def test_a_policer_is_heeded_though_it_delays_nothing() -> None:
    (flow,) = simulate(Path([(0.0, 200e3), (10.0, 60e3)], queue_s=0.03, delay=0.03), 60)
    offered = sum(size for at, size in flow.sent.values() if 25 <= at < 60) * 8 / 35
    assert flow.rate(25, 60) >= 0.9 * offered, f"{flow.rate(25, 60):.0f} of {offered:.0f} bps arrive"
    assert flow.rate(25, 60) >= 0.55 * 60e3


def test_a_longer_route_is_not_taken_for_a_queue_for_long() -> None:
    (flow,) = simulate(Path([(0.0, 200e3)], shift=(20.0, 0.06)), 40)
    assert flow.reached(21, 0.9 * NEED_BPS) <= 5.0
    assert flow.rate(28, 40) >= 0.9 * NEED_BPS


@pytest.mark.parametrize("seed", [1, 2])
def test_lost_reports_cost_little(seed: int) -> None:
    (flow,) = simulate(Path([(0.0, 100e3)], report_loss=0.3), 60, seed=seed)
    assert flow.rate(6, 60) >= 0.85 * NEED_BPS
    assert flow.queue_p95(6, 60) <= 0.06


def test_without_any_report_the_rate_falls_to_the_floor_and_comes_back() -> None:  # VS-9.5-1
    flow = Flow()
    world = World(Path([(0.0, 200e3)]), [flow], 1)
    world.run(10)
    world.path.loss = 1.0
    world.run(15)
    assert flow.targets[-1][1] == 13e3
    assert flow.estimator.state is State.STARVED
    world.path.loss = 0.0
    world.run(25)
    assert flow.reached(15, 0.9 * NEED_BPS) <= 5.0


def test_links_whose_pairs_tell_nothing_are_found_as_well() -> None:
    (flow,) = simulate(Path([(0.0, 100e3), (30.0, 50e3), (60.0, 100e3)], pairs_pass=False), 90)
    assert flow.rate(6, 30) >= 0.85 * NEED_BPS
    assert flow.rate(36, 60) >= 0.85 * 50e3
    assert flow.queue_p95(36, 60) <= 0.06
    assert flow.rate(75, 90) >= 0.85 * NEED_BPS


def jain(rates: list[float]) -> float:
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def test_three_equals_share_a_link_equally_and_rest() -> None:
    """RFC 8867 section 5.4."""
    flows = [Flow(start=20.0 * index) for index in range(3)]
    simulate(Path([(0.0, 180e3)]), 120, flows=flows)
    rates = [flow.rate(60, 120) for flow in flows]
    assert jain(rates) >= 0.95, rates
    assert sum(rates) >= 0.85 * 180e3
    for flow in flows:
        assert flow.queue_p95(60, 120) <= 0.06
        assert flow.reversals(60, 120) <= 8  # most of them the looks at the empty path


@pytest.mark.parametrize(("count", "bps"), [(2, 100e3), (3, 200e3), (4, 200e3)])
def test_equals_rest_though_their_datagrams_differ_in_length(count: int, bps: float) -> None:
    flows = simulate(Path([(0.0, bps)]), 60, flows=[Flow(heavy=7) for _ in range(count)])
    rates = [flow.rate(10, 60) for flow in flows]
    assert jain(rates) >= 0.95, rates
    assert sum(rates) >= 0.9 * bps
    assert max(flow.reversals(10, 60) for flow in flows) <= 5
    assert max(flow.queue_p95(10, 60) for flow in flows) <= 0.06


@pytest.mark.parametrize("jitter", [0.02, 0.03])
@pytest.mark.parametrize("seed", [1, 2])
def test_much_jitter_is_no_queue(jitter: float, seed: int) -> None:
    (flow,) = simulate(Path([(0.0, 100e3)], jitter=jitter), 60, flows=[Flow(heavy=7)], seed=seed)
    assert flow.rate(10, 60) >= 0.85 * NEED_BPS
    assert flow.reversals(10, 60) <= 5
    assert flow.queue_p95(10, 60) <= 0.06


def test_two_equals_follow_a_variable_capacity() -> None:
    """RFC 8867 section 5.2."""
    steps = [(0.0, 200e3), (25.0, 100e3), (50.0, 175e3), (75.0, 50e3), (100.0, 100e3)]
    flows = simulate(Path(steps), 125, flows=[Flow(), Flow()])
    for (begin, bps), end in zip(steps, (25, 50, 75, 100, 125), strict=True):
        rates = [flow.rate(begin + 6, end) for flow in flows]
        assert sum(rates) >= 0.85 * min(bps, 2 * NEED_BPS), f"from {begin} s: {rates}"
        assert jain(rates) >= 0.9, f"from {begin} s: {rates}"


def test_a_link_wide_enough_is_used_within_two_seconds() -> None:
    (flow,) = simulate(Path([(0.0, 64e3)]), 10)
    assert flow.reached(0, 0.8 * 64e3) <= 2.0
