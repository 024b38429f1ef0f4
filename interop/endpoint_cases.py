"""What our endpoint does in each test case of a pair, as client and as server."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final

import numpy as np

from voicestream import Call, CallClosed, ErrorCode, Limits

__all__ = ["CLIENT", "OPTIONS", "SERVER", "Failed"]

RATE: Final = 16000
SECONDS: Final = float(os.environ.get("SECONDS") or 3)
FRAMES_PER_SECOND: Final = 1000 / 60
"""Of the longest frames that a sender on a narrow path goes over to."""


class Failed(Exception):
    """The test case did not go well."""


def need(condition: object, words: str) -> None:
    if not condition:
        raise Failed(words)


def sound(seconds: float) -> np.ndarray:
    at = np.arange(int(seconds * RATE))
    return (6000 * np.sin(at * (2 * np.pi * 220 / RATE)) * (0.6 + 0.4 * np.sin(at * (2 * np.pi * 3 / RATE)))).astype(np.int16)


async def listening(call: Call) -> None:
    async for _ in call:
        pass


async def both_speak(call: Call, share: float = 0.8) -> None:
    """Speak, listen, and wait until both have been heard."""
    ear = asyncio.ensure_future(listening(call))
    await call.speak(sound(SECONDS))
    await asyncio.wait_for(asyncio.shield(ear), SECONDS + 10)
    received = call.stats().received
    played = received.played_ms / 1000
    need(played >= share * SECONDS, f"{played:.2f} s of {SECONDS} s were played")
    need(received.frames >= share * SECONDS * FRAMES_PER_SECOND, f"{received.frames} frames came")


async def until_closed(call: Call, seconds: float = 20.0) -> None:
    await asyncio.wait_for(call.wait_closed(), seconds)


async def client_handshake(call: Call) -> None:
    need(len(call.session_id) == 32, "no session id")


async def server_handshake(call: Call) -> None:
    await until_closed(call)
    need(call.close_code == ErrorCode.NO_ERROR, f"closed with {call.close_code}")


async def audio(call: Call) -> None:
    await both_speak(call)


async def server_audio(call: Call) -> None:
    await both_speak(call)
    await until_closed(call)


async def reports(call: Call) -> None:
    await both_speak(call)
    stats = call.stats()
    need(stats.path.rtt_ms is not None, "no report came")
    need(stats.sent.played_ms > 0, "nobody says what was played")


async def client_clear(call: Call) -> None:
    ear = asyncio.ensure_future(listening(call))
    await asyncio.sleep(1.2)
    heard = await call.clear()
    need(0 < heard < 3, f"heard up to {heard} s")
    before = call.stats().received.frames
    await asyncio.sleep(1.0)
    need(call.stats().received.frames - before >= 20, "nothing is spoken after the clear")
    ear.cancel()


async def server_clear(call: Call) -> None:
    cleared = asyncio.Event()

    async def watch() -> None:
        async for event in call.events():
            if event.kind == "clear":
                cleared.set()

    tasks = [asyncio.ensure_future(watch()), asyncio.ensure_future(listening(call))]
    with contextlib.suppress(CallClosed):
        await call.speak(sound(10.0), finish=False)
    await until_closed(call)
    for task in tasks:
        task.cancel()
    need(cleared.is_set(), "no request to stop talking")


EVENTS: Final[tuple[Any, ...]] = ({"n": 1}, {"n": 2, "text": "größer"}, [3, None, True], "four", b"\x05\xff")


async def client_events(call: Call) -> None:
    for event in EVENTS:
        await call.send_event(event)
    back: list[Any] = []
    async with asyncio.timeout(10):
        async for event in call.events():
            if event.kind in ("json", "text", "bytes"):
                back.append(event.data)
            if len(back) == len(EVENTS):
                break
    need(tuple(back) == EVENTS, f"came back as {back}")


async def server_events(call: Call) -> None:
    count = 0
    speaking = asyncio.ensure_future(call.speak(sound(10.0), finish=False))
    async for event in call.events():
        if event.kind in ("json", "text", "bytes"):
            count += 1
            await call.send_event(event.data)
    speaking.cancel()
    need(count > 0, "no event came")


async def finish(call: Call) -> None:
    ear = asyncio.ensure_future(listening(call))
    await call.speak(sound(SECONDS), finish=False)
    played = await call.finish()
    need(abs(played - SECONDS) < 0.5, f"the far end has played {played} s of {SECONDS}")
    await asyncio.wait_for(asyncio.shield(ear), SECONDS + 10)


async def server_finish(call: Call) -> None:
    await finish(call)
    await until_closed(call)


async def talk_until(call: Call, seconds: float) -> list[str]:
    """Speak and listen for so long; the kinds of events that came."""
    kinds: list[str] = []

    async def watch() -> None:
        async for event in call.events():
            kinds.append(event.kind)

    tasks = [asyncio.ensure_future(watch()), asyncio.ensure_future(listening(call))]
    await call.speak(sound(seconds), finish=False)
    for task in tasks:
        task.cancel()
    return kinds


async def client_resume(call: Call) -> None:
    kinds = await talk_until(call, 8.0)
    need("resumed" in kinds, f"was not resumed: {kinds}")
    before = call.stats().received.frames
    await talk_until(call, 0.5)
    need(call.stats().received.frames > before, "nothing is heard after the resumption")


async def server_resume(call: Call) -> None:
    with contextlib.suppress(CallClosed):
        await talk_until(call, 30.0)
    await until_closed(call)
    need(call.stats().received.frames >= 60, "too little was heard")


async def client_rebind(call: Call) -> None:
    await talk_until(call, SECONDS)
    before = call.stats().received.frames
    await talk_until(call, 1.0)
    need(call.stats().received.frames - before >= 20, "nothing is heard behind the new address")


async def client_close(call: Call) -> None:
    await asyncio.sleep(0.3)
    await call.close(ErrorCode.HANDLER_ERROR, "bye")


async def server_close(call: Call) -> None:
    await until_closed(call)
    need((call.close_code, call.close_reason) == (ErrorCode.HANDLER_ERROR, "bye"), f"closed with {call.close_code}, {call.close_reason!r}")


async def client_dtx(call: Call) -> None:
    await call.speak(sound(0.6), finish=False)
    call.flush()
    await asyncio.sleep(1.0)
    await call.speak(sound(0.6))


async def server_dtx(call: Call) -> None:
    await listening(call)
    played = call.stats().playout
    need(played.played_ms >= 1000, f"{played.played_ms:.0f} ms of 1200 were played")
    await until_closed(call)


async def client_limits(call: Call) -> None:
    async with asyncio.timeout(10):
        async for event in call.events():
            if event.kind == "text":
                need(event.data == "small", f"{event.data!r} came")
                break


async def server_limits(call: Call) -> None:
    try:
        await call.send_event("x" * 3000)
    except ValueError:
        pass
    else:
        raise Failed("an event larger than the far end takes can be sent")
    await call.send_event("small")
    await until_closed(call)


async def client_going_away(call: Call) -> None:
    async with asyncio.timeout(10):
        async for event in call.events():
            if event.kind == "going_away":
                return
    raise Failed("no GOING_AWAY came")


async def server_going_away(call: Call) -> None:
    await asyncio.sleep(0.5)
    LEAVING.set()
    await until_closed(call)


LEAVING: Final = asyncio.Event()
"""Set by a case when the server is to leave."""

Play = Callable[[Call], Awaitable[None]]
CLIENT: Final[dict[str, Play]] = {
    "handshake": client_handshake, "audio": audio, "reports": reports, "loss": audio, "clear": client_clear, "events": client_events,
    "finish": finish, "resume": client_resume, "rebind": client_rebind, "close": client_close, "grease": audio, "dtx": client_dtx,
    "limits": client_limits, "going-away": client_going_away,
}  # fmt: skip
SERVER: Final[dict[str, Play]] = {
    "handshake": server_handshake, "audio": server_audio, "reports": server_audio, "loss": server_audio, "clear": server_clear,
    "events": server_events, "finish": server_finish, "resume": server_resume, "rebind": server_resume, "close": server_close,
    "grease": server_audio, "dtx": server_dtx, "limits": server_limits,
    "going-away": server_going_away,
}  # fmt: skip
OPTIONS: Final[dict[str, dict[str, Any]]] = {"limits": {"limits": Limits(max_event_size=1024)}}
