"""A server's connections behind one address, without sockets and without a clock: routing, limits, timers, goodbyes.

Packets are routed by their destination connection id, so a client may change its address at any time. Where an owner serves many
connections it calls `flush` for those that something happened to; `datagrams_to_send` looks at all of them.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Final

from aioquic.quic.packet import QuicErrorCode, QuicProtocolVersion, encode_quic_version_negotiation

from voicestream.codepoints import ErrorCode
from voicestream.config import Limits
from voicestream.quic.compat import VoiceQuic
from voicestream.quic.configuration import ServerTls, server_configuration, windows_for
from voicestream.quic.connection import Connection
from voicestream.quic.connection_ids import ConnectionIds, random_ids
from voicestream.quic.connection_values import Goodbye
from voicestream.quic.doors import Doors, Ticket
from voicestream.quic.packets import Preamble, encode_initial_close, initial_token, read_preamble
from voicestream.quic.server_values import EndpointStats, Entry
from voicestream.quic.streams import SessionPort
from voicestream.quic.tickets import ServerTickets
from voicestream.quic.values import Address, TicketDesk

__all__ = ["EndpointStats", "ServerEndpoint"]

VERSIONS: Final = (QuicProtocolVersion.VERSION_1,)
MIN_INITIAL: Final = 1200
"""Bytes of the smallest UDP payload that may open a connection (RFC 9000 section 14.1)."""

MAX_REPLIES: Final = 256
MAX_GOODBYES: Final = 16384
LOST_EVERY: Final = 0.25
"""Seconds between two counts of the sessions without a path, at a server that is full."""

SOON: Final = 0.025
"""Seconds until a timer that the next packets, of calls in frames of 20 ms, come too late to move."""

MAX_RETIRED: Final = 8
"""Connection ids of one connection that are remembered after the peer has retired them."""


class ServerEndpoint:
    """Takes calls.

    Attributes:
        stats: Counters.
    """

    def __init__(
        self,
        tls: ServerTls,
        new_session: Callable[[], SessionPort],
        *,
        entropy: Callable[[int], bytes],
        limits: Limits | None = None,
        ids: ConnectionIds | None = None,
        retry: bool = False,
        tickets: ServerTickets | None = None,
    ) -> None:
        """Args:
            tls: The certificate.
            new_session: Makes a server session, not started, for each connection.
            entropy: Gives that many random bytes.
            limits: Timeouts, and how many connections in all and for one address; the defaults if None.
            ids: Where connection ids come from; 8 random bytes each if None.
            retry: Have every client prove its address first, at the price of one more round trip. Without, those that come while
                `Limits.retry_above` handshakes are under way do.
            tickets: Clients get tickets, with which they can ask for a resumption in early data; none if None.

        Raises:
            OSError: A file in `tls` cannot be read.
            ValueError: A file in `tls` does not hold what it should.
        """
        self.stats = EndpointStats()
        self._limits = limits or Limits()
        self._ids = ids or random_ids(entropy)
        self._entropy = entropy
        self._new_session = new_session
        self._configuration = server_configuration(tls, self._limits, id_length=self._ids.length)
        self._doors = Doors(self._limits, always=retry)
        self._entries: dict[Connection, Entry] = {}
        self._routes: dict[bytes, Connection] = {}
        self._hosts: Counter[object] = Counter()
        self._goodbyes: OrderedDict[bytes, Goodbye] = OrderedDict()
        self._replies: deque[tuple[bytes, Address]] = deque(maxlen=MAX_REPLIES)
        self._timers: list[tuple[float, int, Connection]] = []
        self._order = 0
        self._new: deque[Connection] = deque()
        self._closing = False
        self._lost: Counter[object] = Counter()
        self._lost_at = float("-inf")
        self._tickets = tickets
        self._now = 0.0

    # What the network and the clock bring.

    def receive_datagram(self, data: bytes, addr: Address, now: float) -> Connection | None:
        """Take one UDP payload.

        Returns:
            The connection that it was for, which is to be flushed; None for a packet that is nobody's or needs a reply at most.
        """
        self._now = now
        preamble = read_preamble(data, self._ids.length)
        if preamble is None:
            self.stats.ignored += 1
            return None
        connection = self._routes.get(preamble.destination_id)
        is_new = connection is None
        if connection is None:
            connection = self._stranger(preamble, data, addr, now)
            if connection is None:
                return None
        if not self._entries[connection].packets.allow(now):
            self.stats.unread += 1  # no more of the machine for one client, whatever it sends; its QUIC will send less
            return None
        connection.receive_datagram(data, addr, now)
        if connection.has_begun:
            self.stats.accepted += is_new
            self._settle(connection, now, timer=False)
            return connection
        # Nothing in it could be authenticated, or it begins no handshake: not worth a connection, nor an answer.
        self.stats.ignored += 1
        self._forget(connection, now)
        return None

    def handle_timer(self, now: float, most: int | None = None) -> list[Connection]:
        """Do what is due.

        Args:
            now: Monotonic seconds.
            most: For so many connections at once; the timer of the others stays due.

        Returns:
            The connections it was done for, which are to be flushed.
        """
        while self._goodbyes and next(iter(self._goodbyes.values())).until <= now:
            self._goodbyes.popitem(last=False)
        due: list[Connection] = []
        while self._timers and self._timers[0][0] <= now and len(due) != most:
            at, _, connection = heapq.heappop(self._timers)
            entry = self._entries.get(connection)
            if entry is None or entry.timer != at:
                continue
            entry.timer = None
            wanted = connection.next_timer()
            if wanted is not None and wanted <= now:
                connection.handle_timer(now)
                due.append(connection)
            else:
                self._note_timer(connection, entry, wanted, now)
        for connection in due:
            self._settle(connection, now, timer=False)
        return due

    def next_timer(self) -> float | None:
        """When `handle_timer` wants to be called; None for never."""
        while self._timers:
            at, _, connection = self._timers[0]
            entry = self._entries.get(connection)
            if entry is not None and entry.timer == at:
                break
            heapq.heappop(self._timers)
        times = [self._timers[0][0]] if self._timers else []
        if self._goodbyes:
            times.append(next(iter(self._goodbyes.values())).until)
        return min(times, default=None)

    # What leaves.

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, Address]]:
        """UDP payloads of all connections that leave now."""
        packets = self.replies_to_send()
        for connection in list(self._entries):
            packets += self.flush(connection, now)
        return packets

    def replies_to_send(self) -> list[tuple[bytes, Address]]:
        """UDP payloads that belong to no connection: version negotiation, Retry, refusals, goodbyes."""
        packets = list(self._replies)
        self._replies.clear()
        return packets

    def rests(self, connection: Connection, now: float) -> bool:
        """Whether a connection need not be flushed after packets of it have come, as nothing of it leaves before its timer comes up."""
        entry = self._entries.get(connection)
        if entry is None or entry.timer is None or now >= entry.timer or not connection.is_calm(entry.timer):
            return False
        if entry.timer < now + SOON:  # what it was set for may have come with the packets
            self._note_timer(connection, entry, connection.next_timer(), now)
        return True

    def flush(self, connection: Connection, now: float) -> list[tuple[bytes, Address]]:
        """UDP payloads of one connection that leave now; also reads its timer again and forgets it when it is over."""
        entry = self._entries.get(connection)
        if entry is None:
            return []
        timer = connection.idle_until(now)
        if timer is not None:
            self._note_timer(connection, entry, timer, now)
            return []
        packets = connection.datagrams_to_send(now)
        self._settle(connection, now)
        return packets

    # The application's side.

    def next_connection(self) -> Connection | None:
        """A connection whose session has been started and that has not been handed out before."""
        return self._new.popleft() if self._new else None

    @property
    def connections(self) -> list[Connection]:
        """All connections that are not over."""
        return list(self._entries)

    def refuse_new(self) -> None:
        """Take no more connections; those that exist go on."""
        self._closing = True

    # Strangers.

    def _stranger(self, preamble: Preamble, data: bytes, addr: Address, now: float) -> Connection | None:
        """A packet with a connection id that no connection has."""
        goodbye = self._goodbyes.get(preamble.destination_id)
        if goodbye is not None:
            self.stats.late += 1
            self._replies.extend((packet, addr) for packet, _ in goodbye.answer())
            return None
        version = preamble.version
        if version is None or version == QuicProtocolVersion.NEGOTIATION or len(data) < MIN_INITIAL:
            self.stats.ignored += 1
            return None
        if version not in VERSIONS:
            self.stats.negotiated += 1
            packet = encode_quic_version_negotiation(
                source_cid=preamble.destination_id, destination_cid=preamble.source_id, supported_versions=list(VERSIONS)
            )
            self._replies.append((packet, addr))
            return None
        token = initial_token(data)
        if token is None:
            self.stats.ignored += 1
            return None
        if self._is_full(addr, now):
            self.stats.refused += 1
            self._close_initial(preamble, addr, QuicErrorCode.CONNECTION_REFUSED, "the server has no room for another call")
            return None
        return self._admit(preamble, token, addr, now)

    def _is_full(self, addr: Address, now: float) -> bool:
        """Whether there is no room. A session that has lost its path may come on a second connection, without counting twice.

        Handshakes have bounds of their own: what a forger of addresses begins must not take the place of calls.
        """
        if self._closing or self._doors.is_full(addr[0]):
            return True
        most, most_here = self._limits.max_sessions, self._limits.max_sessions_per_address
        count, count_here = len(self._entries) - self._doors.total, self._hosts[addr[0]]
        if count < most and count_here < most_here:
            return False
        if not self._lost_at <= now < self._lost_at + LOST_EVERY:
            lost = [entry.host for one, entry in self._entries.items() if one.keeps_session and one.hearing.is_lost(now)]
            self._lost_at, self._lost = now, Counter(lost)
        return count - min(self._lost.total(), most) >= most or count_here - min(self._lost[addr[0]], most_here) >= most_here

    def _admit(self, preamble: Preamble, token: bytes, addr: Address, now: float) -> Connection | None:
        try:
            ticket = self._doors.check(preamble, token, addr, now)
        except ValueError:
            self._close_initial(preamble, addr, QuicErrorCode.INVALID_TOKEN, "")
            return None
        if ticket is None:
            self.stats.retried += 1
            self._replies.append((self._doors.retry(preamble, addr, now, self._ids.next), addr))
            return None
        return self._begin(preamble, ticket, addr)

    def _begin(self, preamble: Preamble, ticket: Ticket, addr: Address) -> Connection:
        tickets, desk = self._tickets, None
        if tickets is not None:
            desk = TicketDesk(lambda new: tickets.keep(new, connection), lambda name: tickets.take(name, self._now))
        quic = VoiceQuic(
            self._configuration,
            windows=windows_for(self._limits),
            ids=self._ids,
            entropy=self._entropy,
            original_destination_id=ticket.original_id,
            retry_source_id=ticket.retry_source_id,
            tickets=desk,
        )
        connection = Connection(quic, self._new_session(), server="the server", handshake_timeout=self._limits.handshake_timeout)
        entry = self._entries[connection] = Entry(addr[0], self._limits)
        self._doors.begun(entry.host)
        for cid in (preamble.destination_id, quic.host_cid):
            entry.ids.add(cid)
            self._routes[cid] = connection
        return connection

    def _close_initial(self, preamble: Preamble, addr: Address, code: int, reason: str) -> None:
        packet = encode_initial_close(
            version=VERSIONS[0], destination_id=preamble.destination_id, source_id=preamble.source_id, code=code, reason=reason
        )
        self._replies.append((packet, addr))

    # Bookkeeping.

    def _settle(self, connection: Connection, now: float, *, timer: bool = True) -> None:
        """Bring routes, queue and timer up to date with a connection; the last not where it is about to be flushed."""
        entry = self._entries.get(connection)
        if entry is None:
            return
        for cid, is_valid in connection.take_id_news():
            if is_valid:
                entry.ids.add(cid)
                self._routes[cid] = connection
            else:
                entry.retired.append(cid)
                if len(entry.retired) > MAX_RETIRED:
                    oldest = entry.retired.popleft()
                    entry.ids.discard(oldest)
                    self._routes.pop(oldest, None)
        if connection.is_ready and not entry.was_offered:
            entry.was_offered = True
            self.stats.early += not connection.is_up
            self._new.append(connection)
        if connection.is_up and not entry.is_counted:
            self._count(connection, entry, now)
        if entry.is_guest and connection.is_up and connection.session.is_open:
            entry.is_guest = False
            self._doors.ended(entry.host)
        if connection.is_terminated:
            self._retire(connection, entry, now)
            return
        if timer:
            self._note_timer(connection, entry, connection.next_timer(), now)

    def _count(self, connection: Connection, entry: Entry, now: float) -> None:
        """A handshake is complete, so the client lives at its address: from now on it counts there."""
        entry.is_counted = True
        self._hosts[entry.host] += 1
        most = self._limits.max_sessions_per_address
        if self._hosts[entry.host] - min(self._lost[entry.host], most) > most and not connection.keeps_session:
            # Others of this address were quicker.
            self.stats.refused += 1
            connection.close(now, ErrorCode.BUSY, "the server has no room for another call of this address")

    def _note_timer(self, connection: Connection, entry: Entry, timer: float | None, now: float) -> None:
        # Most packets move a timer back. One that would come up before the next of them is moved; a later one is left in the heap, and
        # reads anew when it comes up.
        if timer is not None and (entry.timer is None or timer < entry.timer or entry.timer < min(timer, now + SOON)):
            entry.timer = timer
            self._order += 1
            heapq.heappush(self._timers, (timer, self._order, connection))

    def _retire(self, connection: Connection, entry: Entry, now: float) -> None:
        """Let go of a connection that is over; only its ids are kept for a while, so that late packets open no new one."""
        goodbye = connection.goodbye or Goodbye([], now + connection.drain_time)
        self._forget(connection, now)
        for cid in entry.ids:
            self._goodbyes[cid] = goodbye
        while len(self._goodbyes) > MAX_GOODBYES:
            self._goodbyes.popitem(last=False)

    def _forget(self, connection: Connection, now: float) -> None:
        entry = self._entries.pop(connection)
        for cid in entry.ids:
            if self._routes.get(cid) is connection:
                del self._routes[cid]
        if entry.is_guest:
            self._doors.ended(entry.host)
        if entry.is_counted:
            self._hosts[entry.host] -= 1
            if not self._hosts[entry.host]:
                del self._hosts[entry.host]
        if self._tickets is not None:
            self._tickets.ended(connection, now, finished=connection.is_finished)
        connection.let_go()

    def close(self, now: float, code: int = ErrorCode.GOING_AWAY, reason: str = "") -> None:
        """Close all connections and take no new ones. `datagrams_to_send` until `connections` is empty lets them end well."""
        self._closing = True
        for connection in list(self._entries):
            connection.close(now, code, reason)
