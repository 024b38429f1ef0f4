"""The playout of one live track: frames in, decisions out."""

from __future__ import annotations

from collections.abc import Callable

from voicestream.config import UNITS_PER_SECOND, PlayoutConfig
from voicestream.core.playout.account import PlayoutAccount
from voicestream.core.playout.decision import Decision, Silence
from voicestream.core.playout.director import Director, Pending
from voicestream.core.playout.intake import Intake
from voicestream.core.playout.ticks import DeviceTicks
from voicestream.core.playout.timeline import Timeline
from voicestream.core.playout.trace import DecisionTrace
from voicestream.errors import StateError
from voicestream.media import MediaFrame, SourceKind
from voicestream.trace import Observer

__all__ = ["Playout"]

LEVEL_FACTOR = 0.1
"""Part that one arrival or one block of the device has in the smoothed level."""


class Playout:
    """Holds the frames of one received track and decides, call by call, what its executor makes next.

    Pure: time comes in with every call (monotonic seconds) and sound goes out as decisions. Feed it with `insert`; when the
    device needs audio, call `next`, do what it says and report the length made with `done`, until the device has enough.
    See specification section 16.

    Attributes:
        account: What became of every frame and of every unit made.
        unheard: Tells how many of the units made have not left the device yet; set by an executor that counts them. Without, it is
            estimated from the calls of `next`.

    Args:
        config: Start and ceiling of the delay, and the bound of the memory.
        observer: Takes trace records: every decision, and what became of frames that were not played.
        track: Only for the records.
    """

    def __init__(self, config: PlayoutConfig, *, observer: Observer | None = None, track: int = 0) -> None:
        self.account = PlayoutAccount()
        self._intake = Intake(config, self.account)
        self._ticks = DeviceTicks()
        self._director = Director(self._intake, self._ticks, observer, track)
        self._timeline = Timeline()
        self._pending: Pending | None = None
        self._level = 0.0
        self._void: tuple[int, int] | None = None
        self.unheard: Callable[[], float] | None = None
        self._trace = None if observer is None else DecisionTrace(observer, track, self.account)

    def insert(self, frame: MediaFrame, now: float, *, kind: SourceKind = SourceKind.AUDIO, send_time: float | None = None) -> None:
        """Take a frame from the network.

        Args:
            frame: The frame; one that is a duplicate, too late or cleared is counted and dropped.
            now: When it arrived, in monotonic seconds.
            kind: By which means.
            send_time: When it was sent, in seconds of the sender's clock; only differences count.
        """
        director = self._director
        dropped_end = self._intake.insert(frame, now, kind, send_time, idle=director.idle)
        self._level += LEVEL_FACTOR * (self._intake.buffer.coded_units + self._ticks.left - self._level)
        if dropped_end is not None and dropped_end > self._intake.playhead:
            # The oldest had to go, so it is the playhead that gives way.
            director.skip_to(dropped_end, "full")
        if self._trace is not None:
            self._trace.inserted(frame, now, kind, self._intake.playhead)

    def expect_repairs(self, wait: float, *, answered: bool) -> None:
        """Something is missing, and what of it comes back does so within `wait`.

        Args:
            wait: Seconds behind the quickest frame; repairs that come later than that are not waited for. 0: what was missing was not lost,
                only overtaken, and came by itself.
            answered: It is asked for, so that waiting for it at once pays; else the delay grows by and by.
        """
        self._intake.delay.expect(wait * UNITS_PER_SECOND, at_once=answered)

    def suppose(self, wait: float) -> None:
        """Begin with a delay of so many seconds: the path is such that nothing less would do if something got lost. 0: it is not."""
        self._intake.delay.suppose(wait * UNITS_PER_SECOND)

    def set_ahead(self, from_pts: int, ahead: bool) -> None:
        """Note that the talkspurt from `from_pts` on is (or is not) sent faster than real time (ANCHOR's flag)."""
        self._intake.gate.set_ahead(from_pts, ahead)

    def clear(self, from_pts: int, to_pts: int, number: int) -> int:
        """Forget the audio in [from_pts, to_pts); what was not decided of it is never played, nor what was (see `take_void`).

        Later frames are taken only with this clear number (or the next one, whose clear may come after its audio) and from
        `to_pts` on. Audio before `from_pts` stays.

        Args:
            from_pts: First pts to forget.
            to_pts: First pts that the track goes on with.
            number: Count of the track's clears; four values are told apart.

        Returns:
            The pts up to which the device has played.

        Raises:
            ValueError: `to_pts` lies before `from_pts`.
        """
        if to_pts < from_pts:
            raise ValueError(f"to_pts must not lie before from_pts, not {to_pts} < {from_pts}")
        heard = self.heard_now
        self._void = (from_pts if self._void is None else min(from_pts, self._void[0]), to_pts)
        self._intake.clear(from_pts, to_pts, number)
        self._director.cleared(to_pts, number)
        self._director.record("playout:cleared", {"from_pts": from_pts, "to_pts": to_pts, "number": number, "heard_pts": heard})
        return heard

    def finish(self, pts: int) -> None:
        """Note that no audio at or after `pts` exists."""
        self._intake.finish(pts)

    def next(self, now: float, held_units: float) -> Decision:
        """Decide what the executor makes next.

        Args:
            now: Monotonic seconds.
            held_units: Audio that the executor has made and not yet handed to the device.
        """
        if self._pending is not None:
            self.done(self._pending.units)
        now_units = now * UNITS_PER_SECOND
        tick = self._ticks.call(now_units, held_units)
        if tick is not None:
            self._level += LEVEL_FACTOR * (self._director.level_units - self._level)
        self._pending = self._director.decide(now_units, tick)
        if self._trace is not None:
            self._trace.now = now
        return self._pending.decision

    def done(self, made_units: float) -> None:
        """Report how much audio the last decision made. Without it, exactly what was asked for is assumed.

        Raises:
            ValueError: `made_units` is negative.
            StateError: No decision is open.
        """
        if made_units < 0:
            raise ValueError(f"made_units must not be negative, not {made_units}")
        pending, self._pending = self._pending, None
        if pending is None:
            raise StateError("done() without a decision of next() before it")
        self._ticks.made(made_units)
        if isinstance(pending.decision, Silence):
            # An end that never came is over as well: the silence behind the finish stands there.
            at = self._timeline.end_pts if not self.finished else max(self._timeline.end_pts, self._intake.gate.finish or 0)
            self._timeline.append(made_units, at, at)
        else:
            self._timeline.append(made_units, pending.from_pts, pending.to_pts)
        self._director.made(pending, made_units)
        if self._trace is not None:
            self._trace.decided(pending, made_units, self._director.level_units, self.target_units)

    def drop_held(self, units: float) -> None:
        """The executor threw away the last `units` that it had made (after a clear): they are not heard."""
        self._timeline.drop(units)
        self._ticks.held = max(0.0, self._ticks.held - units)

    def take_void(self, held_units: float) -> bool:
        """Whether a clear has voided what the executor holds: it must throw all of that away, for it is not heard (VS-8.1-6).

        To be asked before audio is handed to the device, so that a clear takes effect with the very next sample.

        Args:
            held_units: Audio that the executor has made and not yet handed to the device.
        """
        void, self._void = self._void, None
        # What lies before the clear is still to be heard, and new audio has begun only when the old was thrown away.
        if void is None or self.heard_pts(held_units) < void[0] or self._timeline.end_pts > void[1]:
            return False
        self.drop_held(held_units)
        return True

    @property
    def is_exact(self) -> bool:
        """Whether the executor tells what has left the device, so that `clear` and `heard_now` are no estimates."""
        return self.unheard is not None

    @property
    def heard_now(self) -> int:
        """pts of the sample about to leave the device, as exactly as the executor tells."""
        return self.heard_pts(self._ticks.left if self.unheard is None else self.unheard())

    def heard_pts(self, held_units: float) -> int:
        """pts of the sample about to leave the device when `held_units` of what was made have not been handed to it."""
        return self._timeline.heard_pts(held_units)

    @property
    def finished(self) -> bool:
        """Whether everything before the finish pts has been decided."""
        finish = self._intake.gate.finish
        return finish is not None and self._intake.playhead >= finish

    @property
    def playhead_pts(self) -> int:
        """First pts that has not been decided."""
        return self._intake.playhead

    @property
    def level_units(self) -> float:
        """Audio on hand, coded and made but not handed to the device, in pts units; smoothed while a live talkspurt plays."""
        level = self._intake.buffer.coded_units + self._ticks.left
        return self._level if level > 0 and self._director.live else level

    @property
    def target_units(self) -> float:
        """Audio that should be on hand just after an arrival, in pts units: the delay target and one frame."""
        return self._director.target_units

    @property
    def held_frames(self) -> int:
        """Frames in the buffer."""
        return len(self._intake.buffer)
