"""Every private attribute of aioquic that we touch, here, in `compat_packets` and in `compat_windows` only. A test reads them out of these
files and holds them against the installed version, so a new aioquic fails there with a name and not in a call.

What `VoiceQuic` changes in a `QuicConnection`:

* An ACK leaves with the last of our own packets before it falls due: 100 ms after a datagram, 25 ms after anything else and after a
  gap. Alone it leaves only where this side sends nothing meanwhile.
* Datagrams are checked for size before they are queued. What the bound on bytes in flight holds back is dropped at once; only where a
  new path has to prove itself first (RFC 9000 section 8) may audio wait, for a tenth of a second at most.
* Flow control windows follow what was delivered (`compat_windows`).
* Connection ids, the client's first destination connection id and stateless reset tokens come from arguments.
* An exception while a peer's packet is handled ends that connection, never the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from aioquic._buffer import Buffer
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import (
    QuicConnectionError,
    QuicConnectionId,
    QuicConnectionState,
    QuicReceiveContext,
)
from aioquic.quic.packet import (
    QuicErrorCode,
    QuicFrameType,
    pull_quic_transport_parameters,
    push_quic_transport_parameters,
)
from aioquic.tls import Epoch
from cryptography.hazmat.primitives.serialization import Encoding

from voicestream.quic.compat_packets import MAX_ACK_DELAY, TIMER_SLACK, PacketQuic
from voicestream.quic.compat_windows import NoPacer
from voicestream.quic.congestion import VoiceCongestion
from voicestream.quic.connection_ids import ConnectionIds
from voicestream.quic.values import Address, QuicEnd, TicketDesk, Windows

__all__ = ["VoiceQuic"]

ACK_DELAY: Final = 0.025
"""Seconds after which an ACK of what may be retransmitted leaves."""

MAX_HELD_TIME: Final = 0.1
MAX_HELD: Final = 16
"""Seconds and number of datagrams that may wait for a new path to prove itself."""

MAX_UDP_PAYLOAD: Final = 1472
"""Bytes that this side can receive; aioquic decrypts no packet over 1500."""

MAX_PROBE_INTERVAL: Final = 0.5
"""Seconds between two probes of a path that does not answer: what a call waits at most after the path is back."""

CLOSE_REASON_BYTES: Final = 1024
EARLY_CLOSE_REASON_BYTES: Final = 256
"""Before the handshake is confirmed, the reason shares its datagram with two more packets."""

# The loggers of aioquic would print warnings about hostile packets to stderr of an application that has set up no logging.
logging.getLogger("quic").addHandler(logging.NullHandler())


NO_CRYPTO_FRAME: Final = "Packet contains no CRYPTO frame"
"""Words by which aioquic refuses a first packet that cannot be one; a test holds them against the installed version."""


class _StrayPacketError(Exception):
    """The first packet of a client does not begin a handshake."""


class VoiceQuic(PacketQuic):
    """A QUIC connection for live audio.

    Attributes:
        datagrams_blocked: Datagrams dropped because the bound on bytes in flight was reached.
        datagrams_oversize: Datagrams refused because they do not fit in one packet of this path and peer.
        errors: Exceptions caught while a packet was handled.
        lone_acks: Packets that carried nothing but an ACK.
        congestion: The controller of this connection.
        hurries: On a client: most seconds between two attempts at the handshake, if it is to be repeated that often.
    """

    def __init__(
        self,
        configuration: QuicConfiguration,
        *,
        windows: Windows,
        ids: ConnectionIds,
        entropy: Callable[[int], bytes],
        first_destination_id: bytes | None = None,
        original_destination_id: bytes | None = None,
        retry_source_id: bytes | None = None,
        tickets: TicketDesk | None = None,
    ) -> None:
        self._voice_ids = ids
        self._voice_entropy = entropy
        self._voice_gap = MAX_ACK_DELAY
        self._voice_sent_at = float("-inf")
        self._voice_ranges = 0
        self._voice_in_payload = False
        self._voice_probe_at: float | None = None
        self.hurries: float | None = None
        self.datagrams_blocked = 0
        self.errors = 0
        self.lone_acks = 0
        super().__init__(configuration, windows, original_destination_id, retry_source_id, tickets)
        self._adopt_ids(first_destination_id)
        self._loss._pacer = NoPacer(self.is_quiet, max_datagram_size=configuration.max_datagram_size)
        controller = self._loss._cc
        assert isinstance(controller, VoiceCongestion)
        self.congestion = controller

    def _adopt_ids(self, first_destination_id: bytes | None) -> None:
        cid = self._voice_ids.next()
        self._host_cids[0].cid = cid
        self.host_cid = cid
        self._local_initial_source_connection_id = cid
        if self._is_client:
            # At least 8 bytes that nobody can guess, or the route that a server asked for (RFC 9000 section 7.2).
            self._peer_cid.cid = first_destination_id or self._voice_entropy(8)
            self._original_destination_connection_id = self._peer_cid.cid
        else:
            self._host_cids[0].stateless_reset_token = self._voice_entropy(16)

    # What aioquic calls.

    def _connect(self, now: float) -> None:
        self.say_again(now)  # all that is known of packets is forgotten at a Retry
        super()._connect(now)

    def _replenish_connection_ids(self) -> None:
        while len(self._host_cids) < min(8, self._remote_active_connection_id_limit):
            cid, token = self._voice_ids.next(), self._voice_entropy(16)
            self._host_cids.append(QuicConnectionId(cid=cid, sequence_number=self._host_cid_seq, stateless_reset_token=token))
            self._host_cid_seq = self._host_cid_seq + 1  # mypyc knows no other way to add to an attribute that it has not compiled
            self._voice_ids_told = False

    def _serialize_transport_parameters(self) -> bytes:
        parameters = pull_quic_transport_parameters(Buffer(data=super()._serialize_transport_parameters()))
        parameters.max_ack_delay = round(MAX_ACK_DELAY * 1000)
        parameters.max_udp_payload_size = MAX_UDP_PAYLOAD
        buffer = Buffer(capacity=4096)
        push_quic_transport_parameters(buffer, parameters)
        return buffer.data

    def _payload_received(self, context: QuicReceiveContext, plain: bytes, crypto_frame_required: bool = False) -> tuple[bool, bool]:
        before = len(self._events)
        self._voice_in_payload = True
        try:
            ack_eliciting, probing = super()._payload_received(context, plain, crypto_frame_required=crypto_frame_required)
        except QuicConnectionError as exc:
            if crypto_frame_required and exc.reason_phrase == NO_CRYPTO_FRAME:
                # The goodbye of a dial that was given up in a dead path, or a probe that has overtaken its ClientHello.
                raise _StrayPacketError from exc
            raise
        except Exception as exc:
            self.errors += 1
            raise QuicConnectionError(QuicErrorCode.INTERNAL_ERROR, QuicFrameType.PADDING, type(exc).__name__) from exc
        news = list(islice(self._events, before, None))
        self._count_delivered(news)
        if ack_eliciting:
            audio_only = bool(news) and all(isinstance(event, events.DatagramFrameReceived) for event in news)
            self._choose_ack_delay(context, audio_only=audio_only)
        return ack_eliciting, probing

    def _handle_ack_frame(self, context: QuicReceiveContext, frame_type: int, buf: Buffer) -> None:
        super()._handle_ack_frame(context, frame_type, buf)
        if self._voice_first_rtt is None and self._voice_first_sent is not None:
            self._voice_first_rtt = context.time - self._voice_first_sent

    def _choose_ack_delay(self, context: QuicReceiveContext, *, audio_only: bool) -> None:
        if self._handshake_confirmed:  # until then aioquic's millisecond
            # Nobody retransmits datagrams, so their ACK may wait; 50 ACKs a second would cost 3 kbps.
            self._ack_delay = MAX_ACK_DELAY if audio_only else ACK_DELAY
            self._hasten_ack(context.time + self._ack_delay)

    def _hasten_ack(self, at: float) -> None:
        space, _ = self._after_handshake
        if space.ack_at is not None:
            space.ack_at = min(space.ack_at, at)

    # What our connection calls.

    def receive(self, data: bytes, addr: Address, now: float) -> None:
        """Take a UDP payload. Never raises: what a peer can provoke ends this connection, what a stranger can provoke is counted."""
        self._voice_in_payload = False
        if not self._is_client and not self._handshake_complete:
            # The client asks again, so it may have nothing of our flight: answer as soon as to the first (RFC 9002 section 6.2.3).
            self._loss._pto_count = 0
        try:
            self.receive_datagram(data, addr, now)
            if self._handshake_confirmed:
                ranges = len(self._after_handshake[0].ack_queue)
                if ranges > self._voice_ranges:
                    self._hasten_ack(now + ACK_DELAY)  # a new gap: the peer may have something to repeat
                self._voice_ranges = ranges
        except _StrayPacketError:
            self._voice_is_stray = True
        except Exception as exc:
            self.errors += 1
            if self._voice_in_payload:
                self.close(QuicErrorCode.INTERNAL_ERROR, QuicFrameType.PADDING, type(exc).__name__)

    def packets_to_send(self, now: float) -> list[tuple[bytes, Address]]:
        """What leaves now. Datagrams that are held back are dropped: late audio is worth nothing (VS-3.2-4)."""
        if not self._network_paths or self.is_quiet(now):
            return []
        congestion = self.congestion
        in_flight_before = congestion.packets_sent
        if self._handshake_confirmed:
            if self._datagrams_pending:
                self._voice_gap = max(min(now - self._voice_sent_at, MAX_ACK_DELAY), 0.8 * self._voice_gap)
                self._voice_sent_at = now
            space, _ = self._after_handshake
            if space.ack_at is not None and space.ack_at - now <= 1.25 * self._voice_gap and self._has_something_to_send():
                space.ack_at = now
        packets = self._build(now)
        if self.hurries is not None and self._handshake_complete and self._voice_probe_at is None:
            self._voice_probe_at = now + self.hurries
        if self._handshake_complete:
            self.lone_acks += max(len(packets) - (congestion.packets_sent - in_flight_before), 0)
            self._drop_held(now)
        return packets

    def _drop_held(self, now: float) -> None:
        """See to datagrams that did not leave."""
        if not self._datagrams_pending:
            self._voice_held_since = None
            return
        if self._voice_held_since is None:
            self._voice_held_since = now
        may_wait = not self._network_paths[0].is_validated and now - self._voice_held_since < MAX_HELD_TIME
        while self._datagrams_pending and (not may_wait or len(self._datagrams_pending) > MAX_HELD):
            self._datagrams_pending.popleft()
            self.datagrams_blocked += 1

    def _build(self, now: float) -> list[tuple[bytes, Address]]:
        for _ in range(2):
            try:
                return super().datagrams_to_send(now)
            except Exception as exc:
                self.errors += 1
                self.close(QuicErrorCode.INTERNAL_ERROR, QuicFrameType.PADDING, type(exc).__name__)
        # Not even the goodbye can be written: end in silence.
        self._close_end()
        return []

    def _has_something_to_send(self) -> bool:
        if self._datagrams_pending:
            return True
        return any(not stream.sender.buffer_is_empty and not stream.is_blocked for stream in self._streams_queue)

    def fire(self, now: float) -> None:
        """`handle_timer` if its time has come, with probes of a dead path held to one every half second."""
        timer = self.timer()
        if timer is None or now < timer:
            return
        if self._is_unconfirmed and self._voice_probe_at is not None and now >= self._voice_probe_at:
            # The end of the handshake may be lost, and aioquic repeats it with growing pauses.
            self._loss.reschedule_data(now=now)
            self.send_ping(0)
            self._voice_probe_at = now + MAX_PROBE_INTERVAL
        probes = self._loss._pto_count
        try:
            self.handle_timer(now)
        except Exception as exc:
            self.errors += 1
            self.close(QuicErrorCode.INTERNAL_ERROR, QuicFrameType.PADDING, type(exc).__name__)
        if self._is_unconfirmed and self._loss._pto_count > probes:
            # aioquic probes in Handshake packets alone, for which a server that is done has no keys any more. If a NAT has
            # rebound meanwhile, only a 1-RTT packet tells it where to send what confirms the handshake (RFC 9002 section 6.2.4).
            self.send_ping(0)
        if self._is_client and not self._handshake_complete and self._loss._pto_count > probes:
            self.say_again(now)
        longest = MAX_PROBE_INTERVAL if self._handshake_confirmed else self.hurries
        if longest is not None and (self._handshake_confirmed or not self._handshake_complete):
            base = self._loss.get_probe_timeout()
            while self._loss._pto_count > 0 and base * 2**self._loss._pto_count > max(longest, base):
                self._loss._pto_count -= 1

    def get_timer(self) -> float | None:
        """As aioquic's, which also looks at what is over and done with once the handshake is confirmed and the path is proven."""
        timer: float | None = self._close_at
        is_usual = self._handshake_confirmed and self._state is QuicConnectionState.CONNECTED and self._network_paths[0].is_validated
        if timer is None or not is_usual:
            return super().get_timer()
        space, _ = self._after_handshake
        due = space.loss_time
        if due is None and (space.ack_eliciting_in_flight or not self._loss.peer_completed_address_validation):
            timeout = self._loss.get_probe_timeout() * 2**self._loss._pto_count
            due = self._loss._time_of_last_sent_ack_eliciting_packet + timeout
        self._loss_at = due
        if due is not None and due < timer:
            timer = due
        return space.ack_at if space.ack_at is not None and space.ack_at < timer else timer

    def timer(self) -> float | None:
        """When `fire` wants to be called."""
        if self._close_at is None:
            return None
        at: float | None = self.get_timer()
        if at is not None and self._is_unconfirmed and self._voice_probe_at is not None:
            at = min(at, self._voice_probe_at)
        return None if at is None else at + TIMER_SLACK

    @property
    def _is_unconfirmed(self) -> bool:
        return self._is_client and self._handshake_complete and not self._handshake_confirmed

    def drain_events(self) -> Iterator[events.QuicEvent]:
        """All events that wait."""
        while self._events:
            yield self._events.popleft()

    def close_with(self, code: int, reason: str, *, transport: bool = False) -> None:
        """CONNECTION_CLOSE, with the reason cut to what surely fits."""
        limit = CLOSE_REASON_BYTES if self._handshake_confirmed else EARLY_CLOSE_REASON_BYTES
        text = reason.encode("utf-8")[:limit].decode("utf-8", "ignore")
        self.close(code, QuicFrameType.PADDING if transport else None, text)

    def let_go(self) -> None:
        """See `PacketQuic.let_go`."""
        super().let_go()
        self.congestion.let_go()
        self._loss._send_probe = lambda: None
        self._loss._pacer = NoPacer(lambda now: False, max_datagram_size=self._max_datagram_size)

    def say_again(self, now: float) -> None:
        """Have leave once more what has left before the handshake was complete and was not acknowledged.

        QUIC asks for it late or, when the server has taken no early data or wants its Retry first, never. What came comes to nothing.
        """
        space = self._spaces.get(Epoch.ONE_RTT)
        if space is not None and space.sent_packets:
            self._loss._on_packets_lost(congestion_event=False, now=now, packets=tuple(space.sent_packets.values()), space=space)

    @property
    def end(self) -> QuicEnd | None:
        """How the connection ended, as soon as that is known."""
        event = self._close_event
        if event is None:
            return None
        by_peer = self._state is QuicConnectionState.DRAINING
        return QuicEnd(event.error_code, event.frame_type, event.reason_phrase, by_peer, self._state is QuicConnectionState.TERMINATED)

    @property
    def rtt(self) -> float | None:
        """Smoothed round trip in seconds; before QUIC's first sample that of the first packet, or None."""
        return self._loss._rtt_smoothed if self._loss._rtt_initialized else self._voice_first_rtt

    @property
    def least_rtt(self) -> float | None:
        """Least round trip in seconds, likewise."""
        return self._loss._rtt_min if self._loss._rtt_initialized else self._voice_first_rtt

    @property
    def probe_timeout(self) -> float:
        """RFC 9002's PTO in seconds."""
        return self._loss.get_probe_timeout()

    @property
    def peer_certificate(self) -> bytes | None:
        """DER of the server's certificate, once it has come."""
        context = getattr(self, "tls", None)
        certificate = None if context is None else context._peer_certificate
        return None if certificate is None else certificate.public_bytes(Encoding.DER)

    def unacknowledged(self, stream_id: int) -> int:
        """Bytes written on a stream that the peer has not acknowledged."""
        stream = self._streams.get(stream_id)
        return 0 if stream is None else stream.sender._buffer_stop - stream.sender._buffer_start

    @property
    def stream_backlog(self) -> int:
        """Bytes on all streams that wait to be sent or acknowledged."""
        waiting = 0
        for stream in self._streams_queue:
            waiting += stream.sender._buffer_stop - stream.sender._buffer_start
        return waiting

    @property
    def events_wait(self) -> bool:
        """Whether something on a unidirectional stream waits to be sent or acknowledged."""
        return any(self.unacknowledged(one.stream_id) for one in self._streams_queue if one.stream_id is not None and one.stream_id & 2)
