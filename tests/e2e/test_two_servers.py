"""Two servers that share a store: a call goes on at the other one when its server leaves, or dies."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import voicestream
from voicestream.store import MemoryStore

KEYS = [os.urandom(32)]
FRAME_S = 0.02
OPUS_20_MS = 8


def words(number: int) -> bytes:
    """A CELT packet of 20 ms with a number in it."""
    return b"\xf8" + number.to_bytes(4, "big") + bytes(20)


class Desk:
    """A handler that notes which frames it hears, in order, and talks all the time."""

    def __init__(self) -> None:
        self.heard: list[int] = []
        self.gaps: list[tuple[float, float]] = []
        self.calls: list[voicestream.Call] = []
        self.contexts: list[bytes] = []
        self.codes: list[int | None] = []
        self.events: list[Any] = []

    async def take(self, call: voicestream.Call) -> None:
        self.calls.append(call)
        self.contexts.append(call.context)
        talk = asyncio.create_task(self._talk(call))
        listen = asyncio.create_task(self._listen(call))
        try:
            async for block in call.frames(decode=False):
                if block.gap:
                    self.gaps.append((block.pts, block.duration_ms))
                    continue
                number = int.from_bytes(block.payload[1:5], "big")
                self.heard.append(number)
                call.context = number.to_bytes(4, "big")
                call.processed_through = (block.pts + OPUS_20_MS) / 400
            await call.wait_closed()
        finally:
            self.codes.append(call.close_code)
            talk.cancel()
            listen.cancel()

    async def _talk(self, call: voicestream.Call) -> None:
        number = 0
        while True:
            await call.send_frame(words(number), talkspurt_start=number == 0)
            number += 1
            await asyncio.sleep(FRAME_S)

    async def _listen(self, call: voicestream.Call) -> None:
        async for event in call.events():
            if event.kind in ("text", "resumed"):
                self.events.append(event.data or event.kind)


@asynccontextmanager
async def two(serve: Any, **options: Any) -> AsyncIterator[tuple[Any, Desk, Any, Desk]]:
    """Two servers with the same store and keys; the first one sends its clients to the second."""
    store = options.pop("store") if "store" in options else MemoryStore()
    one, other = Desk(), Desk()
    async with serve(other.take, store=store, resume_keys=KEYS, drain_timeout=0.1, **options) as second:
        next_uri = f"voicestream://127.0.0.1:{second.server.port}/"
        async with serve(one.take, store=store, resume_keys=KEYS, next_uri=next_uri, **options) as first:
            yield first, one, second, other


async def talk(call: voicestream.Call, first: int, count: int) -> None:
    for number in range(first, first + count):
        await call.send_frame(words(number), talkspurt_start=number == 0)
        await asyncio.sleep(FRAME_S)


async def until(condition: Any, seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_server_that_drains_sends_its_calls_to_the_other_one_and_no_word_is_lost(serve: Any) -> None:  # VS-11.2-2
    async with two(serve) as (first, one, _second, other):
        call = await first.connect("/desk?x=1", metadata=b"meta")
        hearing: list[int] = []

        async def hear() -> None:
            async for block in call.frames(decode=False):
                if not block.gap:
                    hearing.append(block.pts)

        ears = asyncio.create_task(hear())
        talking = asyncio.create_task(talk(call, 0, 150))
        await call.send_event("one")
        await until(lambda: len(one.heard) > 25)
        began = asyncio.get_running_loop().time()
        await first.server.close(8.0)
        assert asyncio.get_running_loop().time() - began < 5.0
        assert one.codes == [voicestream.ErrorCode.SUPERSEDED]
        await call.send_event("two")
        await talking
        await until(lambda: other.heard and other.heard[-1] == 149)
        assert [one.calls[0].session_id] == [call.session_id] == [other.calls[0].session_id]
        again = other.calls[0]
        assert (again.continued, again.path, again.metadata) == (True, "/desk?x=1", b"meta")
        assert not one.calls[0].continued
        assert sorted(set(one.heard + other.heard)) == list(range(150))
        assert other.heard == sorted(set(other.heard))
        assert one.heard == sorted(set(one.heard))
        # What the application had told of before is not said again, but for the last batch.
        assert one.heard[-1] - other.heard[0] < 20
        assert other.gaps == []
        assert int.from_bytes(other.contexts[0], "big") + 1 == other.heard[0]
        assert [one.events, other.events] == [["one"], [{"outage": 0.0}, "two"]]
        heard_before = len(hearing)
        await until(lambda: len(hearing) > heard_before + 20)
        assert hearing == sorted(set(hearing))
        await call.close()
        await ears
        await until(lambda: other.codes == [0])


class Stubborn(MemoryStore):
    """Does not answer while it is told not to."""

    dead = False

    async def get(self, session_id: bytes) -> Any:
        if self.dead:
            raise ConnectionError("gone")
        return await super().get(session_id)


async def test_a_store_that_is_gone_puts_a_resumption_off_and_a_session_goes_back_to_the_server_that_drains(serve: Any) -> None:
    # VS-11.4-3
    store = Stubborn()
    async with two(serve, store=store) as (first, one, _second, other):
        call = await first.connect()
        talking = asyncio.create_task(talk(call, 0, 200))
        await until(lambda: len(one.heard) > 10)
        store.dead = True
        closing = asyncio.create_task(first.server.close(9.0))
        await asyncio.sleep(2.0)
        assert other.calls == []
        assert not call.closed
        store.dead = False
        await until(lambda: other.heard)
        await talking
        await until(lambda: other.heard and other.heard[-1] == 199)
        assert sorted(set(one.heard + other.heard)) == list(range(200))
        assert other.calls[0].session_id == call.session_id
        await call.close()
        await closing


async def test_a_client_that_is_sent_on_with_a_route_token_dials_with_it(serve: Any) -> None:  # VS-11.2-1
    store = MemoryStore()
    one, other = Desk(), Desk()
    async with serve(other.take, store=store, resume_keys=KEYS) as second:
        options = {"next_uri": f"voicestream://127.0.0.1:{second.server.port}/", "next_route_token": b"to-server-2"}
        async with serve(one.take, store=store, resume_keys=KEYS, **options) as first:
            call = await first.connect()
            await first.server.close(8.0)
            assert [again.session_id for again in other.calls] == [call.session_id]
            assert b"to-server-2" in second.server._calls._transport.endpoint._routes
            await call.close()


@pytest.mark.parametrize(("token", "error"), [(b"short", ValueError), (bytes(21), ValueError), ("to-server-2", TypeError)])
def test_a_route_token_that_no_client_could_use_is_refused_at_once(token: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="next_route_token"):
        voicestream.serve(Desk().take, certfile="c", keyfile="k", next_route_token=token)


async def test_what_is_left_when_the_drain_is_over_is_resumed_at_the_other_server_too(serve: Any) -> None:  # VS-11.2-3
    """No next_uri: the client knows the other server by itself, and is let go with MAY_RESUME."""
    store = MemoryStore()
    one, other = Desk(), Desk()
    options = {"store": store, "resume_keys": KEYS, "drain_timeout": 0.2}
    async with serve(other.take, **options) as second, serve(one.take, **options) as first:
        call = await first.connect(resume_at=[second.uri()])
        talking = asyncio.create_task(talk(call, 0, 120))
        await until(lambda: len(one.heard) > 10)
        await first.server.close(0.2)
        await talking
        await until(lambda: other.heard and other.heard[-1] == 119)
        assert sorted(set(one.heard + other.heard)) == list(range(120))
        await call.close()
