"""Calls on real sockets whose link goes mute for a while: ``python -m voicestream.testing.breaks --real 100``.

With ``--redis URL`` they go on at a second server.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import voicestream
from voicestream.quic.certificates import make_certificate_files
from voicestream.testing.mute_relay import MuteRelay

__all__ = ["RealReport", "real_breaks"]

FRAME_S: Final = 0.02
LIVE_WITHIN_S: Final = 5.0
CAUGHT_UP_WITHIN_S: Final = 30.0
AT_ONCE: Final = 4
LONGEST_S: Final = 6.0
TAIL_S: Final = 1.0


@dataclass(kw_only=True, slots=True)
class RealReport:
    """What became of one call. The sides read in order; what they got is numbers of frames.

    Attributes:
        seed: Of the break.
        seconds: How long the link was mute.
        resumed: The session went on on another connection.
        lost: Frames that did not come although a later one did, both ways.
        behind: Frames that had not come yet when the call was ended, for it had not caught up.
        unsent: With a second server: frames that the first one had said, and which are gone with it.
        duplicated: Frames that came twice.
        disordered: Frames that came after a later one.
        to_speech_s: For each way, seconds from the link's return to the first frame that came.
        to_live_s: For each way, seconds from the link's return to the first frame that was said since then: all before it has come.
        note: What went wrong.
    """

    seed: int
    seconds: float
    resumed: bool = False
    lost: int = 0
    behind: int = 0
    unsent: int = 0
    duplicated: int = 0
    disordered: int = 0
    to_speech_s: list[float] = field(default_factory=list)
    to_live_s: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether speech came again in time both ways, all of it in the end, nothing twice and nothing out of order."""
        live = len(self.to_live_s) == 2 and max(self.to_speech_s) <= LIVE_WITHIN_S
        return live and not (self.note or self.duplicated or self.disordered)


class _Ear:
    """Reads a call in order."""

    def __init__(self) -> None:
        self.came: list[tuple[float, int]] = []

    async def listen(self, call: voicestream.Call) -> None:
        """Until the call ends."""
        with contextlib.suppress(voicestream.CallClosed):
            async for block in call.frames(decode=False):
                if block.payload is not None and not block.gap:
                    self.came.append((asyncio.get_running_loop().time(), int.from_bytes(block.payload[1:5], "big")))

    def has_since(self, at: float, mouth: _Mouth) -> bool:
        """Whether something has come that was said after that."""
        return bool(self.came) and mouth.said_at[self.came[-1][1]] >= at


class _Mouth:
    """Says numbered frames in real time.

    Attributes:
        said_at: When each was said.
        first: Number of the first one that whoever has the session now has said.
    """

    def __init__(self) -> None:
        self.said_at: list[float] = []
        self.first = 0

    async def talk(self, call: voicestream.Call) -> None:
        """Until it is cancelled or the call ends."""
        loop = asyncio.get_running_loop()
        start = loop.time() - len(self.said_at) * FRAME_S
        with contextlib.suppress(voicestream.CallClosed):
            while True:
                number = len(self.said_at)
                self.said_at.append(loop.time())
                await call.send_frame(b"\x08" + number.to_bytes(4, "big") + bytes(60))
                await asyncio.sleep(max(0.0, start + (number + 1) * FRAME_S - loop.time()))


class _Site:
    """The servers, and what their handlers hear and say, by path."""

    def __init__(self) -> None:
        self.ears: dict[str, _Ear] = {}
        self.mouths: dict[str, _Mouth] = {}
        self.talking: dict[str, asyncio.Future[None]] = {}
        self.ports: list[int] = []
        self.pin = ""

    async def handle(self, call: voicestream.Call) -> None:
        """A call, or one that another server has had before."""
        ear, mouth = self.ears.setdefault(call.path, _Ear()), self.mouths.setdefault(call.path, _Mouth())
        if call.path in self.talking:
            # Another server has the session: the one that had it is as good as dead.
            self.talking[call.path].cancel()
            mouth.first = len(mouth.said_at)
        talking = self.talking[call.path] = asyncio.ensure_future(mouth.talk(call))
        try:
            await ear.listen(call)
        finally:
            talking.cancel()

    @asynccontextmanager
    async def serve(self, redis: str | None) -> AsyncIterator[None]:
        """One server, or two that share a store."""
        shared: dict[str, Any] = {}
        async with contextlib.AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            _, _, self.pin = make_certificate_files(folder, ["localhost", "127.0.0.1"])
            if redis is not None:
                from voicestream import store
                from voicestream.testing.redis_server import RedisServer

                if redis == "own":
                    redis = (await stack.enter_async_context(RedisServer())).url
                shared = {"store": store.RedisStore(redis), "resume_keys": [os.urandom(32)]}
            for _ in range(1 if redis is None else 2):
                cert, private = folder / "cert.pem", folder / "key.pem"
                server = voicestream.serve(self.handle, "127.0.0.1", 0, certfile=cert, keyfile=private, drain_timeout=0, **shared)
                self.ports.append((await stack.enter_async_context(server)).port)
            yield


def _judge(report: RealReport, ear: _Ear, mouth: _Mouth, returned_at: float, done_at: float) -> None:
    numbers = [number for _, number in ear.came]
    report.duplicated += len(numbers) - len(set(numbers))
    report.disordered += sum(later < earlier for earlier, later in itertools.pairwise(numbers))
    missing = {number for number, at in enumerate(mouth.said_at) if at < done_at - TAIL_S} - set(numbers)
    report.unsent += sum(number < mouth.first for number in missing)
    report.behind += sum(number > max(numbers, default=-1) for number in missing if number >= mouth.first)
    report.lost += sum(mouth.first <= number < max(numbers, default=-1) for number in missing)
    for since, times in ((0.0, report.to_speech_s), (returned_at, report.to_live_s)):
        times += [at - returned_at for at, number in ear.came if at >= returned_at and mouth.said_at[number] >= since][:1]


async def _one(site: _Site, seed: int) -> RealReport:
    rng = random.Random(f"real break/{seed}")
    report = RealReport(seed=seed, seconds=round(rng.uniform(0.5, LONGEST_S), 2))
    try:
        async with MuteRelay.to(("127.0.0.1", site.ports[0])) as link:
            await _break(site, link, rng, report)
    except (voicestream.VoiceStreamError, OSError, KeyError) as error:
        report.note = f"{type(error).__name__}: {error}"
    return report


async def _break(site: _Site, link: MuteRelay, rng: random.Random, report: RealReport) -> None:
    loop = asyncio.get_running_loop()
    path, ear, mouth = f"/{report.seed}", _Ear(), _Mouth()
    async with voicestream.connect(f"voicestream://127.0.0.1:{link.port}{path}", pin=site.pin) as call:
        tasks = [asyncio.ensure_future(one) for one in (ear.listen(call), mouth.talk(call), _watch(call, report))]
        await asyncio.sleep(rng.uniform(0.5, 1.5))
        link.mute = True
        await asyncio.sleep(report.seconds)
        link.mute = False
        if len(site.ports) > 1:
            link.lead_to(("127.0.0.1", site.ports[1]))
        returned_at = loop.time()
        ways = (ear, site.mouths[path]), (site.ears[path], mouth)
        while loop.time() < returned_at + CAUGHT_UP_WITHIN_S:
            recent = max(returned_at, loop.time() - TAIL_S / 2)
            if all(one.has_since(recent, other) for one, other in ways):
                break
            await asyncio.sleep(0.1)
        await asyncio.sleep(TAIL_S)
        done_at = loop.time()
        for task in tasks:
            task.cancel()
        for one, other in ways:
            _judge(report, one, other, returned_at, done_at)
        if call.closed:
            report.note = f"closed: {call.close_reason}"


async def _watch(call: voicestream.Call, report: RealReport) -> None:
    with contextlib.suppress(voicestream.CallClosed):
        async for event in call.events():
            report.resumed = report.resumed or event.kind == "resumed"


async def _all(seeds: Sequence[int], redis: str | None) -> list[RealReport]:
    site, reports, places = _Site(), [], asyncio.Semaphore(AT_ONCE)

    async def place(seed: int) -> None:
        async with places:
            reports.append(await _one(site, seed))

    async with site.serve(redis):
        await asyncio.gather(*(place(seed) for seed in seeds))
    return reports


def real_breaks(seeds: Sequence[int], *, redis: str | None = None) -> list[RealReport]:
    """Break a call for each seed, four at once, on this machine's loopback.

    Args:
        seeds: Of the breaks.
        redis: URL of a Redis through which two servers share their sessions, or "own" to have one started; the link leads to the
            second server after the break.
    """
    return asyncio.run(_all(seeds, redis))
