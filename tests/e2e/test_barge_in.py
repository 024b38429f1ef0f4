"""Barge-in on loopback with real sockets: the samples tell which unit of media they belong to, so that nothing has to be guessed."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import numpy as np
import pytest

import voicestream
from tests.e2e.conftest import Serve
from voicestream.config import Track
from voicestream.session import link
from voicestream.session.sender import Sender
from voicestream.wire.datagram import Datagram, encode_datagram
from voicestream.wire.frame_values import AudioFrame, RetransmissionFrame
from voicestream.wire.messages import Clear

RATE_HZ = 8000
UNIT_SAMPLES = 20
UNIT_S = 0.0025
RAMP_SAMPLES = RATE_HZ * 5 // 1000
LEVEL = 2000
OPTIONS: dict[str, Any] = {"sample_rate_hz": RATE_HZ, "tracks": (Track(codec=voicestream.CodecId.L16, clock_rate_hz=RATE_HZ),)}

Pcm = np.ndarray[Any, np.dtype[np.int16]]


def telling(seconds: float) -> Pcm:
    """Speech of which each sample tells its unit, counted from 0."""
    return np.repeat(LEVEL + np.arange(round(seconds / UNIT_S)), UNIT_SAMPLES).astype(np.int16)


class Ear:
    """Reads as a sound device does, in blocks of 7.5 ms, and keeps everything."""

    def __init__(self, call: voicestream.Call) -> None:
        self.call = call
        self.heard: list[Pcm] = [call.read(1)]
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while True:
            self.heard.append(self.call.read(3 * UNIT_SAMPLES))
            await asyncio.sleep(3 * UNIT_S)

    @property
    def pcm(self) -> Pcm:
        return np.concatenate(self.heard)

    async def until(self, enough: Any) -> None:
        while not enough(self.pcm):
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("seed", range(4))
async def test_after_the_listeners_clear_nothing_old_is_heard_or_sent_and_both_know_what_was_heard(
    serve: Serve, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    said = telling(20)
    told: list[voicestream.CallEvent] = []
    sent: list[str] = []

    def noting(datagram: Datagram) -> bytes:
        for frame in datagram.frames:
            if isinstance(frame, AudioFrame | RetransmissionFrame):
                sent.append("old" if frame.clear_number == 0 else "new")
        return encode_datagram(datagram)

    def asked(sender: Sender, clear: Clear, now: float) -> bool:
        sent.append("asked")
        return on_clear(sender, clear, now)

    on_clear = Sender.on_clear
    monkeypatch.setattr(link, "encode_datagram", noting)
    monkeypatch.setattr(Sender, "on_clear", asked)

    async def handler(call: voicestream.Call) -> None:
        assert not await call.send(said, ahead=True)
        async for event in call.events():
            told.append(event)
            if event.kind == "heard":
                break
        await call.send(-said[: RATE_HZ // 4], ahead=True)
        call.flush()
        await call.wait_closed()

    async with serve(handler, **OPTIONS) as loopback, loopback.connect(**OPTIONS) as call:
        ear = Ear(call)
        await ear.until(lambda pcm: pcm[-1] > LEVEL)
        await asyncio.sleep(rng.uniform(0.05, 0.4))
        heard, before = await call.clear(), ear.pcm
        await ear.until(lambda pcm: pcm[-1] < -LEVEL)
        after = ear.pcm[len(before) :]
        ear.task.cancel()
    units = round(heard / UNIT_S)
    assert units - 1 <= before[-1] - LEVEL <= units, f"seed {seed}"
    assert [event.kind for event in told] == ["clear", "heard"]
    assert told[1].at == pytest.approx(heard)
    assert (after[RAMP_SAMPLES:] <= 0).all(), f"seed {seed}: old samples were heard"
    assert (np.diff(after[:RAMP_SAMPLES].astype(int), prepend=before[-1]) <= 0).all(), "the slope is no slope"
    assert "old" in sent
    assert "new" in sent
    assert "old" not in sent[sent.index("asked") :], f"seed {seed}: old audio was sent after the request had come"


async def test_the_talkers_clear_tells_it_exactly_what_was_heard(serve: Serve) -> None:
    results: list[float] = []
    cleared = asyncio.Event()

    async def handler(call: voicestream.Call) -> None:
        sending = asyncio.create_task(call.send(telling(20), ahead=True))
        await asyncio.sleep(0.3)
        results.append(await call.clear(outgoing=True))
        assert await sending is False
        cleared.set()
        await call.wait_closed()

    async with serve(handler, **OPTIONS) as loopback, loopback.connect(**OPTIONS) as call:
        ear = Ear(call)
        await cleared.wait()
        await asyncio.sleep(0.1)
        ear.task.cancel()
    loud = ear.pcm[ear.pcm > LEVEL]
    assert round(results[0] / UNIT_S) - 1 <= loud.max() - LEVEL <= round(results[0] / UNIT_S)


async def test_a_clear_that_crosses_the_finish_ends_both_at_once(serve: Serve) -> None:
    played: list[float] = []

    async def handler(call: voicestream.Call) -> None:
        await call.send(telling(0.4), ahead=True)
        played.append(await call.finish())

    async with serve(handler, **OPTIONS) as loopback, loopback.connect(**OPTIONS) as call:
        blocks = 0
        async for block in call:
            blocks += 1
            if block.max() > LEVEL + 40:
                await call.clear()
                break
        async for block in call:
            assert block[RAMP_SAMPLES:].max(initial=0) == 0
    assert len(played) == 1
    assert blocks < 15
