"""Decisions, call by call. Frames of 8 units (20 ms), a device that takes 8 units every 20 ms."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from voicestream.config import PlayoutConfig
from voicestream.core.playout import Accelerate, Conceal, Decision, Decode, Expand, Merge, Playout, Repair, Silence
from voicestream.errors import StateError
from voicestream.media import MediaFrame, SourceKind

TICK = 0.02


def frame(pts: int, *, units: int = 8, number: int = 0, start: bool = False, end: bool = False, payload: bytes = b"speech") -> MediaFrame:
    return MediaFrame(pts=pts, units=units, payload=payload, clear_number=number, talkspurt_start=start, talkspurt_end=end)


class Bench:
    """A playout, a clock, and a device that does what it is told. Frame n arrives 1 ms before tick n unless told otherwise."""

    def __init__(self, *, start_ms: int = 20, lookahead_ms: int = 150, max_frames: int = 500) -> None:
        self.records: list[tuple[str, Mapping[str, object]]] = []
        config = PlayoutConfig(start_ms=start_ms, lookahead_ms=lookahead_ms, max_frames=max_frames)
        self.playout = Playout(config, observer=self, track=2)
        self.now, self.held = 10.0, 0.0

    def record(self, now: float, name: str, data: Mapping[str, object]) -> None:
        assert data["track"] == 2
        self.records.append((name, data))

    def insert(self, *frames: MediaFrame, kind: SourceKind = SourceKind.AUDIO, late: float = 0.0) -> None:
        for each in frames:
            self.playout.insert(each, self.now + late, kind=kind, send_time=(each.pts + each.units) * 0.0025)

    def tick(self) -> list[Decision]:
        """One block of the device."""
        self.now += TICK
        out: list[Decision] = []
        while self.held < 8:
            decision = self.playout.next(self.now, self.held)
            match decision:
                case Decode(frame=f) | Merge(frame=f) | Repair(frame=f):
                    made = float(f.units)
                case Expand(frame=f, units=units):
                    made = float(units + (f.units if f else 0))
                case Accelerate(frame=f, units=units):
                    made = float(f.units - units)
                case Conceal(units=units) | Silence(units=units):
                    made = float(units)
            self.playout.done(made)
            self.held += made
            out.append(decision)
        self.held -= 8
        return out

    def talk(self, first: int, count: int, *, skip: tuple[int, ...] = ()) -> list[Decision]:
        """`count` frames from pts `first` on, each just before its tick; returns the decisions."""
        out: list[Decision] = []
        for index in range(count):
            if index not in skip:
                self.insert(frame(first + index * 8), late=0.019)
            out += self.tick()
        return out

    def settled(self, count: int = 250) -> int:
        """Talks until nothing changes; returns the next pts."""
        self.talk(0, count)
        return count * 8


def names(decisions: list[Decision]) -> str:
    return " ".join(type(decision).__name__ for decision in decisions)


def played(decisions: list[Decision]) -> list[int]:
    return [f.pts for d in decisions if (f := getattr(d, "frame", None)) is not None]


# Before, between and after


def test_before_the_first_frame_there_is_silence() -> None:
    bench = Bench()
    assert set(names(bench.tick()).split()) == {"Silence"}
    assert bench.playout.heard_pts(0) == 0


def test_the_first_frame_is_played_at_the_next_tick_whatever_its_pts() -> None:
    bench = Bench()
    bench.tick()
    bench.insert(frame(4000))
    assert played(bench.tick()) == [4000]
    assert bench.playout.playhead_pts == 4008


def test_of_a_high_start_a_part_is_waited_for_and_the_rest_lengthened() -> None:
    bench = Bench(start_ms=80)
    decisions = bench.talk(0, 12)
    assert names(decisions).count("Expand") >= 3
    assert bench.playout.account.inserted_units >= 8
    assert bench.playout.account.concealed_units == 0


def test_after_the_end_of_a_talkspurt_there_is_silence() -> None:
    bench = Bench()
    pts = bench.settled()
    bench.insert(frame(pts, end=True), late=0.019)
    bench.tick()
    for _ in range(20):
        assert names(bench.tick()) == "Silence"
    assert bench.playout.account.concealed_units == 0
    assert bench.playout.playhead_pts == pts + 8


def test_a_gap_after_a_frame_of_two_bytes_is_silence() -> None:  # VS-6.5-4
    bench = Bench()
    pts = bench.settled()
    bench.insert(frame(pts, payload=b"\x48\x00"), late=0.019)
    bench.tick()
    assert {names(bench.tick()) for _ in range(5)} == {"Silence"}
    assert bench.playout.account.concealed_units == 0


def test_a_talkspurt_start_is_not_waited_for() -> None:  # VS-6.5-1
    bench = Bench()
    pts = bench.settled()
    bench.tick()
    bench.insert(frame(pts + 400, start=True))
    decisions = [*bench.tick(), *bench.tick(), *bench.tick()]
    assert played(decisions) == [pts + 400]
    assert bench.playout.account.lost_units == 0


def test_done_without_a_decision_is_misuse() -> None:
    playout = Playout(PlayoutConfig())
    with pytest.raises(StateError):
        playout.done(8)
    playout.next(0.0, 0.0)
    with pytest.raises(ValueError, match="made_units"):
        playout.done(-1)
    playout.done(1)


def test_without_done_what_was_asked_for_counts() -> None:
    playout = Playout(PlayoutConfig(start_ms=20))
    playout.insert(frame(0), 0.0)
    assert isinstance(playout.next(0.0, 0.0), Decode)
    playout.next(0.02, 0.0)
    assert playout.account.frames_played == 1
    assert playout.account.produced_units == 8
    assert playout.heard_pts(0) == 8


# Loss


def test_a_lost_frame_is_concealed_and_the_next_merged_without_more_delay() -> None:
    bench = Bench()
    pts = bench.settled()
    level = bench.playout.level_units
    decisions = bench.talk(pts, 3, skip=(1,))
    decisions += bench.talk(pts + 24, 60)
    kinds = names(decisions)
    assert kinds.count("Merge") == 1
    assert bench.playout.account.concealed_units == 8
    assert bench.playout.account.lost_units == 8
    assert bench.playout.account.frames_concealed == 1
    assert bench.playout.level_units == pytest.approx(level, abs=1)


def test_a_missing_frame_with_later_ones_here_is_concealed_in_pieces_that_fit_the_next() -> None:
    bench = Bench()
    pts = bench.settled()
    bench.insert(frame(pts + 20), frame(pts + 28), late=0.019)
    decisions = [*bench.tick(), *bench.tick(), *bench.tick()]
    pieces = [d for d in decisions if isinstance(d, Conceal)]
    assert sum(piece.units for piece in pieces) == 20
    assert pieces[-1] == Conceal(8, frame(pts + 20))
    assert all(piece.next_frame is None for piece in pieces[:-1])


def test_a_frame_that_comes_while_what_is_before_it_lasts_is_played() -> None:
    bench = Bench()
    pts = bench.settled()
    bench.insert(frame(pts), frame(pts + 16), late=0.019)
    decisions = bench.tick()
    bench.insert(frame(pts + 8), kind=SourceKind.RETRANSMISSION, late=0.01)
    decisions += [*bench.tick(), *bench.tick()]
    assert played(decisions) == [pts, pts + 8, pts + 16]
    assert bench.playout.account.concealed_units == 0


def test_a_late_frame_is_waited_for_and_played() -> None:
    bench = Bench()
    pts = bench.settled()
    decisions = [*bench.tick(), *bench.tick()]
    assert names(decisions) == "Expand Expand"
    assert bench.playout.playhead_pts == pts
    bench.insert(frame(pts), frame(pts + 8), frame(pts + 16))
    assert bench.tick() == [Merge(frame(pts))]
    assert bench.playout.account.lost_units == 0
    assert bench.playout.account.concealed_units == 16


def test_a_frame_that_comes_after_its_concealment_is_late() -> None:
    bench = Bench()
    pts = bench.settled()
    bench.talk(pts, 4, skip=(1,))
    bench.insert(frame(pts + 8), kind=SourceKind.RETRANSMISSION)
    assert bench.playout.account.frames_late == 1
    assert pts + 8 not in played(bench.talk(pts + 32, 3))


def test_an_outage_is_concealed_then_silent_and_its_length_counts_against_the_gap() -> None:
    bench = Bench()
    pts = bench.settled()
    level = bench.playout.level_units
    decisions: list[Decision] = []
    for _ in range(150):
        decisions += bench.tick()
    assert names(decisions).startswith("Expand Expand")
    assert names(decisions).endswith("Silence Silence")
    assert bench.playout.account.interruptions == 1
    assert bench.playout.account.silent_concealed_units == bench.playout.account.concealed_units - 48
    bench.talk(pts + 150 * 8, 60)
    assert bench.playout.account.lost_units == 1200
    assert bench.playout.level_units == pytest.approx(level, abs=1)


def test_what_a_long_stall_held_up_comes_first_and_is_then_played_from_where_it_is_live() -> None:
    bench = Bench()
    first = bench.settled()
    for _ in range(50):  # a second in which nothing comes
        bench.tick()
    bench.insert(*(frame(first + i * 8) for i in range(8)))
    made = bench.tick()  # most of it is on its way
    assert names(made) == "Expand"
    bench.insert(*(frame(first + i * 8) for i in range(8, 52)), late=0.001)
    made = bench.talk(first + 52 * 8, 100)
    heard = played(made)
    # 225 ms of what came too late, and all that came in time: before, the old was begun and cut off by a jump over the new.
    assert heard == list(range(heard[0], heard[0] + 8 * len(heard), 8))
    assert first + 35 * 8 <= heard[0] <= first + 44 * 8
    assert bench.playout.account.frames_expired == (heard[0] - first) // 8


def test_a_slower_path_after_a_stall_is_not_waited_for() -> None:
    bench = Bench()
    first = bench.settled()
    for _ in range(30):
        bench.tick()
    heard = played(bench.talk(first, 20))
    assert heard[:5] == list(range(first, first + 40, 8))


def test_a_stray_far_ahead_is_not_jumped_to_while_the_stream_may_go_on() -> None:
    bench = Bench()
    pts = bench.settled()
    bench.insert(frame(pts + 20_000))
    decisions = bench.talk(pts, 20, skip=(3,))
    assert pts + 20_000 not in played(decisions)
    assert played(decisions)[-1] >= pts + 18 * 8


def test_a_copy_is_played_with_the_copies_before_it() -> None:
    bench = Bench()
    pts = bench.settled()
    for at in (pts - 16, pts - 8, pts):
        bench.insert(frame(at), kind=SourceKind.COPY, late=0.019)
    assert bench.tick() == [Repair(frame(pts), SourceKind.COPY, (frame(pts - 16), frame(pts - 8)))]
    assert bench.playout.account.frames_duplicate == 2
    assert bench.playout.account.frames_copied == 1


# Readers that stall, memory


def test_a_reader_that_stood_still_does_not_play_old_audio() -> None:
    bench = Bench()
    pts = bench.settled()
    for index in range(100):
        bench.insert(frame(pts + index * 8), late=index * TICK)
    bench.now += 100 * TICK
    decisions = bench.tick() + bench.tick()
    assert min(played(decisions)) >= pts + 97 * 8
    assert isinstance(decisions[0], Conceal)
    assert bench.playout.account.frames_expired >= 96


def test_a_reader_that_comes_late_starts_live() -> None:
    bench = Bench()
    for index in range(100):
        bench.insert(frame(index * 8), late=index * TICK)
    bench.now += 100 * TICK
    assert min(played(bench.tick())) >= 97 * 8


def test_prefetched_audio_outlives_a_reader_that_stood_still() -> None:
    bench = Bench()
    bench.playout.set_ahead(0, True)
    for index in range(100):
        bench.insert(frame(index * 8))
    bench.now += 5
    assert played(bench.tick()) == [0]
    bench.now += 5
    assert played(bench.tick()) == [8]


def test_the_memory_is_bounded_and_the_oldest_goes() -> None:
    bench = Bench(max_frames=10)
    bench.playout.set_ahead(0, True)
    for index in range(30):
        bench.insert(frame(index * 8))
    assert bench.playout.held_frames == 10
    assert bench.playout.account.frames_discarded == 20
    assert played(bench.tick()) == [160]


def test_when_full_in_mid_speech_the_playhead_gives_way() -> None:
    bench = Bench(max_frames=10)
    bench.playout.set_ahead(0, True)
    for index in range(30):
        bench.insert(frame(index * 8))
        if index == 2:
            bench.tick()
    decisions = bench.tick() + bench.tick()
    assert played(decisions)[0] == 160
    assert names(decisions).startswith("Conceal Merge")


# Prefetch


def test_prefetched_audio_is_never_hurried() -> None:  # VS-4.8-1 VS-16-3
    bench = Bench()
    bench.playout.set_ahead(0, True)
    for index in range(200):
        bench.insert(frame(index * 8))
    decisions: list[Decision] = []
    for _ in range(200):
        decisions += bench.tick()
    assert set(names(decisions).split()) == {"Decode"}
    assert bench.playout.level_units == 0


def test_a_pause_inside_prefetched_audio_keeps_its_length() -> None:
    bench = Bench()
    bench.playout.set_ahead(0, True)
    bench.insert(frame(0, end=True), frame(88, start=True))
    decisions: list[Decision] = []
    for _ in range(12):
        decisions += bench.tick()
    assert played(decisions) == [0, 88]
    assert names(decisions).count("Silence") == 10


def test_a_prefetched_reply_after_a_long_silence_starts_at_once() -> None:
    bench = Bench()
    bench.playout.set_ahead(0, True)
    bench.insert(frame(0, end=True))
    for _ in range(40):
        bench.tick()
    bench.insert(frame(2000, start=True))
    assert played(bench.tick()) == [2000]


# Clear and finish


def test_nothing_of_a_clear_is_played_and_what_follows_is() -> None:  # VS-8.1-6 VS-8.1-9 VS-16-1
    bench = Bench()
    bench.playout.set_ahead(0, True)
    for index in range(50):
        bench.insert(frame(index * 8))
    bench.tick()
    bench.tick()
    assert bench.playout.clear(16, 1000, 1) == 16
    assert names(bench.tick()) == "Silence"
    bench.insert(frame(40), frame(1000), frame(1000, number=1, start=True))
    assert played(bench.tick()) == [1000]
    assert bench.playout.heard_pts(bench.held) == 1008
    assert bench.playout.account.frames_discarded == 50


def test_until_something_follows_a_clear_what_was_heard_stays() -> None:
    bench = Bench()
    bench.talk(0, 3)
    heard = bench.playout.clear(0, 1000, 1)
    for _ in range(5):
        bench.tick()
        assert bench.playout.heard_pts(bench.held) == heard
    assert bench.playout.playhead_pts == 1000


def test_what_lies_before_a_clear_is_still_played() -> None:
    bench = Bench()
    bench.playout.set_ahead(0, True)
    for index in range(10):
        bench.insert(frame(index * 8))
    bench.tick()
    bench.playout.clear(24, 1000, 1)
    bench.insert(frame(1000, number=1, start=True))
    decisions: list[Decision] = []
    for _ in range(3):
        decisions += bench.tick()
    assert played(decisions) == [8, 16, 1000]
    assert bench.playout.account.concealed_units == 0


def test_missing_audio_before_a_clear_does_not_hold_up_what_follows() -> None:  # VS-8.1-9
    bench = Bench()
    bench.talk(0, 3)
    bench.playout.clear(200, 1000, 1)
    for _ in range(3):
        bench.insert(frame(1000, number=1, start=True))
        bench.tick()
    decisions = [*bench.tick(), *bench.tick(), *bench.tick()]
    assert bench.playout.playhead_pts >= 1008, names(decisions)


def test_a_clear_before_the_first_frame_holds() -> None:
    bench = Bench()
    bench.playout.clear(0, 100, 1)
    bench.insert(frame(0), frame(96, number=1), frame(100, number=1, start=True))
    assert played(bench.tick()) == [100]
    assert bench.playout.account.frames_discarded == 2


def test_a_clear_must_not_end_before_it_begins() -> None:
    with pytest.raises(ValueError, match="to_pts"):
        Playout(PlayoutConfig()).clear(10, 9, 1)


def held_after_three_frames() -> Bench:
    """A bench whose executor holds 8 units more than the device has taken."""
    bench = Bench()
    bench.talk(0, 3)
    bench.playout.next(bench.now + TICK, bench.held)
    bench.playout.done(8)
    return bench


def test_what_the_executor_holds_is_void_once_and_not_heard() -> None:
    bench = held_after_three_frames()
    assert not bench.playout.take_void(6)
    bench.playout.clear(0, 1000, 1)
    before = bench.playout.heard_pts(6)
    assert bench.playout.take_void(6)
    assert bench.playout.heard_pts(0) == before
    assert not bench.playout.take_void(6)


def test_what_is_held_of_the_time_before_a_clear_is_still_heard() -> None:
    bench = held_after_three_frames()
    bench.playout.clear(bench.playout.heard_pts(6) + 1, 1000, 1)
    assert not bench.playout.take_void(6)


def test_audio_that_overtook_its_clear_goes_on_when_the_clear_tells_its_end() -> None:
    bench = held_after_three_frames()
    bench.playout.clear(0, 40, 1)  # as the first audio after the clear implies
    assert bench.playout.take_void(8)
    bench.held = 0.0
    bench.insert(frame(48, number=1, start=True), frame(56, number=1), frame(64, number=1))
    for _ in range(5):
        if played(bench.tick()):
            break
    bench.playout.clear(0, 48, 1)
    assert not bench.playout.take_void(bench.held)
    decisions = bench.tick()
    assert played(decisions) == [56], names(decisions)


def test_an_executor_that_counts_makes_what_was_heard_exact() -> None:
    bench = held_after_three_frames()
    playout = bench.playout
    assert not playout.is_exact
    playout.unheard = lambda: 3.0
    assert playout.is_exact
    assert playout.heard_now == playout.heard_pts(3.0) == playout.clear(0, 1000, 1)


def test_the_track_is_finished_when_its_last_frame_was_decided() -> None:
    bench = Bench()
    bench.talk(0, 3)
    bench.playout.finish(40)
    assert not bench.playout.finished
    bench.talk(24, 3)
    assert bench.playout.finished
    assert names(bench.tick()) == "Silence"
    assert bench.playout.account.frames_discarded == 1


def test_a_missing_end_is_given_up_after_300_ms() -> None:
    bench = Bench()
    pts = bench.settled()
    bench.playout.finish(pts + 80)
    ticks = 0
    while not bench.playout.finished:
        bench.tick()
        ticks += 1
        assert ticks < 30
    assert ticks >= 12
    assert bench.playout.account.lost_units == 80


def test_a_track_that_never_had_a_frame_finishes() -> None:
    bench = Bench()
    bench.playout.finish(0)
    assert bench.playout.finished


# What it tells


def test_the_level_counts_coded_and_made_audio() -> None:
    bench = Bench()
    bench.playout.set_ahead(0, True)
    for index in range(5):
        bench.insert(frame(index * 8))
    assert bench.playout.level_units == 40
    bench.tick()
    bench.tick()
    assert bench.playout.level_units == 24
    bench.playout.next(bench.now + TICK, 0.0)
    bench.playout.done(12.0)
    assert bench.playout.level_units == 16 + 4


def test_the_delay_from_arrival_to_device_is_summed() -> None:
    bench = Bench()
    bench.settled()
    account = bench.playout.account
    assert account.jitter_buffer_emitted_units == account.played_units == 2000
    assert 0 < account.mean_delay < 0.04
    assert account.jitter_buffer_target_delay > 0


def test_the_target_is_one_frame_and_the_spread_at_most_the_lookahead() -> None:  # VS-16-2
    bench = Bench(lookahead_ms=60)
    pts = bench.settled()
    assert bench.playout.target_units <= 10
    for index in range(200):
        bench.insert(frame(pts + index * 8), late=0.2 * (index % 3 == 0))
        bench.tick()
    assert bench.playout.target_units <= 24


def test_the_records_give_reasons() -> None:
    bench = Bench(start_ms=80)
    pts = bench.settled()
    bench.talk(pts, 10, skip=(4,))
    bench.playout.clear(pts, pts + 1000, 1)
    seen = {name for name, _ in bench.records}
    assert {"playout:talkspurt", "playout:target", "playout:concealed", "playout:cleared", "playout:decode"} <= seen
    concealed = [data for name, data in bench.records if name == "playout:concealed"]
    assert concealed[0]["units"] == 8
    assert concealed[0]["reason"] in {"late", "lost"}
    targets = [data["reason"] for name, data in bench.records if name == "playout:target"]
    assert targets[0] == "later frames"
    assert "release" in targets


def test_a_calm_stream_is_not_stretched() -> None:
    bench = Bench()
    pts = bench.settled()
    assert set(names(bench.talk(pts, 500)).split()) == {"Decode"}


def test_too_much_delay_is_cut_until_it_is_gone() -> None:  # VS-16-4
    bench = Bench()
    pts = bench.settled()
    held_up = [*bench.tick(), *bench.tick(), *bench.tick(), *bench.tick()]
    assert names(held_up) == "Expand Expand Expand Expand"
    for index in range(4):
        bench.insert(frame(pts + index * 8), late=0.019)
    decisions = bench.talk(pts + 32, 600)
    assert "Accelerate" in names(decisions)
    assert bench.playout.account.removed_units >= 22
    assert bench.playout.level_units <= 18


def test_an_end_that_never_came_counts_as_heard_when_it_has_been_waited_for() -> None:
    playout = Playout(PlayoutConfig())
    now = 0.0
    for number in range(10):
        playout.insert(MediaFrame(track=0, pts=8 * number, units=8, payload=b"x", talkspurt_start=number == 0), now)
        playout.next(now, 0.0)
        playout.done(8.0)
        now += 0.02
    playout.finish(200)
    for _ in range(100):
        decision = playout.next(now, 0.0)
        playout.done(decision.units if isinstance(decision, Silence | Conceal) else 8.0)
        now += 0.02
    assert playout.finished
    assert playout.heard_pts(0.0) == 200
