"""Listening in real time, over a session that only notes what it is told. The track is G.711, so no codec library is needed."""

from __future__ import annotations

import asyncio
import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from voicestream import call_reader
from voicestream.call_link import CallLink
from voicestream.call_reader import CallReader
from voicestream.call_state import Ending
from voicestream.codepoints import CodecId
from voicestream.config import AudioConfig, PlayoutConfig, Track
from voicestream.core.playout import Playout
from voicestream.errors import CallClosedError, StateError
from voicestream.events import Closed
from voicestream.media import MediaFrame

TRACK = Track(codec=CodecId.PCMU, clock_rate_hz=8000)
LOUD = b"\x20"
"""A µ-law sample far from silence."""


class Bench:
    """A reader with a clock that the test moves."""

    def __init__(self, channels: int = 1, rate: int = 8000) -> None:
        self.now = 100.0
        self.reported: list[int] = []
        self.lookaheads: list[int] = []
        self.woken: list[float] = []
        self.playout: Playout | None = None
        self.ending = Ending()
        receiver = SimpleNamespace(attach_playout=self.attach)
        session = SimpleNamespace(
            receivers={0: receiver},
            report_played=lambda pts, now, track: self.reported.append(pts),
            update_settings=lambda now, lookahead_ms: self.lookaheads.append(lookahead_ms),
            is_closed=False,
        )
        self.connection = SimpleNamespace(session=session)
        self.waiting: list[int] = []
        owner: Any = SimpleNamespace(
            lock=nullcontext(),
            clock=lambda: self.now,
            wake=lambda: self.woken.append(self.now),
            poll=self.poll,
            connection=self.connection,
        )
        self.link = CallLink(owner, self.ending)
        audio = AudioConfig(sample_rate_hz=rate, channels=channels)
        self.reader = CallReader(self.link, self.ending, TRACK, audio, PlayoutConfig(), None)

    def attach(self, playout: Playout) -> None:
        self.playout = playout

    def poll(self) -> None:
        """What the socket holds comes in."""
        waiting, self.waiting = self.waiting, []
        if waiting:
            self.arrive(*waiting)

    def arrive(self, *numbers: int) -> None:
        assert self.playout is not None
        for number in numbers:
            frame = MediaFrame(pts=number * 8, units=8, payload=LOUD * 160, talkspurt_start=number == 0)
            self.playout.insert(frame, self.now, send_time=number * 0.02)

    def close(self, code: int) -> None:
        self.connection.session.is_closed = True
        self.ending.set(Closed(code=code, reason="", remote=True, may_resume=False))


def test_before_any_audio_there_is_silence_of_exactly_the_length_asked_for() -> None:
    bench = Bench()
    for samples in (0, 1, 159, 160, 161, 4800):
        block = bench.reader.read(samples)
        assert block.dtype == np.int16
        assert block.shape == (samples,)
        assert not block.any()


def test_the_transport_is_woken_only_when_the_far_end_is_to_be_told_something() -> None:
    bench = Bench()
    bench.connection.session.report_played = lambda pts, now, track: bench.now > 1
    for bench.now in (0.5, 0.52, 1.5, 0.54):
        bench.reader.read(160)
    assert bench.woken == [1.5]


def test_two_channels_are_given_as_asked_for() -> None:
    assert Bench(channels=2).reader.read(160).shape == (160, 2)


def test_what_arrives_is_heard_and_reported() -> None:
    bench = Bench()
    bench.reader.read(160)
    for number in range(10):
        bench.arrive(number)
        block = bench.reader.read(160)
        bench.now += 0.02
        if number > 5:
            assert np.abs(block).mean() > 1000
    assert bench.reported == sorted(bench.reported)
    assert bench.reported[-1] > 40


def test_after_the_finish_the_rest_is_played_and_then_it_is_over() -> None:
    bench = Bench()
    bench.reader.read(160)
    bench.arrive(*range(5))
    assert bench.playout is not None
    bench.playout.finish(40)
    loud = 0
    for _ in range(40):
        if bench.reader.check_over():
            break
        loud += int(np.abs(bench.reader.read(160)).mean() > 1000)
        bench.now += 0.02
    assert loud >= 5
    assert bench.reader.check_over()
    assert bench.reported[-1] == 40
    bench.reader.read(160)  # an abrupt end may fade
    assert not bench.reader.read(160).any()


def test_an_end_of_which_nothing_came_is_reported_all_the_same() -> None:
    bench = Bench()
    bench.reader.read(160)
    bench.arrive(0, 1)
    assert bench.playout is not None
    bench.playout.finish(400)
    for _ in range(100):
        bench.reader.read(160)
        bench.now += 0.02
    assert bench.reader.check_over()
    assert bench.reported[-1] == 400


def test_what_the_device_holds_is_reported_when_it_has_been_heard() -> None:
    bench = Bench()
    bench.reader.device_latency = 0.1
    assert bench.lookaheads == [250]  # the far end's count begins at what is heard
    bench.reader.read(160)
    bench.arrive(*range(5))
    assert bench.playout is not None
    bench.playout.finish(40)
    given = 0
    while not bench.reader.check_over():
        block = bench.reader.read(160)
        given += 160
        bench.now += 0.02
        if np.abs(block).mean() > 1000:
            assert bench.reported[-1] <= max(0, given / 20 - 40)
    assert bench.reported[-1] == 40
    assert not block.any(), "the device's own delay is filled with silence before the end is said to be heard"
    with pytest.raises(ValueError, match="device_latency"):
        bench.reader.device_latency = 3


def test_after_a_close_what_is_held_is_played_and_then_there_is_silence() -> None:
    bench = Bench()
    bench.reader.read(160)
    bench.arrive(*range(5))
    bench.close(0)
    reports = len(bench.reported)
    blocks = []
    for _ in range(40):
        blocks.append(bench.reader.read(160))
        bench.now += 0.02
    assert sum(np.abs(block).mean() > 1000 for block in blocks) >= 4
    assert not np.concatenate(blocks[-20:]).any()
    assert bench.reader.check_over()
    assert len(bench.reported) == reports


def test_an_error_is_raised_when_what_is_held_has_been_played() -> None:
    bench = Bench()
    bench.reader.read(160)
    bench.arrive(*range(5))
    bench.close(0x17)
    assert not bench.reader.check_over()
    for _ in range(40):
        bench.reader.read(160)
        bench.now += 0.02
    with pytest.raises(CallClosedError):
        bench.reader.check_over()


@pytest.mark.parametrize("samples", [-1, 80001])
def test_an_absurd_length_is_refused(samples: int) -> None:
    with pytest.raises(ValueError, match="n must be 0 to 80000"):
        Bench().reader.read(samples)


def test_a_length_that_is_no_whole_number_is_refused() -> None:
    with pytest.raises(TypeError):
        Bench().reader.read(1.5)  # type: ignore[arg-type]


def test_a_track_that_is_not_received_cannot_be_heard() -> None:
    bench = Bench()
    bench.connection.session.receivers.clear()
    with pytest.raises(StateError, match="not received"):
        bench.reader.read(160)


def test_any_thread_may_read() -> None:
    bench = Bench()
    got: list[int] = []
    thread = threading.Thread(target=lambda: got.append(len(bench.reader.read(160))))
    thread.start()
    thread.join()
    assert got == [160]


class Clock:
    """Replaces the loop's time and sleeping for the pace of blocks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        monkeypatch.setattr(call_reader.asyncio, "get_running_loop", lambda: SimpleNamespace(time=lambda: self.now))
        monkeypatch.setattr(call_reader.asyncio, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


async def test_blocks_keep_absolute_deadlines_whatever_the_consumer_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    blocks = Bench().reader.blocks()
    for number in range(1000):
        block = await anext(blocks)
        assert len(block) == 160
        assert clock.now == pytest.approx(number * 0.020, abs=0.008)
        clock.now += 0.007 if number % 2 else 0.001
    assert clock.now == pytest.approx(999 * 0.020 + 0.007, abs=1e-6)


async def test_blocks_that_are_no_whole_number_of_samples_lose_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    blocks = Bench(rate=11025).reader.blocks()
    samples = sum([len(await anext(blocks)) for _ in range(1000)])
    assert samples == pytest.approx(clock.now * 11025, abs=221)


async def test_a_consumer_that_fell_behind_catches_up_in_a_bounded_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    blocks = Bench().reader.blocks()
    await anext(blocks)
    clock.now += 5.0
    clock.slept.clear()
    while not clock.slept or clock.slept[-1] == 0:
        await anext(blocks)
    assert len(clock.slept) - 1 == call_reader.MAX_BURST_BLOCKS + 1


async def test_a_cancelled_wait_loses_no_block() -> None:
    bench = Bench()
    blocks = bench.reader.blocks()
    await anext(blocks)
    task = asyncio.ensure_future(anext(blocks))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await anext(blocks)) == 160


async def test_iteration_ends_well_when_the_far_end_hangs_up() -> None:
    bench = Bench()
    blocks = bench.reader.blocks()
    await anext(blocks)
    bench.close(0)
    with pytest.raises(StopAsyncIteration):
        await anext(blocks)


def test_what_the_socket_holds_is_in_time_for_the_device_that_asks() -> None:
    bench = Bench()
    bench.reader.read(0)
    bench.arrive(0)
    bench.now += 0.2
    assert bench.reader.read(160).any()
    bench.now += 0.02
    bench.waiting = [1]
    assert bench.reader.read(160).any()
    assert bench.playout is not None
    assert bench.playout.account.concealed_units == 0
