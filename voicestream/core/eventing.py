"""Application events both ways (specification section 7): an outbox that leaves audio its room, an inbox that restores the order."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

from voicestream.codepoints import ErrorCode
from voicestream.errors import ProtocolError, StateError
from voicestream.wire.event_stream import EventHeader, EventParser

__all__ = ["CHUNK", "DEFAULT_ALLOWANCE_BPS", "MIN_RATE_BPS", "EventInbox", "EventOutbox"]

MIN_RATE_BPS: Final = 2000  # VS-7.3-3
"""What events get even when audio needs everything."""

DEFAULT_ALLOWANCE_BPS: Final = 500_000
"""Bits per second of audio and events together, as long as nothing else is known."""

CHUNK: Final = 1000
"""Bytes that leave in one call at most, so that an event never holds up audio or control."""

_BURST: Final = 2 * CHUNK
CARRIED: Final = 64
"""Ids of unordered events that go with a session to another server."""

REMEMBERED: Final = 1024
"""Ids of events, and streams of unknown type, that are remembered."""

MAX_HELD: Final = 1024
"""Ordered events that may wait for one before them."""

MAX_KEPT: Final = 1000
"""Events that have left and are kept for a resumed session."""

MAX_KEPT_BYTES: Final = 1 << 22
KEPT_SECONDS: Final = 330.0
"""How long they are kept: a session can be resumed for 300 s, and a path may have been dead before that is known."""

MEMORY_EVENTS: Final = 4
"""Bytes of events under way and waiting, as a multiple of the largest event."""

_BREATH: Final = 0.001
"""Seconds between two calls that yield something."""

_AUDIO_MEMORY: Final = 1.0
"""Seconds over which the rate of the audio is taken."""


@dataclass(slots=True)
class _Outgoing:
    key: int
    data: bytes
    order: int
    position: int = 0
    left_at: float = 0.0


class EventOutbox:
    """Events that wait to leave, one stream each.

    Ordered and unordered events form a lane each and the lanes take turns, so that a large ordered event does not hold up an
    unordered one.

    Args:
        max_events: Events that may wait.
        max_bytes: Bytes that may wait.

    Attributes:
        allowed_bps: Bits per second for audio and events together.
    """

    __slots__ = (
        "_at",
        "_audio_bits",
        "_kept",
        "_kept_bytes",
        "_lanes",
        "_max_bytes",
        "_max_events",
        "_next_key",
        "_tokens",
        "_turn",
        "allowed_bps",
    )

    def __init__(self, *, max_events: int = 1000, max_bytes: int = 1 << 24) -> None:
        self.allowed_bps: float = float(DEFAULT_ALLOWANCE_BPS)
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._lanes: tuple[deque[_Outgoing], deque[_Outgoing]] = (deque(), deque())
        self._kept: deque[_Outgoing] = deque()
        self._kept_bytes = 0
        self._next_key = 0
        self._turn = 0
        self._tokens: float = float(_BURST)
        self._at: float | None = None
        self._audio_bits = 0.0

    @property
    def waiting(self) -> int:
        """Events that have not left completely."""
        ordered, unordered = self._lanes
        return len(ordered) + len(unordered)

    def put(self, data: bytes, now: float, *, order: int) -> int:
        """Queue an event, header and payload in wire form; returns the key of its stream.

        Args:
            data: The bytes.
            now: Monotonic seconds.
            order: Its place among the ordered events; 0 for an unordered one.

        Raises:
            StateError: Too much waits already.
        """
        held = sum(len(one.data) - one.position for lane in self._lanes for one in lane)
        if self.waiting >= self._max_events or (held and held + len(data) > self._max_bytes):
            raise StateError(f"{self.waiting} events of {held} bytes wait already; the path does not carry more")
        self._refill(now)
        key = self._next_key
        self._next_key += 1
        self._lanes[0 if order else 1].append(_Outgoing(key, data, order))
        return key

    def restart(self, next_order: int, now: float) -> int | None:
        """On a new connection, send again what the far end does not have, and begin anew with what was under way.

        Args:
            next_order: The ordered event that the far end expects next. Unordered ones it tells apart by their ids.
            now: Monotonic seconds.

        Returns:
            Place of the first ordered event that will be sent; None if there is none.
        """
        waiting = sorted((one for lane in self._lanes for one in lane), key=lambda one: one.key)
        kept = [one for one in self._kept if one.order or now - one.left_at <= KEPT_SECONDS]
        # A request that is older, but comes later, may ask for more.
        self._kept = deque(one for one in kept if 0 < one.order < next_order)
        self._kept_bytes = sum(len(one.data) for one in self._kept)
        self._lanes = (deque(), deque())
        for one in [*sorted(kept, key=lambda one: one.key), *waiting]:
            if one.order == 0 or one.order >= next_order:
                one.position = 0
                self._lanes[0 if one.order else 1].append(one)
        ordered = next((lane for lane in self._lanes if lane and lane[0].order), None)
        return ordered[0].order if ordered else None

    def _keep(self, event: _Outgoing) -> None:
        event.left_at = self._at or 0.0
        self._kept.append(event)
        self._kept_bytes += len(event.data)
        while len(self._kept) > MAX_KEPT or self._kept_bytes > MAX_KEPT_BYTES or event.left_at - self._kept[0].left_at > KEPT_SECONDS:
            self._kept_bytes -= len(self._kept.popleft().data)

    def audio(self, wire_bytes: int, now: float) -> None:
        """So many bytes of audio left: the events get what remains."""
        self._refill(now)
        self._audio_bits += wire_bytes * 8 / _AUDIO_MEMORY

    def rate_bps(self) -> float:
        """Bits per second that events get at present."""
        return max(MIN_RATE_BPS, self.allowed_bps - self._audio_bits)

    def take(self, now: float) -> list[tuple[int, bytes, bool]]:
        """(key, data, end) of what may leave now, at most `CHUNK` bytes in all."""
        if self._next_lane() is None:
            return []
        self._refill(now)
        taken: list[tuple[int, bytes, bool]] = []
        room = CHUNK
        while room and (lane := self._next_lane()) is not None:
            outgoing = lane[0]
            size = min(room, len(outgoing.data) - outgoing.position)
            if self._tokens < size:
                break
            self._tokens -= size
            room -= size
            data = outgoing.data[outgoing.position : outgoing.position + size]
            outgoing.position += size
            done = outgoing.position == len(outgoing.data)
            taken.append((outgoing.key, data, done))
            lane.popleft()
            if done:
                self._keep(outgoing)
            else:
                lane.appendleft(outgoing)
            self._turn = 1 - self._turn
        return taken

    def next_timer(self) -> float | None:
        """When `take` will have something, or None."""
        lane = self._next_lane()
        if lane is None or self._at is None:
            return None
        missing = min(CHUNK, len(lane[0].data) - lane[0].position) - self._tokens
        return self._at + max(_BREATH, missing * 8 / self.rate_bps())

    def _next_lane(self) -> deque[_Outgoing] | None:
        return self._lanes[self._turn] or self._lanes[1 - self._turn] or None

    def _refill(self, now: float) -> None:
        if self._at is not None and now > self._at:
            passed = now - self._at
            self._tokens = min(_BURST, self._tokens + passed * self.rate_bps() / 8)
            self._audio_bits *= math.exp(-passed / _AUDIO_MEMORY)
        self._at = now if self._at is None else max(now, self._at)


class EventInbox:
    """Events of the peer: puts streams together, restores the order, drops what came before (VS-7.3-2).

    Args:
        max_size: Bytes of one event.
        max_streams: Events that may be under way at once.

    Attributes:
        duplicates: Events that came again.
        skipped: Events that the peer gave up half-way.
    """

    __slots__ = (
        "_bytes", "_floor", "_held", "_ignored", "_max_size", "_max_streams", "_next_order", "_recent", "_streams",
        "duplicates", "skipped",
    )  # fmt: skip

    def __init__(self, *, max_size: int, max_streams: int) -> None:
        self._max_size = max_size
        self._max_streams = max_streams
        self._streams: dict[int, tuple[EventParser, int]] = {}  # key: parser and bytes fed to it
        self._ignored: dict[int, None] = {}
        self._recent: dict[int, None] = {}  # ids of unordered events
        self._held: dict[int, tuple[EventHeader, bytes]] = {}  # by order number
        self._bytes = 0
        self._next_order = 1
        self._floor = 0  # unordered events with lower ids have come to another server
        self.duplicates = 0
        self.skipped = 0

    @property
    def next_order(self) -> int:
        """Place of the ordered event that is to be delivered next."""
        return self._next_order

    @property
    def recent(self) -> tuple[int, ...]:
        """Ids of the latest unordered events, the oldest first."""
        return tuple(list(self._recent)[-CARRIED:]) if self._recent else ()

    def restore(self, next_order: int, recent: tuple[int, ...]) -> None:
        """Another server had come this far."""
        self._next_order = next_order
        self._recent = dict.fromkeys(recent)
        self._floor = min(recent) if len(recent) >= CARRIED else 0

    def restart(self) -> None:
        """A new connection: what was under way comes again from its beginning, on other streams."""
        for key in list(self._streams):
            self._drop(key)
        self._ignored.clear()

    def knows(self, key: int) -> bool:
        """Whether bytes of this stream have come before."""
        return key in self._streams or key in self._ignored

    def feed(self, key: int, data: bytes, fin: bool) -> list[tuple[EventHeader, bytes]]:
        """Take bytes of a stream; returns the events that can be delivered, in order.

        Raises:
            ProtocolError: EVENT_ENCODING_ERROR, EVENT_TOO_LARGE, or LIMIT_EXCEEDED when too much is under way.
        """
        if key in self._ignored:
            return []
        parser, size = self._streams.get(key) or (EventParser(self._max_size), 0)
        self._streams[key] = (parser, size + len(data))
        self._bytes += len(data)
        if len(self._streams) > self._max_streams:
            raise ProtocolError(ErrorCode.LIMIT_EXCEEDED, f"more than {self._max_streams} events under way")
        event = parser.feed(data, fin)
        if parser.ignored:
            _remember(self._ignored, key)
        if event is not None or fin or parser.ignored:
            self._drop(key)
        delivered = [] if event is None else self._arrived(*event)
        if self._bytes > MEMORY_EVENTS * self._max_size or len(self._held) > MAX_HELD:
            raise ProtocolError(ErrorCode.LIMIT_EXCEEDED, "too many bytes of unfinished and undeliverable events")
        return delivered

    def ignores(self, key: int) -> bool:
        """Whether this stream is of a type that this version does not know, so that the peer may stop sending it. VS-3.3-3"""
        return key in self._ignored

    def reset(self, key: int) -> None:
        """The peer gave up a stream; what came of it is dropped. VS-7.1-5"""
        if key in self._streams:
            self._drop(key)
            self.skipped += 1
        self._ignored.pop(key, None)

    def _drop(self, key: int) -> None:
        self._bytes -= self._streams.pop(key)[1]

    def _arrived(self, header: EventHeader, payload: bytes) -> list[tuple[EventHeader, bytes]]:
        if header.order == 0:
            if header.event_id in self._recent or header.event_id < self._floor:
                self.duplicates += 1
                return []
            _remember(self._recent, header.event_id)
            return [(header, payload)]
        if header.order < self._next_order or header.order in self._held:
            self.duplicates += 1
            return []
        self._held[header.order] = (header, payload)
        self._bytes += len(payload)
        delivered: list[tuple[EventHeader, bytes]] = []
        while self._next_order in self._held:
            event = self._held.pop(self._next_order)
            self._next_order += 1
            self._bytes -= len(event[1])
            delivered.append(event)
        return delivered


def _remember(keys: dict[int, None], key: int) -> None:
    keys[key] = None
    if len(keys) > REMEMBERED:
        del keys[next(iter(keys))]
