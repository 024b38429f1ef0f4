"""The packets of a call that is under way, without the detours that aioquic takes for all the others.

Nearly every packet after the handshake holds one datagram, and perhaps an ACK of one range. Such a packet is put together and taken
apart here in one piece; the state that aioquic keeps is left exactly as its own code would have left it. Whatever else a packet holds,
or wherever anything is unusual, nothing is touched and aioquic does it.
"""

from __future__ import annotations

import math
from typing import Any, Final

from aioquic._buffer import Buffer, BufferReadError
from aioquic._crypto import CryptoError
from aioquic.quic import events
from aioquic.quic.connection import QuicConnectionState
from aioquic.quic.crypto import CryptoPair
from aioquic.quic.packet import QuicErrorCode, QuicPacketType, pull_ack_frame
from aioquic.quic.packet_builder import QuicSentPacket
from aioquic.quic.recovery import MAX_ACK_RANGES
from aioquic.tls import Epoch

from voicestream.quic.compat_windows import WindowedQuic
from voicestream.quic.values import Address

__all__ = ["MAX_ACK_DELAY", "TIMER_SLACK", "PacketQuic"]

MAX_ACK_DELAY: Final = 0.100
"""Seconds; the max_ack_delay transport parameter, from the first packet on (VS-9.1-5)."""

TIMER_SLACK: Final = 1e-6
"""Seconds by which a timer is late. aioquic takes a packet for lost at sent + delay but tests sent <= now - delay; rounded, the second
may be false at the very time of the first, and the timer would fire again and again until the clock moves on."""

TAG: Final = 16
"""Bytes by which encryption makes a packet longer."""

SAMPLE_AT: Final = 4
SAMPLE: Final = 16
"""Where behind the beginning of the number header protection takes its sample, and how long that is (RFC 9001 section 5.4.2)."""

SHORT: Final = 0x40
"""The first byte of a packet with a short header, but for the bits that tell something."""

PADDING: Final = 0x00
ACK: Final = 0x02
DATAGRAM: Final = 0x30
DATAGRAM_WITH_LENGTH: Final = 0x31
ONE_BYTE: Final = 0x40
TWO_BYTES: Final = 0x4000
"""Bounds of what one and two bytes of a variable-length integer hold (RFC 9000 section 16)."""

LONGEST_ACK: Final = 33
"""Bytes of an ACK of one range at its longest."""


class PacketQuic(WindowedQuic):
    """A QUIC connection that is quick with what a call consists of."""

    _voice_in_payload: bool
    _voice_keys: CryptoPair | None = None
    _voice_settled: bool = False

    def _one_rtt_keys(self) -> CryptoPair | None:
        """The keys of packets after the handshake, if nothing but such packets may come; the key of aioquic's table is dear to hash."""
        if self._voice_keys is None and self._handshake_confirmed and self._quic_logger is None:
            early, keys = self._cryptos.get(Epoch.ZERO_RTT), self._cryptos.get(Epoch.ONE_RTT)
            if keys is not None and (early is None or not early.recv.is_valid()):
                self._voice_keys = keys
        return self._voice_keys

    def let_go(self) -> None:
        """See `WindowedQuic.let_go`."""
        super().let_go()
        self._voice_keys = None
        self._voice_settled = False

    # What nothing but datagrams and ACKs has changed

    def _says_nothing_else(self) -> bool:
        if not self._voice_settled:
            self._voice_settled = super()._says_nothing_else()
        return self._voice_settled

    def is_calm(self, until: float) -> bool:
        """Whether surely nothing leaves, and nothing is due before `until`, which was not after the last `timer`."""
        space, _ = self._after_handshake
        if self._datagrams_pending or (space.ack_at is not None and space.ack_at + TIMER_SLACK < until) or space.loss_time is not None:
            return False
        return self._handshake_confirmed and self._says_nothing_else() and self.is_open

    def handle_timer(self, now: float) -> None:
        """As aioquic's, like the rest here; each may leave something to be said."""
        self._voice_settled = False
        super().handle_timer(now)

    def close(self, error_code: int = QuicErrorCode.NO_ERROR, frame_type: int | None = None, reason_phrase: str = "") -> None:
        self._voice_settled = False
        super().close(error_code, frame_type, reason_phrase)

    def change_connection_id(self) -> None:
        self._voice_settled = False
        super().change_connection_id()

    def send_ping(self, uid: int) -> None:
        self._voice_settled = False
        super().send_ping(uid)

    def send_stream_data(self, stream_id: int, data: bytes, end_stream: bool = False) -> None:
        self._voice_settled = False
        super().send_stream_data(stream_id, data, end_stream)

    def reset_stream(self, stream_id: int, error_code: int) -> None:
        self._voice_settled = False
        super().reset_stream(stream_id, error_code)

    def stop_stream(self, stream_id: int, error_code: int) -> None:
        self._voice_settled = False
        super().stop_stream(stream_id, error_code)

    # In

    def receive_datagram(self, data: bytes, addr: Address, now: float) -> None:
        """As aioquic's."""
        keys = self._one_rtt_keys()
        if keys is None or not self._take(keys, data, addr, now):
            self._voice_settled = False
            super().receive_datagram(data, addr, now)

    def _take(self, keys: CryptoPair, data: bytes, addr: Address, now: float) -> bool:
        """Take a packet with a datagram, an ACK or both; False if it is another one, or anything about it is unusual."""
        cid = self.host_cid
        path, at = self._network_paths[0], 1 + len(cid)
        if data[1:at] != cid or len(data) < at + SAMPLE_AT + SAMPLE or path.addr != addr or not path.is_validated:
            return False
        if self._state is not QuicConnectionState.CONNECTED or self._close_pending or data[0] & 0xC0 != SHORT:
            return False
        space, _ = self._after_handshake
        opened = _open(keys.recv, data, at, space.expected_packet_number)
        if opened is None:
            return False
        number, spin, payload = opened
        if number in space.received_packets:
            return False
        found = _frames(payload, self._configuration.max_datagram_frame_size or 0)
        if found is None:
            return False
        ack, datagrams = found
        self._voice_in_payload = True  # an exception from here on is a fault in what the peer has said, or in aioquic
        if number > space.expected_packet_number:
            space.expected_packet_number = number + 1
        if number > self._spin_highest_pn:
            self._spin_bit = not spin if self._is_client else spin
            self._spin_highest_pn = number
        if ack is not None:
            self._voice_settled = False
            self._loss.peer_completed_address_validation = True
            delay = (ack[1] << self._remote_ack_delay_exponent) / 1000000
            self._loss.on_ack_received(ack_rangeset=ack[0], ack_delay=delay, now=now, space=space)
        for datagram in datagrams:
            self._events.append(events.DatagramFrameReceived(data=datagram))
        self._close_at = now + self._idle_timeout()
        self._ack_eliciting_sent_since_receipt = False
        if number > space.largest_received_packet:
            space.largest_received_packet = number
            space.largest_received_time = now
        space.ack_queue.add(number)
        space.received_packets.add(number)
        if len(space.ack_queue) > MAX_ACK_RANGES:
            space.ack_queue.shift()
        if datagrams:
            # Nobody retransmits datagrams, so their ACK may wait; 50 ACKs a second would cost 3 kbps.
            self._ack_delay = MAX_ACK_DELAY
            due = now + MAX_ACK_DELAY
            if space.ack_at is None or space.ack_at > due:
                space.ack_at = due
        return True

    # Out

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, Address]]:
        """As aioquic's."""
        if len(self._datagrams_pending) == 1 and self._says_nothing_else():
            keys = self._one_rtt_keys()
            packet = None if keys is None else self._pack(keys, now)
            if packet is not None:
                return [packet]
        self._voice_settled = False
        return super().datagrams_to_send(now)

    def _pack(self, keys: CryptoPair, now: float) -> tuple[bytes, Address] | None:
        """The datagram that waits, in a packet, with an ACK if one is due; None if anything is unusual."""
        space, _ = self._after_handshake
        data, path, cid, number = self._datagrams_pending[0], self._network_paths[0], self._peer_cid.cid, self._packet_number
        acks = space.ack_at is not None and space.ack_at <= now
        size = len(data)
        room = min(self._max_datagram_size, self._loss.congestion_window - self._loss.bytes_in_flight)
        if size >= TWO_BYTES or 3 + len(cid) + LONGEST_ACK + 3 + size + TAG > room or keys._update_key_requested:
            return None
        if (acks and len(space.ack_queue) != 1) or self._state is not QuicConnectionState.CONNECTED:
            return None
        first = SHORT | self._spin_bit << 5 | keys.recv.key_phase << 2 | 1
        length = (size,) if size < ONE_BYTE else (ONE_BYTE | size >> 8, size & 0xFF)
        payload = bytes((DATAGRAM_WITH_LENGTH, *length)) + data
        handlers: list[Any] = []
        if acks:
            delay = max(0.0, now - (space.largest_received_time or 0.0))
            payload = _ack(space.ack_queue[0], int(delay * 1000000) >> self._local_ack_delay_exponent) + payload
            handlers.append((self._on_ack_delivery, (space, space.largest_received_packet)))
            space.ack_at = None
        sealed = _seal(keys.send, first, cid, number, payload)
        self._datagrams_pending.popleft()
        self._voice_held_since = None
        self._pacing_at = math.inf
        self._packet_number = number + 1
        sent = QuicSentPacket(Epoch.ONE_RTT, True, True, False, number, QuicPacketType.ONE_RTT, now, len(sealed), handlers)
        self._loss.on_packet_sent(packet=sent, space=space)
        if not self._ack_eliciting_sent_since_receipt:
            self._close_at = now + self._idle_timeout()
            self._ack_eliciting_sent_since_receipt = True
        path.bytes_sent += len(sealed)
        return sealed, path.addr


def _open(keys: Any, data: bytes, at: int, expected: int) -> tuple[int, bool, bytes] | None:
    """(number, spin bit, payload) of a packet with a short header whose number begins at `at`; None if it is not a usual one."""
    mask: bytes = keys.hp._mask(data[at + SAMPLE_AT : at + SAMPLE_AT + SAMPLE])
    first = data[0] ^ (mask[0] & 0x1F)
    if first & 0x18 or (first >> 2 & 1) != keys.key_phase:
        return None
    size = (first & 3) + 1
    end = at + size
    truncated = int.from_bytes(data[at:end], "big") ^ int.from_bytes(mask[1 : 1 + size], "big")
    header = bytes((first,)) + data[1:at] + truncated.to_bytes(size, "big")
    # The number nearest to the one expected (RFC 9000 appendix A.3).
    window = 1 << 8 * size
    number = (expected & -window) | truncated
    if number <= expected - window // 2 and number < (1 << 62) - window:
        number += window
    elif number > expected + window // 2 and number >= window:
        number -= window
    try:
        payload: bytes = keys.aead.decrypt(data[end:], header, number)
    except CryptoError:
        return None
    return number, bool(first & 0x20), payload


def _seal(keys: Any, first: int, cid: bytes, number: int, payload: bytes) -> bytes:
    """A packet with a short header and a number of two bytes."""
    low = number & 0xFFFF
    sealed: bytes = keys.aead.encrypt(payload, bytes((first,)) + cid + low.to_bytes(2, "big"), number)
    mask: bytes = keys.hp._mask(sealed[SAMPLE_AT - 2 : SAMPLE_AT - 2 + SAMPLE])
    return bytes((first ^ (mask[0] & 0x1F),)) + cid + (low ^ (mask[1] << 8 | mask[2])).to_bytes(2, "big") + sealed


def _frames(payload: bytes, limit: int) -> tuple[tuple[Any, int] | None, list[bytes]] | None:
    """(ranges and delay of the ACK, datagrams) in a packet; None if there is anything else in it, or nothing, or it is malformed.

    `limit`: Bytes that a DATAGRAM frame may not reach without its type.
    """
    ack: tuple[Any, int] | None = None
    datagrams: list[bytes] = []
    at, end = 0, len(payload)
    if end and payload[0] == ACK:
        buffer = Buffer(data=payload)
        buffer.seek(1)
        try:
            ack = pull_ack_frame(buffer)
        except (ValueError, BufferReadError):
            return None
        at = buffer.tell()
    while at < end:
        kind = payload[at]
        if kind == DATAGRAM_WITH_LENGTH and at + 2 < end:
            size, begins = payload[at + 1], at + 2
            if size >= ONE_BYTE:
                if size >= 2 * ONE_BYTE:
                    return None
                size, begins = (size & 0x3F) << 8 | payload[at + 2], at + 3
        elif kind == DATAGRAM:
            size, begins = end - at - 1, at + 1
        elif kind == PADDING:
            at += 1
            continue
        else:
            return None
        if begins + size > end or begins + size - at - 1 >= limit:
            return None
        datagrams.append(payload[begins : begins + size])
        at = begins + size
    return None if ack is None and not datagrams else (ack, datagrams)


def _ack(numbers: range, delay: int) -> bytes:
    """An ACK of one range."""
    newest = numbers.stop - 1
    return bytes((ACK,)) + _number(newest) + _number(delay) + bytes((0,)) + _number(newest - numbers.start)


def _number(value: int) -> bytes:
    """A variable-length integer (RFC 9000 section 16)."""
    if value < ONE_BYTE:
        return bytes((value,))
    if value < TWO_BYTES:
        return (value | 0x4000).to_bytes(2, "big")
    if value < 1 << 30:
        return (value | 0x80000000).to_bytes(4, "big")
    return (value | 0xC000000000000000).to_bytes(8, "big")
