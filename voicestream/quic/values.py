"""Values that the modules of this package share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from aioquic.tls import SessionTicket

__all__ = ["Address", "QuicEnd", "TicketDesk", "Windows"]

Address = tuple[Any, ...]
"""What the socket layer calls an address: (host, port) or (host, port, flow info, scope id)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Windows:
    """How much a peer may have under way toward us.

    Attributes:
        connection: Bytes on all streams beyond what was delivered.
        control: Bytes on the bidirectional stream beyond what was delivered.
        bidirectional_streams: Streams that the peer may open, ever.
        unidirectional_streams: Streams that the peer may have open at once.
    """

    connection: int
    control: int = 64 * 1024
    bidirectional_streams: int = 2
    unidirectional_streams: int = 64


@dataclass(frozen=True, slots=True)
class QuicEnd:
    """How a QUIC connection came to its end.

    Attributes:
        code: Of the application when `frame_type` is None, else of the transport.
        frame_type: Frame type at fault; None for an application's close.
        reason: Words of whoever closed.
        by_peer: Whether a CONNECTION_CLOSE of the peer ended it.
        silent: Whether nothing is sent or awaited any more (idle timeout, no common version, no path).
    """

    code: int
    frame_type: int | None
    reason: str
    by_peer: bool
    silent: bool


class TicketDesk(NamedTuple):
    """Where the TLS session tickets of a connection go, and on a server come from."""

    keep: Callable[[SessionTicket], None]
    fetch: Callable[[bytes], SessionTicket | None] | None = None
