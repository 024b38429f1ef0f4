"""A far end's address with the socket that it is reached by. A module of its own, as mypyc compiles no heirs of built-in types."""

from __future__ import annotations

from voicestream.quic.sockets import UdpPort
from voicestream.quic.values import Address

__all__ = ["PortAddress"]


class PortAddress(tuple):  # type: ignore[type-arg]
    """A client's address that knows the socket that its packets came to, for servers with several."""

    port: UdpPort

    @classmethod
    def of(cls, address: Address, port: UdpPort) -> PortAddress:
        """An address that a packet to this port came from."""
        made = cls(address)
        made.port = port
        return made
