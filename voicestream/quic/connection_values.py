"""What a connection tells about itself, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from voicestream.quic.compat import VoiceQuic
from voicestream.quic.values import Address

__all__ = ["ConnectionStats", "Goodbye", "stats_of"]


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


def stats_of(quic: VoiceQuic, ignored: int) -> ConnectionStats:
    """The counters of a connection that has ignored so many UDP payloads."""
    congestion = quic.congestion
    return ConnectionStats(
        rtt=quic.rtt,
        packets_sent=congestion.packets_sent,
        packets_lost=congestion.packets_lost,
        lone_acks_sent=quic.lone_acks,
        bytes_in_flight=congestion.bytes_in_flight,
        datagrams_blocked=quic.datagrams_blocked,
        datagrams_oversize=quic.datagrams_oversize,
        packets_ignored=ignored,
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
