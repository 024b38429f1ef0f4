"""TLS session tickets, each good once: those that a server has given out, and those that a client holds (specification section 11.5).

A ticket lets the first packet of a dial carry a request to resume (0-RTT). Such a packet can be recorded and sent again, so a server
takes a ticket out as it looks at it: whoever comes second with it has to complete a handshake first, which a recording cannot.

aioquic asks for a ticket in the midst of a packet and cannot wait for an answer, so a server knows its own tickets only. At another
server a client needs the round trip, as it would after the store's.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from aioquic.tls import SessionTicket

__all__ = ["CallTickets", "Place", "ServerTickets"]

MAX_TICKETS: Final = 20000
"""Tickets that a server keeps, about 1 kB each; beyond that those whose connections ended longest ago go, then the oldest."""

Place = tuple[str, int]
"""Host and port of a server, as they were dialled."""


@dataclass(slots=True)
class _Kept:
    ticket: SessionTicket = field(repr=False)
    holder: object = field(repr=False)


class ServerTickets:
    """What a server has given out: one for each connection, kept for as long as that lives, and for a session's lifetime after it.

    Args:
        lifetime: Seconds that a ticket outlives its connection.
        most: Tickets kept.
    """

    __slots__ = ("_ended", "_lifetime", "_living", "_most", "_of")

    def __init__(self, lifetime: float, *, most: int = MAX_TICKETS) -> None:
        self._lifetime = lifetime
        self._most = most
        self._living: OrderedDict[bytes, _Kept] = OrderedDict()
        self._ended: OrderedDict[bytes, tuple[SessionTicket, float]] = OrderedDict()
        self._of: dict[object, bytes] = {}

    def __len__(self) -> int:
        return len(self._living) + len(self._ended)

    def keep(self, ticket: SessionTicket, holder: object) -> None:
        """A connection has got this ticket; an older one of it is void."""
        self._living.pop(self._of.get(holder, b""), None)
        self._living[ticket.ticket] = _Kept(ticket, holder)
        self._of[holder] = ticket.ticket
        while len(self) > self._most:
            if self._ended:
                self._ended.popitem(last=False)
            else:
                del self._of[self._living.popitem(last=False)[1].holder]

    def ended(self, holder: object, now: float, *, finished: bool = False) -> None:
        """A connection is over: the time of its ticket runs; if its session is over, too, the ticket is void. VS-15-7"""
        self._expire(now)
        kept = self._living.pop(self._of.pop(holder, b""), None)
        if kept is not None and not finished:
            self._ended[kept.ticket.ticket] = (kept.ticket, now + self._lifetime)

    def take(self, identity: bytes, now: float) -> SessionTicket | None:
        """The ticket of this name, which is used up thereby (VS-11.5-3); None if there is none, or no more."""
        self._expire(now)
        kept = self._living.pop(identity, None)
        if kept is not None:
            del self._of[kept.holder]
            return kept.ticket
        return self._ended.pop(identity, (None, 0.0))[0]

    def _expire(self, now: float) -> None:
        while self._ended and next(iter(self._ended.values()))[1] <= now:
            self._ended.popitem(last=False)


class CallTickets:
    """The newest ticket of one call, in memory only. It is worth a look at what the call's next dial says first: no repr shows it."""

    __slots__ = ("_place", "_ticket", "_was_shown")

    def __init__(self) -> None:
        self._place: Place | None = None
        self._ticket: SessionTicket | None = None
        self._was_shown = False

    def keep(self, place: Place, ticket: SessionTicket) -> None:
        """A server whose certificate has been checked gives this one; the one before is forgotten."""
        self._place, self._ticket, self._was_shown = place, ticket, False

    def show(self, place: Place) -> SessionTicket | None:
        """The ticket for a dial to this server, or None. It may be shown again as long as no answer has come to a dial."""
        if place != self._place or self._ticket is None:
            return None
        self._was_shown = True
        return self._ticket

    def network_changed(self) -> None:
        """A ticket is sent in the clear: shown on two networks, it would tell onlookers that one client was on both. VS-11.5-2"""
        if self._was_shown:
            self._place = self._ticket = None
