"""A recording through a call: said at the speed of a microphone, written as it comes."""

from __future__ import annotations

import asyncio
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from voicestream.call_voice import slices

if TYPE_CHECKING:
    from voicestream.call import Call

__all__ = ["record", "speak"]

STEP_S: Final = 0.020


async def speak(call: Call, pcm: Any, *, finish: bool) -> float:
    """See `Call.speak`."""
    clock = asyncio.get_running_loop().time
    due = clock()
    for part in slices(pcm, round(STEP_S * call.audio.sample_rate_hz), call.audio.channels):
        await call.send(part)
        # Deadlines are absolute: the sum of many sleeps would be too slow.
        due += STEP_S
        await asyncio.sleep(max(0.0, due - clock()))
    if not finish:
        call.flush()
        return 0.0
    return await call.finish()


async def record(call: Call, path: str | PathLike[str]) -> float:
    """See `Call.record`."""
    from voicestream.audio.files import WavWriter

    with WavWriter(path, sample_rate_hz=call.audio.sample_rate_hz, channels=call.audio.channels) as wav:
        async for block in call:
            wav.write(block)
    return wav.duration_s
