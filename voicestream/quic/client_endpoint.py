"""A client's one connection, without sockets and without a clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from aioquic.tls import SessionTicket

from voicestream.config import Limits
from voicestream.quic.compat import MAX_PROBE_INTERVAL, VoiceQuic
from voicestream.quic.configuration import ClientTls, client_configuration, windows_for
from voicestream.quic.connection import Connection
from voicestream.quic.connection_ids import CLIENT_ID_LENGTH, MAX_ID_LENGTH, random_ids
from voicestream.quic.streams import SessionPort
from voicestream.quic.tickets import CallTickets, Place
from voicestream.quic.vacancy import Pending
from voicestream.quic.values import Address, TicketDesk

__all__ = ["ClientEndpoint"]

URGENT_INTERVAL = 0.2
"""Seconds between two first packets of a dial that nothing but its own answer can tell of the path's return: 50 kbps."""


class ClientEndpoint:
    """Calls a server.

    Attributes:
        connection: The connection; idle until `connect`.
    """

    def __init__(
        self,
        tls: ClientTls,
        session: SessionPort,
        *,
        entropy: Callable[[int], bytes],
        limits: Limits | None = None,
        route_token: bytes | None = None,
        id_length: int = CLIENT_ID_LENGTH,
        server: str | None = None,
        handshake_timeout: float | None = None,
        tickets: CallTickets | None = None,
        place: Place = ("", 0),
    ) -> None:
        """Args:
            tls: How the server's certificate is checked.
            session: A client session that has not been started.
            entropy: Gives that many random bytes.
            limits: Timeouts and what the server may send; the defaults if None.
            route_token: First destination connection id, 8 to 20 bytes; a relay sends the connection where it says.
            id_length: Bytes of this side's connection ids.
            server: What messages call the server; the name in `tls` if None.
            handshake_timeout: Seconds that this attempt gets, if not those of `limits`.
            tickets: Those of the call. Where one is of this server, the session's request to resume leaves with the first packet. A server
                that has proved to be the right one adds to them. None are asked for if None.
            place: Host and port of the server.

        Raises:
            OSError: `tls.cafile` cannot be read.
            ValueError: `tls.cafile` holds no certificate, or `route_token` has a wrong length.
        """
        if route_token is not None and not 8 <= len(route_token) <= MAX_ID_LENGTH:
            raise ValueError(f"route_token must have 8 to {MAX_ID_LENGTH} bytes, not {len(route_token)}")
        limits = limits or Limits()
        fresh: deque[SessionTicket] = deque(maxlen=1)
        configuration = client_configuration(tls, limits, id_length=id_length)
        configuration.session_ticket = None if tickets is None else tickets.show(place)
        quic = VoiceQuic(
            configuration,
            windows=windows_for(limits),
            ids=random_ids(entropy, id_length),
            entropy=entropy,
            first_destination_id=route_token,
            tickets=None if tickets is None else TicketDesk(fresh.append),
        )
        # A session waits for this connection, and its path may come back at any time.
        if isinstance(session, Pending):
            quic.hurries = URGENT_INTERVAL if session.is_urgent else MAX_PROBE_INTERVAL
        name = server or tls.server_name
        timeout = limits.handshake_timeout if handshake_timeout is None else handshake_timeout
        self.connection = Connection(quic, session, server=name, pin=tls.pin_bytes, handshake_timeout=timeout)
        self.connection.tickets = fresh
        self.connection.on_ticket = None if tickets is None else partial(tickets.keep, place)

    def connect(self, addr: Address, now: float) -> None:
        """Begin the handshake; see `Connection.connect`."""
        self.connection.connect(addr, now)

    def receive_datagram(self, data: bytes, addr: Address, now: float) -> None:
        """Take one UDP payload."""
        self.connection.receive_datagram(data, addr, now)

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, Address]]:
        """UDP payloads that leave now."""
        return self.connection.datagrams_to_send(now)

    def handle_timer(self, now: float) -> None:
        """Do what is due."""
        self.connection.handle_timer(now)

    def next_timer(self) -> float | None:
        """When `handle_timer` wants to be called; None for never."""
        return self.connection.next_timer()
