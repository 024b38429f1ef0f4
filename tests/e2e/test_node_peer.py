"""Calls with an implementation that shares no code with this one: the peer in interop/peers/node, on another QUIC stack.

Its packages are installed by `npm ci` in that folder; these tests do not install anything.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import voicestream
from voicestream.testing.mute_relay import MuteRelay

PEER = Path(__file__).resolve().parents[2] / "interop" / "peers" / "node"
NODE = shutil.which("node")
FRAME_S = 0.02

pytestmark = [
    pytest.mark.skipif(NODE is None, reason="there is no node"),
    pytest.mark.skipif(not (PEER / "node_modules" / "@matrixai" / "quic").exists(), reason="npm ci has not been run in interop/peers/node"),
]

AS_CLIENT = (("handshake", "audio", "loss"), ("clear", "events", "finish"), ("resume", "close", "grease"))
AS_SERVER = (("handshake", "audio", "loss"), ("clear", "events", "finish"), ("close", "grease"))
"""Cases of the peer in each role; those of a group run at the same time."""


async def start(**environment: object) -> asyncio.subprocess.Process:
    env = {**os.environ, "SECONDS": "1", **{key: str(value) for key, value in environment.items()}}
    out = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT}
    return await asyncio.create_subprocess_exec(str(NODE), str(PEER / "endpoint.mjs"), env=env, **out)


async def end(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    """Exit code and what it said; killed when it takes too long."""
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 60)
    except TimeoutError:
        process.kill()
        output, _ = await process.communicate()
    return process.returncode, output.decode(errors="replace").strip()


async def say_back(call: voicestream.Call) -> None:
    async def events() -> None:
        async for event in call.events():
            if event.kind in ("json", "text", "bytes"):
                await call.send_event(event.data)

    answering = asyncio.create_task(events())
    try:
        async for block in call:
            await call.send(block)
        await call.finish()
    finally:
        answering.cancel()


async def test_the_peer_reads_every_vector_as_the_specification_says() -> None:
    code, output = await end(await start(TESTCASE="vectors"))
    assert code == 0, output
    assert "0 failed" in output


@pytest.mark.parametrize("role", ["client", "server"])
async def test_the_peer_says_127_to_a_case_that_it_does_not_know(role: str) -> None:
    code, output = await end(await start(ROLE=role, TESTCASE="d41d8cd9"))
    assert code == 127, output


@pytest.mark.parametrize("cases", AS_CLIENT, ids="-".join)
async def test_the_peer_calls_this_server(certificate: Any, cases: tuple[str, ...]) -> None:
    files = {"certfile": certificate.certfile, "keyfile": certificate.keyfile}
    async with voicestream.serve(say_back, "127.0.0.1", 0, **files, drain_timeout=1.0) as server:
        where = {"ROLE": "client", "HOST": "127.0.0.1", "PORT": server.port, "PIN": certificate.pin}
        processes = [await start(**where, TESTCASE=case) for case in cases]
        results = dict(zip(cases, await asyncio.gather(*map(end, processes)), strict=True))
        assert {case: said for case, (code, said) in results.items() if code != 0} == {}


async def talk(call: voicestream.Call, seconds: float) -> None:
    start_at = asyncio.get_running_loop().time()
    for number in range(round(seconds / FRAME_S)):
        await call.send_frame(b"\xf8" + number.to_bytes(4, "big") + bytes(40))
        await asyncio.sleep(max(0.0, start_at + (number + 1) * FRAME_S - asyncio.get_running_loop().time()))


async def act(case: str, call: voicestream.Call) -> None:
    """What this client does in a case of the server."""
    if case in ("handshake", "close"):
        return
    listening = asyncio.create_task(anything(call))
    await talk(call, 1.5)
    if case == "clear":
        await call.clear()
        await talk(call, 0.5)
    elif case == "events":
        for data in ({"n": 1}, "words", b"\x00\x01"):
            await call.send_event(data)
        came = [event.data async for event in first(call, 3)]
        assert came == [{"n": 1}, "words", b"\x00\x01"]
    else:
        await talk(call, 0.5)
        await call.finish(timeout=10)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    assert call.stats().received.frames > 20, case


async def anything(call: voicestream.Call) -> None:
    async for _ in call:
        pass


async def first(call: voicestream.Call, count: int) -> AsyncIterator[voicestream.CallEvent]:
    async for event in call.events():
        if event.kind in ("json", "text", "bytes"):
            count -= 1
            yield event
        if not count:
            return


@asynccontextmanager
async def peer_server(certificate: Any, case: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    process = await start(ROLE="server", TESTCASE=case, HOST="127.0.0.1", PORT=0, CERT=certificate.certfile, KEY=certificate.keyfile)
    assert process.stdout is not None
    line = (await asyncio.wait_for(process.stdout.readline(), 20)).decode()
    try:
        assert line.startswith("listening on port "), line
        yield process, int(line.split()[-1])
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def call_peer(certificate: Any, case: str) -> tuple[int | None, str]:
    async with peer_server(certificate, case) as (process, port):
        async with voicestream.connect(f"voicestream://127.0.0.1:{port}/{case}", pin=certificate.pin) as call:
            await act(case, call)
            if case == "close":
                await call.close(voicestream.ErrorCode.HANDLER_ERROR, "bye")
        return await end(process)


@pytest.mark.parametrize("cases", AS_SERVER, ids="-".join)
async def test_this_client_calls_the_peer(certificate: Any, cases: tuple[str, ...]) -> None:
    results = dict(zip(cases, await asyncio.gather(*(call_peer(certificate, case) for case in cases)), strict=True))
    assert {case: said for case, (code, said) in results.items() if code != 0} == {}


async def test_this_client_resumes_its_session_at_the_peer_when_the_path_was_dead(certificate: Any) -> None:
    async with peer_server(certificate, "resume") as (process, port), MuteRelay.to(("127.0.0.1", port)) as relay:
        async with voicestream.connect(f"voicestream://127.0.0.1:{relay.port}/", pin=certificate.pin) as call:
            kinds: list[str] = []
            watching = asyncio.create_task(watch(call, kinds))
            await talk(call, 0.5)
            relay.mute = True
            await talk(call, 2.6)
            relay.mute = False
            await talk(call, 2.0)
            assert "resumed" in kinds
            watching.cancel()
        code, output = await end(process)
        assert code == 0, output


async def watch(call: voicestream.Call, kinds: list[str]) -> None:
    async for event in call.events():
        kinds.append(event.kind)
