"""Congestion controller "voicestream" for aioquic: it counts, and bounds what may be unacknowledged, but never decides the rate.

The session's own estimator and pacer decide what leaves and when; a second controller under them would only make live audio wait.
What stays here is the bound that a path without any acknowledgement needs: a blackout must not be talked into for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aioquic.quic.congestion.base import QuicCongestionControl, register_congestion_control
from aioquic.quic.packet_builder import QuicSentPacket

__all__ = ["ALGORITHM", "MIN_IN_FLIGHT", "VoiceCongestion", "register"]

ALGORITHM: Final = "voicestream"
"""Name under which aioquic finds the controller."""

MIN_IN_FLIGHT: Final = 64 * 1024
"""Bytes that may always be unacknowledged: 8 s of 64 kbps."""

MAX_IN_FLIGHT: Final = 4 * 1024 * 1024
"""Bytes that may never be exceeded, whatever is granted."""

IN_FLIGHT_ROUND_TRIPS: Final = 4
"""Round trips of the granted rate that may be unacknowledged: one under way, one of delayed ACKs, and as much again."""

FORGOTTEN_AFTER: Final = 10.0
"""Seconds after which what nobody has acknowledged is in flight no more: it has left the path, and on a dead path, which is asked for a
sign of life for minutes, the questions would use the bound up."""

MIN_RTT: Final = 0.5
"""Seconds that the bound allows for at least: a queue on the path may grow within one round trip."""


class VoiceCongestion(QuicCongestionControl):
    """Counts packets and holds the bytes in flight under a bound that follows the granted rate.

    Attributes:
        packets_sent: Packets that count as in flight.
        packets_acked: Of those, acknowledged.
        packets_lost: Of those, declared lost by aioquic (packet or time threshold, RFC 9002 section 6.1).
        packets_expired: Of those, given up without a verdict (a probe timeout, or keys discarded).
        bytes_sent: Bytes of QUIC packets in flight, ever.
        rtt_latest: Last round trip in seconds, the peer's ACK delay included; None before the first.
    """

    def __init__(self, *, max_datagram_size: int) -> None:
        super().__init__(max_datagram_size=max_datagram_size)
        self.congestion_window = MIN_IN_FLIGHT
        self.packets_sent = 0
        self.packets_acked = 0
        self.packets_lost = 0
        self.packets_expired = 0
        self.bytes_sent = 0
        self.rtt_latest: float | None = None
        self._granted_bps = 0.0
        self._rtt_max = 0.0
        self._flying: dict[int, tuple[float, QuicSentPacket]] = {}

    def grant(self, rate_bps: float) -> None:
        """Take the rate, in bits per second, at which the session may send; the bound on bytes in flight follows."""
        if rate_bps < 0:
            raise ValueError(f"rate_bps must not be negative, not {rate_bps}")
        if rate_bps != self._granted_bps:
            self._granted_bps = rate_bps
            self._update_window()

    def _update_window(self) -> None:
        rtt = max(self._rtt_max, MIN_RTT)
        wanted = self._granted_bps / 8 * rtt * IN_FLIGHT_ROUND_TRIPS
        self.congestion_window = int(min(max(wanted, MIN_IN_FLIGHT), MAX_IN_FLIGHT))

    def on_packet_sent(self, *, packet: QuicSentPacket) -> None:
        self.packets_sent += 1
        self.bytes_sent += packet.sent_bytes
        self.bytes_in_flight = self.bytes_in_flight + packet.sent_bytes
        flying, at = self._flying, packet.sent_time or 0.0
        flying[id(packet)] = at, packet
        sent_at, oldest = next(iter(flying.values()))
        while sent_at < at - FORGOTTEN_AFTER:
            self._landed(oldest)
            sent_at, oldest = next(iter(flying.values()))

    def _landed(self, packet: QuicSentPacket) -> None:
        """The packet is in flight no more, if it still was."""
        if self._flying.pop(id(packet), None) is not None:
            self.bytes_in_flight = self.bytes_in_flight - packet.sent_bytes

    def let_go(self) -> None:
        """Nothing will be sent any more: packets, who know their connection, are kept no longer."""
        self._flying.clear()

    def on_packet_acked(self, *, now: float, packet: QuicSentPacket) -> None:
        self.packets_acked += 1
        self._landed(packet)

    def on_packets_expired(self, *, packets: Iterable[QuicSentPacket]) -> None:
        for packet in packets:
            self.packets_expired += 1
            self._landed(packet)

    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
        for packet in packets:
            self.packets_lost += 1
            self._landed(packet)

    def on_persistent_congestion(self) -> None:
        """Nothing: the session's loss and delay estimators see the same path."""

    def on_rtt_measurement(self, *, now: float, rtt: float) -> None:
        self.rtt_latest = rtt
        # Slowly forgetting maximum: a bound that shrank with one quick sample would bite in the next slow moment.
        self._rtt_max = max(rtt, self._rtt_max * 0.98)
        self._update_window()


def register() -> None:
    """Make the controller known to aioquic; harmless when repeated."""
    register_congestion_control(ALGORITHM, VoiceCongestion)
