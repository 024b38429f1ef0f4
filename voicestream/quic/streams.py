"""The streams of one connection: the control stream, and one unidirectional stream for each application event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from voicestream.codepoints import ErrorCode
from voicestream.events import Event
from voicestream.quic.compat import VoiceQuic

__all__ = ["CONTROL_STREAM", "SessionPort", "StreamTable"]

CONTROL_STREAM: Final = 0
"""The client's first bidirectional stream (specification section 5)."""

MAX_EVENT_BACKLOG: Final = 64 * 1024
"""Bytes written on streams and not acknowledged, beyond which no event data is taken from the session."""

MAX_CONTROL_BACKLOG: Final = 256 * 1024
"""Bytes of control messages that a peer may leave unacknowledged before the session is closed."""


class SessionPort(Protocol):
    """What a connection needs of a session; `voicestream.session.Session` has it."""

    @property
    def is_open(self) -> bool: ...
    @property
    def is_closed(self) -> bool: ...
    @property
    def has_left(self) -> bool: ...
    @property
    def target_bps(self) -> float: ...
    def start(self, now: float, rtt: float | None = None) -> None: ...
    def path_lost(self, now: float) -> bool: ...
    def path_changed(self, now: float) -> None: ...
    def suppose_rtt(self, rtt: float | None) -> None: ...
    def receive_datagram(self, data: bytes, now: float) -> None: ...
    def receive_control(self, data: bytes, now: float, fin: bool = False) -> None: ...
    def receive_stream(self, stream_key: int, data: bytes, fin: bool, now: float) -> None: ...
    def reset_stream(self, stream_key: int, now: float) -> None: ...
    def transport_closed(self, now: float, code: int, reason: str = "", *, remote: bool = True) -> None: ...
    def handle_timer(self, now: float) -> None: ...
    def next_timer(self) -> float | None: ...
    def idle_until(self, now: float) -> float | None: ...
    def is_calm(self, until: float) -> bool: ...
    def datagrams_to_send(self, now: float) -> Sequence[bytes]: ...
    def control_to_send(self) -> bytes: ...
    def streams_to_send(self, now: float) -> Sequence[tuple[int, bytes, bool]]: ...
    def streams_to_stop(self) -> Sequence[tuple[int, int]]: ...
    def next_event(self) -> Event | None: ...
    def close(self, now: float, code: int = ErrorCode.NO_ERROR, reason: str = "", may_resume: bool = False) -> None: ...
    def let_go(self) -> None: ...


class StreamTable:
    """Carries a session's stream output into QUIC, and knows which stream is whose.

    Attributes:
        quic: The connection.
        is_blocked: Whether event data is left with the session for now.
    """

    __slots__ = ("_ids", "_session", "is_blocked", "quic")

    def __init__(self, quic: VoiceQuic, session: SessionPort) -> None:
        self.quic = quic
        self._session = session
        self._ids: dict[int, int] = {}
        self.is_blocked = False

    def push(self, now: float) -> None:
        """Write what the session has for its streams."""
        quic, session = self.quic, self._session
        control = session.control_to_send()
        if control:
            quic.offer_stream_data(CONTROL_STREAM, control)
            if quic.unacknowledged(CONTROL_STREAM) > MAX_CONTROL_BACKLOG and not session.is_closed:
                session.close(now, ErrorCode.LIMIT_EXCEEDED, "control messages are not taken")
        for stream_key, code in session.streams_to_stop():
            quic.refuse_stream(stream_key, code)
        self.is_blocked = quic.stream_backlog >= MAX_EVENT_BACKLOG or quic.streams_are_blocked
        if not session.is_closed and not self.is_blocked:
            for key, data, fin in session.streams_to_send(now):
                self._write_event(key, data, fin)

    def _write_event(self, key: int, data: bytes, fin: bool) -> None:
        stream_id = self._ids.get(key)
        if stream_id is None:
            stream_id = self._ids[key] = self.quic.get_next_available_stream_id(is_unidirectional=True)
        # A stream that the peer has stopped takes nothing more; the session's bytes for it end here.
        self.quic.offer_stream_data(stream_id, data, fin=fin)
        if fin:
            del self._ids[key]

    @staticmethod
    def is_control(stream_id: int) -> bool:
        """Whether a stream is bidirectional, thus the control stream or one too many."""
        return not stream_id & 2

    def end_control(self) -> None:
        """Nothing follows on the control stream."""
        self.quic.offer_stream_data(CONTROL_STREAM, b"", fin=True)

    @property
    def control_is_taken(self) -> bool:
        """Whether the peer has acknowledged all control messages."""
        return self.quic.unacknowledged(CONTROL_STREAM) == 0
