"""A UDP relay that carries packets between two ends through emulated links, in real time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

__all__ = ["Crossing", "Path", "Relay", "Way"]

IP_UDP_BYTES: Final = 28
"""IPv4 and UDP headers of a packet, so that rates are those of a real path."""

MAX_LOG: Final = 500_000

MAX_FLOWS: Final = 64
"""Ports of clients that are told apart; a client that dials anew has another port."""

Way = Literal["up", "down"]


class Path(Protocol):
    """One direction: `voicestream.testing.Link` or what behaves like it."""

    def send(self, now: float, size_bytes: int, /) -> list[float]: ...


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


class _Flow:
    """One port of the client's and the socket that stands for it before the server, as a NAT has it."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.socket: asyncio.DatagramTransport | None = None
        self._waiting: deque[bytes] = deque(maxlen=MAX_FLOWS)

    async def open(self, server: tuple[str, int], receive: Callable[[_Flow, bytes], None]) -> None:
        loop = asyncio.get_running_loop()
        self.socket, _ = await loop.create_datagram_endpoint(lambda: _Port(lambda data, _: receive(self, data)), remote_addr=server)
        while self._waiting:
            self.to_server(self._waiting.popleft())

    def to_server(self, data: bytes) -> None:
        if self.socket is None:
            self._waiting.append(data)
        elif not self.socket.is_closing():
            self.socket.sendto(data)


class Relay:
    """Between clients, which talk to one port, and one server.

    Args:
        up: From client to server, on the loop's clock.
        down: Back.
    """

    def __init__(self, up: Path, down: Path) -> None:
        self.log: deque[Crossing] = deque(maxlen=MAX_LOG)
        self._links: dict[Way, Path] = {"up": up, "down": down}
        self._flows: dict[Any, _Flow] = {}
        self._server = ("", 0)
        self._near: asyncio.DatagramTransport | None = None
        self._opening: set[asyncio.Task[None]] = set()

    @property
    def flows(self) -> int:
        """Ports from which clients have called."""
        return len(self._flows)

    async def start(self, server_host: str, server_port: int) -> int:
        """Open the socket on the loopback address.

        Returns:
            The UDP port to call.
        """
        self._server = (server_host, server_port)
        loop = asyncio.get_running_loop()
        self._near, _ = await loop.create_datagram_endpoint(lambda: _Port(self._from_client), local_addr=("127.0.0.1", 0))
        port: int = self._near.get_extra_info("sockname")[1]
        return port

    def replace(self, up: Path, down: Path) -> None:
        """Packets go through these from now on; those under way arrive as they were to."""
        self._links = {"up": up, "down": down}

    def close(self) -> None:
        """Close the sockets; packets under way are lost."""
        for task in self._opening:
            task.cancel()
        for transport in (self._near, *(flow.socket for flow in self._flows.values())):
            if transport is not None:
                transport.close()

    def _from_client(self, data: bytes, addr: Any) -> None:
        flow = self._flows.get(addr)
        if flow is None:
            if len(self._flows) >= MAX_FLOWS:
                return
            flow = self._flows[addr] = _Flow(addr)
            task = asyncio.get_running_loop().create_task(flow.open(self._server, self._from_server))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
        self._carry("up", data, flow.to_server)

    def _from_server(self, flow: _Flow, data: bytes) -> None:
        self._carry("down", data, lambda arrived: self._to_client(flow, arrived))

    def _carry(self, way: Way, data: bytes, deliver: Callable[[bytes], None]) -> None:
        loop = asyncio.get_running_loop()
        now, size = loop.time(), len(data) + IP_UDP_BYTES
        arrivals = self._links[way].send(now, size)
        self.log.append(Crossing(now, way, size, bool(arrivals)))
        for at in arrivals:
            loop.call_at(at, deliver, data)

    def _to_client(self, flow: _Flow, data: bytes) -> None:
        if self._near is not None and not self._near.is_closing():
            self._near.sendto(data, flow.client)
