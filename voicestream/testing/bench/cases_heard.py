"""Cases in which more than the rate is at stake: losses, odd paths, speakers that pause, clocks that do not run alike."""

from __future__ import annotations

from typing import Final

from voicestream.testing.bench.bars import BACK, QUEUE, REACT, SPENT, STEADY, TAKE, USE, concealed, link
from voicestream.testing.bench.case import Bar, Case, Greedy, Media
from voicestream.testing.loss import BurstLoss
from voicestream.testing.profile import LinkProfile

__all__ = ["LOSSES", "PATHS", "SOURCES"]

PERCENTS: Final = (1, 3, 5, 10, 20)
RTTS_ALONE: Final = (20, 40, 100, 200, 300)
RTTS_BURSTS: Final = (20, 80, 200, 300)

_HEARD: Final = {
    (40, 1): (Bar("unheard", "<=", 0.005), Bar("delay_p50_ms", "<=", 120)),
    (40, 3): (Bar("unheard", "<=", 0.005), Bar("delay_p50_ms", "<=", 140)),
    (40, 5): (Bar("unheard", "<=", 0.005), Bar("delay_p50_ms", "<=", 150), concealed(0.003)),
    (40, 10): (Bar("delay_p50_ms", "<=", 170),),
    (200, 1): (Bar("unheard", "<=", 0.01), Bar("delay_p50_ms", "<=", 270), concealed(0.0015)),
    (200, 3): (Bar("unheard", "<=", 0.01), Bar("delay_p50_ms", "<=", 270)),
    (200, 5): (Bar("unheard", "<=", 0.01), Bar("delay_p50_ms", "<=", 270)),
    (200, 10): (Bar("delay_p50_ms", "<=", 280),),
}
"""Bars of single losses by round trip and percentage."""

_BURSTS: Final = {(80, 5): (Bar("delay_p50_ms", "<=", 220),), (80, 10): (concealed(0.015),)}


def _losses(rtt_ms: int, percent: int, burst: int) -> Case:
    pattern = BurstLoss(loss=percent / 100, burst=burst) if burst > 1 else None
    bars = (_BURSTS if pattern else _HEARD).get((rtt_ms, percent), ())
    quick = (percent, rtt_ms) in ((5, 40), (10, 80))
    one_way = LinkProfile(delay_ms=rtt_ms / 2, loss=0.0 if pattern else percent / 100, burst_loss=pattern)
    return Case(
        name=f"{'burst' if pattern else 'loss'}{percent}-{rtt_ms}",
        about=f"{percent} % loss {f'in bursts of {burst}' if pattern else 'one by one'}, both ways, round trip {rtt_ms} ms",
        seconds=90 if bars and not quick else 30,  # a share of a thousandth wants some thousands of frames
        b2a=one_way, a2b=one_way, quick=quick, bars=(*bars, SPENT),
    )  # fmt: skip


LOSSES: Final = (
    Case(
        name="clean-40", about="nothing is lost, round trip 40 ms", seconds=40, b2a=LinkProfile(delay_ms=20), a2b=LinkProfile(delay_ms=20),
        bars=(Bar("delay_p50_ms", "<=", 65), concealed(0.001), Bar("unheard", "<=", 0.001), Bar("redundancy", "<=", 0.105)),
    ),
    *(_losses(rtt_ms, percent, 1) for rtt_ms in RTTS_ALONE for percent in PERCENTS),
    *(_losses(rtt_ms, percent, 3) for rtt_ms in RTTS_BURSTS for percent in PERCENTS),
)  # fmt: skip

PATHS: Final = (
    Case(
        name="narrow-up", about="both speak, 60 kbps up and 1000 down", seconds=60, b2a=link(60), a2b=link(1000), settle=10,
        media=(Media(speaks="both"),), bars=STEADY,
    ),
    Case(
        name="thin-back", about="200, 50 kbps up; only 20 come back", seconds=60, b2a=link(((0, 200), (30, 50))), a2b=link(20),
        bars=(*STEADY, REACT),
    ),
    Case(
        name="slow-up", about="180 ms up and 20 down, 100, 50 kbps", seconds=60, b2a=link(((0, 100), (30, 50)), delay_ms=180),
        a2b=LinkProfile(delay_ms=20), bars=(*STEADY, REACT),
    ),
    Case(
        name="reorder", about="packets overtake one another by some 20 ms, 200, 60 kbps", seconds=40, quick=True,
        b2a=LinkProfile(delay_ms=50, rate_kbps=((0, 200), (20, 60)), jitter_ms=20, reorder=True),
        bars=(USE, QUEUE, REACT, concealed(0.01)),
    ),
    Case(
        name="twins", about="every fifth packet comes twice, 200, 60 kbps", seconds=40,
        b2a=LinkProfile(delay_ms=50, rate_kbps=((0, 200), (20, 60)), duplicate=0.2),
        a2b=LinkProfile(delay_ms=50, duplicate=0.2), bars=(*STEADY, REACT, concealed(0.01)),
    ),
    Case(
        name="route", about="the route changes: 60 ms more from 20 to 40 s, 100 kbps", seconds=60, settle=3,
        b2a=LinkProfile(delay_ms=30, rate_kbps=100, delay_trace_ms=(0,) * 20 + (60,) * 20 + (0,) * 20, delay_trace_step_ms=1000),
        bars=(USE, QUEUE, concealed(0.01)),
    ),
    Case(
        name="download", about="both speak, a bulk download fills the way back, 200 kbps", seconds=40, b2a=link(200), a2b=link(200),
        media=(Media(speaks="both"),), greedy=(Greedy(kind="cubic", start=5, way="a2b"),), settle=10, quick=True,
        bars=(Bar("media_share", ">=", 0.5), Bar("tcp_share", ">=", 0.5)),
    ),
    Case(
        name="upload", about="both speak, bulk uploads of 50 to 300 kB come and go, 200 kbps", seconds=60, b2a=link(200), a2b=link(200),
        media=(Media(speaks="both"),), greedy=(Greedy(kind="cubic", transfer_kb=(50, 300), idle=5),), settle=10,
        bars=(Bar("media_share", ">=", 0.5), Bar("tcp_share", ">=", 0.5)),
    ),
)  # fmt: skip

CHAT: Final = ((1.6, 0.7), (0.5, 0.4), (2.8, 1.9), (0.9, 3.1))
TURNS: Final = ((4.5, 6.0), (3.0, 9.0))

SOURCES: Final = (
    Case(
        name="chat", about="talk with pauses, 100 kbps", seconds=60, b2a=link(100), media=(Media(talk=CHAT),),
        bars=(QUEUE, concealed(0.005)),
    ),
    Case(
        name="chat-quarter", about="talk with pauses, 100, 25, 100 kbps", seconds=45, b2a=link(((0, 100), (15, 25), (30, 100))),
        media=(Media(talk=CHAT),), bars=(QUEUE, REACT, concealed(0.04)), quick=True,
    ),
    Case(
        name="turns", about="both speak in turns with long silences, 100 kbps each way", seconds=90, b2a=link(100), a2b=link(100),
        media=(Media(talk=TURNS, speaks="both"),), bars=(QUEUE, concealed(0.005)),
    ),
    Case(
        name="idle", about="20 s of talk, 25 of nothing in which 200 kbps become 40, talk", seconds=80, settle=8,
        b2a=link(((0, 200), (30, 40))), media=(Media(talk=((20, 25), (40, 1))),), bars=(*STEADY, concealed(0.02)),
    ),
    *(
        Case(
            name=f"clock{ppm:+d}", about=f"the client's clock is {'fast' if ppm > 0 else 'slow'} by {abs(ppm)} ppm, both speak, 100 kbps",
            seconds=120, b2a=link(100, jitter_ms=3), a2b=link(100, jitter_ms=3), media=(Media(speaks="both", drift_ppm=ppm),),
            bars=(*STEADY, concealed(0.003)),
        )
        for ppm in (500, -500)
    ),
    Case(
        name="clock-steps", about="a clock fast by 500 ppm, 200, 50, 200 kbps", seconds=45, settle=8, quick=True,
        b2a=link(((0, 200), (15, 50), (30, 200))), media=(Media(drift_ppm=500),), bars=(*STEADY, REACT, TAKE, BACK, concealed(0.02)),
    ),
)  # fmt: skip
