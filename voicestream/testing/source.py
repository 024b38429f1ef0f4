"""Speakers of simulated calls: they talk live, with pauses, ahead of time, or in lumps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from voicestream.session import Session
from voicestream.testing.fake_codec import FakeCodec
from voicestream.testing.sim import Simulation

__all__ = ["AheadSource", "LiveSource", "SentFrame", "Talker"]

UNIT_S = 0.0025


class Talker:
    """What a source needs of its side of the call.

    Args:
        sim: The engine.
        session: Sends.
        flush: To be called after every verb.
        codec: Makes the packets.
        track: Which to speak on.
    """

    def __init__(self, sim: Simulation, session: Session, flush: Callable[[], None], codec: FakeCodec, *, track: int = 0) -> None:
        self.sim = sim
        self.session = session
        self.flush = flush
        self.codec = codec
        self.track = track
        self.sent: dict[int, SentFrame] = {}
        """Every frame given to the session, by pts."""
        self.copies = True
        """Whether it makes low-rate copies when the plan has them."""
        self._serial = 0

    def say(self, units: int, *, start: bool = False, end: bool = False, ahead: bool = False) -> int:
        """Send one frame; returns its pts."""
        self._serial += 1
        payload = self.codec.encode(self._serial, units, track=self.track)
        copy = self._copy(units)
        pts = self.session.send_frame(
            payload, self.sim.now, units=units, track=self.track, talkspurt_start=start, talkspurt_end=end, ahead=ahead, copy=copy
        )
        if pts in self.sent:
            self.sim.fail(f"pts {pts} of track {self.track} was used twice")
        self.sent[pts] = SentFrame(pts=pts, units=units, payload=payload, at=self.sim.now, start=start, end=end, copy=copy)
        return pts

    def _copy(self, units: int) -> bytes | None:
        """What a coarser encoder makes of the frame, if the session's plan has copies."""
        copy_bps = self.session.plan.copy_bps
        if not copy_bps or not self.copies:
            return None
        return self.codec.encode(-self._serial, units, track=self.track, size_bytes=round(copy_bps * units / 400 / 8))

    def pause(self, units: int) -> None:
        """Let media time pass in silence."""
        self.session.skip(units, track=self.track)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFrame:
    """A frame that a source gave to its session at virtual time `at` (when its capture was complete)."""

    pts: int
    units: int
    payload: bytes
    at: float
    start: bool
    end: bool
    copy: bytes | None = None


class LiveSource:
    """A microphone: a frame as soon as it is captured.

    Args:
        talker: Through which it speaks.
        frame_units: Length of a frame in units of 2.5 ms.
        start: When capture begins, in virtual seconds.
        stop: When it ends; the track is then finished. None for never.
        pattern: (talk, pause) seconds in turn, from the beginning again; empty for talk without pause. In pauses nothing is
            sent (DTX).
        lump_frames: Frames that the application hands over at once; more than one makes a bursty source.
        follow: Code by the session's plan, from the next frame on, as a real codec does.
    """

    def __init__(
        self,
        talker: Talker,
        *,
        frame_units: int = 8,
        start: float = 0.0,
        stop: float | None = None,
        pattern: tuple[tuple[float, float], ...] = (),
        lump_frames: int = 1,
        follow: bool = False,
    ) -> None:
        self.frame_units = frame_units
        self._follow = follow
        self._talker = talker
        self._stop = stop
        self._turns = [(round(talk_s / UNIT_S), round(pause_s / UNIT_S)) for talk_s, pause_s in pattern]
        self._turn = 0
        self._left_units = self._turns[0][0] if self._turns else 0
        self._talking = True
        self._fresh = True
        self._lump_frames = lump_frames
        self._next: float | None = start + frame_units * lump_frames * UNIT_S
        talker.sim.update(self)

    def finish(self, at: float) -> None:
        """End the track at `at`, a virtual time, when the frame that is being captured then is complete."""
        self._stop = at

    def next_timer(self) -> float | None:
        """When the next frame or lump is captured."""
        return self._next

    def handle_timer(self, now: float) -> None:
        """Hand over what was captured."""
        session = self._talker.session
        if session.is_closed:
            self._next = None
            return
        if self._stop is not None and now > self._stop:
            session.finish(now, track=self._talker.track)
            self._next = None
        else:
            for _ in range(self._lump_frames):
                self._frame()
            if self._follow:
                plan = session.plan
                self._talker.codec.bitrate_bps = plan.bitrate_bps
                self.frame_units = plan.frame_ms * 2 // 5
            self._next = (self._next or now) + self.frame_units * self._lump_frames * UNIT_S
        self._talker.flush()

    def _frame(self) -> None:
        units = self.frame_units
        if not self._turns:
            self._talker.say(units, start=self._fresh)
            self._fresh = False
            return
        self._left_units -= units
        ends = self._left_units < units
        if self._talking:
            self._talker.say(units, start=self._fresh, end=ends)
            self._fresh = False
        else:
            self._talker.pause(units)
        if ends:
            self._next_turn()

    def _next_turn(self) -> None:
        self._talking = not self._talking
        if self._talking:
            self._turn = (self._turn + 1) % len(self._turns)
            self._fresh = True
        self._left_units = self._turns[self._turn][0 if self._talking else 1]
        if self._left_units < self.frame_units:
            self._left_units = self.frame_units


class AheadSource:
    """A speech synthesiser: has whole utterances at once and sends as far ahead as the far end holds.

    Args:
        talker: Through which it speaks.
        frame_units: Length of a frame in units of 2.5 ms.
    """

    def __init__(self, talker: Talker, *, frame_units: int = 8) -> None:
        self._talker = talker
        self._frame_units = frame_units
        self._left_frames = 0
        self._fresh = False
        self._finish = False
        self._next: float | None = None

    def say(self, seconds: float, *, finish: bool = False) -> None:
        """An utterance is ready now; with `finish` the track ends after it."""
        self._left_frames = max(1, round(seconds / UNIT_S / self._frame_units))
        self._fresh = True
        self._finish = finish
        self._next = self._talker.sim.now
        self._talker.sim.update(self)

    def be_silent(self) -> None:
        """Forget the rest of the utterance."""
        self._left_frames = 0
        self._next = None
        self._talker.sim.update(self)

    @property
    def left_frames(self) -> int:
        """Frames of the utterance that are not sent yet."""
        return self._left_frames

    def next_timer(self) -> float | None:
        """When to try again."""
        return self._next

    def handle_timer(self, now: float) -> None:
        """Send as much as may be sent."""
        session, frame_s = self._talker.session, self._frame_units * UNIT_S
        if session.is_closed:
            self._next = None
            return
        while self._left_frames and session.ahead_allowance(now, track=self._talker.track) >= frame_s:
            self._left_frames -= 1
            self._talker.say(self._frame_units, start=self._fresh, end=not self._left_frames, ahead=True)
            self._fresh = False
        if self._left_frames:
            self._next = now + frame_s / 2
        else:
            self._next = None
            if self._finish:
                session.finish(now, track=self._talker.track)
        self._talker.flush()
