"""One call over real QUIC in virtual time whose path breaks in one of many ways, and what became of it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from voicestream import events
from voicestream.config import UNITS_PER_SECOND, SessionConfig
from voicestream.core.lifecycle import State
from voicestream.core.playout import OrderedReader
from voicestream.quic.path_keeper import Step
from voicestream.testing.endpoint_sim import ClientHost, EndpointWorld
from voicestream.testing.listener import OrderedListener
from voicestream.testing.profile import LinkProfile
from voicestream.testing.side import CallSide
from voicestream.testing.sim_keeper import SimKeeper
from voicestream.testing.source import LiveSource, SentFrame

__all__ = ["KINDS", "BreakPlan", "BreakReport", "break_plan", "run_break"]

KINDS: Final = ("plain", "handshake", "reply", "twice", "clear", "finish", "event")
"""What happens besides: nothing; the path breaks again in the handshake of the dial; the answer to the request to resume is lost; it
breaks again a moment later; a clear, the end of a track, a large event are under way as it breaks."""

MUTE: Final = {"server": ("a2b",), "client": ("b2a",), "both": ("a2b", "b2a")}
"""Links that carry nothing, by whose packets are lost."""

SETTLE_S: Final = 8.0
"""Seconds that a call goes on after its path has come back for good, beside half of what was missed."""

TAIL_UNITS: Final = 80
"""So much of the newest may not have been heard yet."""

READER_MS: Final = 150
"""How long a side that reads in order waits for what is missing."""

EVENT_EVERY_S: Final = 0.5
EVENT_BYTES: Final = 48 * 1024
LARGE: Final = b"L"


@dataclass(frozen=True, kw_only=True, slots=True)
class BreakPlan:
    """What is done to a call.

    Attributes:
        seed: Of all that is random in it.
        kind: One of `KINDS`.
        mute: Whose packets are lost: "server", "client" or "both".
        seconds: How long, at first.
        again_s: How long the second time, for kinds with two breaks.
        delay_ms: One way.
        loss: Of single packets, all the time.
        live: The server plays in real time, as the client does; otherwise it reads in order.
    """

    seed: int
    kind: str
    mute: str
    seconds: float
    again_s: float
    delay_ms: float
    loss: float
    live: bool


def break_plan(seed: int, *, longest_s: float = 60.0) -> BreakPlan:
    """A plan at random: breaks of 0.3 s to `longest_s`, short ones more often."""
    rng = random.Random(f"break/{seed}")
    return BreakPlan(
        seed=seed,
        kind=rng.choice(KINDS),
        mute=rng.choice(tuple(MUTE)),
        seconds=round(0.3 * (longest_s / 0.3) ** rng.random(), 2),
        again_s=round(0.3 * 20 ** rng.random(), 2),
        delay_ms=rng.choice((5.0, 20.0, 30.0, 60.0, 100.0)),
        loss=rng.choice((0.0, 0.0, 0.005, 0.02)),
        live=rng.random() < 0.3,
    )


@dataclass(kw_only=True, slots=True)
class BreakReport:
    """What became of a call.

    Attributes:
        plan: What was done.
        survived: The session went on to the end on both sides, and audio flowed both ways again.
        breaks: How often the path was taken away.
        resumes: How often the session was resumed.
        dials: How often the client dialled.
        to_speech_s: For each side that plays in real time and could not be reached, seconds from the path's return to live sound:
            the first that was said no longer before it than the lookahead.
        to_fresh_s: The same to the first sound said since then.
        to_reading_s: For each side that reads in order, seconds from the path's return to the next frame.
        lost: Frames that a side reading in order never got, although they were kept for it.
        stray: Frames said before or after, or along a way that was not broken, which the path's own losses cost.
        too_old: Frames that were kept no more when the path came back.
        replayed: Frames that left once more since the break had swallowed them.
        duplicated: Frames and events that an application got twice.
        disordered: Frames and events that it got out of order.
        altered: Frames that it got with other bytes than were said.
        rate_bps: Bitrates of the client's plan before the break, and two, four and eight seconds after the path's return.
        notes: What went wrong, in words.
    """

    plan: BreakPlan
    survived: bool = False
    breaks: int = 0
    resumes: int = 0
    dials: int = 0
    to_speech_s: list[float] = field(default_factory=list)
    to_fresh_s: list[float] = field(default_factory=list)
    to_reading_s: list[float] = field(default_factory=list)
    lost: int = 0
    stray: int = 0
    too_old: int = 0
    replayed: int = 0
    duplicated: int = 0
    disordered: int = 0
    altered: int = 0
    rate_bps: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _BrokenCall:
    """Drives one call through its plan."""

    def __init__(self, plan: BreakPlan, config: SessionConfig) -> None:
        self.plan = plan
        self.config = config
        self.rng = random.Random(f"broken call/{plan.seed}")
        self.world = EndpointWorld(seed=plan.seed, config=config, resumable=True, early=True)
        self.client: ClientHost = self.world.client(LinkProfile(delay_ms=plan.delay_ms, loss=plan.loss))
        self.world.open(self.client)
        self.sides: tuple[CallSide, ...] = (self.client, self.world.server.sides[0])
        self.keeper = SimKeeper(self.client)
        self.report = BreakReport(plan=plan)
        self.readers: dict[str, OrderedListener] = {}
        self.sources: dict[str, LiveSource] = {}
        self.events_sent = 0
        self.muted: set[str] = set()
        self.broken: set[str] = set()
        self.returned_at = self.begun_at = self.world.sim.now
        for side in self.sides:
            self.sources[side.name] = side.speak(follow=True)
            if side is self.client or plan.live:
                side.listen()
            else:
                reader = OrderedReader(READER_MS, 3000)
                side.session.receivers[0].attach_ordered(reader)
                self.readers[side.name] = OrderedListener(side.sim, reader, on_progress=side.reporter(0))
        self._say_events()

    @property
    def now(self) -> float:
        return self.world.sim.now

    def _say_events(self) -> None:
        if not self.client.session.is_closed:
            self._send_event(b"%d" % self.events_sent)
            self.events_sent += 1
            self.world.sim.after(EVENT_EVERY_S, self._say_events)

    def _send_event(self, payload: bytes) -> None:
        for side in self.sides:
            if not side.session.is_closed:
                side.session.send_event(payload, self.now, kind=1)
                side.flush()

    def run(self) -> BreakReport:
        """All of it."""
        plan, world = self.plan, self.world
        world.run(self.rng.uniform(2.0, 4.0))
        self.report.rate_bps.append(self.client.session.plan.bitrate_bps)
        begin = self.begun_at = self.now
        if plan.kind in ("clear", "finish", "event"):
            world.sim.after(max(0.0, self.rng.uniform(-0.1, plan.seconds)), self._act)
            world.run(0.1)
        self._mute(plan.seconds, MUTE[plan.mute])
        if plan.kind == "twice":
            world.run(self.rng.uniform(0.1, 3.0))
            self._mute(plan.again_s, MUTE[plan.mute])
        elif plan.kind == "handshake" and self._until(lambda: self.client.is_dialling, 3.0):
            world.run(self.rng.uniform(0.0, 2.5) * plan.delay_ms / 1000)
            self._mute(plan.again_s, MUTE[plan.mute])
        elif plan.kind == "reply" and self._until(lambda: self.client.session.state is State.RESUMING, 3.0):
            self._mute(plan.again_s, MUTE["server"])
        whole = self.now - begin
        for seconds in (2.0, 2.0, 4.0):
            world.run(seconds)
            self.report.rate_bps.append(self.client.session.plan.bitrate_bps)
        world.run(min(whole, self.config.retain_s) / 2)
        if plan.kind == "event":
            # Beside audio that takes what there is, so much may need long.
            self._until(lambda: all(self._large_events(side) for side in self.sides), 60.0)
            world.run(1.0)
        self._judge()
        return self.report

    def _mute(self, seconds: float, links: tuple[str, ...]) -> None:
        self.report.breaks += 1
        self.broken |= set(links)
        # Who has asked for the resumption says nothing before the answer, whichever way is dead.
        self.muted = set(links) if self.plan.kind != "reply" else {"a2b", "b2a"}
        self.client.mute |= set(links)
        self.world.run(seconds)
        self.client.mute -= set(links)
        self.returned_at = self.now

    def _until(self, ready: Callable[[], bool], within: float) -> bool:
        return ready() or self.world.sim.run(self.now + within, stop=ready)

    def _act(self) -> None:
        kind, now = self.plan.kind, self.now
        if kind == "event":
            self._send_event(LARGE * EVENT_BYTES)
            return
        for side in self.sides:
            if side.session.is_closed or self.rng.random() < 0.3:
                continue
            if kind == "finish":
                self.sources[side.name].finish(now)
            else:
                side.session.clear(now, outgoing=self.rng.random() < 0.5)
            side.flush()

    # What became of it

    def _judge(self) -> None:
        report, client = self.report, self.client
        report.resumes = len(client.seen(events.Resumed))
        report.dials = len(self.keeper.seen(Step.DIAL))
        report.survived = True
        for side in self.sides:
            closed = side.seen(events.Closed)
            if closed:
                self._failed(f"{side.name} was closed: {closed[-1][1]}")
            report.replayed += side.session.stats(self.now).frames_replayed
            self._judge_events(side)
            other = side.other
            assert other is not None
            sent = other.talkers[0].sent
            if side.name in self.readers:
                self._judge_reading(side, sent)
            else:
                self._judge_playing(side, sent)
            finished = self.sources[other.name].next_timer() is None
            if finished and side.name not in self.readers and not other.seen(events.Finished):
                self._failed(f"{other.name} has finished, and does not know that all was played")

    def _failed(self, note: str) -> None:
        self.report.survived = False
        self.report.notes.append(note)

    def _judge_events(self, side: CallSide) -> None:
        payloads = [event.payload for _, event in side.seen(events.EventReceived)]
        numbers = [int(payload) for payload in payloads if not payload.startswith(LARGE)]
        large = self._large_events(side)
        self._count_order(numbers)
        self.report.duplicated += max(0, large - 1)
        missing = self.events_sent - len(set(numbers))
        if missing > 2:
            self._failed(f"{side.name}: {missing} events are missing")
        if self.plan.kind == "event" and not large:
            self._failed(f"{side.name}: the large event is missing")

    @staticmethod
    def _large_events(side: CallSide) -> int:
        return sum(event.payload.startswith(LARGE) for _, event in side.seen(events.EventReceived))

    def _count_order(self, numbers: list[int]) -> None:
        self.report.duplicated += len(numbers) - len(set(numbers))
        self.report.disordered += sum(after < before for before, after in itertools.pairwise(numbers))

    def _judge_reading(self, side: CallSide, sent: dict[int, SentFrame]) -> None:
        report = self.report
        pieces = self.readers[side.name].pieces
        frames = self.readers[side.name].frames
        got = {frame.pts: frame.payload for frame in frames}
        self._count_order([frame.pts for frame in frames])
        report.altered += sum(pts not in sent or sent[pts].payload != payload for pts, payload in got.items())
        void_to = side.session.receivers[0].clears.to_pts
        # The newest may be on its way.
        missing = [one for pts, one in sent.items() if pts not in got and pts >= void_to and one.at < self.now - 1.0]
        old = [one for one in missing if self.begun_at - 1.0 <= one.at < self.returned_at - self.config.retain_s]
        report.too_old += len(old)
        # What was missed sooner had been given up as the break began, where the path's round trip is longer than a reader waits.
        from_at = self.begun_at - READER_MS / 1000 - 0.05 - self.plan.delay_ms / 1000
        in_break = [one for one in missing if from_at <= one.at <= self.returned_at]
        if ("a2b" if side is self.client else "b2a") not in self.broken and not report.resumes:
            in_break = old = []  # what is lost by chance cannot be asked for while the other way is dead
        report.lost += len(in_break) - len(old)
        report.stray += len(missing) - len(in_break)
        self._judge_flow(side, sent, max(got, default=0))
        since = [at - self.returned_at for at, piece in pieces if at >= self.returned_at]
        if since:
            report.to_reading_s.append(since[0])

    def _judge_playing(self, side: CallSide, sent: dict[int, SentFrame]) -> None:
        report, heard = self.report, side.heard()
        played = side.devices[0][0].played
        report.altered += heard.alien
        report.duplicated += heard.repeated
        self._count_order([entry.frame.pts for entry in played])
        self._judge_flow(side, sent, max((entry.frame.pts for entry in played), default=0))
        if ("a2b" if side is self.client else "b2a") not in self.muted:
            return  # what it was to hear could come all the time
        lookahead_s = self.config.playout.lookahead_ms / 1000
        for since, times in ((self.returned_at - lookahead_s, report.to_speech_s), (self.returned_at, report.to_fresh_s)):
            heard_at = [entry.at for entry in played if entry.frame.pts in sent and sent[entry.frame.pts].at >= since]
            times += [at - self.returned_at for at in heard_at if at >= self.returned_at][:1]

    def _judge_flow(self, side: CallSide, sent: dict[int, SentFrame], newest_pts: int) -> None:
        """Whether what was said last has come."""
        # What is said in a break does not reach who plays in real time, even if nothing follows.
        since = self.returned_at if side.name not in self.readers else 0.0
        due = max((pts for pts, one in sent.items() if since <= one.at < self.now - 1.5), default=0)
        if newest_pts < due - TAIL_UNITS and due >= side.session.receivers[0].clears.to_pts:
            self._failed(f"{side.name}: what was said {(due - newest_pts) / UNITS_PER_SECOND + 1.5:.1f} s ago has not come")


def run_break(plan: BreakPlan, *, config: SessionConfig | None = None) -> BreakReport:
    """Run a call through a plan.

    Raises:
        SimulationError: The engine found fault with something.
    """
    return _BrokenCall(plan, config or SessionConfig()).run()
