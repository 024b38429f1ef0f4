"""A UDP relay for one call: emulated links both ways that can be changed, broken, and given another port as a NAT does."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from voicestream.testing.link import Link
from voicestream.testing.profile import LinkProfile

__all__ = ["SoakRelay", "random_profile"]

_HEADERS = 28


def random_profile(rng: random.Random) -> LinkProfile:
    """A path as one meets them, good or bad."""
    return LinkProfile(
        delay_ms=rng.choice((2, 10, 30, 60)),
        jitter_ms=rng.choice((0, 2, 10)),
        loss=rng.choice((0, 0, 0.01, 0.05)),
        duplicate=rng.choice((0, 0, 0.01)),
        reorder=rng.random() < 0.2,
        rate_kbps=rng.choice((None, None, 200, 80)),
    )


class _Port(asyncio.DatagramProtocol):
    def __init__(self, relay: SoakRelay, way: str) -> None:
        self._relay = relay
        self._way = way

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._relay.received(self._way, data, addr)

    def error_received(self, exc: Exception) -> None:
        """An end that has closed its socket; to the other it is as if packets were lost."""


class SoakRelay:
    """Between one client, which calls `port`, and a server.

    Args:
        server: Its host and port.
        rng: Of the links.

    Attributes:
        port: To be called.
        broken: Nothing passes while it is set.
    """

    def __init__(self, server: tuple[str, int], rng: random.Random) -> None:
        self.port = 0
        self.broken = False
        self._server = server
        self._rng = rng
        self._links: dict[str, Link] = {}
        self._client: Any = None
        self._near: asyncio.DatagramTransport | None = None
        self._far: asyncio.DatagramTransport | None = None
        self.change(LinkProfile(delay_ms=10))

    async def open(self) -> SoakRelay:
        """Open the sockets; returns itself."""
        loop = asyncio.get_running_loop()
        self._near, _ = await loop.create_datagram_endpoint(lambda: _Port(self, "up"), local_addr=("127.0.0.1", 0))
        self.port = self._near.get_extra_info("sockname")[1]
        await self.rebind()
        return self

    async def rebind(self) -> None:
        """Stand before the server with another port from now on."""
        old = self._far
        self._far, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: _Port(self, "down"), remote_addr=self._server)
        if old is not None:
            old.close()

    def change(self, profile: LinkProfile) -> None:
        """Packets go through links of this kind from now on."""
        epoch = asyncio.get_running_loop().time()
        self._links = {way: Link(profile, self._rng.getrandbits(32), epoch=epoch) for way in ("up", "down")}

    def close(self) -> None:
        """Close the sockets."""
        for socket in (self._near, self._far):
            if socket is not None:
                socket.close()

    def received(self, way: str, data: bytes, address: Any) -> None:
        """A packet comes in."""
        if way == "up":
            self._client = address
        if self.broken:
            return
        loop = asyncio.get_running_loop()
        for at in self._links[way].send(loop.time(), len(data) + _HEADERS):
            loop.call_at(at, self._deliver, way, data)

    def _deliver(self, way: str, data: bytes) -> None:
        socket = self._far if way == "up" else self._near
        if socket is None or socket.is_closing() or self.broken:
            return
        if way == "up":
            socket.sendto(data)
        elif self._client is not None:
            socket.sendto(data, self._client)
