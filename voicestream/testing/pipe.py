"""What joins two simulated peers: datagrams that a link may lose, and streams of bytes that arrive whole and in order."""

from __future__ import annotations

from collections.abc import Callable

from voicestream.testing.link import Link
from voicestream.testing.sim import Simulation

__all__ = ["PACKET_OVERHEAD_BYTES", "DatagramPipe", "ReliablePipe"]

PACKET_OVERHEAD_BYTES = 58
"""IP, UDP and QUIC around one datagram or one piece of a stream, 8-byte connection ids."""

SEGMENT_BYTES = 1100
"""Bytes of a stream in one packet."""

MAX_RETRY_S = 1.0


class DatagramPipe:
    """Carries datagrams over `link`; each arrival calls `deliver`."""

    __slots__ = ("_deliver", "_link", "_sim")

    def __init__(self, sim: Simulation, link: Link, deliver: Callable[[bytes], None]) -> None:
        self._sim = sim
        self._link = link
        self._deliver = deliver

    def send(self, data: bytes) -> None:
        """One datagram enters."""
        deliver = self._deliver
        for at in self._link.send(self._sim.now, len(data) + PACKET_OVERHEAD_BYTES):
            self._sim.at(at, lambda: deliver(data))


class ReliablePipe:
    """Carries the bytes of one stream over `link` as a reliable transport would: what the link loses is sent again.

    Args:
        sim: The engine.
        link: Shared with the datagrams of the same direction.
        deliver: Called with each piece and whether the stream ends with it, in order.
        retry_s: Seconds until a lost piece is sent again; doubles with every further loss, to one second at most.
    """

    __slots__ = ("_deliver", "_link", "_next_in", "_next_out", "_retry_s", "_sim", "_waiting")

    def __init__(self, sim: Simulation, link: Link, deliver: Callable[[bytes, bool], None], *, retry_s: float) -> None:
        self._sim = sim
        self._link = link
        self._deliver = deliver
        self._retry_s = retry_s
        self._next_out = 0
        self._next_in = 0
        self._waiting: dict[int, tuple[bytes, bool]] = {}

    def send(self, data: bytes, fin: bool = False) -> None:
        """More bytes of the stream, or its end."""
        pieces = [data[at : at + SEGMENT_BYTES] for at in range(0, len(data), SEGMENT_BYTES)] or [b""]
        for index, piece in enumerate(pieces):
            self._transmit(self._next_out, piece, fin and index == len(pieces) - 1, self._retry_s)
            self._next_out += 1

    def _transmit(self, number: int, piece: bytes, fin: bool, retry_s: float) -> None:
        arrivals = self._link.send(self._sim.now, len(piece) + PACKET_OVERHEAD_BYTES)
        if arrivals:
            self._sim.at(arrivals[0], lambda: self._arrive(number, piece, fin))
        else:
            again_s = min(retry_s * 2, MAX_RETRY_S)
            self._sim.after(retry_s, lambda: self._transmit(number, piece, fin, again_s))

    def _arrive(self, number: int, piece: bytes, fin: bool) -> None:
        self._waiting[number] = (piece, fin)
        while self._next_in in self._waiting:
            ready = self._waiting.pop(self._next_in)
            self._next_in += 1
            self._deliver(*ready)
