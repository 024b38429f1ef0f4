"""What a server's endpoint counts, and what it remembers of a connection."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from voicestream.config import Limits
from voicestream.core.rate_limit import RateLimit

__all__ = ["EndpointStats", "Entry"]

PACKET_BURST: Final = 2.0
"""Seconds' worth of packets that a connection may bring at once."""


@dataclass(slots=True)
class EndpointStats:
    """Counters of a server's endpoint.

    Attributes:
        accepted: Connections begun.
        refused: Connections refused because of a limit.
        ignored: Packets for nobody: unknown, malformed, too small.
        negotiated: Version Negotiation packets sent.
        retried: Retry packets sent.
        early: Requests to resume that came in early data.
        late: Packets for connections that are over.
        unread: Packets that were dropped because their connection brought too many.
    """

    accepted: int = 0
    refused: int = 0
    ignored: int = 0
    negotiated: int = 0
    retried: int = 0
    early: int = 0
    late: int = 0
    unread: int = 0


class Entry:
    """What the endpoint remembers of one connection beside it."""

    __slots__ = ("host", "ids", "is_counted", "is_guest", "packets", "retired", "timer", "was_offered")

    def __init__(self, host: object, limits: Limits) -> None:
        self.host = host
        self.packets = RateLimit(limits.packets_per_second, PACKET_BURST)
        self.ids: set[bytes] = set()
        self.retired: deque[bytes] = deque()
        self.timer: float | None = None
        self.was_offered = False
        self.is_counted = False
        self.is_guest = True  # no session has been accepted on it yet
