"""What is said and what happens before there is a call."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

import voicestream
from tests.e2e.test_resume import connect, network
from voicestream.audio.speech import sample_speech
from voicestream.client_early import EarlyAudio
from voicestream.config import AudioConfig

RATE = 48000


async def test_what_is_said_while_dialling_arrives_whole_and_in_order(serve: Any) -> None:
    heard: list[voicestream.AudioBlock] = []

    async def handler(call: voicestream.Call) -> None:
        async for block in call.frames(decode=False):
            heard.append(block)

    async with serve(handler) as loopback, network(loopback) as relay:
        dialling = connect(loopback, relay)
        pcm = sample_speech(2.0, RATE)
        relay.mute = True  # the first packets of the dial are lost
        dialling.send_nowait(pcm[:RATE])
        thread = threading.Thread(target=lambda: [dialling.send_nowait(part.tobytes()) for part in np.split(pcm[RATE:], 100)])
        asyncio.get_running_loop().call_later(0.3, setattr, relay, "mute", False)
        opening = asyncio.ensure_future(dialling.__aenter__())
        await asyncio.to_thread(thread.start)
        call = await opening
        thread.join()
        dialling.send_nowait(pcm[: RATE // 2])  # as `call.send_nowait` from now on
        played = await call.finish(timeout=10)
        assert 2.45 < played < 2.65
        assert heard[0].pts == 0
        assert not any(block.gap for block in heard)
        assert [block.pts for block in heard] == sorted(block.pts for block in heard)
        assert 2450 < sum(block.duration_ms for block in heard) < 2650
        await call.close()
        dialling.send_nowait(pcm)  # nobody is there, and nothing happens


def test_what_is_kept_is_bounded_and_the_oldest_goes() -> None:
    early = EarlyAudio(AudioConfig(sample_rate_hz=8000, channels=1))
    for _ in range(15):
        early.put(np.zeros(8000, np.int16))
    early.put(bytes(16000))
    assert early.dropped_s == pytest.approx(6.0)
    with pytest.raises(TypeError, match="numpy array or bytes, not list"):
        early.put([0])


async def test_a_buffer_may_be_used_again_at_once(serve: Any) -> None:
    sums: list[int] = []

    async def handler(call: voicestream.Call) -> None:
        async for block in call.frames():
            sums.append(int(np.abs(block.pcm).max()))

    async with serve(handler) as loopback:
        dialling = loopback.connect()
        buffer = sample_speech(1.0, RATE).copy()
        dialling.send_nowait(buffer)
        buffer[:] = 0
        async with dialling as call:
            await call.finish(timeout=10)
        assert max(sums) > 1000


@pytest.mark.parametrize("stage", ["handshake", "accept"])
async def test_a_change_of_network_while_dialling_dials_at_once(serve: Any, stage: str) -> None:
    async def handler(call: voicestream.Call) -> None:
        await call.wait_closed()

    seen = asyncio.Event()

    async def authenticate(*_: Any) -> None:
        if stage == "accept":
            seen.set()
            await asyncio.sleep(0.3)

    loop = asyncio.get_running_loop()
    async with serve(handler, authenticate=authenticate) as loopback, network(loopback) as relay:
        dialling = connect(loopback, relay)
        relay.mute = stage == "handshake"
        opening = asyncio.ensure_future(dialling.__aenter__())
        if stage == "handshake":
            # By now the first packet is repeated after pauses of more than a second.
            await asyncio.sleep(2.0)
            relay.mute = False
        else:
            await asyncio.wait_for(seen.wait(), 10)
        began = loop.time()
        dialling.network_changed()
        call = await asyncio.wait_for(opening, 10)
        assert loop.time() - began < 0.9
        await call.close()


async def test_a_dial_that_is_cancelled_while_the_network_changes_leaves_nothing(serve: Any) -> None:
    async def handler(call: voicestream.Call) -> None:
        await call.wait_closed()

    async with serve(handler) as loopback, network(loopback) as relay:
        relay.mute = True
        dialling = connect(loopback, relay)
        opening = asyncio.ensure_future(dialling.__aenter__())
        await asyncio.sleep(0.1)
        dialling.network_changed()
        await asyncio.sleep(0.05)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        dialling.network_changed()
