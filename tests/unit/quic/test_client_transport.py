"""A client's socket: addresses in turn, refusals at once, wake-ups from threads. Real sockets on loopback, nothing measured."""

from __future__ import annotations

import asyncio
import errno
import select
import socket
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.config import Limits
from voicestream.errors import CertificateError, ConnectError
from voicestream.events import Closed
from voicestream.quic import client_transport
from voicestream.quic.aio import ClientTransport, Link, ServerTransport
from voicestream.quic.certificates import make_certificate, write_certificate
from voicestream.quic.configuration import ClientTls, ServerTls
from voicestream.quic.sockets import bind_socket


class Site:
    """A server on loopback and how to call it."""

    def __init__(self, transport: ServerTransport, tls: ClientTls, new_session: Callable[[], Any], links: list[Link]) -> None:
        self.transport = transport
        self.tls = tls
        self.new_session = new_session
        self.links = links

    async def dial(self, host: str = "127.0.0.1", **options: Any) -> ClientTransport:
        options.setdefault("tls", self.tls)
        options.setdefault("session", self.new_session())
        return await ClientTransport.dial(host, options.pop("port", self.transport.port), **options)


@pytest.fixture
async def site(tmp_path: Any, fake_session: Callable[[], Any]) -> AsyncIterator[Site]:
    certificate, key, sha256 = make_certificate(["localhost"])
    write_certificate(certificate, key, tmp_path / "cert.pem", tmp_path / "key.pem")
    links: list[Link] = []
    transport = await ServerTransport.listen(
        "127.0.0.1",
        0,
        tls=ServerTls(certfile=tmp_path / "cert.pem", keyfile=tmp_path / "key.pem"),
        new_session=fake_session,
        on_connection=links.append,
    )
    yield Site(transport, ClientTls(server_name="localhost", pin=sha256), fake_session, links)
    await transport.close()


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until `condition` holds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def test_dialling_ends_when_the_session_has_started(site: Site) -> None:
    transport = await site.dial()
    assert transport.connection.session.started_at is not None
    assert transport.connection.is_up
    await transport.close(ErrorCode.NO_ERROR, "bye")
    assert transport.connection.is_terminated
    await until(lambda: site.links and site.links[0].connection.is_terminated)
    assert site.links[0].connection.next_event().reason == "bye"


async def test_a_port_where_nothing_listens_is_told_at_once(site: Site) -> None:
    with bind_socket(socket.AF_INET, ("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    with pytest.raises(ConnectError, match=f"connection refused: nothing listens at 127.0.0.1:{port}"):
        await site.dial(port=port, open_timeout=30)


async def test_silence_is_told_after_the_timeout(site: Site) -> None:
    with (
        bind_socket(socket.AF_INET, ("127.0.0.1", 0)) as sock,
        pytest.raises(ConnectError, match="does not answer within"),
    ):
        await site.dial(port=sock.getsockname()[1], open_timeout=0.2)


async def test_an_unknown_host_is_told(site: Site) -> None:
    with pytest.raises(ConnectError, match=r"^no-such-host\.invalid is not a known host(: no name server answers)?$"):
        await site.dial("no-such-host.invalid")
    with pytest.raises(ConnectError, match=r"^a{300} is not a known host$"):
        await site.dial("a" * 300)


@pytest.mark.interpreted(reason="puts its own in place of what the module calls")
async def test_an_address_that_refuses_is_passed_over(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with bind_socket(socket.AF_INET, ("127.0.0.1", 0)) as sock:
        closed = sock.getsockname()

    async def resolve(host: str, port: int) -> list[tuple[int, Any]]:
        return [(socket.AF_INET, closed), (socket.AF_INET, ("127.0.0.1", port))]

    monkeypatch.setattr(client_transport, "resolve", resolve)
    transport = await site.dial("two.example")
    assert transport.connection.peer_address[1] == site.transport.port
    await transport.close()


@pytest.mark.interpreted(reason="puts its own in place of what the module calls")
async def test_an_address_that_is_silent_is_passed_over(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with bind_socket(socket.AF_INET, ("127.0.0.1", 0)) as silent:

        async def resolve(host: str, port: int) -> list[tuple[int, Any]]:
            return [(socket.AF_INET, silent.getsockname()), (socket.AF_INET, ("127.0.0.1", port))]

        monkeypatch.setattr(client_transport, "resolve", resolve)
        monkeypatch.setattr(client_transport, "NEXT_ADDRESS_AFTER", 0.05)
        transport = await site.dial("two.example")
        assert transport.connection.is_up
        await transport.close()


@pytest.mark.interpreted(reason="puts its own in place of what the module calls")
async def test_a_wrong_certificate_is_not_tried_at_another_address(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    async def resolve(host: str, port: int) -> list[tuple[int, Any]]:
        return [(socket.AF_INET, ("127.0.0.1", port))] * 3

    original = ClientTransport.open

    async def opening(self: ClientTransport, family: int, address: Any) -> None:
        tried.append(address)
        await original(self, family, address)

    monkeypatch.setattr(client_transport, "resolve", resolve)
    monkeypatch.setattr(ClientTransport, "open", opening)
    with pytest.raises(CertificateError, match="another certificate"):
        await site.dial("three.example", tls=ClientTls(server_name="localhost", pin="11" * 32))
    assert len(tried) == 1


@pytest.mark.interpreted(reason="puts its own in place of what the module calls")
async def test_an_unreachable_network_is_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_family(family: int) -> socket.socket:
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

    monkeypatch.setattr(client_transport, "client_socket", no_family)
    with pytest.raises(ConnectError, match="cannot be reached: Address family"):
        await site.dial()


async def test_a_cancelled_dial_says_goodbye_and_leaves_no_socket(site: Site) -> None:
    with bind_socket(socket.AF_INET, ("127.0.0.1", 0)) as silent:
        task = asyncio.create_task(site.dial(port=silent.getsockname()[1]))
        await until(lambda: select.select([silent], [], [], 0)[0])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_thread_may_wake_the_loop(site: Site) -> None:
    transport = await site.dial()
    await until(lambda: site.links)
    far = site.links[0].connection.session

    def speak() -> None:
        for n in range(50):
            with transport.lock:
                transport.connection.session.out_datagrams.append(bytes([n]))
            transport.wake()

    thread = threading.Thread(target=speak)
    thread.start()
    await until(lambda: len(far.datagrams) == 50)
    thread.join()
    assert far.datagrams == [bytes([n]) for n in range(50)]
    await transport.close()
    transport.wake()


async def test_a_wake_after_the_loop_is_gone_is_harmless(site: Site) -> None:
    transport = await site.dial()
    woken = threading.Event()
    loop = asyncio.new_event_loop()
    loop.close()
    transport._loop, kept = loop, transport._loop

    def late() -> None:
        transport.wake()
        woken.set()

    thread = threading.Thread(target=late)
    thread.start()
    thread.join()
    assert woken.is_set()
    transport._loop, transport._wake_is_due = kept, False
    await transport.close()


async def test_the_owner_is_told_of_activity_and_of_the_end(site: Site) -> None:
    events: list[Any] = []

    def drain(connection: Any) -> None:
        while (event := connection.next_event()) is not None:
            events.append(event)

    transport = await site.dial(on_activity=drain)
    await until(lambda: site.links)
    with site.transport.lock:
        site.links[0].connection.close(site.links[0].clock(), ErrorCode.GOING_AWAY, "restart")
    site.links[0].wake()
    await asyncio.wait_for(transport.wait_closed(), 10)
    assert [(event.code, event.reason) for event in events if isinstance(event, Closed)] == [(ErrorCode.GOING_AWAY, "restart")]


async def test_an_owner_that_raises_does_not_stop_the_transport(site: Site) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))

    def broken(connection: Any) -> None:
        raise ZeroDivisionError

    transport = await site.dial(on_activity=broken)
    assert isinstance(reported[0]["exception"], ZeroDivisionError)
    transport.connection.session.out_datagrams.append(b"still here")
    transport.wake()
    await until(lambda: site.links and site.links[0].connection.session.datagrams)
    await transport.close()


async def test_the_timer_of_the_session_fires(site: Site) -> None:
    transport = await site.dial()
    session = transport.connection.session
    session.timer = transport.clock() + 0.03
    transport.wake()
    await until(lambda: session.timers_fired)
    await transport.close()


async def test_a_call_goes_on_from_a_new_socket(site: Site) -> None:
    transport = await site.dial()
    await until(lambda: site.links)
    near, far = transport.connection.session, site.links[0].connection.session
    before = site.links[0].remote_address
    await transport.rebind()
    near.out_datagrams.append(b"from the new port")
    transport.wake()
    await until(lambda: far.datagrams)
    assert site.links[0].remote_address != before
    far.out_datagrams.append(b"back")
    site.links[0].wake()
    await until(lambda: near.datagrams)
    await transport.close()
    await transport.rebind()


async def test_who_moves_forgets_what_was_measured_and_asks_at_once_although_there_is_nothing_to_say(site: Site) -> None:
    transport = await site.dial()
    await until(lambda: site.links)
    near, before = transport.connection.session, site.links[0].remote_address
    paths = near.paths
    assert await transport.rebind("127.0.0.2")
    assert near.paths == paths + 1
    await until(lambda: site.links[0].remote_address != before)
    assert site.links[0].remote_address[0] == "127.0.0.2"
    await until(lambda: site.links[0].connection.session.paths)
    with pytest.raises(OSError, match=r"."):
        await transport.rebind("203.0.113.77")
    site.links[0].connection.session.out_datagrams.append(b"still here")
    site.links[0].wake()
    await until(lambda: near.datagrams)
    await transport.close()
    assert not await transport.rebind()


async def test_what_was_on_its_way_to_the_socket_that_was_left_is_taken(site: Site) -> None:
    transport = await site.dial()
    await until(lambda: site.links)
    near, far = transport.connection.session, site.links[0].connection.session
    port = transport._port
    move = asyncio.get_running_loop().create_task(transport.rebind())
    far.out_datagrams.append(b"to the old port")
    site.links[0].wake()
    await move
    assert transport._port is not port
    await until(lambda: near.datagrams)
    await transport.close()
    assert port.sock.fileno() == -1


async def test_aborting_closes_the_socket_without_waiting(site: Site) -> None:
    transport = await site.dial()
    await until(lambda: site.links)
    transport.abort(ErrorCode.HANDLER_ERROR, "crash")
    transport.abort()
    await asyncio.wait_for(transport.wait_closed(), 10)
    await until(lambda: site.links[0].connection.is_closed)
    assert site.links[0].connection.next_event().reason == "crash"


async def test_the_idle_timeout_closes_the_socket(site: Site) -> None:
    transport = await site.dial(limits=Limits(idle_timeout=1))
    await asyncio.wait_for(transport.wait_closed(), 10)
    assert transport.connection.next_event().code == ErrorCode.IDLE_TIMEOUT
