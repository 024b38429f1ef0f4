"""Where the delay is changed while somebody speaks: speech with pauses through a playout whose thread is held up now and then.

Virtual time; the reader and the receiver share the thread, as in a call read block by block.
"""

from __future__ import annotations

import heapq
import random

import pytest

from voicestream.config import PlayoutConfig
from voicestream.core.playout import Accelerate, Conceal, Decode, Expand, Merge, Playout, Repair, Silence
from voicestream.media import MediaFrame

UNIT = 0.0025
FRAME = 8
PHRASE, PAUSE = 3.0, 0.4
Stalls = list[tuple[float, float]]


def stalls(rng: random.Random, seconds: float, per_second: float, shortest: float, longest: float) -> Stalls:
    """When a thread stands still."""
    out, at = [], rng.expovariate(per_second) if per_second else seconds
    while at < seconds:
        out.append((at, at + rng.uniform(shortest, longest)))
        at = out[-1][1] + rng.expovariate(per_second)
    return out


def held_up(at: float, by: Stalls) -> float:
    return next((end for begin, end in by if begin <= at < end), at)


def speaks(pts: int) -> bool:
    return (pts * UNIT) % (PHRASE + PAUSE) < PHRASE


class Call:
    """What was heard of `seconds` of speech.

    Attributes:
        in_words: Stretches made while somebody spoke, (pts, units).
        in_pauses: The others.
        delays: (pts, seconds from the end of capture to the ear) of each frame.
        concealed: Units of concealment.
    """

    def __init__(self, seed: int, sender: Stalls, reader: Stalls, seconds: float) -> None:
        self.rng, self.reader = random.Random(seed), reader
        self.playout = Playout(PlayoutConfig())
        self.in_words: list[tuple[int, float]] = []
        self.in_pauses: list[tuple[int, float]] = []
        self.delays: list[tuple[int, float]] = []
        self.concealed, self.held = 0.0, 0.0
        events: list[tuple[float, int, int, float]] = []
        for number in range(int(seconds / (FRAME * UNIT))):
            sent = held_up((number + 1) * FRAME * UNIT + self.rng.random() * 0.001, sender)
            events.append((held_up(sent + 0.02, reader), 0, number * FRAME, sent))
        phase = self.rng.random() * FRAME * UNIT
        # As from a loop that stood still: first what has come is taken in, then the blocks that are due are read.
        for number in range(int(seconds / (FRAME * UNIT))):
            due = phase + number * FRAME * UNIT
            events.append((held_up(due + self.rng.random() * 0.001, reader), 1, number, due))
        heapq.heapify(events)
        while events:
            at, kind, value, extra = heapq.heappop(events)
            if kind == 0:
                self.playout.insert(MediaFrame(pts=value, units=FRAME, payload=b"speech"), at, send_time=extra)
            else:
                self.block(at + value * 1e-9, extra)

    def block(self, now: float, due: float) -> None:
        while self.held < FRAME - 1e-9:
            made = self.execute(self.playout.next(now, self.held), due + self.held * UNIT)
            self.playout.done(made)
            self.held += made
        self.held -= FRAME

    def execute(self, decision: object, at: float) -> float:
        match decision:
            case Expand(frame=MediaFrame() as frame, units=units, urgent=urgent):
                return self.play(frame, at, self.stretch(frame, units, urgent))
            case Accelerate(frame=frame, units=units, urgent=urgent):
                return self.play(frame, at, self.stretch(frame, -units, urgent))
            case Decode(frame=frame) | Merge(frame=frame) | Repair(frame=frame):
                return self.play(frame, at, 0.0)
            case Expand(units=units) | Conceal(units=units):
                self.concealed += units
                return float(units)
            case Silence(units=units):
                return float(units)
        raise AssertionError(decision)

    def stretch(self, frame: MediaFrame, units: float, urgent: bool) -> float:
        if not urgent and speaks(frame.pts):
            return 0.0
        (self.in_words if speaks(frame.pts) else self.in_pauses).append((frame.pts, units))
        return float(units)

    def play(self, frame: MediaFrame, at: float, change: float) -> float:
        self.delays.append((frame.pts, at - (frame.pts + frame.units) * UNIT))
        return frame.units + change

    def delay_ms(self, start: float = 0.0, stop: float = 1e9) -> list[float]:
        return [1000 * delay for pts, delay in self.delays if start <= pts * UNIT < stop]


seeds = pytest.mark.parametrize("seed", range(1, 9))


@seeds
def test_on_a_quiet_link_the_delay_never_changes(seed: int) -> None:
    call = Call(seed, [], [], 30)
    assert call.in_words == call.in_pauses == [], f"seed {seed}"
    assert call.concealed == 0, f"seed {seed}"
    assert max(call.delay_ms()) - min(call.delay_ms()) <= 0.1, f"seed {seed}"
    assert call.delay_ms()[0] <= 20 + 35, f"seed {seed}: {call.delay_ms()[0]}"


@seeds
def test_threads_that_are_held_up_now_and_then_stretch_no_word(seed: int) -> None:
    rng = random.Random(seed)
    sender, reader = stalls(rng, 60, 0.15, 0.01, 0.045), stalls(rng, 60, 0.15, 0.01, 0.045)
    call = Call(seed, sender, reader, 60)
    # One step after many seconds without a chance may happen.
    assert sum(abs(units) for _, units in call.in_words) <= 4, f"seed {seed}: {call.in_words}"
    assert call.concealed <= 8 * (len(sender) + len(reader)), f"seed {seed}: {call.concealed}"
    assert max(call.delay_ms(5)) <= 20 + 100, f"seed {seed}: {max(call.delay_ms(5))}"


@seeds
def test_a_reader_that_stands_still_together_with_the_receiver_costs_no_delay(seed: int) -> None:
    rng = random.Random(seed)
    call = Call(seed, [], stalls(rng, 60, 0.3, 0.01, 0.06), 60)
    assert call.in_words == [], f"seed {seed}"
    assert call.concealed == 0, f"seed {seed}"
    assert max(call.delay_ms(5)) <= 20 + 50, f"seed {seed}: {max(call.delay_ms(5))}"


@seeds
def test_a_disturbance_is_over_within_5_s_by_pauses_first(seed: int) -> None:
    call = Call(seed, [(10.0, 10.2)], [], 30)
    assert max(call.delay_ms(10, 11)) >= 150, f"seed {seed}"
    after = call.delay_ms(15.2, 30)
    assert sum(after) / len(after) <= 20 + 60, f"seed {seed}: {sum(after) / len(after)}"
    assert len(call.in_words) <= 20, f"seed {seed}: {call.in_words}"
