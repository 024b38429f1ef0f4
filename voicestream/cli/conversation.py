"""The two halves of a call on the command line: saying something in real time, and keeping what is heard."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

# Not used here: a call loads it when it first needs it, which would hold up the loop in the middle of the call.
import voicestream.audio.pipeline  # noqa: F401
from voicestream.audio.files import WavAudio, load_wav

__all__ = ["BLOCK_MS", "Pcm", "Talker", "first_of", "hear", "load_speech", "paced", "prepare", "say", "together"]

BLOCK_MS: Final = 20

Pcm = NDArray[np.int16]


class Talker(Protocol):
    """What is needed of a call."""

    async def send(self, pcm: Any, /) -> Any: ...

    def read(self, n: int, /) -> Pcm: ...

    async def finish(self, timeout: float | None = ..., /) -> Any: ...

    def __aiter__(self) -> AsyncIterator[Pcm]: ...


def load_speech(path: Path) -> WavAudio:
    """A WAV file that is to be said; where a part of it is missing, stderr is told."""
    wav = load_wav(path)
    if wav.missing > 0:
        whole = wav.duration + wav.missing
        print(f"voicestream: {path} is cut off: {wav.duration:.1f} s of {whole:.1f} s are there", file=sys.stderr)
    return wav


async def prepare(call: Talker) -> None:
    """Load both codecs: the first block would otherwise wait for them, and the far end's buffer would begin with that delay."""
    await call.send(np.zeros(0, np.int16))
    call.read(0)


async def paced(pcm: Pcm, sample_rate_hz: int, stop: asyncio.Event | None = None) -> AsyncIterator[Pcm]:
    """Blocks of 20 ms in real time, as a microphone gives them: what was spoken in [t, t + 20 ms) comes at t + 20 ms.

    Deadlines are absolute, so that a late block makes no later one late.

    Args:
        pcm: What is spoken.
        sample_rate_hz: Its rate.
        stop: Ends it early.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    start, number = 0, 0
    while start < len(pcm):
        number += 1
        # From the block's number, so that at 11025 Hz, where a block is no whole number of samples, no time is lost.
        end = number * sample_rate_hz * BLOCK_MS // 1000
        await asyncio.sleep(max(0.0, began + number * BLOCK_MS / 1000 - loop.time()))
        if stop is not None and stop.is_set():
            return
        yield pcm[start:end]
        start = end


async def say(call: Talker, blocks: AsyncIterator[Pcm]) -> None:
    """Send blocks as they come, then wait until the far end has played the last of them."""
    async for block in blocks:
        await call.send(block)
    await call.finish(None)


async def hear(call: Talker, *ears: Callable[[Pcm], None]) -> None:
    """Give every block to all ears until the far end's last sample has been played."""
    async for block in call:
        for ear in ears:
            ear(block)


async def together(*parts: Coroutine[Any, Any, None]) -> None:
    """Run all until the last is done; the first failure cancels the others and is raised as it is."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def first_of(*parts: Coroutine[Any, Any, Any] | None) -> None:
    """Return when one of them is done; the others are cancelled."""
    tasks = [asyncio.ensure_future(part) for part in parts if part is not None]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
