"""UDP sockets for live audio: buffers, priority, dual stack, bursts, and the errors that ICMP brings."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Iterable
from typing import Final

from voicestream.quic.values import Address

__all__ = ["GONE", "RefusalProbe", "UdpPort", "bind_socket", "client_socket", "host_port", "resolve"]

BUFFER_BYTES: Final = 1 << 20
"""Asked of the kernel for each direction: half a second of a thousand calls."""

EXPEDITED_FORWARDING: Final = 0xB8
"""DSCP 46 in the place of the traffic class."""

MAX_BURST: Final = 256
"""Datagrams taken from a socket before the loop gets its turn."""

MAX_POLLED: Final = 16
"""Datagrams taken from a socket by somebody else than the loop."""

MAX_UDP_BYTES: Final = 2048
"""Bytes that are read of a datagram: what is longer than any path of ours carries is cut off, and no packet of QUIC then. Python makes a
buffer of the full size for each datagram and gives back what it does not need; 256 KiB, as asyncio has it, or 64 KiB leave the
process's memory in pieces in the long run."""

GONE: Final = frozenset(
    {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EACCES, errno.EPERM, errno.ENETDOWN}
)
"""Errors that say that there is no way to an address."""

PROBE: Final = b"\0"
"""No version of QUIC has a packet that begins so; every server drops it and says nothing."""


def host_port(host: str, port: int) -> str:
    """How messages name an endpoint."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def resolve(host: str, port: int) -> list[tuple[int, Address]]:
    """Addresses of a host in the system's order of preference, families taking turns (RFC 8305 section 4).

    Raises:
        OSError: The host is unknown.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    usable = [(int(family), address) for family, _, _, _, address in found if family in (socket.AF_INET, socket.AF_INET6)]
    unique: list[tuple[int, Address]] = list(dict.fromkeys(usable))
    first = [entry for entry in unique if entry[0] == unique[0][0]]
    other = [entry for entry in unique if entry[0] != unique[0][0]]
    ordered: list[tuple[int, Address]] = []
    while first or other:
        ordered += [source.pop(0) for source in (first, other) if source]
    return ordered


def _prepare(sock: socket.socket) -> None:
    sock.setblocking(False)
    is_ipv6 = sock.family == socket.AF_INET6
    wanted = [(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES), (socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)]
    wanted.append((socket.IPPROTO_IP, socket.IP_TOS, EXPEDITED_FORWARDING))
    if is_ipv6 and hasattr(socket, "IPV6_TCLASS"):
        wanted.append((socket.IPPROTO_IPV6, socket.IPV6_TCLASS, EXPEDITED_FORWARDING))
    for level, option, value in wanted:
        with contextlib.suppress(OSError):  # all of this is best effort
            sock.setsockopt(level, option, value)


def client_socket(family: int, host: str | None = None) -> socket.socket:
    """A socket to call from, on a port of the system's choice.

    It has no fixed peer: the kernel then picks the source address packet by packet, and a call survives a change of network.

    Args:
        family: IPv4 or IPv6.
        host: Address of this machine to call from; None for whichever the system takes.

    Raises:
        OSError: This machine has no such family, or not this address.
    """
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        _prepare(sock)
        sock.bind((host or ("::" if family == socket.AF_INET6 else "0.0.0.0"), 0))
    except OSError:
        sock.close()
        raise
    return sock


def bind_socket(family: int, address: Address, *, dual_stack: bool = False) -> socket.socket:
    """A socket to listen on.

    Args:
        family: Of `address`.
        address: Host and port.
        dual_stack: Take IPv4 on an IPv6 wildcard address, too, where the system can.

    Raises:
        OSError: The port is taken, or the address is not of this machine.
    """
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        _prepare(sock)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not dual_stack))
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


class UdpPort(asyncio.DatagramProtocol):
    """A socket in an event loop. Whole bursts are handed over at once; what the kernel does not take at once is dropped and counted.

    Attributes:
        sock: The socket.
        dropped: Datagrams that could not be sent.
        unreachable: How many of the last ones, since one could be sent, failed because there is no way.
    """

    def __init__(
        self,
        sock: socket.socket,
        on_burst: Callable[[UdpPort, list[tuple[bytes, Address]]], None],
    ) -> None:
        self.sock = sock
        self.dropped = 0
        self.unreachable = 0
        self._on_burst = on_burst
        self._transport: asyncio.DatagramTransport | None = None

    async def open(self) -> None:
        """Begin to receive."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=self.sock)
        if hasattr(self._transport, "max_size"):  # asyncio's selector loops; uvloop has one buffer for all
            self._transport.max_size = MAX_UDP_BYTES

    def close(self) -> None:
        """Close the socket."""
        if self._transport is not None:
            self._transport.abort()
        else:
            self.sock.close()

    def send(self, packets: Iterable[tuple[bytes, Address]]) -> None:
        """Send at once or not at all: a queue in front of a full socket would only make audio late."""
        for data, address in packets:
            try:
                self.sock.sendto(data, address)
                self.unreachable = 0
            except OSError as error:
                # Full, or no route at present, or an ICMP error of an earlier packet. The network may come back; QUIC sees the loss.
                self.dropped += 1
                self.unreachable += error.errno in GONE

    def waiting(self) -> list[tuple[bytes, Address]]:
        """The next few datagrams, if any are there; from any thread."""
        found: list[tuple[bytes, Address]] = []
        with contextlib.suppress(OSError):
            while len(found) < MAX_POLLED:
                found.append(self.sock.recvfrom(MAX_UDP_BYTES))
        return found

    @property
    def address(self) -> Address:
        """Where the socket is bound."""
        address: Address = self.sock.getsockname()
        return address

    # What asyncio calls.

    def datagram_received(self, data: bytes, addr: Address) -> None:
        """One has been read; read the rest of the burst before anything is done about it."""
        burst = [(data, addr)]
        with contextlib.suppress(OSError):
            while len(burst) < MAX_BURST:
                burst.append(self.sock.recvfrom(MAX_UDP_BYTES))
        self._on_burst(self, burst)

    def error_received(self, exc: Exception) -> None:
        """Nothing: a call outlives a server's restart and a router's hiccup; `RefusalProbe` looks where it matters."""


class RefusalProbe(asyncio.DatagramProtocol):
    """Finds out at once that nothing listens at an address.

    Systems report ICMP errors only on sockets with a fixed peer, and a call's own socket has none. Asking Linux for them all the
    same (IP_RECVERR) sends asyncio's selector loop spinning and uvloop down.
    """

    def __init__(self, on_error: Callable[[OSError], None]) -> None:
        self._on_error: Callable[[OSError], None] | None = on_error
        self._transport: asyncio.DatagramTransport | None = None

    async def open(self, family: int, address: Address) -> None:
        """Send one byte. `on_error` is called, perhaps at once, if there is no way to the address or nobody at it."""
        sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.connect(address)
            sock.send(PROBE)
        except OSError as exc:
            sock.close()
            self.error_received(exc)
            return
        self._transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, sock=sock)

    def close(self) -> None:
        """Look no longer."""
        self._on_error = None
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls.

    def error_received(self, exc: Exception) -> None:
        """What there is to know."""
        if self._on_error is not None and isinstance(exc, OSError):
            self._on_error(exc)
