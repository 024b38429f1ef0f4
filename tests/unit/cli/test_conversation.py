"""Saying and hearing: deadlines are absolute, nothing is left out, a failure ends both halves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from voicestream.cli.conversation import BLOCK_MS, Pcm, first_of, hear, paced, prepare, say, together


class FakeCall:
    """Keeps what is sent, gives out what it was made with."""

    def __init__(self, blocks: list[Pcm] | None = None) -> None:
        self.blocks = blocks or []
        self.log: list[Any] = []

    async def send(self, pcm: Any, /) -> None:
        self.log.append(pcm)

    def read(self, n: int, /) -> Pcm:
        self.log.append(n)
        return np.zeros(n, np.int16)

    async def finish(self, timeout: float | None = 10.0, /) -> None:
        self.log.append("finish")

    async def __aiter__(self) -> AsyncIterator[Pcm]:
        for block in self.blocks:
            yield block


class FakeLoopTime:
    """A clock that only sleeping moves; `late` seconds are lost at each of the first sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, late: list[float]) -> None:
        self.now, self.late = 100.0, late
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: self.now)
        monkeypatch.setattr("voicestream.cli.conversation.asyncio.sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds + (self.late.pop(0) if self.late else 0.0)


async def test_a_late_block_makes_no_later_block_late(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        clock = FakeLoopTime(patch, [0.0, 0.05])
        times = [clock.now - 100.0 async for _ in paced(np.zeros(160 * 6, np.int16), 8000)]
    assert times == pytest.approx([0.02, 0.09, 0.09, 0.09, 0.10, 0.12])


async def test_all_samples_are_said_and_the_end_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    pcm, call = np.arange(1000, dtype=np.int16), FakeCall()
    with monkeypatch.context() as patch:
        FakeLoopTime(patch, [])
        await say(call, paced(pcm, 16000))
    assert call.log.pop() == "finish"
    assert all(len(block) == 16 * BLOCK_MS for block in call.log[:-1])
    assert np.array_equal(np.concatenate(call.log), pcm)


async def test_a_rate_that_20_ms_do_not_divide_keeps_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        clock = FakeLoopTime(patch, [])
        sizes = [len(block) async for block in paced(np.zeros(11025, np.int16), 11025)]
        assert clock.now - 100.0 == pytest.approx(1.0)
    assert set(sizes) == {220, 221}
    assert sum(sizes) == 11025


async def test_stopping_early_still_announces_the_end() -> None:
    stop, call = asyncio.Event(), FakeCall()
    stop.set()
    await say(call, paced(np.zeros(8000, np.int16), 8000, stop))
    assert call.log == ["finish"]


async def test_every_ear_hears_every_block() -> None:
    blocks = [np.full(4, n, np.int16) for n in range(3)]
    first: list[Pcm] = []
    second: list[Pcm] = []
    await hear(FakeCall(blocks), first.append, second.append)
    assert first == second == blocks


async def test_the_first_failure_ends_all_and_is_raised_as_it_is() -> None:
    cancelled = asyncio.Event()

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def fails() -> None:
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        await together(waits(), fails())
    assert cancelled.is_set()


async def test_the_first_of_several_to_end_is_enough() -> None:
    ended = asyncio.Event()

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    await first_of(waits(), asyncio.sleep(0), None)
    assert ended.is_set()


async def test_preparing_sends_and_takes_nothing() -> None:
    call = FakeCall()
    await prepare(call)
    assert [np.size(entry) if isinstance(entry, np.ndarray) else entry for entry in call.log] == [0, 0]
