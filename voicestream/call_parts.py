"""The parts of a call and the routes between them: verbs to the part that does them, session events to whom they concern."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from voicestream.call_context import CallContext
from voicestream.call_events import CallEvent, EventInbox
from voicestream.call_figures import CallFigures
from voicestream.call_frames import FrameReader
from voicestream.call_link import CallLink
from voicestream.call_log import Journal
from voicestream.call_options import CallOptions
from voicestream.call_reader import CallReader
from voicestream.call_sender import CallSender
from voicestream.call_state import Ending
from voicestream.call_voice import Voice
from voicestream.codepoints import ErrorCode, EventKind
from voicestream.config import UNITS_PER_SECOND
from voicestream.errors import StateError
from voicestream.events import (
    Cleared,
    ClearRequested,
    Closed,
    Event,
    EventReceived,
    Finished,
    GoingAway,
    PathLost,
    PlanChanged,
    QualityChanged,
    RemoteFinished,
    Resumed,
)
from voicestream.observe import CallTrace

if TYPE_CHECKING:
    from voicestream.core.playout import OrderedAccount, Playout

__all__ = ["CallParts"]

EVENTS_LINGER_S: Final = 1.0
"""Seconds that events which were sent before a good end get to arrive."""

EVENTS_LOOK_S: Final = 0.01


class CallParts:
    """Everything behind a `Call`."""

    __slots__ = (
        "_began",
        "_ended",
        "_frames",
        "_goodbye",
        "_reader",
        "attendant",
        "context",
        "ending",
        "figures",
        "inbox",
        "journal",
        "link",
        "lost_at",
        "on_network_changed",
        "options",
        "path",
        "sender",
        "voice_track",
    )

    def __init__(self, link: CallLink, ending: Ending, options: CallOptions) -> None:
        limits = options.session.limits
        self._began = link.now()
        self._ended: float | None = None
        self._goodbye: tuple[int, str] | None = None  # of a close that waits for events to arrive
        self.link = link
        self.ending = ending
        self.options = options
        self.lost_at: float | None = None
        self.path = "connected"
        self.journal: Journal | None = None
        self.figures: CallFigures | None = None
        self.context = CallContext()
        self.attendant: asyncio.Task[None] | None = None
        self.on_network_changed: Callable[[str | None], None] | None = None
        self.voice_track = options.voice_track.track_id
        self.inbox = EventInbox(ending, max_events=limits.undelivered_events, max_event_size=limits.max_event_size)
        self.sender = CallSender(link, ending, Voice(options.voice_track, options.audio))
        self._reader: CallReader | None = None
        self._frames: dict[int, FrameReader] = {}

    # Verbs

    def reader(self) -> CallReader:
        """The real-time reader of the voice track, made when first asked for."""
        # Under the lock, since a device's thread may be the first to ask.
        with self.link.locked():
            if self._reader is None:
                if self.voice_track in self._frames:
                    raise StateError("frames() reads this call's audio: read() and iteration cannot have it too")
                options = self.options
                self._reader = CallReader(
                    self.link, self.ending, options.voice_track, options.audio, options.session.playout, options.observer
                )
            return self._reader

    def frame_reader(self, track: int) -> FrameReader:
        """The ordered reader of a track, made when first asked for."""
        if track not in self._frames:
            if track == self.voice_track and self._reader is not None:
                raise StateError("read() or iteration has this call's audio: frames() cannot have it too")
            described = next((one for one in self.options.session.tracks if one.track_id == track), None)
            if described is None:
                raise StateError(f"there is no track {track} in this call")
            self._frames[track] = FrameReader(
                self.link, self.ending, described, self.options.audio, self.options.session.playout.lookahead_ms
            )
        return self._frames[track]

    def network_changed(self, local_address: str | None) -> None:
        """Tell whoever looks after the call's network; from any thread."""
        if self.on_network_changed is not None:
            self.on_network_changed(local_address)

    def send_event(self, kind: EventKind, payload: bytes, ordered: bool, pts: int | None) -> int:
        """Hand an event to the session; its number."""
        with self.link.verbs() as (session, now):
            track = None if pts is None else self.voice_track
            return session.send_event(payload, now, kind=kind, ordered=ordered, track=track, pts=pts)

    async def finish(self, timeout: float | None, track: int) -> int:
        """The played pts once the far end has played all."""
        try:
            async with asyncio.timeout(timeout):
                return await self.sender.finish(track)
        except TimeoutError:
            raise TimeoutError(f"the far end has not played everything within {timeout:g} s") from None

    async def clear(self, outgoing: bool, track: int, timeout: float | None) -> int:
        """The pts of the last sample heard."""
        if outgoing:
            try:
                async with asyncio.timeout(timeout):
                    return await self.sender.clear(track)
            except TimeoutError:
                raise TimeoutError(f"the far end has not confirmed the clear within {timeout:g} s") from None
        reader = self._reader
        with self.link.verbs() as (session, now):
            # The session is told how far the device has come before what it holds is dropped.
            heard = reader.report_heard() if reader is not None and reader.track.track_id == track else self._taken(track)
            session.clear(now, track=track, outgoing=False)
        return heard

    def _taken(self, track: int) -> int:
        return self._frames[track].taken_pts if track in self._frames else 0

    async def close(self, code: int, reason: str) -> None:
        """End the session and wait until it is over."""
        if not isinstance(code, int) or not isinstance(reason, str):
            raise TypeError(f"code must be an int and reason a str, not {type(code).__name__} and {type(reason).__name__}")
        if self._goodbye is not None:
            code, reason = self._goodbye  # who closes once more waits no longer
        elif code in (ErrorCode.NO_ERROR, ErrorCode.GOING_AWAY):
            self._goodbye = (code, reason)
            try:
                await self.events_taken()
            except asyncio.CancelledError:
                self.close_now(code, reason)
                raise
        self.close_now(code, reason)
        await self.link.wait_closed()
        if self.attendant is not None and not self.attendant.done():
            await asyncio.wait([self.attendant])
        if isinstance(self.options.observer, CallTrace):
            await asyncio.to_thread(self.options.observer.flush)

    async def events_taken(self) -> None:
        """Give events that were sent a moment ago the time to arrive."""
        loop = asyncio.get_running_loop()
        until = loop.time() + EVENTS_LINGER_S
        while self.link.events_wait and loop.time() < until:
            await asyncio.sleep(EVENTS_LOOK_S)

    def close_now(self, code: int, reason: str, *, may_resume: bool = False) -> None:
        """End the session without waiting; `may_resume`: at this end, to be taken up at another server."""
        self.link.close(code, reason, may_resume=may_resume)
        if self.link.is_over:
            # Without a connection nobody else says so.
            asyncio.get_running_loop().call_soon(self.pump)

    # For the numbers

    def report_to(self, figures: CallFigures) -> None:
        """Count the call in these figures."""
        if self.figures is not None:
            raise StateError("the call is counted already")
        self.figures = figures
        figures.begun(self)
        if (event := self.ending.event) is not None:
            figures.over(self, event, gave_up=self._gave_up(event))

    def duration(self, now: float) -> float:
        """Seconds from the beginning to the end, or to `now`."""
        return (now if self._ended is None else self._ended) - self._began

    @property
    def playout(self) -> Playout | None:
        """The playout buffer, if anybody has listened in real time."""
        return None if self._reader is None else self._reader.playout

    @property
    def ordered_accounts(self) -> list[OrderedAccount]:
        """The books of the ordered readers."""
        accounts = (reader.account for reader in list(self._frames.values()))
        return [account for account in accounts if account is not None]

    # Events

    def pump(self) -> None:
        """Deliver what the session has to tell. The transport calls this on the loop after anything has happened."""
        while (event := self.link.next_event()) is not None:
            self._deliver(event)
        self.sender.room.notify()
        for reader in self._frames.values():
            reader.look()

    def _deliver(self, event: Event) -> None:
        match event:
            case PlanChanged():
                self.sender.voice.apply(event)
            case EventReceived():
                self.inbox.receive(event, self._refuse_event)
            case ClearRequested():
                self.sender.on_clear_requested(event)
                self.inbox.put(CallEvent(kind="clear", track=event.track, at=event.to_pts / UNITS_PER_SECOND))
            case Cleared():
                if not self.sender.on_cleared(event):
                    # Nobody here waits for it: the far end had interrupted.
                    self.inbox.put(CallEvent(kind="heard", track=event.track, at=event.heard_pts / UNITS_PER_SECOND))
            case Finished():
                self.sender.on_finished(event)
            case RemoteFinished():
                self.inbox.put(CallEvent(kind="finish", track=event.track, at=event.pts / UNITS_PER_SECOND))
            case QualityChanged():
                self.inbox.put(CallEvent(kind="quality", data={"level": event.level, "target_bps": event.target_bps}))
            case GoingAway():
                data = {"reason": event.reason, "uri": event.uri, "retry_after": event.retry_after}
                self.inbox.put(CallEvent(kind="going_away", data=data))
            case PathLost():
                # A client that watches its path has said so before.
                if self.attendant is None:
                    self.tell_lost(self.link.lost_since)
            case Resumed():
                outage = 0.0 if self.lost_at is None else self.link.now() - self.lost_at
                self.lost_at, self.path = None, "connected"
                if self.figures is not None:
                    self.figures.count("resumes", "resumed")
                self.inbox.put(CallEvent(kind="resumed", data={"outage": round(outage, 3)}))
            case Closed():
                gave_up = self._gave_up(event)
                if gave_up:
                    self.inbox.put(CallEvent(kind="gave_up", data={"code": event.code, "reason": event.reason}))
                self._ended = self.link.now()
                self.ending.set(event)
                if self.journal is not None:
                    self.journal.closed(self, event)
                if self.figures is not None:
                    self.figures.over(self, event, gave_up=gave_up)
                self.sender.on_closed()
                self.inbox.wake()
                self._let_go()
            case _:
                pass

    def _let_go(self) -> None:
        """The call is over: what refers back to it would keep it until the garbage collector comes by, which may be minutes."""
        with self.link.locked() as session:
            session.let_go()
        self.on_network_changed = None
        self.context.on_change = lambda: None

    def tell_lost(self, since: float | None = None) -> None:
        """The path is lost, since a time if that is known."""
        if self.lost_at is None:
            self.lost_at = self.link.now() if since is None else since
            self.path = "lost"
            self.inbox.put(CallEvent(kind="lost"))

    def tell_path(self, kind: str) -> None:
        """The path is "degraded", or "connected" again."""
        if kind == "connected":
            self.lost_at = None
        self.path = kind
        self.inbox.put(CallEvent(kind=kind))

    def _gave_up(self, event: Closed) -> bool:
        """Whether a lost path is why the call is over, and not the application."""
        return event.code == ErrorCode.PATH_LOST or (self.lost_at is not None and (event.remote or event.code != ErrorCode.NO_ERROR))

    def _refuse_event(self, reason: str) -> None:
        self.close_now(ErrorCode.EVENT_ENCODING_ERROR, reason)  # VS-7.2-2
