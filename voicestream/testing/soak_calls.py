"""The calls of a soak: what their clients and their server do, well behaved or not."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

import voicestream
from voicestream.testing.fake_codec import FakeCodec
from voicestream.testing.soak_relay import SoakRelay, random_profile

__all__ = ["Callers", "handle"]

BLOCK_S = 0.04
KINDS = ("echo", "echo", "echo", "echo", "slow", "deaf", "brief", "fails", "gone")
_UNITS = round(BLOCK_S * 400)


async def handle(call: voicestream.Call) -> None:
    """The server's side, as the path asks: say back coded frames, read slowly, or play and talk PCM."""
    what = call.path.rpartition("/")[2]
    if what == "pcm":
        async for block in call:
            await call.send(block)
    elif what == "slow":
        # One who takes twelve times as long as it lasts leaves when the call is over: what waits then would keep it for minutes.
        async for _ in call.frames(block_ms=200, decode=False):
            await asyncio.sleep(0.5)
            if call.closed:
                break
    elif what == "brief":
        await asyncio.sleep(1.0)
    elif what == "fails":
        await asyncio.sleep(2.0)
        raise RuntimeError("a handler of the soak fails, as it is meant to")
    else:
        async for one in call.frames(block_ms=40, decode=False):
            if one.payload is not None:
                await call.send_frame(one.payload)


@dataclass(slots=True)
class Callers:
    """So many callers, each of whom calls again when a call is over.

    Attributes:
        server: Where to call.
        pin: The server's certificate.
        rng: All choices.
        count: Callers.
        endings: How calls have ended, by kind of call and ending.
        failures: What should not have happened.
        breaks: Breaks made.
    """

    server: tuple[str, int]
    pin: str
    rng: random.Random
    count: int = 20
    endings: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    breaks: int = 0

    async def run(self, seconds: float) -> None:
        """Call until the time is over; all calls have ended then."""
        until = asyncio.get_running_loop().time() + seconds
        async with asyncio.TaskGroup() as group:
            for index in range(self.count):
                group.create_task(self._caller(index, until), name=f"soak caller {index}")

    async def _caller(self, index: int, until: float) -> None:
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(index * 0.05)
        while (left := until - clock()) > 1.0:
            kind = self.rng.choice((*KINDS, "pcm" if index < 3 else "echo"))
            relay = SoakRelay(self.server, random.Random(self.rng.getrandbits(32)))
            weather = asyncio.create_task(self._weather(relay, kind))
            try:
                self.endings[f"{kind}: {await self._call(relay, kind, min(left, self.rng.uniform(10, 60)))}"] += 1
            except Exception as error:
                self.failures.append(f"{kind}: {type(error).__name__}: {error}")
                await asyncio.sleep(0.5)
            finally:
                weather.cancel()
                await asyncio.wait([weather])
                relay.close()

    async def _weather(self, relay: SoakRelay, kind: str) -> None:
        while True:
            relay.change(random_profile(self.rng))
            await asyncio.sleep(self.rng.uniform(3, 12))
            choice = self.rng.random()
            if choice < 0.4:
                self.breaks += 1
                relay.broken = True
                await asyncio.sleep(self.rng.choice((0.5, 2.0, 6.0)))
                relay.broken = False
            elif choice < 0.6:
                relay.rebind()

    async def _call(self, relay: SoakRelay, kind: str, seconds: float) -> str:
        uri = f"voicestream://127.0.0.1:{relay.port}/{kind}"
        call = await voicestream.connect(uri, pin=self.pin, frame_ms=40, dtx=kind == "pcm", open_timeout=20, session_lifetime_s=30)
        try:
            await self._talk(call, relay, kind, seconds)
            return "talked"
        except voicestream.CallClosedOK:
            return "closed by the server"
        except voicestream.CallClosedError as error:
            if kind == "fails":
                return "closed by the server"
            raise AssertionError(f"ended with {error}") from error
        finally:
            if kind == "gone":
                # Whoever pulls the plug says no goodbye.
                relay.broken = True
            await call.close()

    async def _talk(self, call: voicestream.Call, relay: SoakRelay, kind: str, seconds: float) -> None:
        clock, rng = asyncio.get_running_loop().time, self.rng
        codec, began, number = FakeCodec(seed=rng.getrandbits(32)), clock(), 0
        tone = (6000 * np.sin(np.arange(1920) * 0.05)).astype(np.int16)
        while clock() - began < seconds:
            number += 1
            await asyncio.sleep(max(0.0, began + number * BLOCK_S - clock()))
            if kind == "pcm":
                await call.send(tone if number % 100 < 60 else tone * 0)
                call.read(1920)
            else:
                await call.send_frame(codec.encode(number, _UNITS, size_bytes=120))
                if kind != "deaf":
                    call.read(1920 if kind == "echo" and number % 200 < 150 else 960)
            choice = rng.random()
            if choice < 0.01:
                await call.send_event({"number": number, "filler": "x" * rng.randrange(500)})
            elif choice < 0.012:
                # Over a broken path the answer may take longer than anybody here waits.
                try:
                    await call.clear(timeout=2.0)
                except TimeoutError:
                    self.endings["clear not confirmed in 2 s"] += 1
