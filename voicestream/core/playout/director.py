"""The decisions themselves: what is made when a frame is there, when it is not, and when one talkspurt follows another."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from voicestream.config import PTS_UNIT_MS, UNITS_PER_SECOND
from voicestream.core.playout.account import ConcealmentRun
from voicestream.core.playout.backlog import BEHIND_UNITS, STANDSTILL_UNITS, Standstills, is_arriving
from voicestream.core.playout.buffer import Entry
from voicestream.core.playout.control import StretchControl
from voicestream.core.playout.decision import Accelerate, Conceal, Decision, Decode, Expand, Merge, Repair, Silence
from voicestream.core.playout.due import is_due
from voicestream.core.playout.intake import Intake
from voicestream.core.playout.passing import is_passed_over
from voicestream.core.playout.patience import Patience
from voicestream.core.playout.ticks import DeviceTicks, Tick
from voicestream.media import SourceKind
from voicestream.trace import Observer

__all__ = ["Director", "Pending"]

DRY_UNITS = 800
"""After so much concealment with nothing there the source is taken to be silent (2 s)."""

FINISH_UNITS = 120.0
"""Wait for a missing end of the track (300 ms, or the lookahead if that is longer)."""

HUSH_BYTES = 2
"""A frame so small says that the source fell silent (Opus under DTX): a gap behind it is no loss."""

EXCUSED_UNITS = 4.0
"""A device that is so much later than by its clock (10 ms) stood still, and with it perhaps the thread that receives."""

WAIT_TOLERANCE_UNITS = 2.0
"""For less than this (5 ms) no block of the device is spent on waiting: a wait of a block is heard more than a concealed frame, and
what is supposed of repairs is not so exact."""

JOIN_UNITS = 4
"""Concealment that joins the two ends where frames were dropped (10 ms)."""


class _State(enum.Enum):
    IDLE = "idle"
    TALK = "talk"
    SILENT = "silent"


@dataclass(slots=True)
class Pending:
    """A decision that the executor has not reported on."""

    decision: Decision
    units: float
    from_pts: int
    to_pts: int
    reason: str = ""


class Director:
    """Decides, and keeps what the next decision depends on. All times in pts units.

    Attributes:
        frame_units: Length of the frame played last.

    Args:
        intake: The frames.
        ticks: The device.
        observer: Takes trace records.
        track: Only for the records.
    """

    def __init__(self, intake: Intake, ticks: DeviceTicks, observer: Observer | None, track: int) -> None:
        self.frame_units = 8
        self._intake = intake
        self._ticks = ticks
        self._observer = observer
        self._track = track
        self._control = StretchControl()
        self._patience = Patience()
        self._standstills = Standstills()
        self._run = ConcealmentRun(intake.account)
        self._state = _State.IDLE
        self._now = 0.0
        self._credit = 0.0
        self._silence = 0.0
        self._reason = ""
        self._hushed = False
        self._playing = 0  # clear number of the frame played last
        self._finish_seen: float | None = None
        self._reported_target = 0.0

    @property
    def idle(self) -> bool:
        """Whether nothing was played yet."""
        return self._state is _State.IDLE

    @property
    def live(self) -> bool:
        """Whether a talkspurt that is sent in real time is being played."""
        return self._state is _State.TALK and not self._is_ahead()

    @property
    def level_units(self) -> float:
        """Audio on hand, coded and made."""
        return self._intake.buffer.coded_units + self._ticks.held

    @property
    def target_units(self) -> float:
        """The delay target and one frame."""
        delay = self._intake.delay
        return min(float(delay.ceiling), delay.target + self.frame_units)

    # The decisions

    def decide(self, now: float, tick: Tick | None) -> Pending:
        """What is made next, at time `now`; `tick` if the device has just taken a block."""
        self._now = now
        if tick is not None:
            self._control.consumed(tick.consumed, self.frame_units)
            if tick.late >= EXCUSED_UNITS:
                self._intake.delay.excuse(now, tick.late)
            if self._intake.delay.update(now):
                self._report_target()
            self._shed(tick.stalled)
        intake = self._intake
        front = intake.front()
        if self._state is _State.TALK:
            if intake.gate.cut is not None and intake.cut_reached(front, self._credit, self.frame_units):
                self._pass_cut()
            elif front is not None and is_arriving(front, intake, now, self._credit):
                return self._extend("late")
            elif front is not None and front.pts == intake.playhead:
                return self._play_late(front) if self._credit else self._play(front)
            elif self._hushed or (front is not None and front.frame.talkspurt_start):  # VS-6.5-1
                self.fall_silent()
            else:
                return self._wait_for_frame() if front is None else self._bridge(front)
        front = intake.front()
        if front is not None and is_due(front, self._intake, self._now, self._silence, idle=self.idle):
            return self._start(front)
        if front is None:
            self._check_finish()
        reason = "not yet due" if front is not None else "nothing yet" if self._state is _State.IDLE else "pause"
        return self._piece(Silence(self._ticks.need), reason)

    def _start(self, front: Entry) -> Pending:
        fresh = self._state is _State.IDLE
        if self._intake.gate.cut is not None and front.pts >= self._intake.gate.cut:
            self._pass_cut()
        self._intake.playhead = front.pts
        self._state = _State.TALK
        self._credit = 0.0
        self._control.moved(self._now)
        self.record("playout:talkspurt", {"pts": front.pts, "ahead": self._is_ahead(), "first": fresh})
        return self._play(front)

    def _play_late(self, front: Entry) -> Pending:
        """A frame that was waited for has come."""
        if self._reason == "late" and is_passed_over(front, self._intake, self._now, self._credit):
            self._lose(front.frame.units)
            self._intake.playhead, self._credit, front = front.end, 0.0, self._intake.pass_over()
        return self._play(front)

    def _play(self, front: Entry) -> Pending:
        intake, control, now = self._intake, self._control, self._now
        frame = intake.take().frame
        held, arrival = self._ticks.held, front.arrival * UNITS_PER_SECOND
        account, delay = intake.account, intake.delay
        units, base = frame.units, delay.base
        account.jitter_buffer_delay += units * (now - arrival + held) / UNITS_PER_SECOND
        account.jitter_buffer_target_delay += units * delay.target / UNITS_PER_SECOND
        account.jitter_buffer_emitted_units += units
        change = 0
        late = self._credit > 0
        merging = self._run.units > 0
        if base is not None and not intake.gate.is_ahead(frame.pts):  # VS-4.8-1 VS-16-3
            if late:
                control.moved(now)
                self._standstills.ended(now, self._credit)
            control.observe(now, now - front.end, held, now - arrival)
            if not merging and front.kind is not SourceKind.COPY:
                spread, target, known = delay.needed, delay.target, delay.is_measured
                change = round(control.correction(now, base, spread, target, units, front.early, delay.cost, cut_by_cost=known))
        if self._run.units:
            self._end_run()
        self._credit = 0.0
        self.frame_units = frame.units
        self._intake.playhead = front.end
        self._hushed = len(frame.payload) <= HUSH_BYTES
        self._playing = frame.clear_number
        if frame.talkspurt_end:
            self.fall_silent()
        if front.kind is SourceKind.COPY:
            decision: Decision = Repair(frame, front.kind, self._intake.copies_before(frame.pts))
        elif merging:
            decision = Merge(frame)
        elif change > 0:
            decision = Expand(frame, change, self._urgent(change))
        elif change < 0:
            urgent = self._urgent(change)
            if not urgent:
                # In a pause more can go at once.
                change = min(change, -round(min(control.excess, frame.units / 2)))
            decision = Accelerate(frame, -change, urgent)
        else:
            decision = Decode(frame)
        return Pending(decision, float(frame.units + change), frame.pts, front.end)

    def _urgent(self, change: int) -> bool:
        control = self._control
        late = self._intake.delay.late_events(control.slack) if change > 0 else 0
        return self._patience.urgent(self._now, change, control.distance, late)

    def _bridge(self, front: Entry) -> Pending:
        """The frame at the playhead is missing and a later one is here."""
        missing = front.pts - self._intake.playhead
        delay = self._intake.delay
        left = missing - self._credit
        if not self._is_ahead() and delay.base is not None:
            slack = self._now - (self._intake.playhead + self.frame_units) - delay.base
            if slack + WAIT_TOLERANCE_UNITS < delay.worth_waiting:
                # So much delay pays from the next loss on: the missing frame gets the time to come.
                return self._extend("waiting")
            if left > 2 * self._intake.delay.ceiling + self.frame_units:
                # No loss is that long: pts has jumped. Unless it is a stray, nothing else will come.
                if self._credit < self._intake.delay.ceiling:
                    return self._extend("jump")
                self.skip_to(front.pts, "jump")
                return self._play(front)
        if left < 0.5:
            if left > -0.5:
                # Concealed by just as much as is missing: the delay stays as it was.
                self._credit = 0.0
            self._lose(missing)
            self._intake.playhead = front.pts
            return self._play(front)
        start = self._intake.playhead + round(self._credit)
        rest = front.pts - start
        if rest > self.frame_units:
            # The last piece has the length of a frame, so that the next frame's in-band redundancy fits it.
            rest = rest - self.frame_units if rest < 2 * self.frame_units else self.frame_units
        self._lose(start + rest - self._intake.playhead)
        self._credit = 0.0
        self._intake.playhead = start + rest
        self._reason = "lost"
        following = front.frame if start + rest == front.pts and front.kind is not SourceKind.COPY else None
        return Pending(Conceal(rest, following), float(rest), start, start + rest, "lost")

    def _wait_for_frame(self) -> Pending:
        """Nothing is there at all."""
        self._check_finish()
        if self._state is not _State.TALK or self._credit >= DRY_UNITS:
            if self._run.units:
                self._end_run()
            return self._piece(Silence(self._ticks.need), "dry")
        return self._extend("late")

    def _extend(self, reason: str) -> Pending:
        self._reason = reason
        return self._piece(Expand(None, min(self._ticks.need, self.frame_units)), reason)

    def _piece(self, decision: Silence | Expand, reason: str) -> Pending:
        playhead = self._intake.playhead
        return Pending(decision, float(decision.units), playhead, playhead, reason)

    def _check_finish(self) -> None:
        """Give up the missing end of a track that is known to have ended."""
        finish = self._intake.gate.finish
        if finish is None:
            return
        if self._finish_seen is None:
            self._finish_seen = self._now
        quiet = self._now - max(self._finish_seen, self._intake.last_arrival)
        if self._intake.playhead < finish and quiet >= max(FINISH_UNITS, self._intake.delay.ceiling):
            if self._state is _State.TALK:
                self._lose(finish - self._intake.playhead)
            self._intake.playhead = finish
        if self._intake.playhead >= finish and self._state is _State.TALK:
            self.fall_silent()

    # Changes of state

    def cleared(self, to_pts: int, number: int) -> None:
        """Everything up to `to_pts` was closed by the clear with this number."""
        intake = self._intake
        if intake.gate.cut is not None:
            return
        if self._state is _State.TALK and self._playing == number and intake.playhead >= to_pts:
            return  # audio that overtook the clear plays already
        intake.playhead = max(intake.playhead, to_pts)
        self.fall_silent()

    def _pass_cut(self) -> None:
        """What lay before a clear has been played: go on behind it, and count nothing between as lost. VS-8.1-9"""
        gate = self._intake.gate
        gate.cut = None
        self._intake.playhead = max(self._intake.playhead, gate.floor)
        self.fall_silent()

    def fall_silent(self) -> None:
        """The talkspurt is over: what comes next starts anew."""
        if self._state is not _State.IDLE:
            self._state = _State.SILENT
        if self._run.units:
            self._end_run()
        self._credit = 0.0
        self._silence = 0.0

    def skip_to(self, pts: int, reason: str) -> None:
        """Move the playhead over audio that will not be played."""
        if self._state is _State.IDLE:
            return
        self.record("playout:skipped", {"from_pts": self._intake.playhead, "to_pts": pts, "reason": reason})
        join = JOIN_UNITS if self._state is _State.TALK and not self._run.units else 0
        target = max(self._intake.playhead, pts - join)
        self._lose(target - self._intake.playhead)
        self._intake.playhead = target
        self._credit = 0.0
        self._control.moved(self._now)

    def _shed(self, stalled: bool) -> None:
        """Drop what has become too old for live playout: after a stalled reader, a drained queue, a shorter path."""
        intake = self._intake
        front = intake.front()
        if front is None or intake.gate.is_ahead(front.pts) or is_arriving(front, intake, self._now, self._credit):
            return
        if stalled:
            limit, reason = max(intake.delay.target, float(self.frame_units)), "stalled"
        elif self._state is _State.TALK and self._credit >= STANDSTILL_UNITS:
            limit, reason = self._standstills.limit(self._now, self._intake.delay.ceiling), "old"
        elif self._control.all_waited(self._now, self._intake.delay.ceiling + BEHIND_UNITS):
            limit, reason = float(self._intake.delay.ceiling), "behind"
        else:
            return
        dropped = intake.expire(limit)
        if dropped:
            self._standstills.ended(self._now, self._credit)
            self.record("playout:dropped", {"frames": dropped, "reason": reason})
            first = intake.front()
            if first is not None and self._state is _State.TALK:
                self.skip_to(first.pts, reason)

    def _lose(self, units: int) -> None:
        self._intake.account.lost_units += units
        self._intake.account.frames_concealed += -(-units // self.frame_units) if units > 0 else 0

    def _end_run(self) -> None:
        data = {"units": round(self._run.end(), 2), "reason": self._reason, "playhead_pts": self._intake.playhead}
        self.record("playout:concealed", data)

    def made(self, pending: Pending, made_units: float) -> None:
        """The executor made `made_units` for `pending`: book it."""
        account = self._intake.account
        account.produced_units += made_units
        match pending.decision:
            case Silence():
                account.silence_units += made_units
                self._silence += made_units
                if self._state is _State.TALK:
                    self._credit += made_units
            case Conceal() | Expand(frame=None):
                self._run.add(made_units)
                if pending.from_pts == pending.to_pts:
                    self._credit += made_units
            case _:
                self._book_frame(pending, made_units - (pending.to_pts - pending.from_pts))

    def _book_frame(self, pending: Pending, change: float) -> None:
        account = self._intake.account
        account.frames_played += 1
        account.frames_copied += isinstance(pending.decision, Repair)
        account.played_units += pending.to_pts - pending.from_pts
        if change > 0:
            account.inserted_units += change
        else:
            account.removed_units -= change
        if isinstance(pending.decision, Expand | Accelerate) and (change or pending.decision.urgent):
            # Otherwise there was no pause; the next frame may be one.
            self._control.stretched(self._now, change)

    # Small things

    def _is_ahead(self) -> bool:
        return self._intake.gate.is_ahead(self._intake.playhead)

    def _report_target(self) -> None:
        target = self.target_units
        if abs(target - self._reported_target) >= 2.0:
            reason = "later frames" if target > self._reported_target else "release"
            self._reported_target = target
            target_ms, level_ms = round(target * PTS_UNIT_MS, 1), round(self.level_units * PTS_UNIT_MS, 1)
            self.record("playout:target", {"target_ms": target_ms, "level_ms": level_ms, "reason": reason})

    def record(self, name: str, data: Mapping[str, object]) -> None:
        """Give a trace record to the observer."""
        if self._observer is not None:
            self._observer.record(self._now / UNITS_PER_SECOND, name, {"track": self._track, **data})
