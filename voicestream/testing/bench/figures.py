"""From logs of packets, targets and playing to figures."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from voicestream.testing.bench.case import NEED_BPS, Case, Direction, Media
from voicestream.testing.bench.greedy import GreedyFlow
from voicestream.testing.bench.heard import FRAME_MS, TOOLS, Hearing, hearing, late_share
from voicestream.testing.bench.limit import WITHIN_MS, limits
from voicestream.testing.bench.link_of import capacity_bps
from voicestream.testing.bench.shared import Leg
from voicestream.testing.link import own_queueing_ms
from voicestream.testing.measure import Samples
from voicestream.testing.side import CallSide

__all__ = ["FlowLog", "figures"]

TURN: Final = 0.05
"""A turn of the target by less is none."""

TAKEN: Final = 0.9
STARTED: Final = 0.85
NEVER: Final = 99.0
"""Seconds, for what does not happen before the next change."""

USUAL_S: Final = 5.0
"""Seconds before capacity goes away whose delay is the usual one."""

BACK_MS: Final = 30.0
"""A delay that is longer than usual by less is the usual one."""

CALM_S: Final = 1.0
"""Seconds without a long wait after which the answer to a drop is complete."""


@dataclass(slots=True, kw_only=True)
class FlowLog:
    """What is remembered of one direction of a call.

    Attributes:
        side: Speaks.
        other: Listens.
        leg: Carries it.
        accepted_at: When the call began, in seconds of the case.
        spec: What was asked for.
        targets: (second, bits per second) of the estimate.
        heard: What became of its speech, once it is settled.
    """

    side: CallSide
    other: CallSide
    leg: Leg
    accepted_at: float
    spec: Media
    targets: list[tuple[float, float]] = field(default_factory=list)
    heard: Hearing = field(default_factory=Hearing)
    settled: bool = False

    @property
    def way(self) -> Direction:
        """Its direction."""
        return "b2a" if self.side.name.startswith("client") else "a2b"

    def settle(self) -> None:
        """The call ends: note what only its living ends tell."""
        if not self.settled:
            self.settled = True
            self.heard = hearing(self.side, self.other)

    def active(self, begin: float, end: float, case: Case) -> bool:
        """Whether it talks all through the window."""
        if self.spec.start > begin or (self.spec.stop or case.seconds) < end:
            return False
        at = self.spec.start
        for talk, pause in () if self.spec.chats else self.spec.talk:
            if begin < at + talk + pause and end > at + talk:
                return False
            at += talk + pause
        return True

    def served_bps(self, begin: float, end: float) -> float:
        """Rate at which its packets passed the shared limit."""
        bits = sum(packet.size * 8 for packet in self.leg.carried if packet.left_at is not None and begin <= packet.left_at < end)
        return bits / (end - begin)


def figures(case: Case, logs: Sequence[FlowLog], greedy: Sequence[GreedyFlow], *, epoch: float) -> dict[str, float]:
    """Every figure of one run; where there are several flows, the worst one's unless the name says otherwise."""
    found: dict[str, float] = {}
    by_way: dict[Direction, list[FlowLog]] = {}
    for log in logs:
        by_way.setdefault(log.way, []).append(log)
    use: list[float] = []
    for way, flows in by_way.items():
        use += _utilisation(case, way, flows)
        _queues(case, way, flows, found)
        _reactions(case, way, flows, found)
        _fairness(case, way, flows, found)
    if use:
        found["utilisation"] = min(use)
    if len(logs) == 1 and not greedy and not logs[0].spec.chats:
        found["start_s"] = _start(case, logs[0])
    found["reversals"] = max(_reversals(case, log) for log in logs)
    _hearing(logs, found)
    _delays_back(case, logs, found, epoch=epoch)
    found["dropped"] = max(sum(packet.left_at is None for packet in log.leg.carried) / max(1, len(log.leg.carried)) for log in logs)
    if greedy:
        _competition(case, by_way[case.greedy[0].way], greedy, found)
    elif [log.way for log in logs] == ["b2a"] and case.policer_bytes is None and (case.restless or len(case.b2a.rate_steps) > 1):
        found.update(limits(case.b2a, begin=logs[0].accepted_at, end=case.seconds - 1))
        found["unheard_350"] = late_share(logs[0].heard, WITHIN_MS[-1])
    return found


def _hearing(logs: Sequence[FlowLog], found: dict[str, float]) -> None:
    """What was heard, by whom it was heard worst; how long frames were, and where the bytes went, in the mean."""
    heard = [log.heard for log in logs]
    for name in ("concealed", "unheard", "lost"):
        found[name] = max(getattr(one, name) for one in heard)
    found["bitrate_kbps"] = statistics.fmean(one.bitrate_bps for one in heard) / 1e3
    found["redundancy"] = max(one.redundancy[""] for one in heard)
    found["delay_p50_ms"] = max(one.delay_ms.median for one in heard)
    found["delay_p95_ms"] = max(one.delay_ms.percentile(95) for one in heard)
    for length in FRAME_MS:
        found[f"frames_{length}"] = statistics.fmean(one.lengths.get(length, 0.0) for one in heard)
    for tool in (*TOOLS, "pair"):
        found[f"redundancy_{tool}"] = statistics.fmean(one.redundancy.get(tool, 0.0) for one in heard)
    whole = Samples()
    for tool in TOOLS:
        mended = [one.mended[tool] for one in heard if one.mended]
        if mended:
            found[f"mended_{tool}"] = statistics.fmean(mended)
        taken = Samples(value for one in heard for value in one.recovery_ms.get(tool, ()))
        if len(taken):
            found[f"recovery_{tool}_ms"] = taken.mean
            for value in taken:
                whole.add(value)
    if len(whole):
        found["recovery_ms"] = whole.mean


def _utilisation(case: Case, way: Direction, flows: Sequence[FlowLog]) -> list[float]:
    found = []
    for begin, end in case.windows(way):
        active = [flow for flow in flows if flow.active(begin, end, case) and not flow.spec.chats]
        if active:
            wanted = _wanted_bps(case, way, begin, end, len(active))
            found.append(sum(flow.served_bps(begin, end) for flow in active) / wanted)
    return found


def _wanted_bps(case: Case, way: Direction, begin: float, end: float, flows: int) -> float:
    """What so many flows can use: on a link that changes all the time each second counts for itself."""
    need = flows * NEED_BPS
    if not case.restless:
        return min(capacity_bps(case.profile(way), begin, end), need)
    seconds = range(int(begin), int(end))
    return statistics.fmean(min(capacity_bps(case.profile(way), second, second + 1), need) for second in seconds)


def _queues(case: Case, way: Direction, flows: Sequence[FlowLog], found: dict[str, float]) -> None:
    """Own queueing delay in the steady windows: on a trace without what the least stream of speech would wait there as well."""
    waits = Samples()
    windows = case.windows(way)
    for flow in flows:
        if case.restless and way == "b2a":
            # The packets before the call are few; the trace's own stalls are not the sender's doing.
            rows = [(packet.at, packet.size) for packet in flow.leg.carried]
            for wait in own_queueing_ms(case.profile(way), rows, since=windows[0][0]):
                waits.add(wait)
            continue
        for packet in flow.leg.carried:
            if packet.left_at is not None and any(begin <= packet.at < end for begin, end in windows):
                waits.add(packet.wait * 1e3)
    for percent in (50, 95, 99):
        if not len(waits):
            return
        name = f"queue_p{percent}_ms"
        found[name] = max(found.get(name, 0.0), waits.percentile(percent))


def _reactions(case: Case, way: Direction, flows: Sequence[FlowLog], found: dict[str, float]) -> None:
    """Seconds until a drop of the capacity has left no long wait behind, and until a rise of it is used."""
    steps = [] if case.restless else [step for step in case.profile(way).rate_steps if step[0] < case.seconds]
    edges = [*(start for start, _ in steps), case.seconds]
    for index, ((_, before), (start, after)) in enumerate(itertools.pairwise(steps)):
        end = edges[index + 2]
        active = [flow for flow in flows if flow.active(start - 0.5, end, case)]
        if not active:
            continue
        if after < before:
            late = [
                packet.at - start
                for flow in active
                for packet in flow.leg.carried
                if start <= packet.at < end and packet.left_at is not None and packet.wait * 1e3 > case.queue_ms
            ]
            found["react_s"] = max(found.get("react_s", 0.0), _calm(sorted(late)))
        elif not any(flow.spec.chats for flow in active):
            wanted = TAKEN * min(after * 1e3, len(active) * NEED_BPS)
            found["take_s"] = max(found.get("take_s", 0.0), _reached(active, start, end, wanted))


def _delays_back(case: Case, logs: Sequence[FlowLog], found: dict[str, float], *, epoch: float) -> None:
    """Seconds after capacity has come back until speech plays as soon after its capture as before that went away."""
    for log in logs:
        steps = [] if case.restless else [step for step in case.profile(log.way).rate_steps if step[0] < case.seconds]
        edges = [*(start for start, _ in steps), case.seconds]
        delays = [(at - epoch, delay) for at, _, delay, _ in log.heard.frames if delay is not None]
        left: tuple[float, float] | None = None  # when capacity went away, and how much there had been
        for index, ((_, before), (start, after)) in enumerate(itertools.pairwise(steps)):
            if after < before:
                left = left or (start, before)
            if left is None or after < TAKEN * min(left[1], NEED_BPS / 1e3):
                continue
            usual = Samples(delay for at, delay in delays if left[0] - USUAL_S <= at < left[0]).median
            late = [at - start for at, delay in delays if start <= at < edges[index + 2] and delay > usual + BACK_MS]
            if log.active(left[0] - USUAL_S, edges[index + 2], case):
                found["back_s"] = max(found.get("back_s", 0.0), max(late, default=0.0))
            left = None


def _calm(late: Sequence[float]) -> float:
    """The last of the moments that follow one another within `CALM_S`; later ones are not the drop's doing and count with the queue."""
    end = 0.0
    for at in late:
        if at - end > CALM_S:
            break
        end = at
    return end


def _reached(flows: Sequence[FlowLog], start: float, end: float, wanted_bps: float) -> float:
    """Seconds after `start` at which the second before has carried so much."""
    at = start + 1
    while at <= end:
        if sum(flow.served_bps(at - 1, at) for flow in flows) >= wanted_bps:
            return at - start
        at += 0.25
    return NEVER


def _start(case: Case, log: FlowLog) -> float:
    begin = log.accepted_at
    wanted = STARTED * min(capacity_bps(case.profile(log.way), begin, begin + 2), NEED_BPS)
    return _reached([log], begin, log.spec.stop or case.seconds, wanted)


def _reversals(case: Case, log: FlowLog) -> float:
    """Turns of the target by more than a twentieth, in 10 s of steady windows."""
    turns, length = 0, 0.0
    for begin, end in case.windows(log.way):
        if log.active(begin, end, case):
            turns += _turns([target for at, target in log.targets if begin <= at < end])
            length += end - begin
    return turns / length * 10 if length else 0.0


def _turns(values: Sequence[float]) -> int:
    if not values:
        return 0
    turns, direction, extreme = 0, 0, values[0]
    for value in values:
        if (direction >= 0 and value > extreme) or (direction <= 0 and value < extreme):
            direction, extreme = direction or (1 if value > extreme else -1), value
        elif abs(value - extreme) > TURN * extreme:
            turns, direction, extreme = turns + 1, -direction, value
    return turns


def _fairness(case: Case, way: Direction, flows: Sequence[FlowLog], found: dict[str, float]) -> None:
    for begin, end in case.windows(way):
        rates = [flow.served_bps(begin, end) for flow in flows if flow.active(begin, end, case)]
        if len(rates) >= 2 and any(rates):
            jain = sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))
            found["jain"] = min(found.get("jain", 1.0), jain)


def _competition(
    case: Case, flows: Sequence[FlowLog], greedy: Sequence[GreedyFlow], found: dict[str, float]
) -> None:
    """Media's part of what it should have beside others, and theirs; a flow with pauses counts by the part of the time it has to send."""
    begin, end = max(flow.accepted_at for flow in flows) + case.settle, case.seconds
    capacity = capacity_bps(case.profile(case.greedy[0].way), begin, end)
    present = sum(flow.busy_s for flow in greedy) / case.seconds
    fair = capacity / (len(flows) + present)
    found["media_share"] = min(flow.served_bps(begin, end) for flow in flows) / min(fair, NEED_BPS)
    rate = sum(size * 8 for flow in greedy for at, size in flow.delivered if begin <= at < end) / (end - begin)
    found["tcp_share"] = rate / (fair * present)
