"""Listening in order, over a session that only notes what it is told. The track is G.711, so no codec library is needed."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from voicestream.call_frames import BACKLOG_FRAMES, AudioBlock, FrameBlocks, FrameReader
from voicestream.call_link import CallLink
from voicestream.call_state import Ending
from voicestream.codepoints import CodecId
from voicestream.config import AudioConfig, Track
from voicestream.core.playout import OrderedReader
from voicestream.errors import CallClosedError, StateError
from voicestream.events import Closed
from voicestream.media import MediaFrame

TRACK = Track(codec=CodecId.PCMU, clock_rate_hz=8000)


class Bench:
    """A reader with frames that the test lets arrive."""

    def __init__(self) -> None:
        self.reported: list[int] = []
        self.ordered: Any = None
        self.ending = Ending()
        receiver = SimpleNamespace(attach_ordered=self.attach)
        session = SimpleNamespace(receivers={0: receiver}, report_played=lambda pts, now, track: self.reported.append(pts), is_closed=False)
        self.connection = SimpleNamespace(session=session)
        self.clock = asyncio.get_running_loop().time
        owner: Any = SimpleNamespace(lock=nullcontext(), clock=self.clock, wake=lambda: None, connection=self.connection)
        self.reader = FrameReader(CallLink(owner, self.ending), self.ending, TRACK, AudioConfig(sample_rate_hz=8000), 150)

    def attach(self, ordered: OrderedReader) -> None:
        self.ordered = ordered

    def arrive(self, *numbers: int, ends: bool = False, at: float | None = None) -> None:
        for number in numbers:
            frame = MediaFrame(pts=number * 8, units=8, payload=bytes([number]) * 160, talkspurt_start=number == 0, talkspurt_end=ends)
            self.ordered.insert(frame, self.clock() if at is None else at)
        self.reader.arrived.notify()

    def finish(self, pts: int) -> None:
        self.ordered.finish(pts)
        self.reader.arrived.notify()

    def close(self, code: int) -> None:
        self.connection.session.is_closed = True
        self.ending.set(Closed(code=code, reason="", remote=True, may_resume=False))
        self.reader.arrived.notify()


async def everything(blocks: FrameBlocks) -> list[AudioBlock]:
    return [block async for block in blocks]


async def test_coded_frames_come_in_order_as_fast_as_they_are_taken() -> None:
    bench = Bench()
    blocks = bench.reader.blocks(200, decode=False)
    bench.arrive(1, 0, 2)
    bench.finish(24)
    got = await everything(blocks)
    assert [block.payload for block in got] == [bytes([number]) * 160 for number in range(3)]
    assert [(block.pts, block.duration_ms, block.gap) for block in got] == [(0, 20, False), (8, 20, False), (16, 20, False)]
    assert [block.at for block in got] == [0, 0.02, 0.04]
    assert bench.reported == [8, 16, 24]


async def test_a_reader_is_woken_for_what_came_and_for_the_end_but_for_nothing_else() -> None:
    bench = Bench()
    blocks = bench.reader.blocks(200, decode=False)
    waiting = asyncio.ensure_future(anext(blocks))
    await asyncio.sleep(0)
    bench.reader.look()
    assert bench.reader.arrived.awaited
    bench.ordered.insert(MediaFrame(pts=0, units=8, payload=b"\xff" * 160, talkspurt_start=True), bench.clock())
    bench.reader.look()
    assert not bench.reader.arrived.awaited
    assert (await waiting).pts == 0
    waiting = asyncio.ensure_future(anext(blocks, None))
    await asyncio.sleep(0)
    bench.connection.session.is_closed = True
    bench.reader.look()
    assert not bench.reader.arrived.awaited
    assert await waiting is None


async def test_decoded_blocks_have_the_length_asked_for_and_the_last_one_the_rest() -> None:
    bench = Bench()
    blocks = bench.reader.blocks(50, decode=True)
    bench.arrive(*range(8))
    bench.finish(64)
    got = await everything(blocks)
    assert [block.duration_ms for block in got] == [50, 50, 50, 10]
    assert all(block.pcm is not None and block.pcm.dtype == np.int16 for block in got)
    assert [block.pts for block in got] == [0, 20, 40, 60]


async def test_the_end_of_a_talkspurt_is_not_held_back() -> None:
    bench = Bench()
    blocks = bench.reader.blocks(1000, decode=True)
    bench.arrive(0, 1)
    bench.arrive(2, ends=True)
    block = await asyncio.wait_for(anext(blocks), 5)
    assert block.duration_ms == 60


async def test_what_is_missing_is_a_gap_once_it_has_been_waited_for() -> None:
    bench = Bench()
    blocks = bench.reader.blocks(200, decode=False)
    bench.arrive(0)
    bench.arrive(2, at=bench.clock() - 1)
    bench.finish(24)
    got = await everything(blocks)
    assert [(block.pts, block.gap) for block in got] == [(0, False), (8, True), (16, False)]
    assert got[1].payload is None
    assert got[1].duration_ms == 20


async def test_a_waiting_consumer_is_woken_by_arrival() -> None:
    bench = Bench()
    blocks = bench.reader.blocks(200, decode=False)
    task = asyncio.ensure_future(anext(blocks))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not task.done()
    bench.arrive(0)
    assert (await asyncio.wait_for(task, 5)).pts == 0


async def test_a_consumer_that_fell_behind_gets_several_frames_in_one_turn_of_the_loop_but_not_all() -> None:
    bench = Bench()
    blocks = bench.reader.blocks(200, decode=False)
    bench.arrive(*range(100))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.ensure_future(count())
    for _ in range(100):
        await anext(blocks)
    counting.cancel()
    assert 100 / BACKLOG_FRAMES - 2 <= turns <= 100 / BACKLOG_FRAMES + 1


async def test_a_cancelled_wait_loses_nothing() -> None:
    bench = Bench()
    blocks = bench.reader.blocks(200, decode=False)
    task = asyncio.ensure_future(anext(blocks))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not bench.reader.arrived.awaited
    bench.arrive(0)
    assert (await anext(blocks)).pts == 0


async def test_a_close_gives_what_is_held_and_then_ends() -> None:
    bench = Bench()
    blocks = bench.reader.blocks(200, decode=False)
    bench.arrive(0, 1, 3)
    bench.close(0)
    assert [(block.pts, block.gap) for block in await everything(blocks)] == [(0, False), (8, False), (16, True), (24, False)]
    assert bench.reported == []


async def test_an_error_is_raised_after_what_is_held() -> None:
    bench = Bench()
    blocks = bench.reader.blocks(200, decode=True)
    bench.arrive(0)
    bench.close(0x17)
    assert (await anext(blocks)).duration_ms == 20
    with pytest.raises(CallClosedError):
        await anext(blocks)


async def test_a_track_that_is_not_received_cannot_be_read() -> None:
    bench = Bench()
    bench.connection.session.receivers.clear()
    with pytest.raises(StateError, match="not received"):
        bench.reader.blocks(200, decode=False)
