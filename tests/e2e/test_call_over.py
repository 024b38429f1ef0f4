"""What every verb of a call does when the call is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voicestream
from voicestream import CallClosed, CallClosedError, CallClosedOK, ErrorCode

Serve = Callable[..., Any]
PACKET = b"\xf8\xff\xfe"  # Opus, 20 ms of silence


async def sit(call: voicestream.Call) -> None:
    await call.wait_closed()


async def over(serve: Serve, code: int, look: Callable[[voicestream.Call, type[CallClosed]], Any]) -> None:
    """Look at a call that has ended with a code."""
    async with serve(sit, sample_rate_hz=16000) as loopback, loopback.connect(sample_rate_hz=16000) as call:
        await call.send(np.zeros(1600, np.int16))
        while call.stats().sent.frames == 0:
            await asyncio.sleep(0.001)
        await call.close(code, "it is over")
        await look(call, CallClosedOK if code == ErrorCode.NO_ERROR else CallClosedError)


ENDINGS = pytest.mark.parametrize("code", [ErrorCode.NO_ERROR, ErrorCode.HANDLER_ERROR])


@ENDINGS
async def test_what_would_reach_the_far_end_raises_how_the_call_ended(serve: Serve, code: int) -> None:
    async def look(call: voicestream.Call, expected: type[CallClosed]) -> None:
        pcm = np.zeros(320, np.int16)

        async def nowait() -> None:
            call.send_nowait(pcm)

        async def flush() -> None:
            call.flush()

        verbs = {
            "send": call.send(pcm),
            "send ahead": call.send(pcm, ahead=True),
            "send_nowait": nowait(),
            "send_frame": call.send_frame(PACKET),
            "send_event": call.send_event({}),
            "speak": call.speak(pcm),
            "flush": flush(),
            "clear": call.clear(),
            "clear outgoing": call.clear(outgoing=True),
            "finish": call.finish(),
        }
        for name, verb in verbs.items():
            with pytest.raises(expected, match="it is over") as caught:
                await verb
            assert (caught.value.code, name) == (code, name)

    await over(serve, code, look)


@ENDINGS
async def test_what_looks_back_goes_on(serve: Serve, code: int) -> None:
    async def look(call: voicestream.Call, _expected: type[CallClosed]) -> None:
        first, second = call.stats(), call.stats()
        assert (first.close_code, first.close_reason, call.closed) == (code, "it is over", True)
        assert first.sent.frames == second.sent.frames > 0
        assert first.duration_s == second.duration_s
        assert len(call.session_id) == 32
        assert "closed" in repr(call)
        assert not call.read(160).any()
        assert call.read(48000).shape == (48000,)
        await call.close(ErrorCode.BUSY, "again")
        await call.wait_closed()
        assert call.close_code == code

    await over(serve, code, look)


@ENDINGS
async def test_what_listens_ends_well_or_with_the_error(serve: Serve, code: int, tmp_path: Path) -> None:
    async def ended(listening: Any, expected: type[CallClosed]) -> None:
        if expected is CallClosedOK:
            await listening
        else:
            with pytest.raises(expected):
                await listening

    async def drain(items: Any) -> None:
        async for _ in items:
            pass

    async def look(call: voicestream.Call, expected: type[CallClosed]) -> None:
        await ended(drain(call.events()), expected)
        await ended(call.record(tmp_path / "heard.wav"), expected)
        await ended(drain(call), expected)

    await over(serve, code, look)
    assert (tmp_path / "heard.wav").stat().st_size == 44


@ENDINGS
async def test_an_ordered_reader_ends_well_or_with_the_error(serve: Serve, code: int) -> None:
    async def look(call: voicestream.Call, expected: type[CallClosed]) -> None:
        frames = call.frames()
        with pytest.raises(StopAsyncIteration if expected is CallClosedOK else expected):
            await anext(frames)

    await over(serve, code, look)


async def test_a_finish_that_was_answered_gives_its_answer_again(serve: Serve) -> None:
    async def listen(call: voicestream.Call) -> None:
        async for _ in call:
            pass

    async with serve(listen, sample_rate_hz=16000) as loopback, loopback.connect(sample_rate_hz=16000) as call:
        await call.send(np.zeros(3200, np.int16))
        played = await call.finish()
        await asyncio.wait_for(call.wait_closed(), 5)
        assert await call.finish() == played
