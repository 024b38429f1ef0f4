"""Calls on real sockets whose path goes dead for a while. The relay between client and server is the network."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import pytest

import voicestream
from voicestream.codepoints import ErrorCode
from voicestream.store import MemoryStore
from voicestream.testing.mute_relay import MuteRelay

FRAME_S = 0.02
CALLS = int(os.environ.get("VOICESTREAM_REAL_BREAKS", "4"))
"""Calls with a break of its own length each, four at once."""


def network(loopback: Any) -> AbstractAsyncContextManager[MuteRelay]:
    return MuteRelay.to(("127.0.0.1", loopback.server.port))


def frame(number: int) -> bytes:
    return b"\x08" + number.to_bytes(4, "big") + bytes(40)


def connect(loopback: Any, relay: MuteRelay, **options: Any) -> voicestream.connect:
    return voicestream.connect(f"voicestream://127.0.0.1:{relay.port}/", pin=loopback.certificate.pin, **options)


async def talk(call: voicestream.Call, frames: int) -> None:
    start = asyncio.get_running_loop().time()
    for number in range(frames):
        await call.send_frame(frame(number))
        await asyncio.sleep(max(0.0, start + (number + 1) * FRAME_S - asyncio.get_running_loop().time()))
    await call.finish(timeout=20)


async def listen(call: voicestream.Call) -> tuple[list[int], int, list[int]]:
    """Numbers of the frames that came, how many gaps there were, and what was replayed."""
    numbers, gaps, again = [], 0, []
    async for block in call.frames(decode=False):
        if block.gap:
            gaps += 1
        elif block.payload is not None:
            (again if block.replayed else numbers).append(int.from_bytes(block.payload[1:5], "big"))
    return numbers, gaps, again


async def watch(call: voicestream.Call, into: list[voicestream.CallEvent]) -> None:
    try:
        async for event in call.events():
            into.append(event)
    except voicestream.CallClosedError:
        pass



@pytest.mark.parametrize("wanted_by", ["both", "the client", "the server"])
async def test_where_the_old_connection_is_gone_a_call_asks_for_its_resumption_with_the_first_packet(serve: Any, wanted_by: str) -> None:
    # VS-11.3-8
    heard: dict[str, Any] = {}
    done = asyncio.Event()
    limits = voicestream.Limits(idle_timeout=1.0)

    async def handler(call: voicestream.Call) -> None:
        heard["numbers"], heard["gaps"], _ = await listen(call)
        done.set()

    async with serve(handler, limits=limits, early_resume=wanted_by != "the client") as loopback, network(loopback) as relay:
        call = await connect(loopback, relay, limits=limits, early_resume=wanted_by != "the server")
        events: list[voicestream.CallEvent] = []
        watcher = asyncio.create_task(watch(call, events))
        talking = asyncio.create_task(talk(call, 300))
        await asyncio.sleep(0.5)
        relay.mute = True
        await asyncio.sleep(4.0)
        relay.mute = False
        await talking
        await asyncio.wait_for(done.wait(), 20)
        await call.close()
        await watcher
        early = loopback.server._calls._transport.endpoint.stats.early
        assert (early > 0) is (wanted_by == "both")
        assert heard["numbers"] == list(range(300))
        assert heard["gaps"] == 0
        assert [event.kind for event in events].count("resumed") == 1


@pytest.mark.parametrize("replay_ms", [0, 1000])
async def test_a_call_goes_on_after_three_dead_seconds_with_all_that_was_said(serve: Any, replay_ms: int) -> None:
    at_server: dict[str, Any] = {"events": []}
    done = asyncio.Event()
    total = round(6.5 / FRAME_S)

    async def handler(call: voicestream.Call) -> None:
        at_server["call"] = call
        watcher = asyncio.create_task(watch(call, at_server["events"]))
        at_server["heard"], _ = await asyncio.gather(listen(call), talk(call, total))
        watcher.cancel()
        done.set()

    async with serve(handler) as loopback, network(loopback) as relay:
        call = await connect(loopback, relay, replay_ms=replay_ms)
        events: list[voicestream.CallEvent] = []
        watcher = asyncio.create_task(watch(call, events))
        session_id = call.session_id
        asyncio.get_running_loop().call_later(1.5, setattr, relay, "mute", True)
        asyncio.get_running_loop().call_later(4.5, setattr, relay, "mute", False)
        heard, _ = await asyncio.wait_for(asyncio.gather(listen(call), talk(call, total)), 40)
        await asyncio.wait_for(done.wait(), 5)  # the word that we have played all is still on its way
        assert call.session_id == session_id == at_server["call"].session_id
        for numbers, gaps, _ in (heard, at_server["heard"]):
            assert numbers == list(range(total))
            assert gaps == 0
        assert (len(heard[2]) > 0.8 * replay_ms / 1000 / FRAME_S) if replay_ms else heard[2] == []
        assert heard[2] == sorted(set(heard[2]))
        kinds = [event.kind for event in events if event.kind not in ("finish", "quality")]
        assert [kind for kind in kinds if kind not in ("degraded", "connected")] == ["lost", "resuming", "resumed"]
        assert kinds[0] == "degraded"
        (resumed,) = [event for event in events if event.kind == "resumed"]
        assert 2.0 < resumed.data["outage"] < 10
        (taken_up,) = [event for event in at_server["events"] if event.kind == "resumed"]
        assert 2.0 < taken_up.data["outage"] < 10
        # "connected": the old path may be heard again before the session leaves it.
        others = ("finish", "quality", "connected")
        assert [event.kind for event in at_server["events"] if event.kind not in others] == ["degraded", "lost", "resumed"]
        await call.close()
        watcher.cancel()


async def test_a_client_whose_network_stays_dead_gives_up_after_the_lifetime(serve: Any) -> None:
    async def handler(call: voicestream.Call) -> None:
        await call.wait_closed()

    async with serve(handler, drain_timeout=0) as loopback, network(loopback) as relay:
        call = await connect(loopback, relay, limits=voicestream.Limits(idle_timeout=1))
        events: list[voicestream.CallEvent] = []
        watcher = asyncio.create_task(watch(call, events))
        session = call._parts.link._session
        session._grant = replace(session.grant, lifetime=0.5)
        relay.mute = True
        await asyncio.wait_for(call.wait_closed(), 20)
        assert call.close_code == ErrorCode.PATH_LOST
        await asyncio.wait_for(watcher, 5)
        assert [event.kind for event in events][-1] == "gave_up"
        assert "lost" in [event.kind for event in events]
        with pytest.raises(voicestream.CallClosedError):
            await call.send_frame(frame(0))
        await asyncio.wait_for(call.close(), 5)


async def test_closing_a_call_whose_path_is_dead_ends_at_once(serve: Any) -> None:
    async def handler(call: voicestream.Call) -> None:
        await call.wait_closed()

    async with serve(handler, drain_timeout=0) as loopback, network(loopback) as relay:
        call = await connect(loopback, relay, limits=voicestream.Limits(idle_timeout=1))
        events: list[voicestream.CallEvent] = []
        watcher = asyncio.create_task(watch(call, events))
        relay.mute = True
        while "resuming" not in [event.kind for event in events]:
            await asyncio.wait_for(call._parts.inbox._signal.wait(), 10)
        await asyncio.sleep(0)
        await asyncio.wait_for(call.close(), 3)
        assert call.closed
        await asyncio.wait_for(watcher, 5)


async def test_calls_come_one_after_another_from_an_iteration(serve: Any) -> None:
    async def handler(call: voicestream.Call) -> None:
        await call.close(ErrorCode.HANDLER_ERROR, "no")

    async with serve(handler) as loopback:
        seen = []
        async for call in loopback.connect():
            seen.append(call.session_id)
            await call.wait_closed()
            if len(seen) == 3:
                break
        assert len(set(seen)) == 3


async def test_a_store_is_told_of_a_session_and_of_its_end(serve: Any) -> None:
    store = MemoryStore()
    kept: dict[str, Any] = {}

    async def handler(call: voicestream.Call) -> None:
        call.context = b"so far"
        call.processed_through = 1.5
        while (record := await store.get(bytes.fromhex(call.session_id))) is None or not record.context:
            await asyncio.sleep(0.05)
        kept["record"] = record

    async with serve(handler, store=store, resume_keys=[bytes(32)]) as loopback:
        call = await loopback.connect()
        await call.wait_closed()
        await call.close()
    assert kept["record"].context == b"so far"
    assert kept["record"].processed_pts == 600
    assert len(store) == 0


async def test_no_more_sessions_wait_for_their_clients_than_may_have_one(serve: Any) -> None:
    ends: dict[str, int | None] = {}

    async def handler(call: voicestream.Call) -> None:
        await call.wait_closed()
        ends[call.path] = call.close_code

    async with serve(handler, drain_timeout=0, limits=voicestream.Limits(max_sessions=2)) as loopback:
        receptions = loopback.server._calls._receptions
        for number in range(2):
            call = await loopback.connect(f"/{number}", resume=False)
            reception = list(receptions)[-1]
            with reception.link.locked() as session:
                assert session.path_lost(reception.link.now())
                reception.link._owner.connection.abandon()
            reception.pump()
            call._parts.link._owner.abort()
            await call.wait_closed()
        assert ends == {}
        # The two connections have ended, so that there is room for another one.
        while loopback.server._calls._transport.endpoint.connections:
            await asyncio.sleep(0.05)
            for connection in loopback.server._calls._transport.endpoint.connections:
                loopback.server._calls._transport.wake_connection(connection)
        call = await loopback.connect("/2", resume=False)
        reception = list(receptions)[-1]
        with reception.link.locked() as session:
            assert session.path_lost(reception.link.now())
        reception.pump()
        while "/0" not in ends:
            await asyncio.sleep(0.02)
        assert ends == {"/0": ErrorCode.LIMIT_EXCEEDED}
        call._parts.link._owner.abort()
        await call.wait_closed()


async def broken_call(loopback: Any, seed: int, seen: dict[str, Any]) -> None:
    """One call over a relay of its own that goes mute for 0.5 to 5 s."""
    rng = random.Random(seed)
    begin, seconds = rng.uniform(0.5, 1.5), rng.uniform(0.5, 5.0)
    async with network(loopback) as relay:
        uri = f"voicestream://127.0.0.1:{relay.port}/{seed}"
        async with voicestream.connect(uri, pin=loopback.certificate.pin) as call:
            loop = asyncio.get_running_loop()
            loop.call_later(begin, setattr, relay, "mute", True)
            loop.call_later(begin + seconds, setattr, relay, "mute", False)
            session_id, start = call.session_id, loop.time()
            total = round((begin + seconds + 1.5) / 0.02)
            for number in range(total):
                await call.send_frame(frame(number))
                await asyncio.sleep(max(0.0, start + (number + 1) * 0.02 - loop.time()))
            await call.finish(timeout=20)
            assert call.session_id == session_id
        seen[call.path] = (total, seconds)


@pytest.mark.parametrize("first", range(0, CALLS, 4))
async def test_calls_over_paths_that_go_mute_lose_nothing_repeat_nothing_and_keep_the_order(serve: Any, first: int) -> None:
    heard: dict[str, list[int]] = {}
    gaps: dict[str, int] = {}
    said: dict[str, Any] = {}

    async def handler(call: voicestream.Call) -> None:
        heard[call.path], gaps[call.path] = [], 0
        async for block in call.frames(decode=False):
            gaps[call.path] += block.gap
            if not block.gap and block.payload is not None:
                heard[call.path].append(int.from_bytes(block.payload[1:5], "big"))

    async with serve(handler) as loopback:
        await asyncio.wait_for(asyncio.gather(*(broken_call(loopback, seed, said) for seed in range(first, first + 4))), 60)
    for path, (total, seconds) in said.items():
        assert heard[path] == sorted(set(heard[path])), f"{path}: twice or out of order"
        assert len(heard[path]) >= 0.99 * total, f"{path}: {total - len(heard[path])} of {total} lost in a break of {seconds:.1f} s"
    assert len(said) == 4


@pytest.mark.parametrize("is_back", [False, True])
async def test_a_server_that_is_killed_is_noticed_and_one_that_comes_back_without_the_session_says_so(serve: Any, is_back: bool) -> None:
    async def handler(call: voicestream.Call) -> None:
        await call.wait_closed()

    seen: list[voicestream.CallEvent] = []
    loop = asyncio.get_running_loop()
    async with serve(handler, drain_timeout=0) as second, serve(handler, drain_timeout=0) as first, network(first) as relay:
        call = await voicestream.connect(
            f"voicestream://127.0.0.1:{relay.port}/", pin=first.certificate.pin, resume_timeout=None if is_back else 4.0
        )
        watcher = asyncio.create_task(watch(call, seen))
        began = loop.time()
        # The relay leads to the second server from now on, which has never heard of the call; or nowhere.
        if is_back:
            relay.lead_to(("127.0.0.1", second.server.port))
        else:
            relay.mute = True
        while not call.closed:
            await call.send_frame(frame(0)) if not call.closed else None
            await asyncio.wait([asyncio.ensure_future(call.wait_closed())], timeout=0.02)
        took = loop.time() - began
        await asyncio.wait_for(watcher, 5)
        kinds = [event.kind for event in seen if event.kind != "quality"]
        assert kinds == ["degraded", "lost", "resuming", "gave_up"]
        assert call.close_code == (ErrorCode.SESSION_UNKNOWN if is_back else ErrorCode.PATH_LOST)
        assert seen[-1].data["code"] == call.close_code
        assert 1.8 < took < 12
        await call.close()


async def test_a_servers_handler_hears_that_its_clients_path_is_silent_and_answers_again(serve: Any) -> None:
    kinds: list[str] = []
    heard = asyncio.Event()

    async def handler(call: voicestream.Call) -> None:
        async for event in call.events():
            kinds.append(event.kind)
            if kinds[-2:] == ["degraded", "connected"]:
                heard.set()

    async with serve(handler, drain_timeout=0) as loopback, network(loopback) as relay, connect(loopback, relay, resume=False) as call:
        talking = asyncio.create_task(talk(call, 500))
        await asyncio.sleep(0.5)
        relay.mute = True
        while "degraded" not in kinds:
            await asyncio.sleep(0.05)
        relay.mute = False
        await heard.wait()
        talking.cancel()
