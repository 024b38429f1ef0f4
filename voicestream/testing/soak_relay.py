"""A UDP relay for one call: emulated links both ways that can be changed, broken, and given another port as a NAT does."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections.abc import Iterator
from typing import Any

from voicestream.testing.link import Link
from voicestream.testing.profile import LinkProfile

__all__ = ["SoakRelay", "random_profile"]

_HEADERS = 28
_MAX_FLOWS = 8
_MAX_PACKET = 2048


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


class SoakRelay:
    """Between one client, which calls `port`, and a server; each socket of the client's has one before the server, as at a NAT.

    Args:
        server: Its host and port.
        rng: Of the links.

    Attributes:
        port: To be called.
        broken: Nothing passes while it is set.
    """

    def __init__(self, server: tuple[str, int], rng: random.Random) -> None:
        self.broken = False
        self._server = server
        self._rng = rng
        self._links: dict[str, Link] = {}
        self._near = self._socket()
        self._flows: dict[Any, socket.socket] = {}
        self._near.bind(("127.0.0.1", 0))
        self.port = self._near.getsockname()[1]
        asyncio.get_running_loop().add_reader(self._near, self._from_client)
        self.change(LinkProfile(delay_ms=10))

    @staticmethod
    def _socket() -> socket.socket:
        found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        found.setblocking(False)
        return found

    def rebind(self) -> None:
        """Stand before the server with other ports from now on."""
        flows, self._flows = self._flows, {}
        for far in flows.values():
            self._drop(far)

    def change(self, profile: LinkProfile) -> None:
        """Packets go through links of this kind from now on."""
        epoch = asyncio.get_running_loop().time()
        self._links = {way: Link(profile, self._rng.getrandbits(32), epoch=epoch) for way in ("up", "down")}

    def close(self) -> None:
        """Close the sockets."""
        self.broken = True
        self.rebind()
        self._drop(self._near)

    @staticmethod
    def _drop(one: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(one)
        one.close()

    def _from_client(self) -> None:
        for data, client in _packets(self._near):
            far = self._flows.get(client) or self._open(client)
            self._carry("up", far, data, None)

    def _open(self, client: Any) -> socket.socket:
        if len(self._flows) >= _MAX_FLOWS:
            self._drop(self._flows.pop(next(iter(self._flows))))
        far = self._flows[client] = self._socket()
        far.connect(self._server)
        asyncio.get_running_loop().add_reader(far, self._from_server, far, client)
        return far

    def _from_server(self, far: socket.socket, client: Any) -> None:
        for data, _ in _packets(far):
            self._carry("down", self._near, data, client)

    def _carry(self, way: str, out: socket.socket, data: bytes, to: Any) -> None:
        if self.broken:
            return
        loop = asyncio.get_running_loop()
        for at in self._links[way].send(loop.time(), len(data) + _HEADERS):
            loop.call_at(at, self._deliver, out, data, to)

    def _deliver(self, out: socket.socket, data: bytes, to: Any) -> None:
        if self.broken:
            return
        # A full buffer, a far end that has closed its socket, a socket that was closed meanwhile: to the ends it is a loss.
        with contextlib.suppress(OSError):
            if to is None:
                out.send(data)
            else:
                out.sendto(data, to)


def _packets(one: socket.socket) -> Iterator[tuple[bytes, Any]]:
    """What has come."""
    for _ in range(50):
        try:
            yield one.recvfrom(_MAX_PACKET)
        except BlockingIOError:
            return
        except OSError:
            continue  # an ICMP answer
