"""The playout buffer against a small model of source, link and sound card, in virtual time.

Every scenario is one seeded run; the seed stands in the message of a failed assertion.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest

from voicestream.config import PlayoutConfig
from voicestream.core.playout import Accelerate, Conceal, Decode, Expand, Merge, Playout, Repair, Silence
from voicestream.media import MediaFrame, SourceKind

UNIT = 0.0025
SEEDS = (1, 2, 3)


@dataclass
class Sent:
    """A frame on its way: when its audio ended at the microphone, when it was sent, when it arrives (None: lost)."""

    frame: MediaFrame
    captured: float
    sent: float
    arrival: float | None
    kind: SourceKind = SourceKind.AUDIO


@dataclass
class Result:
    """What was heard."""

    seed: int
    playout: Playout
    delays: list[tuple[float, float]] = field(default_factory=list)  # (when heard, since its end was captured)
    waits: list[tuple[float, float]] = field(default_factory=list)  # (when heard, since it arrived)
    log: list[tuple[float, str, float]] = field(default_factory=list)  # (when heard, decision, units)
    order: list[int] = field(default_factory=list)
    targets: list[tuple[float, float]] = field(default_factory=list)
    records: list[tuple[float, str, dict[str, object]]] = field(default_factory=list)
    duration: float = 0.0

    def record(self, now: float, name: str, data: object) -> None:
        assert isinstance(data, dict)
        self.records.append((now, name, data))

    def made(self, names: Iterable[str], start: float = 0.0, stop: float = 1e9) -> float:
        wanted = set(names)
        return sum(units for at, name, units in self.log if name in wanted and start <= at < stop)

    def concealed(self, start: float = 0.0, stop: float = 1e9) -> float:
        """Share of the time that concealment was played."""
        total = sum(units for at, _, units in self.log if start <= at < stop)
        return self.made(("conceal", "wait"), start, stop) / max(1.0, total)

    def stretch_rate(self, start: float = 0.0, stop: float = 1e9) -> float:
        """Share of the frames that were stretched."""
        played = [name for at, name, _ in self.log if start <= at < stop and name in {"decode", "merge", "repair", "expand", "accelerate"}]
        return sum(name in {"expand", "accelerate"} for name in played) / max(1, len(played))

    def delay_ms(self, start: float = 0.0, stop: float = 1e9) -> float:
        """Mean time from the end of a frame's capture to its first sample on the ear, ms."""
        values = [delay for at, delay in self.delays if start <= at < stop]
        return 1000 * sum(values) / max(1, len(values))

    def buffering_ms(self, start: float = 0.0, stop: float = 1e9) -> float:
        """Mean time from a frame's arrival to the ear, ms."""
        values = [wait for at, wait in self.waits if start <= at < stop]
        return 1000 * sum(values) / max(1, len(values))

    def max_delay_ms(self, start: float, stop: float) -> float:
        return 1000 * max(delay for at, delay in self.delays if start <= at < stop)

    def summary(self, start: float = 0.0, stop: float = 1e9) -> str:
        a = self.playout.account
        return (
            f"seed {self.seed}: delay {self.delay_ms(start, stop):.1f} ms, buffering {self.buffering_ms(start, stop):.1f} ms, "
            f"concealed {100 * self.concealed(start, stop):.2f} %, stretched {100 * self.stretch_rate(start, stop):.2f} % of frames, "
            f"inserted {a.inserted_units:.0f} removed {a.removed_units:.0f} units, late {a.frames_late} expired {a.frames_expired} "
            f"discarded {a.frames_discarded} lost {a.lost_units} units, interruptions {a.interruptions}, target {2.5 * self.playout.target_units:.1f} ms"
        )


class Card:
    """A sound card that pulls a block per tick by its own clock, with a stretcher that matches pitch as well as a real one."""

    def __init__(self, playout: Playout, result: Result, rng: random.Random, *, tick_units: float = 8, ppm: float = 0.0,
                 jitter: float = 0.003, phase: float | None = None, asleep: tuple[float, float] | None = None) -> None:
        self.playout, self.result, self.rng = playout, result, rng
        self.tick_units, self.jitter, self.asleep = tick_units, jitter, asleep
        self.step = tick_units * UNIT * (1 + ppm * 1e-6)
        self.phase = rng.random() * self.step if phase is None else phase
        self.count, self.held = 0, 0.0
        self.captured: dict[int, tuple[float, float]] = {}

    def next_tick(self) -> float:
        return self.phase + self.count * self.step + (self.rng.random() * 2 - 1) * self.jitter

    def tick(self, now: float) -> None:
        ideal = self.phase + self.count * self.step
        self.count += 1
        if self.asleep and self.asleep[0] <= now < self.asleep[1]:
            return
        calls = 0
        while self.held < self.tick_units - 1e-9:
            decision = self.playout.next(now, self.held)
            at = ideal + self.held * UNIT
            name, units = self.execute(decision, at)
            self.playout.done(units)
            self.result.log.append((at, name, units))
            self.held += units
            calls += 1
            assert calls < 200, f"no progress: {decision!r}"
        self.held -= self.tick_units
        self.result.targets.append((now, self.playout.target_units))

    def execute(self, decision: object, at: float) -> tuple[str, float]:
        match decision:
            case Decode(frame=frame):
                name, units = "decode", float(frame.units)
            case Merge(frame=frame):
                name, units = "merge", float(frame.units)
            case Repair(frame=frame):
                name, units = "repair", float(frame.units)
            case Expand(frame=MediaFrame() as frame, units=extra):
                name, units = "expand", frame.units + self.match(extra, 2.0)
            case Accelerate(frame=frame, units=fewer):
                name, units = "accelerate", max(0.0, frame.units - self.match(fewer, 1.0))
            case Expand(frame=None, units=units):
                return "wait", float(units)
            case Conceal(units=units):
                return "conceal", float(units)
            case Silence(units=units):
                return "silence", float(units)
            case _:
                raise AssertionError(decision)
        captured, arrival = self.captured[frame.pts]
        self.result.delays.append((at, at - captured))
        self.result.waits.append((at, at - arrival))
        self.result.order.append(frame.pts)
        return name, units

    def match(self, wanted: float, slack: float) -> float:
        """Whole pitch periods of a voice of 90 to 250 Hz; none when nothing matches or it does not fit."""
        if self.rng.random() < 0.15:
            return 0.0
        if self.rng.random() < 0.25:
            return wanted
        period = 1000 / self.rng.uniform(90, 250) / 2.5
        count = int((wanted + slack) / period)
        return count * period


def speech(rng: random.Random, seconds: float, *, frame_units: int = 8, start: float = 0.0, ppm: float = 0.0, send_jitter: float = 0.001,
           loss: Callable[[int], bool] = lambda index: False, delay: Callable[[float], float] = lambda sent: 0.0,
           base: float = 0.02, keep_order: bool = True, first_pts: int = 0) -> list[Sent]:
    """A talker without pauses through a link; `delay` is what comes on top of `base` for a frame sent then."""
    out, last, pts, index = [], 0.0, first_pts, 0
    while (pts - first_pts) * UNIT < seconds:
        captured = start + (pts - first_pts + frame_units) * UNIT * (1 - ppm * 1e-6)
        sent = captured + rng.random() * send_jitter
        arrival: float | None = sent + base + delay(sent)
        if loss(index):
            arrival = None
        elif keep_order:
            last = arrival = max(last, arrival or 0.0)
        out.append(Sent(MediaFrame(pts=pts, units=frame_units, payload=b"x"), captured, sent, arrival))
        pts, index = pts + frame_units, index + 1
    return out


def run(frames: list[Sent], seed: int, *, config: PlayoutConfig | None = None, send_time: bool = True, until: float | None = None,
        before: Callable[[Playout], None] | None = None, actions: Iterable[tuple[float, Callable[[Playout], None]]] = (), shift: Callable[[float], float] = lambda t: t,
        **card: object) -> Result:
    rng = random.Random(seed * 7919 + 13)
    result = Result(seed, None)  # type: ignore[arg-type]
    playout = Playout(config or PlayoutConfig(), observer=result)
    result.playout = playout
    speaker = Card(playout, result, rng, **card)  # type: ignore[arg-type]
    events: list[tuple[float, int, object]] = []
    for number, item in enumerate(frames):
        if item.arrival is not None:
            heapq.heappush(events, (item.arrival, number, item))
    for number, (at, action) in enumerate(actions):
        heapq.heappush(events, (at, -1 - number, action))
    if before:
        before(playout)
    end = until if until is not None else max(at for at, _, _ in events) + 0.3
    result.duration = end
    tick = speaker.next_tick()
    while True:
        if events and events[0][0] <= tick:
            at, _, item = heapq.heappop(events)
            if not isinstance(item, Sent):
                item(playout)  # type: ignore[operator]
                continue
            speaker.captured.setdefault(item.frame.pts, (item.captured, at))
            if item.kind is not SourceKind.AUDIO and item.frame.pts not in result.order:
                speaker.captured[item.frame.pts] = (item.captured, at)
            playout.insert(item.frame, shift(at), kind=item.kind, send_time=item.sent + 1000.0 if send_time else None)
            continue
        if tick > end:
            break
        speaker.tick(tick) if shift(tick) == tick else speaker_tick_shifted(speaker, tick, shift)
        tick = speaker.next_tick()
    check(result)
    return result


def speaker_tick_shifted(speaker: Card, tick: float, shift: Callable[[float], float]) -> None:
    real = speaker.playout.next
    speaker.playout.next = lambda now, held: real(shift(now), held)  # type: ignore[method-assign]
    try:
        speaker.tick(tick)
    finally:
        speaker.playout.next = real  # type: ignore[method-assign]


def check(result: Result) -> None:
    """What must hold whatever happened."""
    a, playout = result.playout.account, result.playout
    assert a.frames_received == a.frames_played + a.frames_late + a.frames_discarded + a.frames_duplicate + a.frames_expired + playout.held_frames
    assert a.produced_units == pytest.approx(a.played_units + a.inserted_units - a.removed_units + a.concealed_units + a.silence_units)
    assert result.order == sorted(set(result.order)), f"seed {result.seed}: a frame was played twice or out of order"
