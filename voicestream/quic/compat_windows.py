"""Flow control windows that follow what was delivered, an idle timeout that is one, no pacing, and the handshake's round trip.

aioquic doubles a window whenever the highest offset seen has passed half of it, gaps included. A peer that sends one byte at each limit
thus has it allocate without bound; here the bound is `Windows`.

It also waits three probe timeouts for a dead path, however long these are; a path that was stuck for seconds makes them tens of seconds,
and the connection with all that it holds outlives its far end by minutes.

And on a path with a round trip beyond its first probe timeout (0.2 s) it has forgotten when it sent what is acknowledged then, so that
nothing is measured when the handshake is complete.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from typing import Any, Final

from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import (
    CONNECTION_LIMIT_FRAME_CAPACITY,
    MAX_STREAM_DATA_FRAME_CAPACITY,
    QuicConnection,
    QuicConnectionId,
    QuicConnectionState,
)
from aioquic.quic.packet import QuicFrameType
from aioquic.quic.packet_builder import QuicDeliveryState, QuicPacketBuilder
from aioquic.quic.recovery import QuicPacketPacer, QuicPacketSpace
from aioquic.quic.stream import QuicStream
from aioquic.tls import Epoch

from voicestream.quic.values import TicketDesk, Windows

__all__ = ["NoPacer", "WindowedQuic"]

LONGEST_PROBES: Final = 6.0
"""Seconds that three probe timeouts may hold up an idle timeout that is shorter."""


class NoPacer(QuicPacketPacer):
    """The session paces; a packet that reaches QUIC leaves. When nothing is left to say, aioquic is told to wait: it would begin another
    packet, only to find it empty.

    Attributes:
        is_quiet: Whether nothing is left at a time.
    """

    def __init__(self, is_quiet: Callable[[float], bool], *, max_datagram_size: int) -> None:
        super().__init__(max_datagram_size=max_datagram_size)
        self.is_quiet = is_quiet

    def next_send_time(self, now: float) -> Any:  # aioquic says a float, and means None by "now"
        return math.inf if self.is_quiet(now) else None


class WindowedQuic(QuicConnection):
    """A QUIC connection with bounded windows."""

    def __init__(
        self, configuration: QuicConfiguration, windows: Windows, original_destination_id: bytes | None, retry_source_id: bytes | None,
        tickets: TicketDesk | None = None,
    ) -> None:  # fmt: skip
        self._voice_windows = windows
        self._voice_delivered = 0
        self.datagrams_oversize = 0
        self._voice_held_since: float | None = None
        self._voice_is_stray = False
        self._voice_ids_told = False
        self._voice_one_rtt: tuple[QuicPacketSpace, QuicStream] | None = None
        self._voice_first_sent: float | None = None
        self._voice_first_rtt: float | None = None
        super().__init__(
            configuration=configuration,
            original_destination_connection_id=original_destination_id,
            retry_source_connection_id=retry_source_id,
            session_ticket_fetcher=None if tickets is None else tickets.fetch,
            session_ticket_handler=None if tickets is None else tickets.keep,
        )
        self._local_max_streams_bidi.value = self._local_max_streams_bidi.sent = windows.bidirectional_streams
        self._local_max_streams_uni.value = self._local_max_streams_uni.sent = windows.unidirectional_streams
        self._local_max_stream_data_bidi_local = self._local_max_stream_data_bidi_remote = windows.control

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, tuple[str, int]]]:
        """As aioquic's; the first time is remembered."""
        packets = super().datagrams_to_send(now)
        if self._voice_first_sent is None and packets:
            self._voice_first_sent = now
        return packets

    @property
    def newest_acked(self) -> int:
        """Number of the newest packet that the peer has acknowledged since the handshake; 0 before there is one."""
        space = self._spaces.get(Epoch.ONE_RTT)
        return 0 if space is None else space.largest_acked_packet

    def let_go(self) -> None:
        """Nobody will send or receive any more: have nothing in it refer back to it.

        aioquic's parts all know their connection. Left to the garbage collector, dead connections with their packets pile up for
        minutes. What was measured and counted stays, and the far end's certificate.
        """
        self._state = QuicConnectionState.TERMINATED
        self._close_at = None
        self._session_ticket_fetcher = self._session_ticket_handler = None
        self._cryptos.clear()
        self._cryptos_initial.clear()
        self._streams.clear()
        self._streams_queue.clear()
        for space in self._spaces.values():
            space.sent_packets.clear()
        self._QuicConnection__frame_handlers: dict[int, object] = {}
        context = vars(self).get("tls")
        if context is not None:
            kept = {name: value for name, value in vars(context).items() if name == "_peer_certificate"}
            vars(context).clear()
            vars(context).update(kept)

    # 0-RTT

    @property
    def may_speak_early(self) -> bool:
        """On a client that has begun: whether what is written now travels in 0-RTT packets."""
        crypto = self._cryptos.get(Epoch.ZERO_RTT)
        return crypto is not None and crypto.send.is_valid()

    @property
    def hears_early(self) -> bool:
        """On a server: whether a ticket was used up for what comes in 0-RTT packets."""
        context = vars(self).get("tls")
        return context is not None and bool(context.early_data_accepted)

    def _count_delivered(self, news: Iterable[events.QuicEvent]) -> None:
        """Count what a packet has delivered, or given up."""
        for event in news:
            if isinstance(event, events.StreamDataReceived):
                self._voice_delivered += len(event.data)
            elif isinstance(event, events.StreamReset):
                receiver = self._streams[event.stream_id].receiver
                self._voice_delivered += receiver.highest_offset - receiver.starting_offset()

    # What aioquic calls.

    def _idle_timeout(self) -> float:
        said = self._configuration.idle_timeout
        if self._remote_max_idle_timeout is not None:
            said = min(said, self._remote_max_idle_timeout)
        if said >= LONGEST_PROBES:  # as a rule
            return said
        return max(said, min(LONGEST_PROBES, 3 * self._loss.get_probe_timeout()))

    def _on_new_connection_id_delivery(self, delivery: QuicDeliveryState, connection_id: QuicConnectionId) -> None:
        self._voice_ids_told = False
        if delivery is not QuicDeliveryState.ACKED:
            connection_id.was_sent = False

    def _write_connection_limits(self, builder: QuicPacketBuilder, space: QuicPacketSpace) -> None:
        window = self._voice_windows.connection
        data = self._local_max_data
        if self._voice_delivered + window - data.value >= window // 2:
            data.value = self._voice_delivered + window
        streams = self._local_max_streams_uni
        limits = [data]
        if streams.sent - streams.used < streams.value - streams.sent:
            limits.append(streams)
        for limit in limits:
            if limit.value != limit.sent:
                buffer = builder.start_frame(
                    limit.frame_type,
                    capacity=CONNECTION_LIMIT_FRAME_CAPACITY,
                    handler=self._on_connection_limit_delivery,
                    handler_args=(limit,),
                )
                buffer.push_uint_var(limit.value)
                limit.sent = limit.value

    def _write_stream_limits(self, builder: QuicPacketBuilder, space: QuicPacketSpace, stream: QuicStream) -> None:
        receiver, window = stream.receiver, self._voice_windows.control
        if stream.stream_id is None or stream.stream_id & 2 or receiver.is_finished:
            return  # one event never needs more than the window that its stream began with
        if receiver.starting_offset() + window - stream.max_stream_data_local >= window // 2:
            stream.max_stream_data_local = receiver.starting_offset() + window
        if stream.max_stream_data_local_sent != stream.max_stream_data_local:
            buffer = builder.start_frame(
                QuicFrameType.MAX_STREAM_DATA,
                capacity=MAX_STREAM_DATA_FRAME_CAPACITY,
                handler=self._on_max_stream_data_delivery,
                handler_args=(stream,),
            )
            buffer.push_uint_var(stream.stream_id)
            buffer.push_uint_var(stream.max_stream_data_local)
            stream.max_stream_data_local_sent = stream.max_stream_data_local

    def is_quiet(self, now: float) -> bool:
        """Whether surely nothing leaves now."""
        if not self._handshake_confirmed or not self._is_quiet(now):
            return False
        self._voice_held_since = None
        return True

    @property
    def _after_handshake(self) -> tuple[QuicPacketSpace, QuicStream]:
        """Packet space and TLS's stream of what follows the handshake, which stay the same once it is confirmed: asked for often, and
        the key of aioquic's tables is hashed in Python."""
        if self._voice_one_rtt is None:
            self._voice_one_rtt = self._spaces[Epoch.ONE_RTT], self._crypto_streams[Epoch.ONE_RTT]
        return self._voice_one_rtt

    def _is_quiet(self, now: float) -> bool:
        """Whether nothing could leave now, so that none of aioquic's work on a packet needs to be done to find out.

        Most packets that come find nothing to be said: the answer's ACK waits for a datagram. What aioquic may write after the
        handshake is asked for here in its own order; where in doubt, there is something.
        """
        ack_at = self._after_handshake[0].ack_at
        if self._datagrams_pending or (ack_at is not None and ack_at <= now):
            return False
        return self._says_nothing_else()

    def _says_nothing_else(self) -> bool:
        """Whether nothing but datagrams and ACKs may leave; only once the handshake is confirmed."""
        _, handshake = self._after_handshake
        path = self._network_paths[0]
        if self._close_pending or self._probe_pending or self._handshake_done_pending or self._retire_connection_ids:
            return False
        if self._ping_pending:
            return False
        if len(self._network_paths) > 1 or not path.is_validated or path.remote_challenges or self._remote_preferred_address is not None:
            return False
        if self._streams_blocked_pending or not handshake.sender.buffer_is_empty:
            return False
        return self._limits_are_told() and self._streams_are_quiet() and self._ids_are_told()

    def _ids_are_told(self) -> bool:
        if not self._voice_ids_told:
            self._voice_ids_told = all(cid.was_sent for cid in self._host_cids)
        return self._voice_ids_told

    def _limits_are_told(self) -> bool:
        data, streams, window = self._local_max_data, self._local_max_streams_uni, self._voice_windows.connection
        if streams.sent - streams.used < streams.value - streams.sent:
            return False
        return bool(data.value == data.sent and self._voice_delivered + window - data.value < window // 2)

    def _streams_are_quiet(self) -> bool:
        for stream in self._streams_queue:
            sender = stream.sender
            if not sender.buffer_is_empty or sender.reset_pending or stream.receiver.stop_pending or stream.is_finished:
                return False
            if stream.max_stream_data_local != stream.max_stream_data_local_sent:
                return False
            if stream.stream_id is not None and not stream.stream_id & 2:
                window = self._voice_windows.control
                if stream.receiver.starting_offset() + window - stream.max_stream_data_local >= window // 2:
                    return False
        return True

    @property
    def is_open(self) -> bool:
        """Whether packets are still sent and received other than to say goodbye."""
        return self._state is QuicConnectionState.CONNECTED or self._state is QuicConnectionState.FIRSTFLIGHT

    @property
    def has_begun(self) -> bool:
        """Whether a packet of the peer has been authenticated; on a server, one that begins a handshake."""
        return self._state is not QuicConnectionState.FIRSTFLIGHT and not self._voice_is_stray

    @property
    def next_number(self) -> int:
        """Number of the next packet."""
        return self._packet_number

    @property
    def close_is_due(self) -> bool:
        """Whether the next `packets_to_send` gives the CONNECTION_CLOSE."""
        return self._close_pending

    @property
    def max_datagram_payload(self) -> int:
        """Bytes of the largest datagram that fits in one packet and that the peer takes; 0 if it takes none."""
        fits = self._max_datagram_size - 1 - len(self._peer_cid.cid) - 2 - 16 - 3
        return max(min(fits, self.peer_datagram_frame - 3), 0)

    @property
    def peer_datagram_frame(self) -> int:
        """Bytes of the largest DATAGRAM frame that the peer takes; 0 if it takes none."""
        return self._remote_max_datagram_frame_size or 0

    @property
    def streams_are_blocked(self) -> bool:
        """Whether the peer lets no more unidirectional streams begin for now."""
        return bool(self._streams_blocked_uni)

    def offer_datagram(self, data: bytes) -> bool:
        """Queue a datagram for the next `packets_to_send`; False if it cannot fit in a packet or the peer does not take it."""
        if len(data) > self.max_datagram_payload:
            self.datagrams_oversize += 1
            return False
        self.send_datagram_frame(data)
        return True

    def offer_stream_data(self, stream_id: int, data: bytes, *, fin: bool = False) -> bool:
        """Write on a stream; False if the peer has stopped it or it is finished."""
        try:
            self.send_stream_data(stream_id, data, fin)
        except (ValueError, RuntimeError, AssertionError):
            return False
        return True

    def refuse_stream(self, stream_id: int, code: int) -> None:
        """STOP_SENDING; nothing if the stream is over already."""
        with contextlib.suppress(ValueError):
            self.stop_stream(stream_id, code)
