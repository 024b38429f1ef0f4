"""The demo's call: a real client and server in this process, real UDP sockets, an emulated link between them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import voicestream
from voicestream.call_stats import CallStats
from voicestream.cli.charts import Band
from voicestream.cli.conversation import BLOCK_MS, Pcm, paced, prepare, say, together
from voicestream.cli.demo.record import EndRecord
from voicestream.cli.demo.relay import Relay
from voicestream.cli.demo.report import DemoRecord
from voicestream.quic.certificates import make_certificate, write_certificate
from voicestream.testing.link import Link, LinkProfile

__all__ = ["DemoPlan", "Progress", "run_demo"]

READING_S: Final = 0.25
HOST: Final = "127.0.0.1"

Progress = Callable[[float, CallStats], None]
"""Called a few times a second with the seconds since the call began and the client's figures."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoPlan:
    """What the demo does.

    Attributes:
        client_says: Mono samples at `sample_rate_hz`.
        server_says: Likewise.
        sample_rate_hz: Of both.
        rtt_ms: Round trip of the link.
        loss: Share of packets that each direction loses, 0 to 1.
        seed: Of the link's random numbers.
    """

    client_says: Pcm
    server_says: Pcm
    sample_rate_hz: int
    rtt_ms: float = 60.0
    loss: float = 0.02
    seed: int = 1


async def run_demo(plan: DemoPlan, folder: Path, progress: Progress) -> DemoRecord:
    """Make the call.

    Args:
        plan: What to do.
        folder: Where the server's certificate may lie meanwhile.
        progress: Told how far it is.
    """
    loop = asyncio.get_running_loop()
    client, server = EndRecord(name="Client", said=plan.client_says), EndRecord(name="Server", said=plan.server_says)
    certificate, key, sha256 = make_certificate(["localhost", HOST])
    write_certificate(certificate, key, folder / "cert.pem", folder / "key.pem")

    async def handler(call: voicestream.Call) -> None:
        await _converse(call, server, lambda _reading: None)
        # The client hangs up; if both did at once, each would wait for the other's answer.
        await call.wait_closed()

    profile = LinkProfile(delay_ms=plan.rtt_ms / 2, loss=plan.loss)
    relay = Relay(Link(profile, f"{plan.seed}/up", epoch=loop.time()), Link(profile, f"{plan.seed}/down", epoch=loop.time()))
    serving = voicestream.serve(
        handler, HOST, 0, certfile=folder / "cert.pem", keyfile=folder / "key.pem", sample_rate_hz=plan.sample_rate_hz
    )
    try:
        async with serving as listening:
            port = await relay.start(HOST, listening.port)
            connecting = voicestream.connect(f"voicestream://{HOST}:{port}/demo", pin=sha256, sample_rate_hz=plan.sample_rate_hz)
            async with connecting as call:
                began = loop.time()
                await _converse(call, client, lambda reading: progress(loop.time() - began, reading))
                seconds = loop.time() - began
    finally:
        relay.close()
    return DemoRecord(
        client=client,
        server=server,
        log=list(relay.log),
        began=began,
        seconds=seconds,
        sample_rate_hz=plan.sample_rate_hz,
        rtt_ms=plan.rtt_ms,
        loss=plan.loss,
        seed=plan.seed,
    )


async def _converse(call: voicestream.Call, end: EndRecord, tell: Callable[[CallStats], None]) -> None:
    await prepare(call)
    reading = asyncio.ensure_future(_take_readings(call, end, tell))
    try:
        await together(_talk(call, end), _listen(call, end))
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _talk(call: voicestream.Call, end: EndRecord) -> None:
    end.said_at = asyncio.get_running_loop().time()
    await say(call, paced(end.said, call.audio.sample_rate_hz))


async def _listen(call: voicestream.Call, end: EndRecord) -> None:
    loop, before = asyncio.get_running_loop(), 0.0
    end.heard_at = math.inf
    async for block in call:
        # Blocks are due every 20 ms; a busy loop gives some of them late, never early. So the earliest tells when the first was due.
        end.heard_at = min(end.heard_at, loop.time() - len(end.heard) * BLOCK_MS / 1e3)
        end.heard.append(block)
        concealed = call.stats().playout.concealed_ms
        if concealed > before:
            _mark(end.concealed, (len(end.heard) - 1) * BLOCK_MS / 1e3)
        before = concealed


def _mark(bands: list[Band], start: float) -> None:
    """Note that the block at `start` seconds holds something made up; neighbours become one stretch."""
    stretch = Band(start=start, end=start + BLOCK_MS / 1e3)
    if bands and start - bands[-1].end < 1e-6:
        stretch = Band(start=bands.pop().start, end=stretch.end)
    bands.append(stretch)


async def _take_readings(call: voicestream.Call, end: EndRecord, tell: Callable[[CallStats], None]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        reading = call.stats()
        end.readings.append((loop.time(), reading))
        tell(reading)
        await asyncio.sleep(READING_S)
