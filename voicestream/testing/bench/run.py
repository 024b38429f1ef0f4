"""Runs one case with one seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from voicestream.config import RateConfig, SessionConfig
from voicestream.events import Accepted, Closed
from voicestream.testing.bench.case import Case, Direction, Media
from voicestream.testing.bench.curves import Curves, curves
from voicestream.testing.bench.figures import FlowLog, figures
from voicestream.testing.bench.greedy import GreedyFlow
from voicestream.testing.bench.link_of import prepared
from voicestream.testing.bench.shared import Leg, Limit, shared_limit
from voicestream.testing.endpoint_sim import ClientHost, EndpointWorld
from voicestream.testing.profile import LinkProfile, NetworkProfile
from voicestream.testing.side import CallSide
from voicestream.testing.tap import TappedPlayout
from voicestream.trace import Observer

__all__ = ["Outcome", "run_case"]

SAMPLE_S: Final = 0.1
DIRECTIONS: Final[tuple[Direction, Direction]] = ("b2a", "a2b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one run.

    Attributes:
        case: Name of the case.
        seed: Its seed.
        figures: Values by name.
        missed: The bars that were not kept, as text.
        failure: What went wrong with the run itself, or "".
        curves: What it was like over time, if that was asked for.
    """

    case: str
    seed: int
    figures: Mapping[str, float] = field(default_factory=dict)
    missed: tuple[str, ...] = ()
    failure: str = ""
    curves: tuple[Curves, ...] = ()


class _Call:
    """One call of a case, from its start to its end."""

    def __init__(self, run: _Run, spec: Media, number: int) -> None:
        self.spec = spec
        self.logs: dict[Direction, FlowLog] = {}
        self.accepted_at: float | None = None
        self._run = run
        self._number = number
        self._client: ClientHost | None = None
        run.world.sim.at(run.epoch + spec.start + 0.0037 * number, self._begin)
        if spec.stop is not None:
            run.world.sim.at(run.epoch + spec.stop, self._end)

    def _begin(self) -> None:
        run = self._run
        delay = self.spec.delay_ms
        profile = NetworkProfile(b2a=_plain(run.case.b2a, delay), a2b=_plain(run.case.a2b, delay))
        observer = None if self._number else run.observer
        client = self._client = run.world.client(profile, observer=observer, drift_ppm=self.spec.drift_ppm)
        client.on_event.append(lambda event: self._speak() if isinstance(event, Accepted) else None)
        for way in DIRECTIONS:
            seed = f"{run.world.sim.seed}/{self._number}/{way}"
            client.links[way] = Leg(run.limits[way], run.case.profile(way), seed, epoch=run.epoch, delay_ms=delay)

    def _speak(self) -> None:
        run, client = self._run, self._client
        assert client is not None
        self.accepted_at = run.world.sim.now - run.epoch
        sides: dict[Direction, CallSide] = {"b2a": client, "a2b": run.world.server.sides[run.world.clients.index(client)]}
        speaking = DIRECTIONS if self.spec.speaks == "both" else (self.spec.speaks,)
        for way in speaking:
            leg = client.links[way]
            assert isinstance(leg, Leg)
            other = sides["a2b" if way == "b2a" else "b2a"]
            self.logs[way] = FlowLog(side=sides[way], other=other, leg=leg, accepted_at=self.accepted_at, spec=self.spec)
            other.listen(playout=TappedPlayout())
            sides[way].speak(follow=True, pattern=self.spec.talk)
        self._sample()

    def _sample(self) -> None:
        now = self._run.world.sim.now
        for log in self.logs.values():
            if not log.side.session.is_closed:
                log.targets.append((now - self._run.epoch, log.side.session.target_bps))
        self._run.world.sim.after(SAMPLE_S, self._sample)

    def _end(self) -> None:
        client = self._client
        if client is not None:
            for log in self.logs.values():
                log.settle()
            client.session.close(client.sim.now)
            client.flush()


class _Run:
    def __init__(self, case: Case, seed: int, observer: Observer | None) -> None:
        self.case = case
        self.observer = observer
        # Bars on use are of what 64 kbps need; by default a codec keeps below that on a narrow link.
        self.world = EndpointWorld(seed=seed, config=SessionConfig(rate=RateConfig(headroom=1)))
        self.epoch = self.world.start
        self.limits: dict[Direction, Limit] = {
            "b2a": shared_limit(case.b2a, case.policer_bytes),
            "a2b": shared_limit(case.a2b, None),
        }
        self.calls = [_Call(self, spec, number) for number, spec in enumerate(case.media)]
        self.greedy = [
            GreedyFlow(self.world.sim, self.limits[spec.way], spec, epoch=self.epoch, rng=self.world.sim.rng(f"greedy/{index}/{turn}"))
            for index, spec in enumerate(case.greedy)
            for turn in range(spec.count)
        ]


def _plain(profile: LinkProfile, own_ms: float | None) -> LinkProfile:
    return LinkProfile(delay_ms=profile.delay_ms if own_ms is None else own_ms)


def run_case(case: Case, seed: int, *, observer: Observer | None = None, draw: bool = False) -> Outcome:
    """Run a case.

    Args:
        case: The case.
        seed: Of everything random.
        observer: Takes the trace records of the first call's client.
        draw: Make the curves, too.
    """
    case = prepared(case, seed)
    run = _Run(case, seed, observer)
    run.world.run(case.seconds)
    logs = [log for call in run.calls for log in call.logs.values()]
    if len(logs) < len(case.media) or any(log.side.seen(Closed) for log in logs if log.spec.stop is None):
        return Outcome(case=case.name, seed=seed, failure="a call was not accepted, or closed")
    for log in logs:
        log.settle()
    for flow in run.greedy:
        flow.end()
    found = figures(case, logs, run.greedy, epoch=run.epoch)
    missed = tuple(f"{bar} (is {found.get(bar.figure, math.nan):.3g})" for bar in case.bars if not bar.kept_by(found))
    drawn = curves(case, logs, run.greedy, epoch=run.epoch) if draw else ()
    return Outcome(case=case.name, seed=seed, figures=found, missed=missed, curves=drawn)
