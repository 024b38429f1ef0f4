"""Application events: what `Call.events` gives out, how objects become payloads, and the bounded queue between."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from voicestream.call_state import Ending, Signal
from voicestream.codepoints import EventKind
from voicestream.config import UNITS_PER_SECOND
from voicestream.events import EventReceived

__all__ = ["CallEvent", "EventInbox", "Events", "decode_event", "encode_event"]

MIN_HELD_BYTES: Final = 1 << 22


@dataclass(frozen=True, kw_only=True, slots=True)
class CallEvent:
    """Something that the far end said beside the audio.

    Attributes:
        kind: "json", "text" or "bytes": an application event, its content in `data`. "clear": the far end asks this end to
            stop talking (barge-in); what was queued is already gone. "heard" follows: how much of it the far end's device had played
            when its user interrupted, exactly. "finish": the far end sends no more audio.
            "degraded": nothing has been heard of the far end for 0.6 s, "connected": it is heard again, "lost": for 2 s, or the
            connection broke, "resuming": another one is dialled, "resumed": the session goes on on it (`data` holds "outage",
            seconds since nothing had been heard; 0 at another server than before, which does not know), "gave_up": it could not be
            resumed, and the call ends (`data` holds "code" and "reason": nobody answered for as long as the session is kept, or the
            server has it no more).
            "going_away": the far end will close soon; `data` holds "reason", "uri" and "retry_after" (seconds). "quality": how well
            this end can send has changed; `data` holds "level" ("good", "limited", "poor", or "paused" when no audio leaves, since
            the path does not carry any) and "target_bps".
        data: Content; dict or list, str, or bytes. None for "clear", "heard" and "finish".
        event_id: Number that the far end gave to an application event.
        order: Place among the ordered application events, from 1; 0 for an unordered one.
        track: Track that the event belongs to, if any.
        at: Media time on that track in seconds, if the event is aligned with audio: the far end's audio for application
            events and "finish", this end's for "clear" (where what follows begins) and "heard" (where the listener stopped).
        wire_kind: Number of an application event's kind on the wire (specification section 7.2): 0 bytes, 1 text, 2 JSON. One of a
            kind that is not known here comes as "bytes", and this tells which it is.
    """

    kind: str
    data: Any = None
    event_id: int = 0
    order: int = 0
    track: int | None = None
    at: float | None = None
    wire_kind: int | None = None

    def __repr__(self) -> str:
        """Without what an application said: that does not belong into a log."""
        own = self.kind not in ("json", "text", "bytes")
        told = {"data": self.data, "event_id": self.event_id, "order": self.order, "track": self.track, "at": self.at}
        if self.wire_kind not in tuple(EventKind):
            told["wire_kind"] = self.wire_kind
        parts = [f"{name}={value!r}" for name, value in told.items() if value not in (None, 0) and (own or name != "data")]
        return f"CallEvent({', '.join([f'kind={self.kind!r}', *parts])})"


def encode_event(data: object) -> tuple[EventKind, bytes]:
    """Turn an application's object into kind and payload.

    Args:
        data: dict or list of JSON values, str, or bytes.

    Raises:
        TypeError: Another type.
        ValueError: A value inside that JSON does not know, such as NaN.
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return EventKind.BYTES, bytes(data)
    if isinstance(data, str):
        return EventKind.TEXT, data.encode()
    if isinstance(data, dict | list | tuple):
        return EventKind.JSON, json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    raise TypeError(f"an event must be dict, list, str or bytes, not {type(data).__name__}")


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _parse_json(payload: bytes) -> Any:
    try:
        # Decoded here, since json would take UTF-16 and UTF-32 as well.
        return json.loads(payload.decode(), parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


def decode_event(event: EventReceived) -> CallEvent:
    """Turn a received event into the application's form. VS-7.2-3

    Raises:
        ValueError: The payload is not what its kind says.
    """
    at = None if event.pts is None else event.pts / UNITS_PER_SECOND
    data: Any = event.payload
    kind = "bytes"
    if event.kind == EventKind.TEXT:
        kind, data = "text", event.payload.decode()
    elif event.kind == EventKind.JSON:
        kind, data = "json", _parse_json(event.payload)
    return CallEvent(kind=kind, data=data, event_id=event.event_id, order=event.order, track=event.track, at=at, wire_kind=int(event.kind))


class EventInbox:
    """Events that the application has not fetched yet: bounded in number and in bytes, the oldest dropped and counted."""

    __slots__ = ("_bytes", "_ending", "_events", "_signal", "dropped", "max_bytes", "max_events", "received")

    def __init__(self, ending: Ending, *, max_events: int, max_event_size: int) -> None:
        self._ending = ending
        self._events: deque[tuple[CallEvent, int]] = deque()
        self._bytes = 0
        self._signal = Signal()
        self.max_events = max_events
        self.max_bytes = max(MIN_HELD_BYTES, 2 * max_event_size)
        self.received = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._events)

    def put(self, event: CallEvent, size: int = 0) -> None:
        """Add an event whose payload had `size` bytes."""
        self.received += 1
        self._events.append((event, size))
        self._bytes += size
        while len(self._events) > self.max_events or self._bytes > self.max_bytes:
            _, dropped_size = self._events.popleft()
            self._bytes -= dropped_size
            self.dropped += 1
        self._signal.notify()

    def receive(self, event: EventReceived, refuse: Callable[[str], None]) -> None:
        """Decode and add an event of the far end; `refuse` is called with the reason when it cannot be decoded."""
        try:
            decoded = decode_event(event)
        except ValueError as error:
            refuse(f"event {event.event_id}: {error}")
            return
        self.put(decoded, len(event.payload))

    def wake(self) -> None:
        """Let those who wait see that the call is over."""
        self._signal.notify()

    async def get(self) -> CallEvent | None:
        """The next event, oldest first; None when the call has ended well and all have been fetched.

        Raises:
            CallClosedError: The call ended with an error and all have been fetched.
        """
        while not self._events:
            if self._ending.closed:
                self._ending.check_error()
                return None
            await self._signal.wait()
        event, size = self._events.popleft()
        self._bytes -= size
        return event


class Events:
    """Iterates over an inbox until the call has ended. Cancelling a wait loses no event."""

    __slots__ = ("_inbox",)

    def __init__(self, inbox: EventInbox) -> None:
        self._inbox = inbox

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> CallEvent:
        event = await self._inbox.get()
        if event is None:
            raise StopAsyncIteration
        return event
