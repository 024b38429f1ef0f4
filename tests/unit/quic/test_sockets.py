"""Sockets for live audio."""

from __future__ import annotations

import asyncio
import socket

import pytest

from voicestream.quic.sockets import MAX_BURST, MAX_UDP_BYTES, RefusalProbe, UdpPort, bind_socket, client_socket, host_port, resolve


def test_an_endpoint_is_named_as_in_a_uri() -> None:
    assert host_port("a.example", 1) == "a.example:1"
    assert host_port("::1", 1) == "[::1]:1"


async def test_families_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(family: int, host: str) -> tuple[int, int, int, str, tuple[object, ...]]:
        return family, socket.SOCK_DGRAM, 17, "", (host, 1, 0, 0) if family == socket.AF_INET6 else (host, 1)

    found = [entry(socket.AF_INET6, f"2001:db8::{n}") for n in (1, 2, 3)] + [entry(socket.AF_INET, "192.0.2.1")]

    async def getaddrinfo(*_: object, **__: object) -> object:
        return [*found, found[0]]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    addresses = await resolve("a.example", 1)
    assert [address[0] for _, address in addresses] == ["2001:db8::1", "192.0.2.1", "2001:db8::2", "2001:db8::3"]


async def test_an_unknown_host_is_an_os_error() -> None:
    with pytest.raises(OSError, match=r"\[Errno"):
        await resolve("no-such-host.invalid", 1)


def test_a_client_socket_has_no_fixed_peer_and_asks_for_priority() -> None:
    with client_socket(socket.AF_INET) as sock:
        with pytest.raises(OSError, match="not connected"):
            sock.getpeername()
        assert not sock.getblocking()
        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) in (0xB8, 0)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) > 100_000


def test_a_taken_port_is_an_os_error() -> None:
    with (
        bind_socket(socket.AF_INET, ("127.0.0.1", 0)) as sock,
        pytest.raises(OSError, match="in use"),
    ):
        bind_socket(socket.AF_INET, sock.getsockname())


async def test_a_burst_is_handed_over_whole() -> None:
    bursts: list[int] = []
    done = asyncio.Event()
    total = MAX_BURST + 50

    def on_burst(_: UdpPort, burst: list[tuple[bytes, object]]) -> None:
        bursts.append(len(burst))
        if sum(bursts) == total:
            done.set()

    port = UdpPort(bind_socket(socket.AF_INET, ("127.0.0.1", 0)), on_burst)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for n in range(total):
            sender.sendto(n.to_bytes(2, "big"), port.address)
        await port.open()
        async with asyncio.timeout(5):
            await done.wait()
    port.close()
    assert max(bursts) == MAX_BURST
    assert len(bursts) <= 3


async def test_what_cannot_be_sent_is_dropped_and_counted() -> None:
    port = UdpPort(client_socket(socket.AF_INET), lambda *_: None)
    await port.open()
    port.send([(bytes(70000), ("127.0.0.1", 9)), (b"x", ("127.0.0.1", 0))])
    assert port.dropped == 2
    port.close()
    port.close()


async def test_a_port_that_was_never_opened_can_be_closed() -> None:
    port = UdpPort(client_socket(socket.AF_INET), lambda *_: None)
    port.close()
    assert port.sock.fileno() == -1


async def test_a_probe_tells_that_nothing_listens() -> None:
    with bind_socket(socket.AF_INET, ("127.0.0.1", 0)) as sock:
        address = sock.getsockname()
    told: asyncio.Future[OSError] = asyncio.get_running_loop().create_future()
    probe = RefusalProbe(told.set_result)
    await probe.open(socket.AF_INET, address)
    async with asyncio.timeout(5):
        assert isinstance(await told, ConnectionRefusedError)
    probe.close()


async def test_a_probe_says_nothing_while_somebody_listens() -> None:
    told: list[OSError] = []
    with bind_socket(socket.AF_INET, ("127.0.0.1", 0)) as sock:
        probe = RefusalProbe(told.append)
        await probe.open(socket.AF_INET, sock.getsockname())
        for _ in range(20):
            await asyncio.sleep(0)
        assert sock.recv(10) == b"\0"
        probe.close()
    assert told == []


async def test_no_more_is_read_of_a_datagram_than_a_path_carries() -> None:
    """Python makes a buffer as long as may be asked for, for each datagram."""
    taken: list[bytes] = []
    done = asyncio.Event()

    def on_burst(_: UdpPort, burst: list[tuple[bytes, object]]) -> None:
        taken.extend(data for data, _ in burst)
        if len(taken) == 4:
            done.set()

    port = UdpPort(bind_socket(socket.AF_INET, ("127.0.0.1", 0)), on_burst)
    with client_socket(socket.AF_INET, "127.0.0.1") as sock:
        for size in (1472, 9000, 1472, 9000):
            sock.sendto(bytes(size), port.address)
        await port.open()
        async with asyncio.timeout(10):
            await done.wait()
        port.close()
    assert [len(data) for data in taken] == [1472, MAX_UDP_BYTES] * 2
