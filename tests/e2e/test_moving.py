"""Calls on real sockets whose client changes its network: to another address, to another family, and while it dials."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

import voicestream
from tests.e2e.test_resume import connect, frame, listen, network, talk, watch
from voicestream.core import path_watch
from voicestream.quic import client_transport

FRAME_S = 0.02


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


async def conversation(call: voicestream.Call, total: int) -> Any:
    heard, _ = await asyncio.wait_for(asyncio.gather(listen(call), talk(call, total)), 25)
    return heard


@pytest.mark.parametrize("local_address", [None, "127.0.0.2"])
async def test_a_call_goes_on_from_another_address_without_a_gap(serve: Any, local_address: str | None) -> None:
    at_server: dict[str, Any] = {}
    total = 60

    async def handler(call: voicestream.Call) -> None:
        at_server["before"] = call._parts.link._owner.remote_address
        at_server["heard"] = await conversation(call, total)
        at_server["after"] = call._parts.link._owner.remote_address

    async with serve(handler) as loopback:
        call = await loopback.connect()
        events: list[voicestream.CallEvent] = []
        watcher = asyncio.create_task(watch(call, events))
        asyncio.get_running_loop().call_later(0.5, call.network_changed, local_address)
        numbers, gaps, _ = await conversation(call, total)
        assert (numbers, gaps) == (list(range(total)), 0)
        assert at_server["heard"][:2] == (list(range(total)), 0)
        assert at_server["after"] != at_server["before"]
        assert at_server["after"][0] == (local_address or "127.0.0.1")
        assert [event.kind for event in events if event.kind not in ("finish", "quality")] == []
        await call.close()
        call.network_changed()  # nothing happens any more
        watcher.cancel()


async def test_a_call_whose_network_does_not_carry_the_old_connection_is_resumed_soon(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_watch, "LOST_AFTER", 60.0)  # only the change of network is a reason to dial so soon

    async def handler(call: voicestream.Call) -> None:
        await conversation(call, 150)

    async with serve(handler) as loopback, network(loopback) as relay:
        call = await connect(loopback, relay)
        events: list[voicestream.CallEvent] = []
        watcher = asyncio.create_task(watch(call, events))
        talking = asyncio.create_task(conversation(call, 150))
        await asyncio.sleep(0.5)
        admitted: set[Any] = set()
        relay.admits = lambda data, addr: addr in admitted or (bool(data[0] & 0x80) and admitted.add(addr) is None)
        call.network_changed()
        while "resumed" not in [event.kind for event in events]:
            await asyncio.wait_for(call._parts.inbox._signal.wait(), 10)
            await asyncio.sleep(0)
        numbers, gaps, _ = await talking
        assert (numbers, gaps) == (list(range(150)), 0)
        await call.close()
        watcher.cancel()


async def test_many_changes_of_network_at_once_leave_no_socket_behind(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[client_transport.UdpPort] = []
    real = client_transport.UdpPort.open

    async def watched(port: client_transport.UdpPort) -> None:
        await real(port)
        opened.append(port)

    monkeypatch.setattr(client_transport.UdpPort, "open", watched)

    async def handler(call: voicestream.Call) -> None:
        await conversation(call, 100)

    async with serve(handler) as loopback, network(loopback) as relay:
        call = await connect(loopback, relay)
        talking = asyncio.create_task(conversation(call, 100))
        await asyncio.sleep(0.5)
        for _ in range(12):
            call.network_changed()
        numbers, gaps, _ = await talking
        assert (numbers, gaps) == (list(range(100)), 0)
        await call.close()
    assert len(opened) > 2
    assert [port for port in opened if port.sock.fileno() >= 0] == []


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
async def test_a_call_moves_from_ipv4_to_ipv6(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(call: voicestream.Call) -> None:
        await conversation(call, 150)

    async with serve(handler) as loopback, network(loopback) as relay:
        _, six = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: type(relay)(("127.0.0.1", loopback.server.port)), local_addr=("::1", relay.port)
        )
        four_or_six = [(int(socket.AF_INET), ("127.0.0.1", relay.port)), (int(socket.AF_INET6), ("::1", relay.port, 0, 0))]

        async def resolve(host: str, port: int) -> Any:
            return list(four_or_six)

        monkeypatch.setattr(client_transport, "resolve", resolve)
        call = await connect(loopback, relay)
        talking = asyncio.create_task(conversation(call, 150))
        await asyncio.sleep(0.5)
        relay.mute = True  # IPv4 is gone
        four_or_six.reverse()
        call.network_changed()
        numbers, gaps, _ = await talking
        assert (numbers, gaps) == (list(range(150)), 0)
        assert six.clients
        await call.close()
        six.close()


async def test_a_socket_that_finds_no_way_is_replaced_and_the_server_dialled(serve: Any) -> None:
    async def handler(call: voicestream.Call) -> None:
        await conversation(call, 150)

    async with serve(handler) as loopback:
        call = await loopback.connect()
        events: list[voicestream.CallEvent] = []
        watcher = asyncio.create_task(watch(call, events))
        talking = asyncio.create_task(conversation(call, 150))
        await asyncio.sleep(0.5)
        transport = call._parts.link._owner
        # As when the interface that the socket was bound to is gone.
        port = transport._port
        port.unreachable = 3
        port.send = lambda packets: None
        numbers, gaps, _ = await talking
        assert (numbers, gaps) == (list(range(150)), 0)
        kinds = [event.kind for event in events if event.kind not in ("finish", "quality", "degraded", "connected")]
        assert kinds == ["lost", "resuming", "resumed"]
        await call.close()
        watcher.cancel()


async def test_a_frame_after_the_last_move_still_comes(serve: Any) -> None:
    heard: list[int] = []

    async def handler(call: voicestream.Call) -> None:
        async for block in call.frames(decode=False):
            if block.payload is not None:
                heard.append(int.from_bytes(block.payload[1:5], "big"))

    async with serve(handler) as loopback:
        call = await loopback.connect()
        for number in range(5):
            await call.send_frame(frame(number))
            call.network_changed()
            await asyncio.sleep(0.05)
        await call.send_frame(frame(5))
        await call.finish(timeout=5)
        assert heard == list(range(6))
        await call.close()
