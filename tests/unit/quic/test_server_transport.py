"""A server's sockets. Real sockets on loopback, nothing measured."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.config import Limits
from voicestream.errors import ConnectError, RejectedError
from voicestream.observe.figures import METRICS
from voicestream.quic import server_transport
from voicestream.quic.aio import ClientTransport, Link, ServerTransport
from voicestream.quic.configuration import ClientTls, ServerTls
from voicestream.quic.sockets import bind_socket

Listen = Callable[..., Any]


@pytest.fixture
def listen(certificate: tuple[Path, Path, str], fake_session: Callable[[], Any]) -> Listen:
    async def listening(host: str = "127.0.0.1", port: int = 0, **options: Any) -> tuple[ServerTransport, list[Link]]:
        links: list[Link] = []
        options.setdefault("on_connection", links.append)
        tls = ServerTls(certfile=certificate[0], keyfile=certificate[1])
        return await ServerTransport.listen(host, port, tls=tls, new_session=fake_session, **options), links

    return listening


@pytest.fixture
def dial(certificate: tuple[Path, Path, str], fake_session: Callable[[], Any]) -> Listen:
    async def dialling(host: str, port: int, **options: Any) -> ClientTransport:
        tls = ClientTls(server_name="voice.example", pin=certificate[2])
        return await ClientTransport.dial(host, port, tls=tls, session=fake_session(), **options)

    return dialling


def has_ipv6() -> bool:
    try:
        with bind_socket(socket.AF_INET6, ("::1", 0)):
            return True
    except OSError:
        return False


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def test_every_address_means_ipv4_and_ipv6(listen: Listen, dial: Listen) -> None:
    server, links = await listen("::")
    hosts = ["127.0.0.1", "::1"] if has_ipv6() else ["127.0.0.1"]
    for host in hosts:
        client = await dial(host, server.port)
        await until(lambda: links)
        assert links[-1].remote_address[0] == host
        await client.close()
        await links.pop().wait_closed()
    assert server.links == []
    await server.close()


@pytest.mark.interpreted(reason="puts its own in place of what the module calls")
async def test_a_name_with_several_addresses_gets_a_socket_for_each_with_one_port(
    listen: Listen, dial: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(host: str, port: int) -> list[tuple[int, Any]]:
        return [(socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET, ("203.0.113.200", port)), (socket.AF_INET, ("127.0.0.2", port))]

    monkeypatch.setattr(server_transport, "resolve", resolve)
    server, links = await listen("several.example")
    assert server.addresses == [("127.0.0.1", server.port), ("127.0.0.2", server.port)]
    for host, _ in server.addresses:
        client = await dial(host, server.port)
        await until(lambda: links)
        links[-1].connection.session.out_datagrams.append(b"from the socket that was called")
        links[-1].wake()
        await until(lambda client=client: client.connection.session.datagrams)
        await client.close()
        links.clear()
    with pytest.raises(ConnectError):
        await dial("127.0.0.3", server.port)
    await server.close()


async def test_a_host_that_is_not_of_this_machine_is_an_os_error(listen: Listen) -> None:
    with pytest.raises(OSError, match="assign"):
        await listen("203.0.113.200")


@pytest.mark.parametrize("host", ["127.0.0.1", "::", ""])
async def test_a_taken_port_is_an_os_error(listen: Listen, host: str) -> None:
    with (
        bind_socket(socket.AF_INET, ("0.0.0.0", 0)) as sock,
        pytest.raises(OSError, match="in use"),
    ):
        await listen(host, sock.getsockname()[1])


@pytest.mark.interpreted(reason="puts its own in place of what the module calls")
async def test_a_machine_without_ipv6_listens_on_ipv4(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    def only_ipv4(family: int, address: Any, **options: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        return bind_socket(family, address)

    monkeypatch.setattr(server_transport, "bind_socket", only_ipv4)
    server, _ = await listen("::")
    assert server.addresses[0][0] == "0.0.0.0"
    await server.close()


async def test_closing_waits_until_the_clients_know(listen: Listen, dial: Listen) -> None:
    server, links = await listen()
    clients = [await dial("127.0.0.1", server.port) for _ in range(3)]
    await until(lambda: len(links) == 3)
    await server.close(ErrorCode.GOING_AWAY, "restart")
    for client in clients:
        await asyncio.wait_for(client.wait_closed(), 10)
        assert client.connection.next_event().reason == "restart"
    assert server.links == []
    await server.close()


async def test_closing_does_not_wait_for_ever_for_a_dead_client(listen: Listen, dial: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    server, links = await listen()
    client = await dial("127.0.0.1", server.port)
    await until(lambda: links)
    monkeypatch.setattr(client, "_on_burst", lambda *_: None)
    client._port._on_burst = lambda *_: None
    links[0].connection.session.out_control = b"never acknowledged\n"
    async with asyncio.timeout(10):
        await server.close(timeout=0.05)
    assert server.links == []
    client.abort()


async def test_an_on_connection_that_raises_does_not_stop_the_server(listen: Listen, dial: Listen) -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["exception"]))
    calls: list[Link] = []

    def welcome(link: Link) -> None:
        calls.append(link)
        if len(calls) == 1:
            raise ZeroDivisionError

    server, _ = await listen(on_connection=welcome)
    first, second = await dial("127.0.0.1", server.port), await dial("127.0.0.1", server.port)
    await until(lambda: len(calls) == 2)
    assert len(reported) == 1
    await first.close()
    await second.close()
    await server.close()


async def test_one_call_too_many_is_refused_and_so_are_all_when_the_server_leaves(listen: Listen, dial: Listen) -> None:
    server, _ = await listen(limits=Limits(max_sessions=1))
    client = await dial("127.0.0.1", server.port)
    with pytest.raises(RejectedError) as caught:
        await dial("127.0.0.1", server.port)
    assert caught.value.code == ErrorCode.BUSY
    await client.close()
    await until(lambda: not server.endpoint.connections)
    server.refuse_new()
    with pytest.raises(RejectedError):
        await dial("127.0.0.1", server.port)
    await server.close()


async def test_a_retry_server_takes_calls(listen: Listen, dial: Listen) -> None:
    server, links = await listen(retry=True)
    client = await dial("127.0.0.1", server.port)
    await until(lambda: links)
    assert server.endpoint.stats.retried == 1
    await client.close()
    await server.close()


async def test_garbage_does_not_disturb_a_server(listen: Listen, dial: Listen) -> None:
    server, links = await listen()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for size in (0, 1, 20, 1200, 9000):
            sock.sendto(b"\xc5" * size, ("127.0.0.1", server.port))
    client = await dial("127.0.0.1", server.port)
    await until(lambda: links)
    await client.close()
    await server.close()


async def test_what_came_to_the_door_is_counted(listen: Listen, dial: Listen) -> None:
    transport, _ = await listen()
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"not a packet of anybody", transport.addresses[0])
            client = await dial("127.0.0.1", transport.port)
        counters = transport.counters()
        assert counters["connections", "accepted"] == 1
        assert counters["packets_dropped", "ignored"] == 2  # the other one has the client's own look whether anybody is here
        assert {name for name, _ in counters} <= {metric.name for metric in METRICS}
        client.abort()
    finally:
        transport.abort()
