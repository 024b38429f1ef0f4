"""A UDP relay on this machine's loopback whose path goes mute, or leads to another server, at a word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

__all__ = ["MuteRelay"]

MAX_WAITING: Final = 64
"""Packets that wait for the socket that is opened for their port."""


class MuteRelay(asyncio.DatagramProtocol):
    """Carries packets between clients and one server, each port of theirs by a socket of its own, as a NAT does.

    Args:
        server: Host and port.

    Attributes:
        server: Where packets go.
        mute: Nothing passes while it is set.
        admits: Asked about each packet of a client and its address; one that it does not admit is lost.
        clients: How many ports of clients there have been.
    """

    def __init__(self, server: tuple[str, int]) -> None:
        self.server = server
        self.mute = False
        self.clients = 0
        self.admits: Callable[[bytes, Any], bool] = lambda data, addr: True
        self._front: asyncio.DatagramTransport | None = None
        self._backs: dict[Any, asyncio.DatagramTransport] = {}
        self._waiting: dict[Any, list[bytes]] = {}
        self._opening: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def to(cls, server: tuple[str, int]) -> AsyncIterator[MuteRelay]:
        """One on a free port, until the context is left."""
        relay = cls(server)
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: relay, local_addr=("127.0.0.1", 0))
        try:
            yield relay
        finally:
            relay.close()

    @property
    def port(self) -> int:
        """To be called."""
        assert self._front is not None
        return int(self._front.get_extra_info("socket").getsockname()[1])

    def lead_to(self, server: tuple[str, int]) -> None:
        """Everything goes to another server from now on, as when one dies and another takes its address."""
        self.server = server
        for back in self._backs.values():
            back.close()
        self._backs.clear()

    def close(self) -> None:
        """Let go of all sockets."""
        for one in (self._front, *self._backs.values()):
            if one is not None:
                one.close()

    def connection_made(self, transport: Any) -> None:
        """The front is open."""
        self._front = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        """From a client."""
        if self.mute or not self.admits(data, addr):
            return
        if addr in self._backs:
            self._backs[addr].sendto(data)
        elif addr in self._waiting:
            if len(self._waiting[addr]) < MAX_WAITING:
                self._waiting[addr].append(data)
        else:
            self._waiting[addr] = [data]
            opening = asyncio.get_running_loop().create_task(self._open(addr))
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)

    async def _open(self, addr: Any) -> None:
        relay = self

        class Back(asyncio.DatagramProtocol):
            def datagram_received(self, data: bytes, _: Any) -> None:
                if not relay.mute and relay._front is not None:
                    relay._front.sendto(data, addr)

        server = self.server
        back, _ = await asyncio.get_running_loop().create_datagram_endpoint(Back, remote_addr=server)
        waiting = self._waiting.pop(addr)
        if self._front is None or self._front.is_closing() or server != self.server:
            back.close()  # the end has come meanwhile, or it leads elsewhere: what comes next opens another one
            return
        self.clients += 1
        self._backs[addr] = back
        for data in waiting:
            back.sendto(data)
