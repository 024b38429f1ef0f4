"""A peer that keeps to no rule: whatever a case sends leaves as it is, and all that comes is written down.

It also can behave: `reports` and `talk` do what a call expects of its far end, so that a case breaks one rule and not ten.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from aioquic.asyncio import QuicConnectionProtocol
from aioquic.quic import events
from aioquic.quic.connection import QuicConnection

from interop.peers.words import control_words, datagram_words, event_words, message_words
from voicestream.codepoints import ErrorCode, error_name
from voicestream.errors import ProtocolError
from voicestream.wire import (
    Accept,
    AudioFrame,
    Close,
    Datagram,
    EventHeader,
    EventParser,
    Frame,
    Hello,
    Message,
    MessageParser,
    Reject,
    ReportFrame,
    decode_datagram,
    encode_datagram,
    encode_event_header,
    encode_message,
    tick_delta,
    ticks,
)

__all__ = ["CONTROL", "OPUS_SILENCE", "End", "RawPeer", "Seen"]

CONTROL: Final = 0
OPUS_SILENCE: Final = bytes.fromhex("480be4c136ecc580")
"""A packet of 20 ms, mono, whose content is of no interest."""
FRAME_UNITS: Final = 8
MAX_LOG: Final = 4000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seen:
    """One thing on the wire.

    Attributes:
        at: Seconds since the connection began.
        sent: The suite sent it.
        kind: datagram, message, event, stream, close or note.
        value: What it is.
        told: It in words, when somebody wants to read them.
        size: Bytes of a datagram.
    """

    at: float
    sent: bool
    kind: str
    value: Any
    told: Callable[[], str]
    size: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """How the far end ended the session: by CLOSE, by REJECT, or by QUIC."""

    code: int
    reason: str
    how: str

    def __str__(self) -> str:
        return f"{self.how} {error_name(self.code)}" + (f" ({self.reason})" if self.reason else "")


class RawPeer(QuicConnectionProtocol):
    """The suite's end of one connection.

    Attributes:
        log: Everything, in order.
        close_message: The CLOSE or REJECT of the far end.
        gone: How the QUIC connection ended.
        is_closing: The case is over, or has said goodbye: nothing more is reported or spoken.
        broken: What the far end sent that no decoder takes: always its failure.
        number: Of the next datagram.
        pts: Of the next frame of audio.
        losses: Claim in reports that one of so many datagrams did not come; 0 for the truth.
        hello: The far end's first control message.
        opening: The bytes of the control stream up to its end, and what came with it.
        hand_over: Is given this peer when that has come.
    """

    def __init__(self, quic: QuicConnection, stream_handler: object = None) -> None:
        self.is_mute = False
        super().__init__(quic)
        self.log: list[Seen] = []
        self.begun = time.monotonic()
        self.close_message: End | None = None
        self.gone: End | None = None
        self.is_closing = False
        self.broken: str | None = None
        self.number = 0
        self.pts = 0
        self.losses = 0
        self.hello: Message | None = None
        self.opening = b""
        self.hand_over: Callable[[RawPeer], None] | None = None
        self._changed = asyncio.Event()
        self._parser = MessageParser()
        self._events: dict[int, EventParser] = {}
        self._heard: dict[int, tuple[int, int]] = {}
        self._reported = -1
        self._tasks: list[asyncio.Task[None]] = []

    # What comes.

    def quic_event_received(self, event: events.QuicEvent) -> None:
        if isinstance(event, events.DatagramFrameReceived):
            self._datagram(event.data)
        elif isinstance(event, events.StreamDataReceived):
            self._stream(event.stream_id, event.data, event.end_stream)
        elif isinstance(event, events.StreamReset):
            self._note("stream", ("reset", event.stream_id, event.error_code), f"stream {event.stream_id} reset")
        elif isinstance(event, events.StopSendingReceived):
            words = f"STOP_SENDING of stream {event.stream_id}, {error_name(event.error_code)}"
            self._note("stream", ("stop", event.stream_id, event.error_code), words)
        elif isinstance(event, events.ConnectionTerminated):
            how = "CONNECTION_CLOSE" if event.frame_type is None else "transport error"
            self.gone = End(event.error_code, event.reason_phrase, how)
            self._note("close", self.gone, str(self.gone))
        elif isinstance(event, events.HandshakeCompleted):
            self._note("note", event, f"QUIC handshake done, ALPN {event.alpn_protocol}")
        if self.hand_over is not None and self.hello is not None:
            found, self.hand_over = self.hand_over, None
            found(self)

    def _note(self, kind: str, value: Any, words: str | Callable[[], str], *, sent: bool = False, size: int = 0) -> None:
        if len(self.log) < MAX_LOG:
            told = (lambda: words) if isinstance(words, str) else words
            self.log.append(Seen(time.monotonic() - self.begun, sent, kind, value, told, size))
        self._changed.set()

    def _break(self, words: str) -> None:
        self.broken = self.broken or words
        self._note("note", None, f"this breaks the format: {words}")

    def _datagram(self, data: bytes) -> None:
        try:
            datagram = decode_datagram(data)
        except ProtocolError as error:
            self._note("note", None, lambda: datagram_words(data))
            self._break(error.reason)
            return
        self._note("datagram", datagram, lambda: datagram_words(data), size=len(data))
        full = datagram.number  # cases are short: numbers do not wrap
        if any(not isinstance(frame, ReportFrame) for frame in datagram.frames) or not datagram.frames:
            self._heard.setdefault(full, (ticks(time.monotonic()), datagram.send_tick))

    def _stream(self, stream_id: int, data: bytes, fin: bool) -> None:
        if stream_id == CONTROL:
            if self.hello is None:
                self.opening += data
            try:
                for message in self._parser.feed(data):
                    self._message(message)
            except ProtocolError as error:
                self._break(error.reason)
            if fin:
                self._note("stream", ("fin", stream_id, 0), "control stream ended")
        elif stream_id & 2:
            parser = self._events.setdefault(stream_id, EventParser(1 << 24))
            try:
                found = parser.feed(data, fin)
            except ProtocolError as error:
                self._break(error.reason)
                return
            if found is not None:
                header, payload = found
                self._note("event", found, event_words(header.kind, header.event_id, header.order, len(payload)))
        else:
            self._note("stream", ("open", stream_id, 0), f"bidirectional stream {stream_id}")

    def _message(self, message: Message) -> None:
        self.hello = self.hello or message
        if isinstance(message, Close | Reject):
            reason = message.reason if isinstance(message, Close) else message.parameters.reason or ""
            self.close_message = self.close_message or End(message.code, reason, type(message).__name__.upper())
        self._note("message", message, lambda: message_words(message))

    # Waiting.

    @property
    def end(self) -> End | None:
        """How the far end ended it, if it did: CLOSE or REJECT before CONNECTION_CLOSE."""
        return self.close_message or self.gone

    async def until(self, found: Callable[[], T | None], timeout: float) -> T | None:
        """What `found` gives once it gives something, or None after so many seconds or when the connection is gone."""
        deadline = time.monotonic() + timeout
        while (value := found()) is None:
            left = deadline - time.monotonic()
            if left <= 0 or self.gone is not None:
                return found()
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                return found()
        return value

    def seen(self, kind: type[T], since: int = 0) -> list[tuple[float, T]]:
        """Messages and frames of this type that came, with the seconds at which they did."""
        found: list[tuple[float, T]] = []
        for one in self.log[since:]:
            if one.sent:
                continue
            values = one.value.frames if one.kind == "datagram" else (one.value,)
            found += [(one.at, value) for value in values if isinstance(value, kind)]
        return found

    async def first(self, kind: type[T], timeout: float = 3.0, *, since: int = 0, where: Callable[[T], bool] = lambda _: True) -> T | None:
        """The first message or frame of this type after so many entries of the log."""
        return await self.until(lambda: next((value for _, value in self.seen(kind, since) if where(value)), None), timeout)

    async def ended(self, timeout: float = 3.0) -> End | None:
        """How the far end ends it, within so many seconds."""
        return await self.until(lambda: self.end, timeout)

    def datagrams(self, since: int = 0) -> list[tuple[float, Datagram]]:
        """Datagrams that came."""
        return [(one.at, one.value) for one in self.log[since:] if one.kind == "datagram" and not one.sent]

    def audio(self, since: int = 0) -> list[AudioFrame]:
        """Audio frames that came."""
        return [frame for _, frame in self.seen(AudioFrame, since)]

    # What leaves.

    @property
    def tick(self) -> int:
        return ticks(time.monotonic())

    def say(self, *frames: Frame, number: int | None = None, tick: int | None = None) -> int:
        """Send a datagram with these frames; its number."""
        own = self.number if number is None else number
        self.number = max(self.number, own + 1)
        data = Datagram(number=own & 0xFFFF, send_tick=self.tick if tick is None else tick & 0xFFFF, frames=frames)
        self.raw_datagram(encode_datagram(data))
        return own

    def raw_datagram(self, data: bytes, *, quiet: bool = False) -> None:
        """Send these bytes as a datagram."""
        if not quiet:
            self._note("datagram", data, lambda: datagram_words(data), sent=True, size=len(data))
        self._quic.send_datagram_frame(data)
        self.transmit()

    def frame(self, body: bytes) -> None:
        """Send a datagram with the next number around these bytes."""
        head = (self.number & 0xFFFF).to_bytes(2, "big") + self.tick.to_bytes(2, "big")
        self.number += 1
        self.raw_datagram(head + body)

    def send(self, *messages: Message) -> None:
        """Send control messages."""
        for message in messages:
            self._note("message", message, partial(message_words, message), sent=True)
        self._write(CONTROL, b"".join(map(encode_message, messages)), False)

    def control(self, data: bytes, *, fin: bool = False) -> None:
        """Send bytes on the control stream."""
        self._note("stream", data, lambda: control_words(data, fin), sent=True)
        self._write(CONTROL, data, fin)

    def stream(self, data: bytes, *, fin: bool = True, bidirectional: bool = False) -> int:
        """Send bytes on a stream of their own; its id."""
        stream_id = self._quic.get_next_available_stream_id(is_unidirectional=not bidirectional)
        words = f"stream {stream_id}: {len(data)} bytes {data[:12].hex()}{', then its end' if fin else ''}"
        self._note("stream", data, words, sent=True)
        self._write(stream_id, data, fin)
        return stream_id

    def all_left(self, stream_id: int) -> bool:
        """Whether everything written on a stream has left: flow control of the far end can hold some back."""
        return self._quic._streams[stream_id].sender.buffer_is_empty

    def event(self, payload: bytes, *, kind: int = 0, event_id: int = 1, order: int = 0) -> int:
        """Send an event."""
        return self.stream(encode_event_header(EventHeader(kind=kind, event_id=event_id, order=order)) + payload)

    def mute(self) -> None:
        """Neither hear nor say anything from now on, as if the path were gone."""
        self.is_closing = self.is_mute = True
        for task in self._tasks:
            task.cancel()

    def datagram_received(self, data: bytes | str, addr: Any) -> None:
        if not self.is_mute:
            super().datagram_received(data, addr)

    def transmit(self) -> None:
        if not self.is_mute:
            super().transmit()

    def reset(self, stream_id: int, code: int = 0) -> None:
        """Reset a stream."""
        self._note("stream", stream_id, f"stream {stream_id} reset", sent=True)
        self._quic.reset_stream(stream_id, code)
        self.transmit()

    def _write(self, stream_id: int, data: bytes, fin: bool) -> None:
        self._quic.send_stream_data(stream_id, data, fin)
        self.transmit()

    # Good behaviour.

    def behave(self, *, reports: bool = True, talk: bool = False) -> None:
        """From now on report what comes, and talk."""
        if reports:
            self._tasks.append(asyncio.ensure_future(self._report()))
        if talk:
            self._tasks.append(asyncio.ensure_future(self._talk()))

    async def _report(self) -> None:
        while self.gone is None:
            await asyncio.sleep(0.05)
            each = self.losses
            frame = self.report_frame((lambda number, each=each: number % each == 0) if each else lambda number: False)
            if frame is not None and not self.is_closing:
                self.say(frame)

    def report_frame(self, lost: Callable[[int], bool] = lambda number: False) -> ReportFrame | None:
        """A true report of what has come, but for the numbers that `lost` names; None when there is nothing new."""
        here = {number: at for number, at in self._heard.items() if not lost(number)}
        newest = max(here, default=-1)
        if newest <= self._reported:
            return None
        statuses: list[int | None] = []
        last = tick_delta(*here[newest])
        for number in range(newest - 1, max(-1, newest - 65), -1):
            if number in here:
                delay = tick_delta(*here[number])
                statuses.append(tick_delta(delay & 0xFFFF, last & 0xFFFF))
                last = delay
            else:
                statuses.append(None)
        self._reported = newest
        return ReportFrame(newest=newest & 0xFFFF, arrival=here[newest][0], statuses=tuple(statuses))

    async def _talk(self) -> None:
        following = time.monotonic()
        while self.gone is None and not self.is_closing:
            self.speak()
            following += 0.02
            await asyncio.sleep(max(0.0, following - time.monotonic()))

    def speak(self, **options: Any) -> int:
        """Send one frame of audio at the next pts; its pts."""
        pts, self.pts = self.pts, self.pts + FRAME_UNITS
        options.setdefault("talkspurt_start", pts == 0)
        self.say(AudioFrame(pts=pts & 0xFFFF, payload=OPUS_SILENCE, **options))
        return pts

    async def leave(self) -> None:
        """End it politely, if it is not over."""
        self.is_closing = True
        for task in self._tasks:
            task.cancel()
        if self.gone is None and not self.is_mute:
            if isinstance(self.hello, Hello | Accept) and self.close_message is None:
                self.send(Close(code=ErrorCode.NO_ERROR))
                await asyncio.sleep(0.05)
            self.close(ErrorCode.NO_ERROR)

    def lines(self) -> list[str]:
        """The log in words, from the suite's side: ">" left, "<" came."""
        return [f"{one.at * 1000:8.1f} ms {'>' if one.sent else '<' if one.kind != 'note' else ' '} {one.told()}" for one in self.log]
