"""What a connection tells about itself, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from voicestream.events import Closed
from voicestream.quic.compat import VoiceQuic
from voicestream.quic.early import EarlyGate
from voicestream.quic.streams import SessionPort, StreamTable
from voicestream.quic.values import Address

__all__ = ["ConnectionStats", "ConnectionView", "Goodbye"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionStats:
    """Counters of one connection.

    Attributes:
        rtt: Smoothed round trip of QUIC in seconds; None before the first sample.
        packets_sent: QUIC packets that carried more than ACKs.
        packets_lost: Of those, declared lost by QUIC; a hint, for the session's reports know better.
        lone_acks_sent: Packets that carried nothing but an ACK.
        bytes_in_flight: Bytes sent and neither acknowledged nor given up.
        datagrams_blocked: Datagrams dropped because too much was in flight, as in a blackout.
        datagrams_oversize: Datagrams dropped because they do not fit in one packet.
        packets_ignored: UDP payloads that came before the handshake's end was reached or after the goodbye.
        errors: Exceptions caught while packets were handled; 0 unless the far end is hostile or a library is broken.
    """

    rtt: float | None
    packets_sent: int
    packets_lost: int
    lone_acks_sent: int
    bytes_in_flight: int
    datagrams_blocked: int
    datagrams_oversize: int
    packets_ignored: int
    errors: int


class ConnectionView:
    """What anybody may know of a connection; `voicestream.quic.connection` has the rest of it."""

    session: SessionPort
    _built: list[tuple[bytes, Address]]
    _closed: Closed | None
    _gate: EarlyGate
    _ignored: int
    _is_over: bool
    _is_up: bool
    _linger_until: float | None
    _quic: VoiceQuic
    _resend: list[tuple[bytes, Address]]
    _streams: StreamTable

    @property
    def events_wait(self) -> bool:
        """Whether the far end has not acknowledged all of the events that have left."""
        return self._quic.events_wait

    @property
    def is_finished(self) -> bool:
        """Whether one of the two ends has closed the session on this connection, and nothing of it can be resumed."""
        return self._closed is not None and not self._closed.may_resume

    @property
    def has_begun(self) -> bool:
        """Whether a packet of the far end has been authenticated."""
        return self._quic.has_begun

    @property
    def drain_time(self) -> float:
        """Seconds after the end during which late packets may come."""
        return 3 * self._quic.probe_timeout

    @property
    def is_up(self) -> bool:
        """Whether the handshake has been completed and the session started."""
        return self._is_up

    @property
    def is_ready(self) -> bool:
        """Whether the session has been started; on a server perhaps by a request to resume that came before the handshake's end."""
        return self._is_up or self._gate.is_used

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be sent or received by the session."""
        return self._is_over or self.session.is_closed

    @property
    def is_terminated(self) -> bool:
        """Whether QUIC, too, has said its last word; only late packets are answered now."""
        return not self._quic.is_open or (self._is_over and self.peer_address is None)

    @property
    def rtt(self) -> float | None:
        """Smoothed round trip of QUIC in seconds; None before the first sample."""
        return self._quic.rtt

    @property
    def peer_address(self) -> Address | None:
        """Where packets go at present; None before the first."""
        address: Address | None = self._quic.get_peer_address()
        return address

    @property
    def peer_certificate(self) -> bytes | None:
        """On a client, the DER of the server's certificate once it has come."""
        return self._quic.peer_certificate

    def idle_until(self, now: float) -> float | None:
        """`next_timer` if surely nothing leaves now; None where `datagrams_to_send` has to find out.

        Most packets that come have nothing leave at once: for a server that is half of all that it is asked to send.
        """
        if not self._is_up or self._is_over or self._linger_until is not None or self._resend or self._built or self._streams.is_blocked:
            return None
        session = None if self.session.is_closed else self.session.idle_until(now)
        if session is None or not self._quic.is_open or not self._quic.is_quiet(now):
            return None
        timer = self._quic.timer()
        return None if timer is None else min(session, timer)

    def is_calm(self, until: float) -> bool:
        """Whether what has come since `next_timer` was read gives surely nothing to do before `until`, which is not after it.

        Most that comes is audio in its order, to be told of, acknowledged and played in its time. False where in doubt.
        """
        if not self._is_up or self._is_over or self._linger_until is not None or self._resend or self._built or self._streams.is_blocked:
            return False
        return self._quic.is_calm(until) and self.session.is_calm(until)

    @property
    def max_datagram_size(self) -> int:
        """Bytes of VoiceStream that fit in one QUIC datagram on this connection; 0 before the handshake."""
        return self._quic.max_datagram_payload

    def stats(self) -> ConnectionStats:
        """Counters up to now."""
        quic, congestion = self._quic, self._quic.congestion
        return ConnectionStats(
            rtt=quic.rtt,
            packets_sent=congestion.packets_sent,
            packets_lost=congestion.packets_lost,
            lone_acks_sent=quic.lone_acks,
            bytes_in_flight=congestion.bytes_in_flight,
            datagrams_blocked=quic.datagrams_blocked,
            datagrams_oversize=quic.datagrams_oversize,
            packets_ignored=self._ignored,
            errors=quic.errors,
        )


class Goodbye:
    """A closed connection's last packets: sent again for the 1st, 2nd, 4th, 8th ... packet that comes late (RFC 9000 section 10.2.1).

    Attributes:
        until: When the far end can be taken to have heard, in seconds of the owner's clock.
    """

    __slots__ = ("_late", "_packets", "until")

    def __init__(self, packets: list[tuple[bytes, Address]], until: float) -> None:
        self._packets = packets
        self._late = 0
        self.until = until

    def answer(self) -> list[tuple[bytes, Address]]:
        """What to send in answer to one late packet."""
        self._late += 1
        return self._packets if self._late & (self._late - 1) == 0 else []
