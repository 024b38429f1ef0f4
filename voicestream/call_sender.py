"""The talking side of a call: live, ahead of time, pre-encoded, and to the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from voicestream.call_link import CallLink
from voicestream.call_state import Ending, Signal
from voicestream.call_voice import Voice, slices
from voicestream.config import PTS_UNIT_MS
from voicestream.errors import StateError
from voicestream.events import Cleared, ClearRequested, Finished

if TYPE_CHECKING:
    from voicestream.audio.pipeline import CodedFrame
    from voicestream.session import Session

__all__ = ["CallSender"]

MIN_WAIT_S: Final = 0.002
MAX_WAIT_S: Final = 0.05

TOLERANCE_S: Final = 1e-4
"""Rounding of sums of frame lengths must not cost a wait."""

SMALLEST_ROOM_S: Final = 0.020
"""Room that always suffices to send one frame ahead: the smallest lookahead, so that no frame length can wait for ever."""


class CallSender:
    """Sends on the tracks of a call."""

    __slots__ = ("_answers", "_ending", "_epoch", "_heeded", "_link", "_turn", "_was_ahead", "discarded_ms", "next_pts", "room", "voice")

    def __init__(self, link: CallLink, ending: Ending, voice: Voice) -> None:
        self._link = link
        self._ending = ending
        self._turn = asyncio.Lock()
        self._epoch = 0
        # Clears of the voice track that the coder knows of.
        self._heeded = 0
        # How the last block was sent; its rest belongs to the same talkspurt and goes the same way.
        self._was_ahead = False
        # Who waits for the far end: (track, clear number) or (track, None) for the end of the track.
        self._answers: dict[tuple[int, int | None], asyncio.Future[int | None]] = {}
        self.voice = voice
        self.room = Signal()
        self.discarded_ms = 0.0
        self.next_pts: dict[int, int] = {}

    # What the application asks for

    def live(self, pcm: Any) -> None:
        """Code and queue a block; see `Call.send`. From any thread."""
        self._say(pcm, ahead=False)

    async def ahead(self, pcm: Any) -> bool:
        """Code and send a block as fast as the far end takes it; False when a clear discarded the rest."""
        audio = self.voice.audio
        size = audio.sample_rate_hz * audio.frame_ms // 1000
        epoch = self._epoch
        parts = list(slices(pcm, size, audio.channels))
        async with self._turn:
            for index, part in enumerate(parts):
                if not await self._wait_for_room(audio.frame_ms / 1000, self.voice.track.track_id, epoch):
                    self.discarded_ms += (len(parts) - index) * audio.frame_ms
                    return False
                self._say(part, ahead=True)
        return True

    async def frame(
        self, payload: bytes, *, units: int | None, track: int, talkspurt_start: bool, talkspurt_end: bool, ahead: bool
    ) -> bool:
        """Send one coded frame; False when a clear discarded it while it waited."""
        if not isinstance(payload, bytes | bytearray | memoryview):
            raise TypeError(f"a frame must be bytes, one packet of the track's codec, not {type(payload).__name__}")
        payload = bytes(payload)
        if not ahead:
            self._frame(payload, units, track, talkspurt_start, talkspurt_end, ahead=False)
            return True
        epoch = self._epoch
        duration_ms = PTS_UNIT_MS * (units or 8)
        async with self._turn:
            if not await self._wait_for_room(duration_ms / 1000, track, epoch):
                self.discarded_ms += duration_ms
                return False
            self._frame(payload, units, track, talkspurt_start, talkspurt_end, ahead=True)
        return True

    def flush(self) -> None:
        """Send what does not fill a frame, padded."""
        with self.voice.guard:
            self._ending.check()
            self._heed()
            self._queue(self.voice.rest(), self.voice.track.track_id, ahead=self._was_ahead)

    async def clear(self, track: int) -> int:
        """Forget what was sent on a track; the pts that the far end had played by then."""
        # With the guard: what another thread is coding belongs to the old speech.
        with self.voice.guard, self._link.verbs() as (session, now):
            number = session.clear(now, track=track, outgoing=True)
        self._discard()
        return await self._answer(track, number)

    async def finish(self, track: int) -> int:
        """Send what is left and the end of the track; the played pts once the far end has played it all."""
        async with self._turn:
            if (track, None) not in self._answers:
                self._end(track)
        return await self._answer(track, None)

    def open_tracks(self) -> list[int]:
        """Tracks on which something was sent and whose end was not told yet."""
        return [track for track in self.next_pts if (track, None) not in self._answers]

    # What the far end says

    def on_clear_requested(self, event: ClearRequested) -> None:
        """The far end asks for silence: whoever waits to send more is let go."""
        self.next_pts[event.track] = event.to_pts
        self._discard()

    def on_cleared(self, event: Cleared) -> bool:
        """A clear is confirmed; whether somebody here had asked for it."""
        return self._resolve((event.track, event.number), event.heard_pts)

    def on_finished(self, event: Finished) -> None:
        """The far end has played all of a track."""
        self._resolve((event.track, None), event.played_pts)

    def on_closed(self) -> None:
        """Nothing more will be answered."""
        for future in self._answers.values():
            if not future.done():
                future.set_result(None)
        self.room.notify()

    # Inside

    def _check_open(self, track: int) -> None:
        self._ending.check()
        if (track, None) in self._answers:
            raise StateError("finish() has been called: no more audio can be sent")

    def _say(self, pcm: Any, *, ahead: bool) -> None:
        track = self.voice.track.track_id
        with self.voice.guard:
            self._check_open(track)
            self._was_ahead = ahead
            self._heed()
            self._queue(self.voice.code(pcm), track, ahead=ahead)

    def _heed(self) -> None:
        """If the voice track was cleared since, samples of the old speech are not coded with what comes. Call with the guard held."""
        with self._link.locked() as session:
            number = session.clear_number(self.voice.track.track_id)
        if number != self._heeded:
            self._heeded = number
            self.voice.forget()

    def _queue(self, frames: Sequence[CodedFrame], track: int, *, ahead: bool) -> None:
        if not frames:
            return
        with self._link.verbs() as (session, now):
            if session.clear_number(track) != self._heeded:
                # The far end asked for silence while this was coded: it must not be taken for what is said after that.
                self.discarded_ms += sum(frame.units for frame in frames) * PTS_UNIT_MS
                return
            for frame in frames:
                self._queue_one(session, frame, track, now, ahead=ahead)

    def _queue_one(self, session: Session, frame: CodedFrame, track: int, now: float, *, ahead: bool) -> None:
        if frame.payload is None:
            session.skip(frame.units, track)
            self.next_pts[track] = self.next_pts.get(track, 0) + frame.units
            return
        pts = session.send_frame(
            frame.payload,
            now,
            units=frame.units,
            track=track,
            talkspurt_start=frame.talkspurt_start,
            talkspurt_end=frame.talkspurt_end,
            ahead=ahead,
            copy=frame.copy,
        )
        self.next_pts[track] = pts + frame.units

    def _frame(self, payload: bytes, units: int | None, track: int, start: bool, end: bool, *, ahead: bool) -> None:
        self._check_open(track)
        with self._link.verbs() as (session, now):
            pts = session.send_frame(
                payload, now, units=units, track=track, talkspurt_start=start, talkspurt_end=end, ahead=ahead
            )
        self.next_pts[track] = pts + (units or 0)

    async def _wait_for_room(self, duration_s: float, track: int, epoch: int) -> bool:
        need_s = min(duration_s, SMALLEST_ROOM_S) - TOLERANCE_S
        asked_at = self._link.now()
        while True:
            self._check_open(track)
            if self._epoch != epoch:
                return False
            with self._link.locked() as session:
                now = self._link.now()
                allowance = session.ahead_allowance(now, track)
                far_lookahead_s = session.peer.lookahead_ms / 1000
            # A far end that holds less than a frame ahead gets audio at the speed at which it plays.
            if allowance >= need_s or (far_lookahead_s < need_s and now >= asked_at + duration_s):
                return True
            # Room comes by itself as the far end plays, and sooner when its report says so.
            await self.room.wait(min(max(need_s - allowance, MIN_WAIT_S), MAX_WAIT_S))

    def _discard(self) -> None:
        self._epoch += 1
        self.room.notify()

    def _end(self, track: int) -> None:
        with self.voice.guard:
            self._ending.check()
            if track == self.voice.track.track_id:
                self._heed()
                self._queue(self.voice.rest(), track, ahead=self._was_ahead)
            with self._link.verbs() as (session, now):
                session.finish(now, track)
            self._answers[track, None] = asyncio.get_running_loop().create_future()

    async def _answer(self, track: int, number: int | None) -> int:
        future = self._answers.setdefault((track, number), asyncio.get_running_loop().create_future())
        try:
            # Shielded, since several may wait for the same answer and one of them be cancelled.
            result = await asyncio.shield(future)
        finally:
            if number is not None:
                self._answers.pop((track, number), None)
        if result is None:
            self._ending.check()
            raise StateError("the call ended without an answer")
        return result

    def _resolve(self, key: tuple[int, int | None], pts: int) -> bool:
        future = self._answers.get(key)
        if future is not None and not future.done():
            future.set_result(pts)
        return future is not None
