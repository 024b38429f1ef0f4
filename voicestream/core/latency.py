"""How late speech is: mouth to ear, and turn (from the end of one side's talkspurt to the first sample of the reply in its ear).

The three kinds of latency are told apart: that of the path is `voicestream.core.clock`'s; the other two are measured here, from pts,
send times and playheads. A capture time needs no message of its own: a live frame leaves as soon as its last sample has been
captured, so the earliest of the send times, each less its frame's end, tells when media time 0 was captured.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from voicestream.config import UNITS_PER_SECOND
from voicestream.media import MediaFrame

__all__ = ["BOUNDS", "CaptureTimes", "Distribution", "Latency", "TurnWatch"]

BOUNDS: Final = (0.02, 0.05, 0.1, 0.15, 0.185, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0)
"""Upper bounds, in seconds, of the classes in which delays are counted; what is longer is in a last one."""

MAX_DELAY: Final = 8.0
"""Seconds beyond which a difference of 16-bit ticks tells nothing, and an answer is none."""

WRAP: Final = 16.384
"""Seconds after which the far end's clock repeats itself on the wire."""

INTERVAL: Final = 0.25
"""Seconds between two samples of mouth to ear."""

PAUSE: Final = 0.2
"""Seconds without a frame after which what is said next is another utterance, whatever its flags say."""

MAX_REACH: Final = 1.0
"""Seconds of playing that a reply's beginning is reckoned back over; a report that comes later tells too little."""

_UNIT: Final = 1 / UNITS_PER_SECOND
_DRIFT: Final = 500e-6 * _UNIT


class Distribution:
    """Delays, counted in classes.

    Attributes:
        counts: How many there were in each class of `BOUNDS`, and above them.
        total: Their sum, in seconds.
        latest: The newest, in seconds; None before the first.
        longest: The longest, in seconds.
    """

    __slots__ = ("counts", "latest", "longest", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0
        self.latest: float | None = None
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds
        self.latest = seconds
        self.longest = max(self.longest, seconds)

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)

    def quantile(self, share: float) -> float | None:
        """The delay, in seconds, that `share` (0 to 1) of them do not exceed, interpolated within its class; None if there were none."""
        count = self.count
        if not count:
            return None
        left = share * count
        low = 0.0
        for high, number in zip((*BOUNDS, self.longest), self.counts, strict=True):
            high = min(high, self.longest)
            if number and left <= number:
                return low + (high - low) * left / number
            left -= number
            low = high
        return self.longest


class CaptureTimes:
    """When the samples of a talkspurt were captured, on the clock of whoever sends them.

    Attributes:
        start: First pts of the talkspurt; None while there is none that is sent as it is captured.
        end: End of what has come of it.
    """

    __slots__ = ("_base", "end", "start")

    def __init__(self) -> None:
        self.start: int | None = None
        self.end = 0
        self._base = 0.0

    def sent(self, pts: int, units: int, at: float, *, begins: bool) -> None:
        """A frame left at `at`, in seconds of its sender's clock, as soon as it could or later."""
        base = at - (pts + units) * _UNIT
        if begins or self.start is None:
            if self.start is not None and pts < self.start:
                return
            self.start, self.end, self._base = pts, pts + units, base
            return
        if pts < self.start:
            return
        self.end = max(self.end, pts + units)
        # The earliest counts; a sender's two clocks (of its samples, and of its datagrams) may drift apart.
        self._base = min(base, self._base + units * _DRIFT)

    def forget(self) -> None:
        """What comes is not sent as it is captured."""
        self.start = None

    def at(self, pts: int) -> float | None:
        """When the sample at `pts` was captured; None for one that is not of this talkspurt."""
        return None if self.start is None or not self.start <= pts <= self.end else self._base + pts * _UNIT


class TurnWatch:
    """Waits, when one side has stopped to talk, until the first sample of the other side's reply is heard there."""

    __slots__ = ("_reply_pts", "_stopped_at", "turns")

    def __init__(self) -> None:
        self.turns = Distribution()
        self._stopped_at: float | None = None
        self._reply_pts: int | None = None

    def stopped(self, at: float) -> None:
        """The last sample of a talkspurt was captured at `at`, on the clock of who said it."""
        self._stopped_at, self._reply_pts = at, None

    def went_on(self) -> None:
        """Who had stopped says more, or the reply has been voided: it was no turn."""
        self._stopped_at = self._reply_pts = None

    def replied(self, pts: int) -> None:
        """The other side begins to talk, at this pts."""
        if self._stopped_at is not None and self._reply_pts is None:
            self._reply_pts = pts

    @property
    def waits(self) -> bool:
        """Whether a reply is on its way."""
        return self._reply_pts is not None

    def heard(self, pts: int, at: float) -> None:
        """The sample at `pts` of the reply's track left the loudspeaker at `at`, on the clock of who had stopped."""
        if self._reply_pts is None or self._stopped_at is None or pts <= self._reply_pts:
            return
        reach = (pts - self._reply_pts) * _UNIT
        delay = _centred(at - reach - self._stopped_at)
        self.went_on()
        if reach <= MAX_REACH and delay >= 0:
            self.turns.add(delay)


class Latency:
    """Mouth to ear of the voice that comes, and turns both ways, of one session.

    Only the first track of each direction counts. All is bounded and costs nothing on the wire.

    Attributes:
        mouth_to_ear: From the capture of a sample there to its playing here, good to the error of the far clock's offset.
        turns: From the end of our talkspurt to the first sample of the far end's reply here; on our clock alone.
        answers: From the end of the far end's talkspurt to the first sample of our reply there; on the far end's clock alone.
    """

    __slots__ = ("_ahead_from", "_capture", "_heard_at", "_heard_pts", "_in", "_out", "_said_at", "answers", "mouth_to_ear", "turns")

    def __init__(self) -> None:
        self.mouth_to_ear = Distribution()
        self.turns = TurnWatch()
        self.answers = TurnWatch()
        self._in: int | None = None
        self._out: int | None = None
        self._capture = CaptureTimes()
        self._ahead_from: int | None = None
        self._said_at: float | None = None
        self._heard_at = 0.0
        self._heard_pts = -1

    def open(self, *, sent: int | None, received: int | None) -> None:
        """The tracks that count."""
        self._out, self._in = sent, received

    # This end talks

    def said(self, track: int, pts: int, now: float, *, begins: bool, ends: bool, ahead: bool) -> None:
        """A frame is on its way."""
        if track != self._out:
            return
        if begins or self._said_at is None or now - self._said_at > PAUSE:
            self.turns.went_on()
            self.answers.replied(pts)
        self._said_at = now
        if ends and not ahead:
            self.turns.stopped(now)

    def voided(self, track: int) -> None:
        """What this end has said will not be heard."""
        if track == self._out:
            self.answers.went_on()
            self._said_at = None

    def heard_there(self, track: int, pts: int, far_time: float) -> None:
        """The far end's playhead, and when, in seconds of its clock, it was there."""
        if track == self._out and self.answers.waits:
            self.answers.heard(pts, far_time)

    # The far end talks

    def anchored(self, track: int, pts: int, *, ahead: bool) -> None:
        """From a pts on, audio is, or is not, sent faster than it is spoken."""
        if track == self._in:
            self._ahead_from = pts if ahead else None
            if ahead and self._capture.start is not None and self._capture.end <= pts:
                self._capture.forget()

    def came(self, frame: MediaFrame, sent_at: float, *, first: bool) -> None:
        """A new frame has come.

        Args:
            frame: The frame.
            sent_at: When its datagram left, in seconds of the far end's clock.
            first: It is as it was sent first, neither repaired nor sent again.
        """
        if frame.track != self._in:
            return
        begins, end = frame.talkspurt_start, frame.pts + frame.units
        live = self._ahead_from is None or frame.pts < self._ahead_from
        if first and live:
            self._capture.sent(frame.pts, frame.units, sent_at, begins=begins)
        if begins:
            self.answers.went_on()
            self.turns.replied(frame.pts)
        if frame.talkspurt_end and live and end >= self._capture.end:
            stopped_at = self._capture.at(min(end, self._capture.end))
            if stopped_at is not None:
                self.answers.stopped(stopped_at)

    def heard(self, track: int, pts: int, now: float, far_offset: float | None) -> None:
        """The sample at `pts` leaves the loudspeaker here.

        Args:
            track: Its track.
            pts: Its place.
            now: Monotonic seconds.
            far_offset: The far end's clock less ours, modulo 16.384 s; None while it is not known.
        """
        if track != self._in:
            return
        if self.turns.waits:
            self.turns.heard(pts, now)
        if now - self._heard_at < INTERVAL or far_offset is None:
            return
        captured_at = self._capture.at(pts)
        if captured_at is None or pts <= self._heard_pts:
            return  # what stands still is not heard
        self._heard_at, self._heard_pts = now, pts
        delay = _centred(now + far_offset - captured_at)
        if delay >= 0:
            self.mouth_to_ear.add(delay)


def _centred(seconds: float) -> float:
    return (seconds + MAX_DELAY) % WRAP - MAX_DELAY
