"""A NAT in front of host B that forgets its flows now and then."""

from __future__ import annotations

import bisect
import struct
from collections.abc import Sequence

__all__ = ["Nat"]

UDP = 17


class Nat:
    """Rewrites the UDP port of B: each of the times gives every flow another one; before the first it is not there.

    Args:
        times: Seconds at which it forgets.
    """

    def __init__(self, times: Sequence[float]) -> None:
        self._times = sorted(times)
        self._epoch = 0
        self._inside: dict[int, int] = {}

    def outward(self, now: float, packet: bytes) -> bytes:
        """A packet of B as the other host sees it."""
        place = self._port_place(now, packet, source=True)
        if place is None:
            return packet
        (port,) = struct.unpack_from("!H", packet, place)
        new = 20000 + (port * 7919 + self._epoch * 9973) % 40000
        while self._inside.get(new, port) != port:
            new = 20000 + (new - 19999) % 40000
        self._inside[new] = port
        return _with_port(packet, place, port, new)

    def inward(self, now: float, packet: bytes) -> bytes | None:
        """A packet to B as B sees it; None when no flow is at its port any more."""
        place = self._port_place(now, packet, source=False)
        if place is None:
            return packet
        (port,) = struct.unpack_from("!H", packet, place)
        return _with_port(packet, place, port, self._inside[port]) if port in self._inside else None

    def _port_place(self, now: float, packet: bytes, *, source: bool) -> int | None:
        """Where the port of B stands in the packet, if this is the NAT's business."""
        epoch = bisect.bisect_right(self._times, now)
        if epoch != self._epoch:
            self._epoch, self._inside = epoch, {}
        later_fragment = packet[6] & 31 or packet[7]
        if not epoch or packet[9] != UDP or later_fragment:
            return None
        head = (packet[0] & 15) * 4
        return head if source else head + 2


def _with_port(packet: bytes, place: int, old: int, new: int) -> bytes:
    out = bytearray(packet)
    struct.pack_into("!H", out, place, new)
    check_place = (packet[0] & 15) * 4 + 6
    (check,) = struct.unpack_from("!H", packet, check_place)
    if check:  # RFC 1624; 0 means that there is none
        total = (~check & 0xFFFF) + (~old & 0xFFFF) + new
        total = (total & 0xFFFF) + (total >> 16)
        struct.pack_into("!H", out, check_place, ~(total + (total >> 16)) & 0xFFFF or 0xFFFF)
    return bytes(out)
