"""What must hold of a playout and of an ordered reader whatever is done to them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from voicestream.config import PlayoutConfig
from voicestream.core.playout import (
    Accelerate,
    Conceal,
    Decode,
    Expand,
    Gap,
    Merge,
    OrderedReader,
    Playout,
    Repair,
    Silence,
)
from voicestream.media import MediaFrame, SourceKind

MAX_FRAMES = 20

pts_values = st.one_of(st.integers(0, 60).map(lambda n: n * 8), st.integers(0, 600), st.sampled_from([0, 10**6, 10**9]))
units = st.sampled_from([1, 4, 8, 8, 8, 16, 24, 48])
flags = st.sampled_from([(False, False), (False, False), (False, False), (True, False), (False, True), (True, True)])

inserts = st.tuples(st.just("insert"), pts_values, units, st.integers(0, 3), flags, st.sampled_from(list(SourceKind)), st.floats(-1, 1))
runs = st.tuples(st.just("run"), st.integers(0, 60), st.integers(1, 12))
ticks = st.tuples(st.just("tick"), st.sampled_from([1, 1, 2, 5, 30]), st.floats(0, 1))
waits = st.tuples(st.just("wait"), st.sampled_from([0.001, 0.02, 0.3, 5.0, 4000.0, -0.5]))
clears = st.tuples(st.just("clear"), st.integers(0, 500), st.integers(0, 300))
aheads = st.tuples(st.just("ahead"), pts_values, st.booleans())
finishes = st.tuples(st.just("finish"), pts_values)
drops = st.tuples(st.just("drop"), st.floats(0, 1))
operations = st.lists(
    st.one_of(inserts, runs, runs, runs, ticks, ticks, ticks, waits, clears, aheads, drops, finishes), min_size=1, max_size=80
)


class Machine:
    """Does operations to a playout and checks after each."""

    def __init__(self) -> None:
        self.playout = Playout(PlayoutConfig(max_frames=MAX_FRAMES, lookahead_ms=100))
        self.now, self.held, self.number, self.floor, self.last_pts = 100.0, 0.0, 0, 0, -1
        self.seen: set[int] = set()
        self.heard = 0
        self.finish: int | None = None

    def insert(
        self,
        pts: int,
        length: int,
        back: int = 0,
        flags: tuple[bool, bool] = (False, False),
        kind: SourceKind = SourceKind.AUDIO,
        skew: float | None = None,
    ) -> None:
        number = max(0, self.number - back)
        frame = MediaFrame(pts=pts, units=length, payload=b"speech", clear_number=number, talkspurt_start=flags[0], talkspurt_end=flags[1])
        self.playout.insert(frame, self.now, kind=kind, send_time=None if skew is None else self.now + skew)

    def run(self, first: int, count: int) -> None:
        for index in range(count):
            self.insert((first + index) * 8, 8)

    def tick(self, count: int, luck: float) -> None:
        for _ in range(count):
            self.now += 0.02
            calls = 0
            while self.held < 8:
                self.held += self.call(luck)
                calls += 1
                assert calls < 100, "the playout makes no progress"
            self.held -= 8

    def call(self, luck: float) -> float:
        decision = self.playout.next(self.now, self.held)
        frame: MediaFrame | None = None
        match decision:
            case Decode(frame=plain) | Merge(frame=plain) | Repair(frame=plain):
                frame, made = plain, float(plain.units)
            case Expand(frame=longer, units=extra):
                assert extra > 0
                frame, made = longer, extra * luck + longer.units if longer else float(extra)
            case Accelerate(frame=shorter, units=fewer):
                assert 0 < fewer < shorter.units
                frame, made = shorter, shorter.units - fewer * luck
            case Conceal(units=length, next_frame=following):
                assert length > 0
                assert following is None or following.pts == self.playout.playhead_pts
                made = float(length)
            case Silence(units=length):
                assert length > 0
                made = float(length)
        if frame is not None:
            assert frame.pts not in self.seen, "decided twice"
            assert frame.pts > self.last_pts, "pts went back"
            assert self.floor == 0 or frame.pts >= self.floor, "cleared audio is played"
            assert self.finish is None or frame.pts < self.finish
            self.seen.add(frame.pts)
            self.last_pts = frame.pts
        self.playout.done(made)
        return made

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def clear(self, ahead: int, length: int) -> None:
        self.number += 1
        start = self.playout.playhead_pts - 250 + ahead
        start = max(0, start)
        self.playout.clear(start, start + length, self.number)
        if start <= self.playout.playhead_pts:
            self.floor = max(self.floor, start + length)

    def ahead(self, pts: int, ahead: bool) -> None:
        self.playout.set_ahead(pts, ahead)

    def drop(self, share: float) -> None:
        self.playout.drop_held(self.held * share)
        self.held -= self.held * share

    def end(self, pts: int) -> None:
        self.finish = pts if self.finish is None else min(self.finish, pts)
        self.playout.finish(self.finish)

    def check(self) -> None:
        playout, a = self.playout, self.playout.account
        fates = a.frames_played + a.frames_late + a.frames_discarded + a.frames_duplicate + a.frames_expired
        assert a.frames_received == fates + playout.held_frames
        made = a.played_units + a.inserted_units - a.removed_units + a.concealed_units + a.silence_units
        assert abs(a.produced_units - made) < 1e-6 * max(1.0, made)
        assert playout.held_frames <= MAX_FRAMES
        assert 0 <= a.silent_concealed_units <= a.concealed_units
        assert playout.level_units >= 0
        assert 0 < playout.target_units <= 40
        heard = playout.heard_pts(self.held)
        assert self.heard <= heard <= playout.playhead_pts, "what was heard goes back or beyond what was decided"
        self.heard = heard


@settings(max_examples=400, deadline=None)
@given(operations)
def test_a_playout_keeps_its_books_and_never_goes_back(steps: list[tuple[object, ...]]) -> None:  # VS-16-5
    machine = Machine()
    for name, *arguments in steps:
        {
            "insert": machine.insert,
            "run": machine.run,
            "tick": machine.tick,
            "wait": machine.wait,
            "clear": machine.clear,
            "ahead": machine.ahead,
            "finish": machine.end,
            "drop": machine.drop,
        }[str(name)](*arguments)  # type: ignore[operator]
        machine.check()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 0.3)), max_size=80), st.integers(0, 2**32))
def test_frames_that_come_somehow_are_all_accounted_for_at_the_end(arrivals: list[tuple[int, float]], seed: int) -> None:  # VS-16-5
    machine = Machine()
    for index, pause in arrivals:
        machine.insert(index * 8, 8)
        machine.wait(pause)
        machine.tick(int(pause / 0.02), (seed % 100) / 100)
        machine.check()
    machine.end(41 * 8)
    machine.tick(400, 1.0)
    assert machine.playout.finished
    assert machine.playout.held_frames == 0
    machine.check()


ordered_steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), pts_values, units, st.integers(0, 2), flags),
        st.tuples(st.just("run"), st.integers(0, 60), st.integers(1, 12)),
        st.tuples(st.just("next"), st.sampled_from([0.0, 0.01, 0.2])),
        st.tuples(st.just("next"), st.sampled_from([0.0, 0.01, 0.2])),
        st.tuples(st.just("clear"), st.integers(0, 500), st.integers(0, 300)),
        st.tuples(st.just("hold"), st.floats(0, 1)),
        st.tuples(st.just("finish"), pts_values),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(ordered_steps)
def test_an_ordered_reader_gives_everything_once_and_in_order(steps: list[tuple[object, ...]]) -> None:
    reader, now, number, last = OrderedReader(100, MAX_FRAMES), 0.0, 0, 0
    finish: int | None = None

    def drain() -> None:
        nonlocal last
        while (item := reader.next(now)) is not None:
            start, end = (item.from_pts, item.to_pts) if isinstance(item, Gap) else (item.pts, item.pts + item.units)
            assert start >= last
            assert end > start
            assert finish is None or start < finish
            last = end
        timer = reader.next_timer()
        assert timer is None or timer > now, "there is more at once, but nothing came"

    for name, *arguments in steps:
        values: list[int] = list(arguments)  # type: ignore[arg-type]
        if name == "insert":
            marks = arguments[3]
            assert isinstance(marks, tuple)
            frame = MediaFrame(
                pts=values[0],
                units=values[1],
                payload=b"x",
                clear_number=max(0, number - values[2]),
                talkspurt_start=bool(marks[0]),
                talkspurt_end=bool(marks[1]),
            )
            reader.insert(frame, now)
        elif name == "run":
            for index in range(values[1]):
                reader.insert(MediaFrame(pts=(values[0] + index) * 8, units=8, payload=b"x", clear_number=number), now)
        elif name == "next":
            now += values[0]
            drain()
        elif name == "clear":
            number += 1
            reader.clear(values[0], values[0] + values[1], number)
        elif name == "hold":
            reader.hold_gaps(now + values[0])
        else:
            finish = values[0] if finish is None else min(finish, values[0])
            reader.finish(finish)
        a = reader.account
        assert a.frames_received == a.frames_delivered + a.frames_late + a.frames_discarded + a.frames_duplicate + reader.held_frames
        assert reader.held_frames <= MAX_FRAMES
    if finish is not None:
        now += 10
        drain()
        assert reader.finished
