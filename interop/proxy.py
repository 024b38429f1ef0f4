"""The path between two implementations: a UDP relay that keeps what passes, and can lose, delay, mute and move it."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Packet", "Proxy"]

MAX_PACKETS: Final = 20000


@dataclass(frozen=True, slots=True)
class Packet:
    """A UDP payload that came to the relay: when, from the client or not, of which flow, and whether it was lost there."""

    at: float
    from_client: bool
    flow: int
    data: bytes
    lost: bool


class _Upstream(asyncio.DatagramProtocol):
    def __init__(self, flow: _Flow) -> None:
        self._flow = flow

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._flow.proxy.passes(self._flow, data, from_client=False)


class _Flow:
    """A client's address, and the socket that stands for it towards the server."""

    def __init__(self, proxy: Proxy, number: int, client: Any) -> None:
        self.proxy, self.number, self.client = proxy, number, client
        self.upstream: asyncio.DatagramTransport | None = None
        self.muted = False
        self.waiting: list[bytes] = []

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self.upstream, _ = await loop.create_datagram_endpoint(lambda: _Upstream(self), remote_addr=self.proxy.server)
        for data in self.waiting:
            self.upstream.sendto(data)
        self.waiting.clear()


class Proxy(asyncio.DatagramProtocol):
    """The relay.

    Args:
        server: Host and port.
        loss: Share of packets that it loses, after the first `spared` of each direction.
        delay: Seconds that it keeps each.
        seed: Of what it loses.

    Attributes:
        port: Where clients call.
        packets: What came, up to a bound.
    """

    def __init__(self, server: tuple[str, int], *, loss: float = 0.0, delay: float = 0.0, spared: int = 12, seed: int = 1) -> None:
        self.server = server
        self.port = 0
        self.packets: list[Packet] = []
        self._loss, self._delay, self._spared = loss, delay, spared
        self._rng = random.Random(seed)
        self._count = {True: 0, False: 0}
        self._flows: dict[Any, _Flow] = {}
        self._transport: asyncio.DatagramTransport | None = None
        self._begun = time.monotonic()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        self.port = self._transport.get_extra_info("sockname")[1]

    def stop(self) -> None:
        for flow in self._flows.values():
            if flow.upstream is not None:
                flow.upstream.close()
        if self._transport is not None:
            self._transport.close()

    def datagram_received(self, data: bytes, addr: Any) -> None:
        flow = self._flows.get(addr)
        if flow is None:
            flow = self._flows[addr] = _Flow(self, len(self._flows), addr)
            self._soon(flow.open())
        self.passes(flow, data, from_client=True)

    def passes(self, flow: _Flow, data: bytes, *, from_client: bool) -> None:
        """A packet has come."""
        self._count[from_client] += 1
        lost = flow.muted or (self._count[from_client] > self._spared and self._rng.random() < self._loss)
        if len(self.packets) < MAX_PACKETS:
            self.packets.append(Packet(time.monotonic() - self._begun, from_client, flow.number, data, lost))
        if lost:
            return
        if self._delay:
            asyncio.get_running_loop().call_later(self._delay, self._forward, flow, data, from_client)
        else:
            self._forward(flow, data, from_client)

    def _forward(self, flow: _Flow, data: bytes, from_client: bool) -> None:
        if not from_client:
            assert self._transport is not None
            if not self._transport.is_closing():
                self._transport.sendto(data, flow.client)
        elif flow.upstream is None:
            flow.waiting.append(data)
        elif not flow.upstream.is_closing():
            flow.upstream.sendto(data)

    def mute(self) -> None:
        """The flows that there are go nowhere from now on; a client's new socket passes."""
        for flow in self._flows.values():
            flow.muted = True

    async def rebind(self) -> None:
        """The server sees the clients under other addresses from now on, as after a NAT has forgotten them."""
        for flow in self._flows.values():
            old, flow.upstream = flow.upstream, None
            await flow.open()
            if old is not None:
                old.close()

    def _soon(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
