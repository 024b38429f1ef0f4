"""Application events of a session, both ways (specification section 7)."""

from __future__ import annotations

from typing import Final

from voicestream.codepoints import ErrorCode, EventKind
from voicestream.config import Limits
from voicestream.core.eventing import DEFAULT_ALLOWANCE_BPS, EventInbox, EventOutbox
from voicestream.core.rate_limit import RateLimit
from voicestream.errors import ProtocolError
from voicestream.events import EventReceived
from voicestream.session.hub import Hub
from voicestream.wire.event_stream import EventHeader, encode_event_header

__all__ = ["AppEvents"]

EARLY_BYTES: Final = 65536
"""Bytes of event streams kept until the session is open; a stream may overtake ACCEPT."""

EARLY_CHUNKS: Final = 256


class AppEvents:
    """Sends and receives application events."""

    __slots__ = ("_early", "_hub", "_limit", "_next_id", "_next_order", "_stops", "inbox", "outbox")

    def __init__(self, hub: Hub) -> None:
        limits = hub.config.limits
        self._hub = hub
        self.outbox = EventOutbox()
        self.inbox = EventInbox(max_size=limits.max_event_size, max_streams=limits.max_event_streams)
        self._limit = RateLimit(limits.events_per_second)
        self._next_id = 1
        self._next_order = 1
        self._early: list[tuple[int, bytes, bool]] = []
        self._stops: list[int] = []

    def tighten(self, limits: Limits) -> None:
        """Other bounds hold from now on; nothing has come yet."""
        self.inbox = EventInbox(max_size=limits.max_event_size, max_streams=limits.max_event_streams)
        self._limit = RateLimit(limits.events_per_second)

    # Out

    def send(self, payload: bytes, now: float, *, kind: int, ordered: bool, track: int | None, pts: int | None) -> int:
        """Queue an event; see `Session.send_event`."""
        if len(payload) > self._hub.peer.max_event_size:  # VS-7.1-3
            raise ValueError(f"the far end takes events of {self._hub.peer.max_event_size} bytes, not of {len(payload)}")
        if kind in (EventKind.TEXT, EventKind.JSON):
            try:
                payload.decode()
            except UnicodeDecodeError as error:
                raise ValueError("a text or JSON event must be UTF-8") from error
        event_id = self._next_id  # VS-7.1-1
        order = self._next_order if ordered else 0
        header = encode_event_header(EventHeader(kind=kind, event_id=event_id, order=order, track=track, pts=pts))
        self.outbox.put(header + payload, now, order=order)
        self._next_id += 1
        self._next_order += ordered  # VS-7.3-1
        self._hub.counts.events_sent += 1
        self._hub.counts.event_bytes_sent += len(payload)
        self._hub.record(now, "event:sent", event_id=event_id, kind=kind, order=order, bytes=len(payload))
        return event_id

    @property
    def next_id(self) -> int:
        """Id of the next event of this end."""
        return self._next_id

    def restore(self, next_id: int, next_order: int, recent: tuple[int, ...]) -> None:
        """Go on where another server had come: its next id, the client's next ordered event and latest unordered ones."""
        self._next_id = next_id
        self.inbox.restore(next_order, recent)

    def begin_at(self, next_order: int) -> None:
        """The client expects this ordered event next; what another server had that is not there yet is lost."""
        self._next_order = next_order

    def limit_rate(self) -> None:
        """Take the far end's bound of the rate into account."""
        bound = self._hub.rate_bound
        self.outbox.allowed_bps = float(DEFAULT_ALLOWANCE_BPS if bound is None else min(bound, DEFAULT_ALLOWANCE_BPS))

    # In

    def receive(self, key: int, data: bytes, fin: bool, now: float) -> None:
        """Take bytes of a unidirectional stream.

        Raises:
            ProtocolError: The peer broke a rule.
        """
        if not self._hub.is_open:
            self._keep(key, data, fin)
            return
        if not self.inbox.knows(key) and not self._limit.allow(now):
            raise ProtocolError(ErrorCode.LIMIT_EXCEEDED, "too many application events")
        was_ignored = self.inbox.ignores(key)
        events = self.inbox.feed(key, data, fin)
        if self.inbox.ignores(key) and not was_ignored and not fin:
            self._stops.append(key)
        for header, payload in events:
            self._hub.counts.events_received += 1
            self._hub.counts.event_bytes_received += len(payload)
            told = {"event_id": header.event_id, "kind": header.kind, "order": header.order, "bytes": len(payload)}
            self._hub.record(now, "event:received", **told)
            self._hub.events.put(
                EventReceived(
                    kind=_kind(header.kind),
                    event_id=header.event_id,
                    order=header.order,
                    payload=payload,
                    track=header.track,
                    pts=header.pts,
                )
            )

    def reset(self, key: int) -> None:
        """The peer gave up a stream."""
        self._early = [one for one in self._early if one[0] != key]
        self.inbox.reset(key)

    def opened(self, now: float) -> None:
        """The session is open: take what came too early."""
        early, self._early = self._early, []
        for key, data, fin in early:
            self.receive(key, data, fin, now)

    def restart(self) -> None:
        """A new connection: what came half on the old one is forgotten. What comes now may overtake the word that all goes on."""
        self.inbox.restart()
        self._early.clear()
        self._stops.clear()

    def resumed(self, next_event: int | None, now: float) -> None:
        """All goes on: send what the far end does not have.

        Args:
            next_event: The ordered event that the far end expects next; None if it does not say.
            now: Monotonic seconds.

        Raises:
            ProtocolError: It expects one that is kept no more, so that it would wait for ever.
        """
        wanted = self._next_order if next_event is None else next_event
        first = self.outbox.restart(wanted, now)
        if wanted > self._next_order or wanted < 1:
            raise ProtocolError(ErrorCode.PARAMETER_ERROR, f"event {wanted} is not the next one")
        if wanted < (self._next_order if first is None else first):
            raise ProtocolError(ErrorCode.SESSION_UNKNOWN, f"event {wanted} is not kept any more")

    @property
    def has_stops(self) -> bool:
        """Whether `stops` has any."""
        return bool(self._stops)

    def stops(self) -> list[int]:
        """Keys of streams that the peer need not go on sending; each once."""
        if not self._stops:
            return []
        stops, self._stops = self._stops, []
        return stops

    def _keep(self, key: int, data: bytes, fin: bool) -> None:
        self._early.append((key, data, fin))
        if len(self._early) > EARLY_CHUNKS or sum(len(one[1]) for one in self._early) > EARLY_BYTES:
            raise ProtocolError(ErrorCode.LIMIT_EXCEEDED, "too many application events before the session is open")


def _kind(number: int) -> EventKind | int:
    try:
        return EventKind(number)
    except ValueError:
        return number
