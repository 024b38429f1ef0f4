"""A UDP relay that carries packets between two ends through emulated links, in real time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from voicestream.testing.link import Link

__all__ = ["Crossing", "Relay"]

IP_UDP_BYTES: Final = 28
"""IPv4 and UDP headers of a packet, so that rates are those of a real path."""

MAX_LOG: Final = 500_000

Way = Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class Crossing:
    """One packet that entered the link: when (loop seconds), which way, its IP bytes, and whether it arrives."""

    at: float
    way: Way
    size_bytes: int
    arrives: bool


class _Port(asyncio.DatagramProtocol):
    def __init__(self, receive: Callable[[bytes, Any], None]) -> None:
        self.receive = receive

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.receive(data, addr)

    def error_received(self, exc: Exception) -> None:
        """An end that has closed its socket answers with ICMP; on a real path too, packets to it are simply gone."""


class Relay:
    """Between one client, which talks to `port`, and one server.

    Args:
        up: Link from client to server, on the loop's clock.
        down: Link back.
    """

    def __init__(self, up: Link, down: Link) -> None:
        self.log: deque[Crossing] = deque(maxlen=MAX_LOG)
        self._links: dict[Way, Link] = {"up": up, "down": down}
        self._client: Any = None
        self._near: asyncio.DatagramTransport | None = None
        self._far: asyncio.DatagramTransport | None = None

    async def start(self, server_host: str, server_port: int) -> int:
        """Open the sockets on the loopback address.

        Returns:
            The UDP port to call.
        """
        loop = asyncio.get_running_loop()
        self._far, _ = await loop.create_datagram_endpoint(lambda: _Port(self._from_server), remote_addr=(server_host, server_port))
        self._near, _ = await loop.create_datagram_endpoint(lambda: _Port(self._from_client), local_addr=("127.0.0.1", 0))
        port: int = self._near.get_extra_info("sockname")[1]
        return port

    def close(self) -> None:
        """Close the sockets; packets under way are lost."""
        for transport in (self._near, self._far):
            if transport is not None:
                transport.close()

    def _from_client(self, data: bytes, addr: Any) -> None:
        self._client = addr
        self._carry("up", data, self._to_server)

    def _from_server(self, data: bytes, _addr: Any) -> None:
        self._carry("down", data, self._to_client)

    def _carry(self, way: Way, data: bytes, deliver: Callable[[bytes], None]) -> None:
        loop = asyncio.get_running_loop()
        now, size = loop.time(), len(data) + IP_UDP_BYTES
        arrivals = self._links[way].send(now, size)
        self.log.append(Crossing(now, way, size, bool(arrivals)))
        for at in arrivals:
            loop.call_at(at, deliver, data)

    def _to_server(self, data: bytes) -> None:
        if self._far is not None and not self._far.is_closing():
            self._far.sendto(data)

    def _to_client(self, data: bytes) -> None:
        if self._near is not None and not self._near.is_closing() and self._client is not None:
            self._near.sendto(data, self._client)
