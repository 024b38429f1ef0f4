"""A call that is over goes with its last user: nothing of it waits for the garbage collector, which may come minutes later."""

from __future__ import annotations

import asyncio
import gc
import random
from collections import Counter
from collections.abc import Iterator

import pytest

import voicestream
from voicestream.testing.fake_codec import FakeCodec
from voicestream.testing.soak_calls import handle
from voicestream.testing.soak_measure import KEPT
from voicestream.testing.soak_relay import SoakRelay

from .conftest import Certificate


def held() -> dict[str, int]:
    names = Counter(type(thing).__name__ for thing in gc.get_objects())
    wanted = {*KEPT, "VoiceQuic", "ClientTransport", "MediaFrame", "Hub"}
    return {name: names[name] for name in wanted if names[name]}


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def talk(port: int, pin: str, kind: str) -> None:
    relay = SoakRelay(("127.0.0.1", port), random.Random(1))
    call = await voicestream.connect(f"voicestream://127.0.0.1:{relay.port}/{kind}", pin=pin, frame_ms=40, open_timeout=30)
    codec = FakeCodec(seed=1)
    try:
        for number in range(20):
            await call.send_frame(codec.encode(number, 16))
            if kind == "echo":
                call.read(1920)
            await asyncio.sleep(0.01)
        if kind == "brief":
            await call.wait_closed()
    finally:
        relay.broken = kind == "slow"  # without a goodbye
        await call.close()
        relay.close()


async def test_nothing_of_a_call_that_is_over_waits_for_the_garbage_collector(
    certificate: Certificate, no_collector: None
) -> None:
    before = held()
    certfile, keyfile, pin = certificate.certfile, certificate.keyfile, certificate.pin
    async with voicestream.serve(handle, "127.0.0.1", 0, certfile=certfile, keyfile=keyfile) as server:
        for kind in ("echo", "brief", "slow"):
            await talk(server.port, pin, kind)
    async with asyncio.timeout(20):
        while (after := held()) != before:
            await asyncio.sleep(0.1)
    assert after == before


async def test_nothing_of_a_dial_that_fails_waits_for_the_garbage_collector(
    certificate: Certificate, no_collector: None
) -> None:
    before = held()
    relay = SoakRelay(("127.0.0.1", 9), random.Random(1))
    relay.broken = True
    with pytest.raises(voicestream.ConnectError, match="does not answer"):
        await voicestream.connect(f"voicestream://127.0.0.1:{relay.port}/", pin=certificate.pin, open_timeout=0.3)
    relay.close()
    await asyncio.sleep(0)
    assert held() == before


async def test_nothing_of_a_call_that_was_resumed_or_is_being_dialled_again_waits_for_the_garbage_collector(
    certificate: Certificate, no_collector: None
) -> None:
    before = held()
    async with voicestream.serve(handle, "127.0.0.1", 0, certfile=certificate.certfile, keyfile=certificate.keyfile) as server:
        relay = SoakRelay(("127.0.0.1", server.port), random.Random(1))
        call = await voicestream.connect(f"voicestream://127.0.0.1:{relay.port}/deaf", pin=certificate.pin, open_timeout=30)
        told = call.events()
        for last in ("resumed", "resuming"):
            # The server answers again from the beginning on the first time; the second time the call ends in the middle of a dial.
            relay.broken = True
            async for event in told:
                if event.kind == "resuming":
                    relay.broken = last == "resuming"
                if event.kind == last:
                    break
        del told
        await call.close()
        relay.close()
        del call
    async with asyncio.timeout(20):
        while (after := held()) != before:
            await asyncio.sleep(0.1)
    assert after == before
