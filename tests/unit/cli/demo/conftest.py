"""A demo call made of numbers: what the checks, the figures and the page are tested with."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from voicestream.call_stats import CallStats, OrderedStats, PathStats, PlayoutStats, ReceivedStats, RecoveryStats, SentStats
from voicestream.cli.demo.phases import course, spans
from voicestream.cli.demo.record import Beat, DemoRecord, EndRecord, Notice
from voicestream.cli.demo.relay import Crossing

RATE = 8000
BEGAN = 100.0
SECONDS = 22
BEAT_S = 0.02
SESSION = "0123456789abcdef0123456789abcdef"


def stats(at: float = 0.0, *, overdue: int = 0, **playout: float) -> CallStats:
    """Figures of a call so many seconds after its beginning: a frame in ten came as a retransmission or was repaired."""
    return CallStats(
        duration_s=at,
        close_code=None,
        close_reason="",
        path=PathStats(rtt_ms=60.0, one_way_delay_ms=30.0),
        sent=SentStats(frames=round(50 * at), frames_overdue=overdue, frames_expired=3),
        received=ReceivedStats(),
        playout=PlayoutStats(
            **{"frames_played": round(50 * at), "played_ms": 1e3 * at, "level_ms": 45.0, "target_ms": 40.0} | playout  # type: ignore[arg-type]
        ),
        ordered=OrderedStats(),
        recovery=RecoveryStats(retransmissions_received=round(3 * at), frames_repaired=round(2 * at)),
    )


def beats(seconds: float = SECONDS) -> list[Beat]:
    """An end that behaves: 64 kbps, 12 kbps from two seconds into the narrow phase on, 64 again; nothing heard in the break."""
    narrow, rest = (span for span in spans(course(SECONDS)) if span.phase.key in ("narrow", "break"))
    found, played = [], 0.0
    for index in range(round(seconds / BEAT_S)):
        at = index * BEAT_S
        low = narrow.start + 2.0 <= at < rest.end + 0.5
        played += 0.0 if rest.start + 0.1 <= at < rest.end + 0.2 else 20.0
        found.append(Beat(12000 if low else 64000, 60 if low else 20, played, 0.0))
    return found


def end(name: str, seed: int, other_seed: int) -> EndRecord:
    """Says noise; hears the other's noise 90 ms after it was said."""
    noise = [(np.random.default_rng(s).normal(0, 3000, SECONDS * RATE)).astype(np.int16) for s in (seed, other_seed)]
    heard = np.concatenate([np.zeros(RATE * 90 // 1000, np.int16), noise[1]])[: SECONDS * RATE]
    return EndRecord(
        name=name,
        said=noise[0],
        said_at=BEGAN,
        heard=[heard],
        heard_at=BEGAN,
        beats=beats(),
        readings=[(BEGAN + second, stats(second)) for second in range(SECONDS + 1)],
        notices=[Notice(BEGAN + 14.1, "lost"), Notice(BEGAN + 15.5, "resumed", 3.4)],
        sessions=[SESSION],
    )


def make_record() -> DemoRecord:
    """A call in which all went well."""
    log = [Crossing(BEGAN + 0.02 * n, "up", 140, n % 50 != 7) for n in range(50 * SECONDS)]
    log += [Crossing(BEGAN + 0.02 * n, "down", 70, True) for n in range(50 * SECONDS)]
    return DemoRecord(
        client=end("Client", 1, 2),
        server=end("Server", 2, 1),
        log=log,
        flows=2,
        began=BEGAN,
        seconds=float(SECONDS),
        spans=spans(course(SECONDS)),
        sample_rate_hz=RATE,
        rtt_ms=60.0,
        seed=1,
    )


def empty() -> DemoRecord:
    """A call of which nothing is known."""
    client = EndRecord(name="Client", said=np.zeros(0, np.int16))
    return replace(make_record(), client=client, server=replace(client, name="Server"), log=[], seconds=0.0)


def changed(beats: list[Beat], start: float, end: float, **values: object) -> list[Beat]:
    """The same with other values in a stretch of time."""
    return [replace(beat, **values) if start <= index * BEAT_S < end else beat for index, beat in enumerate(beats)]  # type: ignore[arg-type]


def silent(beats: list[Beat], start: float, end: float) -> list[Beat]:
    """The same with nothing received heard in a stretch of time."""
    found, missing = [], 0.0
    for index, beat in enumerate(beats):
        missing += 20.0 if start <= index * BEAT_S < end else 0.0
        found.append(replace(beat, played_ms=beat.played_ms - missing))
    return found


@pytest.fixture(scope="session")
def kit() -> ModuleType:
    """Numbers to make records of."""
    return sys.modules[__name__]


@pytest.fixture
def record() -> DemoRecord:
    """A call in which all went well."""
    return make_record()
