"""The cases: RFC 8867 at rates of which the fair share is 30 to 80 kbps, and what else a call meets.

RFC 8867's own figures belong to video at 1 Mbps; here a reference of 100 kbps takes their place, a little more than 64 kbps of speech
need on the wire. One-way delay 50 ms and a queue of 300 ms unless a case says otherwise, sources never silent but in 5.8.
"""

from __future__ import annotations

import dataclasses
from typing import Final, Literal

from voicestream.testing.bench.bars import BACK, EQUAL, REACT, START, STEADY, TAKE, USE, Steps, concealed, link
from voicestream.testing.bench.case import Bar, Case, Greedy, Media
from voicestream.testing.bench.cases_heard import LOSSES, PATHS, SOURCES
from voicestream.testing.bench.cases_recorded import DRAWN
from voicestream.testing.loss import BurstLoss
from voicestream.testing.profile import LinkProfile

__all__ = ["CASES"]

TCP: Final[tuple[tuple[int, Literal["reno", "cubic"]], ...]] = ((300, "reno"), (1000, "reno"), (300, "cubic"))
VARIABLE: Final[Steps] = ((0, 100), (40, 250), (60, 60), (80, 100))
QUARTER: Final[Steps] = ((0, 100), (20, 25), (40, 100))

RFC_8867: Final = (
    Case(name="5.1", about="variable capacity, one flow", seconds=100, b2a=link(VARIABLE), bars=(*STEADY, REACT, TAKE, START)),
    Case(
        name="5.1-100", about="the same at 100 ms one way", seconds=100, b2a=link(VARIABLE, delay_ms=100),
        a2b=LinkProfile(delay_ms=100), bars=(*STEADY, REACT, TAKE, START),
    ),
    Case(
        name="5.2", about="variable capacity, two flows", seconds=125, media=(Media(), Media()), settle=8,
        b2a=link(((0, 200), (25, 100), (50, 175), (75, 50), (100, 100))), bars=(*STEADY, REACT, TAKE, EQUAL),
    ),
    Case(
        name="5.3", about="both directions busy, both change", seconds=100, media=(Media(speaks="both"),), bars=(*STEADY, REACT, TAKE),
        b2a=link(((0, 100), (20, 50), (40, 25), (60, 100))), a2b=link(((0, 100), (35, 40), (70, 100))),
    ),
    Case(
        name="5.4", about="three equals, one after the other", seconds=120, b2a=link(180), settle=10,
        media=tuple(Media(start=20.0 * turn, stop=119) for turn in range(3)), bars=(*STEADY, EQUAL),
    ),
    Case(
        name="5.5", about="five with different round trips", seconds=120, b2a=link(250), settle=10, bars=(*STEADY, Bar("jain", ">=", 0.9)),
        media=tuple(Media(start=10.0 * turn, delay_ms=delay) for turn, delay in enumerate((10, 25, 50, 100, 150))),
    ),
    *(
        Case(
            name=f"5.6-{queue}{'' if kind == 'reno' else '-' + kind}", about=f"one long {kind} flow, queue {queue} ms", seconds=90,
            b2a=link(200, queue_ms=queue), media=(Media(start=5),), greedy=(Greedy(kind=kind),),
            bars=(Bar("media_share", ">=", 0.5 if queue == 300 else 0.25), Bar("tcp_share", ">=", 0.5)),
        )
        for queue, kind in TCP
    ),
    Case(
        name="5.7", about="ten short transfers", seconds=120, b2a=link(200), media=(Media(start=5), Media(start=5)),
        greedy=(Greedy(count=10, transfer_kb=(10, 100)),), bars=(Bar("media_share", ">=", 0.5), Bar("tcp_share", ">=", 0.5)),
    ),
    Case(
        name="5.8", about="three equals, one pauses 40 to 60 s", seconds=120, b2a=link(180), settle=10, bars=(*STEADY, EQUAL),
        media=(Media(talk=((40, 20), (100, 1))), Media(), Media()),
    ),
)  # fmt: skip

CHANGES: Final = (
    Case(
        name="quarter", about="down to a quarter and back", seconds=60, b2a=link(QUARTER), quick=True,
        bars=(*STEADY, REACT, TAKE, BACK, concealed(0.04)),
    ),
    Case(
        name="tenth", about="down to a tenth and back", seconds=60, b2a=link(((0, 200), (20, 20), (40, 200))), queue_ms=150,
        bars=(USE, REACT, TAKE, BACK, concealed(0.06)),
    ),
    Case(
        name="floor", about="below the least rate for 12 s: pause, and go on", seconds=40, b2a=link(((0, 100), (8, 6), (20, 100))),
        settle=8, queue_ms=500, bars=(TAKE,), quick=True,
    ),
    *(
        Case(
            name=f"floor{kbps}", about=f"speech on {kbps} kbps for 20 s", seconds=50, b2a=link(((0, 100), (10, kbps), (30, 100))), settle=8,
            queue_ms=500, bars=(TAKE, Bar("unheard", "<=", 0.1)), quick=kbps == 16,
        )
        for kbps in (14, 16, 20)
    ),
    Case(
        name="steps-60", about="200, 50, 30, 200 kbps at a round trip of 60 ms", seconds=30, settle=3, quick=True,
        b2a=link(((0, 200), (6, 50), (11, 30), (16, 200)), delay_ms=30), a2b=link(1000, delay_ms=30),
        bars=(
            USE, Bar("queue_p95_ms", "<=", 150), REACT, TAKE, BACK, concealed(0.04),
            Bar("delay_p50_ms", "<=", 200), Bar("delay_p95_ms", "<=", 400),
        ),
    ),
    Case(
        name="bloat", about="a queue of 2 s, 200, 50, 200 kbps", seconds=60, b2a=link(((0, 200), (20, 50), (40, 200)), queue_ms=2000),
        bars=(*STEADY, REACT, TAKE, BACK),
    ),
    Case(
        name="policer", about="60 kbps without a queue from the tenth second on", seconds=60, b2a=link(((0, 200), (10, 60))),
        policer_bytes=3000, settle=10, bars=(Bar("utilisation", ">=", 0.6), Bar("dropped", "<=", 0.05), concealed(0.05)),
    ),
    Case(
        name="feedback30", about="30 % of what comes back is lost", seconds=60, b2a=link(((0, 100), (30, 50))),
        a2b=LinkProfile(delay_ms=50, loss=0.3), bars=(*STEADY, REACT),
    ),
    Case(
        name="both", about="both directions busy, three calls", seconds=60, b2a=link(200), a2b=link(200), settle=10,
        media=tuple(Media(speaks="both") for _ in range(3)), bars=(*STEADY, EQUAL),
    ),
)  # fmt: skip

NOISE: Final = (
    *(
        Case(
            name=f"jitter{jitter}", about=f"jitter of {jitter} ms while the capacity varies", seconds=100,
            b2a=link(VARIABLE, jitter_ms=jitter),
            bars=(*STEADY, REACT, TAKE), quick=jitter == 10,
        )
        for jitter in (10, 20, 30)
    ),
    *(
        Case(
            name=f"loss{percent}", about=f"{percent} % independent loss", seconds=60, b2a=link(((0, 200), (30, 50)), loss=percent / 100),
            bars=(*STEADY, REACT),
        )
        for percent in (1, 3, 5, 10)
    ),
    Case(
        name="burst10", about="10 % loss in bursts of three", seconds=60, bars=STEADY,
        b2a=LinkProfile(delay_ms=50, rate_kbps=200, burst_loss=BurstLoss(loss=0.1, burst=3)),
    ),
    Case(
        name="noisy", about="jitter 10 ms and 3 % loss, 200, 60, 200 kbps", seconds=60, bars=(*STEADY, REACT, TAKE),
        b2a=link(((0, 200), (20, 60), (40, 200)), jitter_ms=10, loss=0.03),
    ),
)  # fmt: skip

STARTS: Final = tuple(
    Case(
        name=f"start{kbps}", about=f"a call begins on {kbps} kbps", seconds=20, b2a=link(kbps, delay_ms=40), a2b=LinkProfile(delay_ms=40),
        bars=(START, *STEADY, concealed(0.02)), quick=kbps == 64,
    )
    for kbps in (64, 100, 1000)
)  # fmt: skip

GROUPS: Final = {
    "RFC 8867": RFC_8867,
    "Capacity": (*CHANGES, *STARTS),
    "Noise": NOISE,
    "Paths": PATHS,
    "Sources and clocks": SOURCES,
    "Loss": LOSSES,
    "Drawn links": DRAWN,
}
CASES: Final = tuple(dataclasses.replace(case, group=group) for group, cases in GROUPS.items() for case in cases)
"""All of them but those made of recordings (`cases_recorded.recorded`); names are distinct."""
