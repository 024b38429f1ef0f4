"""The demo's call: a real client and server in this process, real UDP sockets, an emulated link between them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import voicestream
from voicestream.call_stats import CallStats
from voicestream.cli.conversation import BLOCK_MS, Pcm, paced, prepare, say, together
from voicestream.cli.demo.phases import COURSE, Phase, PhasedLink, spans
from voicestream.cli.demo.record import Beat, DemoRecord, EndRecord, Notice
from voicestream.cli.demo.relay import Relay
from voicestream.quic.certificates import make_certificate_files
from voicestream.testing.link import Link, LinkProfile

__all__ = ["BITRATE_BPS", "DemoPlan", "Progress", "run_demo"]

READING_S: Final = 0.1
HOST: Final = "127.0.0.1"

BITRATE_BPS: Final = 64000
"""What both ends begin with and come back to."""

MAX_NOTICES: Final = 1000

PATIENCE_S: Final = 60.0
"""How long the call may take beyond its phases."""

Progress = Callable[[float, CallStats], None]
"""Called a few times a second with the seconds since the call began and the client's figures."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoPlan:
    """What the demo does.

    Attributes:
        client_says: Mono samples at `sample_rate_hz`.
        server_says: Likewise.
        sample_rate_hz: Of both.
        phases: What the link does meanwhile.
        rtt_ms: Round trip of the link.
        seed: Of the link's random numbers.
    """

    client_says: Pcm
    server_says: Pcm
    sample_rate_hz: int
    phases: Sequence[Phase] = COURSE
    rtt_ms: float = 60.0
    seed: int = 1


async def run_demo(plan: DemoPlan, folder: Path, progress: Progress) -> DemoRecord:
    """Make the call.

    Args:
        plan: What to do.
        folder: Where the server's certificate may lie meanwhile.
        progress: Told how far it is.
    """
    client, server = EndRecord(name="Client", said=plan.client_says), EndRecord(name="Server", said=plan.server_says)
    certfile, keyfile, sha256 = make_certificate_files(folder, ["localhost", HOST])

    async def handler(call: voicestream.Call) -> None:
        await _converse(call, server, lambda _reading: None)
        # The client hangs up; if both did at once, each would wait for the other's answer.
        await call.wait_closed()

    profile = LinkProfile(delay_ms=plan.rtt_ms / 2)
    relay = Relay(Link(profile), Link(profile))
    serving = voicestream.serve(
        handler,
        HOST,
        0,
        certfile=certfile,
        keyfile=keyfile,
        sample_rate_hz=plan.sample_rate_hz,
        bitrate_bps=BITRATE_BPS,
    )
    try:
        async with serving as listening:
            port = await relay.start(HOST, listening.port)
            began, seconds = await _call(plan, f"voicestream://{HOST}:{port}/demo", sha256, relay, client, progress)
    finally:
        relay.close()
    return DemoRecord(
        client=client,
        server=server,
        log=list(relay.log),
        flows=relay.flows,
        began=began,
        seconds=seconds,
        spans=spans(plan.phases),
        sample_rate_hz=plan.sample_rate_hz,
        rtt_ms=plan.rtt_ms,
        seed=plan.seed,
    )


async def _call(plan: DemoPlan, uri: str, pin: str, relay: Relay, client: EndRecord, progress: Progress) -> tuple[float, float]:
    """The client's part; when the call began, in loop seconds, and how long it took."""
    loop = asyncio.get_running_loop()
    began: float | None = None

    def tell(reading: CallStats) -> None:
        progress(loop.time() - (began or loop.time()), reading)

    async for call in voicestream.connect(uri, pin=pin, sample_rate_hz=plan.sample_rate_hz, bitrate_bps=BITRATE_BPS):
        if began is None:
            began = loop.time()
            up, down = (PhasedLink(plan.phases, plan.rtt_ms / 2, f"{plan.seed}/{way}", began) for way in ("up", "down"))
            relay.replace(up, down)
        try:
            async with asyncio.timeout_at(began + sum(phase.seconds for phase in plan.phases) + PATIENCE_S):
                await _converse(call, client, tell)
            break
        except TimeoutError:
            raise voicestream.VoiceStreamError("the call did not come to its end: what was said has not all been played") from None
        except voicestream.CallClosed:
            # What is left to say goes into another call. The checks will tell that the session was lost.
            continue
    assert began is not None
    return began, loop.time() - began


async def _converse(call: voicestream.Call, end: EndRecord, tell: Callable[[CallStats], None]) -> None:
    end.sessions.append(call.session_id)
    await prepare(call)
    watching = [asyncio.ensure_future(part) for part in (_take_readings(call, end, tell), _take_notices(call, end))]
    try:
        await together(_talk(call, end), _listen(call, end))
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


async def _talk(call: voicestream.Call, end: EndRecord) -> None:
    loop = asyncio.get_running_loop()
    end.said_at = end.said_at or loop.time()
    # A second call, if it comes to that, goes on where the clock has come to.
    rest = end.said[round(max(0.0, loop.time() - end.said_at) * call.audio.sample_rate_hz) :]
    await say(call, paced(rest, call.audio.sample_rate_hz))


async def _listen(call: voicestream.Call, end: EndRecord) -> None:
    loop = asyncio.get_running_loop()
    if not end.heard:
        end.heard_at = math.inf
    async for block in call:
        # Blocks are due every 20 ms; a busy loop gives some of them late, never early. So the earliest tells when the first was due.
        end.heard_at = min(end.heard_at, loop.time() - len(end.heard) * BLOCK_MS / 1e3)
        end.heard.append(block)
        stats = call.stats()
        end.beats.append(Beat(stats.sent.bitrate_bps, stats.sent.frame_ms, stats.playout.played_ms, stats.playout.concealed_ms))


async def _take_readings(call: voicestream.Call, end: EndRecord, tell: Callable[[CallStats], None]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        reading = call.stats()
        end.readings.append((loop.time(), reading))
        tell(reading)
        await asyncio.sleep(READING_S)


async def _take_notices(call: voicestream.Call, end: EndRecord) -> None:
    loop = asyncio.get_running_loop()
    async for event in call.events():
        if len(end.notices) < MAX_NOTICES:
            outage = event.data["outage"] if event.kind == "resumed" else None
            end.notices.append(Notice(loop.time(), event.kind, outage))
