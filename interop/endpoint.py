"""VoiceStream as an implementation under test; interop/README.md says what its environment means.

Exit status 0: the test case went well. 1: it did not. 127: there is no such test case.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Final, TextIO

import numpy as np

from interop import endpoint_cases, endpoint_vectors
from interop.endpoint_cases import Failed
from voicestream import Call, CallClosed, ConnectError, Server, connect, serve
from voicestream.quic import configuration

__all__ = ["converse"]

RATE: Final = 16000
BLOCK: Final = RATE // 50
UNSUPPORTED: Final = 127


def tone(block: int) -> np.ndarray:
    """20 ms of a sound that changes, so that no two packets are the same."""
    at = np.arange(block * BLOCK, (block + 1) * BLOCK)
    return (6000 * np.sin(at * (2 * np.pi * (180 + 60 * np.sin(block / 7)) / RATE))).astype(np.int16)


async def converse(call: Call) -> None:
    """What the suite's own peer talks to: it speaks, it listens, it sends events back, until the call ends."""

    async def speak() -> None:
        loop, block = asyncio.get_running_loop(), 0
        following = loop.time()
        while not call.closed:
            await call.send(tone(block))
            block, following = block + 1, following + 0.02
            await asyncio.sleep(max(0.0, following - loop.time()))

    async def listen() -> None:
        async for _ in call:
            pass
        await call.wait_closed()

    async def echo() -> None:
        async for event in call.events():
            if event.kind in ("json", "text", "bytes"):
                with contextlib.suppress(ValueError):  # larger than the far end takes
                    await call.send_event(event.data)

    tasks = [asyncio.ensure_future(task()) for task in (speak, listen, echo)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def again_and_again(uri: str, pin: str) -> int:
    """The client of the conformance cases: dials whenever there is no call, until it is stopped."""
    while True:
        try:
            async with connect(uri, pin=pin, sample_rate_hz=RATE, complexity=0, resume_timeout=15.0) as call:
                await converse(call)
        except (ConnectError, CallClosed):
            await asyncio.sleep(0.05)


async def client(testcase: str) -> int:
    uri, pin = os.environ["URI"], os.environ["PIN"]
    if testcase == "peer":
        return await again_and_again(uri, pin)
    play = endpoint_cases.CLIENT[testcase]
    options = endpoint_cases.OPTIONS.get(testcase, {})
    async with connect(uri, pin=pin, sample_rate_hz=RATE, complexity=0, **options) as call:
        await play(call)
    return 0


async def server(testcase: str) -> int:
    played: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    play: Callable[[Call], Awaitable[None]] = converse if testcase == "peer" else endpoint_cases.SERVER[testcase]

    async def handler(call: Call) -> None:
        try:
            await play(call)
        except BaseException as error:
            if testcase != "peer" and not played.done():
                played.set_exception(error)
            raise
        if testcase != "peer" and not played.done():
            await call.wait_closed()
            played.set_result(None)

    files = {"certfile": os.environ["CERT"], "keyfile": os.environ["KEY"]}
    host, port = os.environ.get("HOST", "127.0.0.1"), int(os.environ["PORT"])
    async with serve(handler, host, port, **files, sample_rate_hz=RATE, complexity=0, drain_timeout=0.0) as running:
        print("ready", flush=True)
        if testcase == "peer":
            await running.serve_forever()
            return 0
        leaving = asyncio.ensure_future(_leave(running))
        try:
            await asyncio.wait_for(played, float(os.environ.get("SECONDS") or 30) + 30)
        finally:
            leaving.cancel()
    return 0


async def _leave(running: Server) -> None:
    await endpoint_cases.LEAVING.wait()
    await running.close(5.0)


def log_keys(path: str) -> TextIO:
    """Have every connection write its keys where the suite's observer reads them; the file."""
    made = configuration._configuration
    keys = open(path, "a", encoding="ascii", buffering=1)  # noqa: SIM115 - for as long as there are connections

    def logging(*args: Any, **options: Any) -> Any:
        own = made(*args, **options)
        own.secrets_log_file = keys
        return own

    configuration._configuration = logging
    return keys


def main() -> int:
    role, testcase = os.environ.get("ROLE", ""), os.environ.get("TESTCASE", "")
    if testcase == "vectors":
        for line in endpoint_vectors.answers(sys.stdin):
            print(line)
        return 0
    known = {"client": endpoint_cases.CLIENT, "server": endpoint_cases.SERVER}.get(role, {})
    if testcase != "peer" and testcase not in known:
        return UNSUPPORTED
    if keys := os.environ.get("SSLKEYLOGFILE"):
        log_keys(keys)
    try:
        return asyncio.run((client if role == "client" else server)(testcase))
    except Failed as error:
        print(f"failed: {error}", file=sys.stderr)
    except Exception:
        traceback.print_exc()
    return 1


if __name__ == "__main__":
    sys.exit(main())
