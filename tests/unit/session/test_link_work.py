"""What hostile datagrams make a session work: counted in calls of functions, which a busy machine does not change."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from voicestream import wire
from voicestream.config import Limits, SessionConfig
from voicestream.wire import Frame
from voicestream.wire import frame_values as frames
from voicestream.wire.frames import frame_size

LOUD = SessionConfig(grease=False, limits=Limits(datagrams_per_second=100000))
"""Not cut off, so that only the work itself is bounded."""

DATAGRAMS = 100
MOST_CALLS = 250_000
"""Function calls for 100 datagrams in 0.1 s: 0.1 s of one core or less. Without bounds the worst of these took 5 s."""

WORST: dict[str, Callable[[int], Frame]] = {
    "reports": lambda n: frames.ReportFrame(
        newest=0, arrival=n & 0xFFFF, playout=(frames.PlayoutEntry(track=0, playhead=0, level_units=4, target_units=8),)
    ),
    "questions for all that was said": lambda n: frames.MissingFrame(ranges=tuple((8 * i, 12000) for i in range(32))),
    "questions for one frame each": lambda n: frames.MissingFrame(ranges=tuple((16 * i, 8) for i in range(32))),
    "long questions": lambda n: frames.MissingFrame(ranges=tuple((8 * i, 79) for i in range(32))),
    "repairs": lambda n: frames.RepairFrame(key=7 * n & 255, newest_pts=8 * (1700 + n % 64), runs=((15, 8),), symbol=bytes([n & 255] * 10)),
    "clears": lambda n: frames.ClearFrame(message=wire.Clear(number=n + 1, from_pts=0, to_pts=8 * n)),
    "requests to stop": lambda n: frames.ClearFrame(message=wire.Clear(number=n + 1, from_receiver=True, from_pts=0, to_pts=4000)),
    "progress": lambda n: frames.ProgressFrame(message=wire.Progress(played_pts=n % 4000)),
}


def full(make: Callable[[int], Frame], first: int) -> tuple[Frame, ...]:
    """As many frames as fit in a datagram."""
    found: list[Frame] = []
    room = 1150
    while len(found) < 64 and (room := room - frame_size(frame := make(first + len(found)))) >= 0:
        found.append(frame)
    return tuple(found)


def calls_of(work: Callable[[], None]) -> int:
    """Functions of Python that are called in it."""
    count = 0

    def count_one(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(count_one)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.fixture(scope="module")
def talkative(kit):
    """Makes a session that has said ten seconds."""

    def make():
        pair = kit.Pair(server=LOUD).open()
        pair.talk(10, "server")
        return pair

    return make


@pytest.mark.parametrize("what", WORST)
def test_the_worst_that_fits_in_datagrams_is_bounded_work(what: str, talkative, kit) -> None:
    """T-WORK: frames that look things up are acted on a few hundred times a second, whatever comes."""
    pair = talkative()
    number = pair.server._link.reports.arrivals.newest + 1
    datagrams = [kit.datagram(*full(WORST[what], 64 * n), number=number + n) for n in range(DATAGRAMS)]

    def receive() -> None:
        for data in datagrams:
            pair.now += 0.001
            pair.server.receive_datagram(data, pair.now)
            pair.server.datagrams_to_send(pair.now)

    calls = calls_of(receive)
    assert not pair.server.is_closed
    assert calls < MOST_CALLS, f"{calls} calls"


def test_what_is_not_listened_to_is_counted_and_the_call_goes_on(talkative, kit) -> None:
    pair = talkative()
    number = pair.server._link.reports.arrivals.newest + 1
    for n in range(50):
        pair.server.receive_datagram(kit.datagram(*full(WORST["progress"], 0), number=number + n), pair.now)
    assert pair.server.stats(pair.now).frames_unused > 1000
    before = pair.server._link.reports.arrivals.newest
    pair.now += 3
    pair.server.receive_datagram(kit.datagram(*full(WORST["progress"], 0)[:5], number=before + 1), pair.now)
    counted = pair.server.stats(pair.now).frames_unused
    pair.server.receive_datagram(kit.datagram(*full(WORST["progress"], 0)[:5], number=before + 2), pair.now)
    assert pair.server.stats(pair.now).frames_unused == counted
