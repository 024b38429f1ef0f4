"""A client's socket in an event loop."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from voicestream.codepoints import ErrorCode
from voicestream.config import Limits
from voicestream.errors import CertificateError, ConnectError, RejectedError
from voicestream.quic.client_endpoint import ClientEndpoint
from voicestream.quic.configuration import ClientTls
from voicestream.quic.connection import Connection
from voicestream.quic.owner import OnActivity, SocketOwner, clock
from voicestream.quic.sockets import GONE, RefusalProbe, UdpPort, client_socket, host_port, resolve
from voicestream.quic.streams import SessionPort
from voicestream.quic.tickets import CallTickets
from voicestream.quic.values import Address

__all__ = ["ClientTransport"]

NEXT_ADDRESS_AFTER: Final = 1.0
"""Seconds that one address of several gets to complete the handshake."""

LEFT_FOR: Final = 1.0
"""Seconds for which a socket that was left is listened to: what the server sent before it knew of the new one may still come."""

MOST_LEFT: Final = 4
"""Sockets that are listened to so; the oldest goes for one more."""

UNREACHABLE_AFTER: Final = 3
"""Datagrams in a row that find no way, after which the path is taken for broken."""


class ClientTransport(SocketOwner):
    """One connection and its socket; `dial` makes it.

    Attributes:
        endpoint: The endpoint under the socket.
        on_activity: See `OnActivity`.
    """

    def __init__(self, endpoint: ClientEndpoint, server: str, on_activity: OnActivity | None, lock: threading.RLock | None = None) -> None:
        super().__init__(lock)
        self.endpoint = endpoint
        self.on_activity = on_activity
        self._server = server
        self._port: UdpPort | None = None
        self._left: list[UdpPort] = []
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._terminated = asyncio.Event()

    @classmethod
    async def dial(
        cls,
        host: str,
        port: int,
        *,
        tls: ClientTls,
        session: SessionPort,
        limits: Limits | None = None,
        entropy: Callable[[int], bytes] = os.urandom,
        route_token: bytes | None = None,
        open_timeout: float = 10.0,
        on_activity: OnActivity | None = None,
        lock: threading.RLock | None = None,
        tickets: CallTickets | None = None,
    ) -> ClientTransport:
        """Connect, trying the host's addresses in turn.

        Args:
            host: Name or address.
            port: UDP port.
            tls: How the server's certificate is checked.
            session: A client session that has not been started; it is, as soon as the certificate has been checked.
            limits: Timeouts and what the server may send; the defaults if None.
            entropy: Gives that many random bytes.
            route_token: See `ClientEndpoint`.
            open_timeout: Seconds for all of it.
            on_activity: See `OnActivity`.
            lock: That of the transport whose session comes here; see `Pending`.
            tickets: Those of the call: a dial shows the one of this server, and gets others; without, none is asked for.

        Raises:
            ConnectError: No address answered as it should.
            OSError, ValueError: `tls.cafile` cannot be used.
        """
        server, deadline = host_port(host, port), clock() + open_timeout
        addresses = await _addresses(host, port, open_timeout)
        outcome: ClientTransport | ConnectError | None = None
        while addresses:
            family, address = addresses.pop(0)
            patience = max(deadline - clock(), 0.0)
            if addresses:
                patience = min(patience, NEXT_ADDRESS_AFTER)
            make = partial(
                ClientEndpoint, tls, session, entropy=entropy, limits=limits, route_token=route_token, server=server,
                handshake_timeout=patience, tickets=tickets, place=(host, port),
            )  # fmt: skip
            outcome = await cls._try(make, server, on_activity, lock, (family, address))
            if isinstance(outcome, ClientTransport):
                return outcome
        assert not isinstance(outcome, ClientTransport)
        try:
            raise outcome or ConnectError(f"{host} has no address")
        finally:
            del outcome  # this frame is in its traceback

    @classmethod
    async def _try(
        cls, make: Callable[[], ClientEndpoint], server: str, on_activity: OnActivity | None, lock: threading.RLock | None,
        at: tuple[int, Address],
    ) -> ClientTransport | ConnectError:  # fmt: skip
        """Dial one address. A failure comes without its traceback, whose frames have all that it failed with, and a call to go on."""
        transport = cls(make(), server, on_activity, lock)
        try:
            await transport.open(*at)
        except (CertificateError, RejectedError):
            raise
        except ConnectError as exc:
            return exc.with_traceback(None)
        return transport

    async def open(self, family: int, address: Address) -> None:
        """Connect to one address; `dial` does it."""
        try:
            self._port = UdpPort(client_socket(family), self._on_burst)
        except OSError as exc:
            raise ConnectError(f"{self._server} cannot be reached: {exc.strerror}") from exc
        probe, opened = RefusalProbe(self._on_error), self._opened
        try:
            await self._port.open()
            with self.lock:
                self.endpoint.connect(address, clock())
            self._serve([self.connection], clock())
            await probe.open(family, address)
            await opened
        except BaseException:
            self.abort()
            raise
        finally:
            probe.close()

    # The application's side.

    @property
    def connection(self) -> Connection:
        """The connection."""
        return self.endpoint.connection

    @property
    def is_unreachable(self) -> bool:
        """Whether the socket says that there is no way to the server at present."""
        return self._port is not None and self._port.unreachable >= UNREACHABLE_AFTER

    def wake(self) -> None:
        """Have the loop send what is due, and read the timer again. From any thread."""
        self.wake_connection(self.connection)

    async def close(self, code: int = ErrorCode.NO_ERROR, reason: str = "") -> None:
        """Close the session and wait until the server knows, or can be taken to be gone."""
        with self.lock:
            self.connection.close(clock(), code, reason)
        self.wake()
        await self.wait_closed()

    async def wait_closed(self) -> None:
        """Wait until the connection is over and its socket closed."""
        await self._terminated.wait()

    def abort(self, code: int = ErrorCode.NO_ERROR, reason: str = "") -> None:
        """Say goodbye once and close the socket, without waiting. In the loop's thread only."""
        if self._is_open:
            with self.lock:
                self.connection.abort(clock(), code, reason)
                self._transmit(self.connection, clock())
            self._close_socket()

    def drop(self) -> None:
        """Close the socket without a word: the path is dead, or the session has gone elsewhere. In the loop's thread only."""
        if self._is_open:
            self._close_socket()

    async def rebind(self, host: str | None = None) -> bool:
        """Go on from a new socket, as after a change of network. The server follows, and proves the way back; see `Connection.moved`.

        Args:
            host: Address of this machine to go on from; None for whichever the system takes.

        Returns:
            False where there is nothing to go on with.

        Raises:
            OSError: There is no such address of the server's family.
        """
        if self._port is None or not self._is_open:
            return False
        port = UdpPort(client_socket(self._port.sock.family, host), self._on_burst)
        try:
            await port.open()
        except BaseException:
            port.close()
            raise
        old = self._port  # another one than before the wait, where it moved twice at once
        if old is None or not self._is_open:
            port.close()  # the call ended meanwhile
            return False
        self._port = port
        self._left.append(old)
        self._loop.call_later(LEFT_FOR, self._close_left, old)
        if len(self._left) > MOST_LEFT:
            self._close_left(self._left[0])
        with self.lock:
            self.connection.moved(clock())
        self.wake()
        return True

    def _close_left(self, port: UdpPort) -> None:
        if port in self._left:
            self._left.remove(port)
            port.close()

    # The socket's side.

    def _on_burst(self, port: UdpPort, burst: list[tuple[bytes, Address]]) -> None:
        self._receive(burst)

    def _waiting(self) -> list[tuple[bytes, Address]]:
        return [] if self._port is None else self._port.waiting()

    def _take_in(self, data: bytes, address: Address, now: float) -> Connection | None:
        self.endpoint.receive_datagram(data, address, now)
        return self.connection

    def _on_error(self, exc: OSError) -> None:
        if self._opened.done() or self.connection.is_up:
            return
        if exc.errno in (errno.ECONNREFUSED, errno.ECONNRESET):
            error = ConnectError(f"connection refused: nothing listens at {self._server}")
        elif exc.errno in GONE:
            error = ConnectError(f"{self._server} cannot be reached: {exc.strerror}")
        else:
            return
        with self.lock:
            # An answer that comes now finds nobody who waits for it.
            self.connection.close(clock())
        self._opened.set_exception(error)

    def _tell(self, connection: Connection) -> None:
        if not self._opened.done():
            if connection.connect_error is not None:
                self._opened.set_exception(connection.connect_error)
            elif connection.is_up:
                self._opened.set_result(None)
            elif connection.is_closed:
                self._opened.set_exception(ConnectError(f"the connection to {self._server} was given up"))
        if self.on_activity is not None and connection.is_up:
            self._call(self.on_activity, connection)

    def _transmit(self, connection: Connection, now: float) -> None:
        if self._port is not None and self._is_open:
            self._port.send(connection.datagrams_to_send(now))
            if connection.is_terminated and self._opened.done():
                # Everything has been told, or the far end is gone: no late packet needs this socket. Told in a turn of its own,
                # so that the application has seen `Closed` before anybody who waits for the end goes on.
                self._loop.call_soon(self._finish)

    def _finish(self) -> None:
        if self._is_open:
            self._tell(self.connection)
            self._close_socket()

    def _close_socket(self) -> None:
        self._stop()
        for port in (self._port, *self._left):
            if port is not None:
                port.close()
        self._left.clear()
        # Whoever is told, the socket's callback and QUIC itself would keep all of this until the garbage collector comes by.
        self._port = self.on_activity = None
        with self.lock:
            self.connection.let_go()
        if self._opened.done() and not self._opened.cancelled():
            self._opened.exception()  # whoever waited may have been cancelled meanwhile
        self._opened = self._loop.create_future()
        self._opened.cancel()
        self._terminated.set()

    def _next_timer(self) -> float | None:
        return self.connection.next_timer()

    def _fire(self, now: float) -> list[Connection]:
        self.connection.handle_timer(now)
        return [self.connection]


async def _addresses(host: str, port: int, seconds: float) -> list[tuple[int, Address]]:
    try:
        async with asyncio.timeout(seconds):
            return await resolve(host, port)
    except TimeoutError:
        raise ConnectError(f"the address of {host} could not be found out within {seconds:g} s") from None
    except (OSError, UnicodeError) as exc:
        why = ": no name server answers" if isinstance(exc, OSError) and exc.errno == socket.EAI_AGAIN else ""
        raise ConnectError(f"{host} is not a known host{why}") from exc
