"""A server's sockets in an event loop."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from voicestream.codepoints import ErrorCode
from voicestream.config import Limits
from voicestream.errors import StateError
from voicestream.quic.configuration import ServerTls
from voicestream.quic.connection import Connection
from voicestream.quic.connection_ids import ConnectionIds
from voicestream.quic.owner import OnActivity, SocketOwner, clock
from voicestream.quic.port_address import PortAddress
from voicestream.quic.server_endpoint import ServerEndpoint
from voicestream.quic.sockets import UdpPort, bind_socket, resolve
from voicestream.quic.streams import SessionPort
from voicestream.quic.tickets import ServerTickets
from voicestream.quic.values import Address

__all__ = ["Link", "ServerTransport"]


MAX_DUE: Final = 16
"""Connections whose timers are seen to before the loop gets its turn."""


class Link:
    """One connection of a server.

    Attributes:
        connection: The connection.
        on_activity: See `OnActivity`.
    """

    __slots__ = ("_over", "_owner", "_up", "connection", "on_activity")

    def __init__(self, owner: ServerTransport, connection: Connection) -> None:
        self._owner = owner
        self._over = asyncio.Event()
        self._up = asyncio.Event()
        self.connection = connection
        self.on_activity: OnActivity | None = None

    @property
    def lock(self) -> AbstractContextManager[object]:
        """The transport's lock; see `SocketOwner`."""
        return self._owner.lock

    @staticmethod
    def clock() -> float:
        """Seconds of the clock that all calls on connections and sessions take."""
        return clock()

    def wake(self) -> None:
        """Have the loop send what is due, and read the timer again. From any thread."""
        self._owner.wake_connection(self.connection)

    def poll(self) -> None:
        """Take in what has come and the loop has not got to yet. From any thread."""
        self._owner.poll()

    @property
    def remote_address(self) -> tuple[str, int]:
        """Host and port of the client at present; an IPv4 client is shown as such on a dual-stack socket, too."""
        host, port = (self.connection.peer_address or ("", 0))[:2]
        return str(host).removeprefix("::ffff:") if "." in str(host) else str(host), int(port)

    async def wait_closed(self) -> None:
        """Wait until the connection is over."""
        await self._over.wait()

    async def wait_up(self) -> None:
        """Wait until the handshake is complete.

        Raises:
            StateError: The connection is over before.
        """
        if not self.connection.is_up:
            await self._up.wait()
        if not self.connection.is_up:
            raise StateError("the connection is over")

    def set_up(self) -> None:
        """The transport says so."""
        self._up.set()

    def set_over(self) -> None:
        """The transport says so."""
        self._up.set()
        self._over.set()


class ServerTransport(SocketOwner):
    """All sockets and connections of a server; `listen` makes it.

    Attributes:
        endpoint: The endpoint under the sockets.
    """

    def __init__(self, endpoint: ServerEndpoint, on_connection: Callable[[Link], None]) -> None:
        super().__init__()
        self.endpoint = endpoint
        self._on_connection = on_connection
        self._ports: list[UdpPort] = []
        self._links: dict[Connection, Link] = {}
        self._emptied = asyncio.Event()

    @classmethod
    async def listen(
        cls,
        host: str,
        port: int,
        *,
        tls: ServerTls,
        new_session: Callable[[], SessionPort],
        on_connection: Callable[[Link], None],
        limits: Limits | None = None,
        entropy: Callable[[int], bytes] = os.urandom,
        ids: ConnectionIds | None = None,
        retry: bool = False,
        tickets: ServerTickets | None = None,
    ) -> ServerTransport:
        """Listen on all addresses of a host.

        Args:
            host: Name or address. "::" (or "") is every address, IPv4 ones too where the system can. A machine with several
                addresses answers from the one that its routing prefers, so there each should be named.
            port: UDP port; 0 takes a free one.
            tls: The certificate.
            new_session: Makes a server session, not started, for each connection.
            on_connection: Called in the loop's thread for each connection whose session has been started: when the handshake is complete,
                or a request to resume has come in early data.
            limits: See `ServerEndpoint`, as for the rest.
            entropy: Gives that many random bytes.
            ids: Where connection ids come from.
            retry: Have every client prove its address first.
            tickets: See `ServerEndpoint`.

        Raises:
            OSError: An address is taken or not of this machine, or a file of `tls` cannot be read.
            ValueError: A file of `tls` does not hold what it should.
        """
        endpoint = ServerEndpoint(tls, new_session, entropy=entropy, limits=limits, ids=ids, retry=retry, tickets=tickets)
        transport = cls(endpoint, on_connection)
        await transport.open(_wildcard_socket(port) if host in ("", "::") else await _named_sockets(host, port))
        return transport

    async def open(self, sockets: list[socket.socket]) -> None:
        """Begin to receive; `listen` does it."""
        self._ports = [UdpPort(sock, self._on_burst) for sock in sockets]
        try:
            for udp in self._ports:
                await udp.open()
        except BaseException:
            self.abort()
            raise

    # The application's side.

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each socket."""
        return [(str(udp.address[0]), int(udp.address[1])) for udp in self._ports]

    @property
    def port(self) -> int:
        """UDP port of the first socket."""
        return self.addresses[0][1]

    @property
    def links(self) -> list[Link]:
        """Connections that have been handed to `on_connection` and are not over."""
        return list(self._links.values())

    def counters(self) -> dict[tuple[str, str], float]:
        """What became of those who came to the door and of packets that no call got, by name of the metric and its label."""
        stats = self.endpoint.stats
        begun = {name: getattr(stats, name) for name in ("accepted", "early", "refused", "retried", "negotiated")}
        lost = {name: getattr(stats, name) for name in ("ignored", "late", "unread")}
        lost["unsent"] = sum(udp.dropped for udp in self._ports)
        return {("connections", name): n for name, n in begun.items()} | {("packets_dropped", name): n for name, n in lost.items()}

    def refuse_new(self) -> None:
        """Take no more connections; those that exist go on."""
        with self.lock:
            self.endpoint.refuse_new()

    async def close(self, code: int = ErrorCode.GOING_AWAY, reason: str = "", *, timeout: float = 3.0) -> None:
        """Close all connections, wait until the clients know or `timeout` seconds have passed, and close the sockets."""
        if self._is_open:
            with self.lock:
                self.endpoint.close(clock(), code, reason)
                connections = self.endpoint.connections
            self._serve(connections, clock())
            try:
                async with asyncio.timeout(timeout):
                    while self.endpoint.connections:
                        self._emptied.clear()
                        await self._emptied.wait()
            except TimeoutError:
                pass
        self.abort()

    def abort(self) -> None:
        """Say goodbye to whoever is still connected and close the sockets, without waiting. In the loop's thread only."""
        if not self._is_open:
            return
        with self.lock:
            for connection in self.endpoint.connections:
                connection.abort(clock(), ErrorCode.GOING_AWAY)
                self._transmit(connection, clock())
        self._stop()
        for udp in self._ports:
            udp.close()
        for link in self.links:
            self._let_go(link.connection)

    # The sockets' side.

    def _on_burst(self, udp: UdpPort, burst: list[tuple[bytes, Address]]) -> None:
        self._receive(self._addressed(udp, burst))

    def _addressed(self, udp: UdpPort, burst: list[tuple[bytes, Address]]) -> list[tuple[bytes, Address]]:
        return burst if len(self._ports) == 1 else [(data, PortAddress.of(address, udp)) for data, address in burst]

    def _waiting(self) -> list[tuple[bytes, Address]]:
        return [packet for udp in self._ports for packet in self._addressed(udp, udp.waiting())]

    def _take_in(self, data: bytes, address: Address, now: float) -> Connection | None:
        return self.endpoint.receive_datagram(data, address, now)

    def _taken_in(self) -> None:
        with self.lock:
            self._send(self.endpoint.replies_to_send())
        while (connection := self.endpoint.next_connection()) is not None:
            link = self._links[connection] = Link(self, connection)
            self._call(self._on_connection, link)

    def _send(self, packets: list[tuple[bytes, Address]]) -> None:
        if len(self._ports) == 1:
            self._ports[0].send(packets)
            return
        for packet in packets:
            address = packet[1]
            if isinstance(address, PortAddress):
                address.port.send([packet])

    def _tell(self, connection: Connection) -> None:
        link = self._links.get(connection)
        if link is not None and connection.is_up:
            link.set_up()
        if link is not None and link.on_activity is not None:
            self._call(link.on_activity, connection)

    def _rests(self, connection: Connection, now: float) -> bool:
        return self.endpoint.rests(connection, now)

    def _transmit(self, connection: Connection, now: float) -> None:
        self._send(self.endpoint.flush(connection, now))
        if connection.is_terminated:
            self._loop.call_soon(self._let_go, connection)

    def _let_go(self, connection: Connection) -> None:
        self._tell(connection)
        link = self._links.pop(connection, None)
        if link is not None:
            link.on_activity = None
            link.set_over()
        self._emptied.set()

    def _next_timer(self) -> float | None:
        return self.endpoint.next_timer()

    def _fire(self, now: float) -> list[Connection]:
        return self.endpoint.handle_timer(now, MAX_DUE)


def _wildcard_socket(port: int) -> list[socket.socket]:
    try:
        return [bind_socket(socket.AF_INET6, ("::", port), dual_stack=True)]
    except OSError as exc:
        if exc.errno in (errno.EADDRINUSE, errno.EACCES):
            raise
        # No IPv6 on this machine, or it cannot share a port with IPv4.
        return [bind_socket(socket.AF_INET, ("0.0.0.0", port))]


async def _named_sockets(host: str, port: int) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, address in await resolve(host, port):
            try:
                sockets.append(bind_socket(family, (address[0], port, *address[2:])))
            except OSError as exc:
                if exc.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
                missing = exc  # "localhost" has an IPv6 address even where the machine has none
                continue
            port = port or sockets[0].getsockname()[1]
        if not sockets:
            raise missing or OSError(errno.EADDRNOTAVAIL, f"{host} has no address")
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return sockets
