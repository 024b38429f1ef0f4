"""Frames in order and as fast as they come, for a recogniser or a recorder: nothing is stretched or made up, gaps are marked."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from voicestream.config import UNITS_PER_SECOND
from voicestream.core.playout.buffer import Entry, FrameBuffer
from voicestream.core.playout.gate import Gate
from voicestream.media import MediaFrame, SourceKind

MAX_PTS = 1 << 62

QUIET: Final = 0.05
QUIET_FRAMES: Final = 1.5
"""Seconds, and lengths of a frame, after which the far end has fallen silent, where more was to come: the larger of the two."""

__all__ = ["Gap", "OrderedAccount", "OrderedReader"]


@dataclass(frozen=True, slots=True)
class Gap:
    """Media that did not come: [from_pts, to_pts)."""

    from_pts: int
    to_pts: int


@dataclass(slots=True, kw_only=True)
class OrderedAccount:
    """Counters of an `OrderedReader`.

    ``frames_received`` equals ``frames_delivered + frames_late + frames_discarded + frames_duplicate`` and the frames held.

    Attributes:
        frames_received: Frames inserted.
        frames_delivered: Frames given out.
        frames_late: Frames that came after what they belong to had been given out or given up.
        frames_discarded: Frames dropped because of a clear, the finish, the bound of the memory or an overlap.
        frames_duplicate: Frames that were here already.
        gaps: Gaps declared.
        lost_units: Media in them, in pts units.
        frames_replayed: Frames that the application had before and asked for again; they are counted nowhere else.
    """

    frames_received: int = 0
    frames_delivered: int = 0
    frames_late: int = 0
    frames_discarded: int = 0
    frames_duplicate: int = 0
    gaps: int = 0
    lost_units: int = 0
    frames_replayed: int = 0


class OrderedReader:
    """Puts frames in order.

    A missing piece is waited for until what follows it has been here for the lookahead, or for what `wait_for` says where that is
    longer, or the buffer is full; time in which the path is silent, as in a break of the network, does not count where `outlive` says
    so. From the end of a talkspurt to the start of the next is silence, not a gap. Low-rate copies do not come here: what is given is
    exact.

    Attributes:
        account: What became of every frame.
        news: Grows with whatever may give `next` something to say.

    Args:
        lookahead_ms: How long a missing piece is waited for, 0 or more.
        max_frames: Frames held at most, at least 2; the oldest is dropped and counted.

    Raises:
        ValueError: An argument is out of its range.
    """

    def __init__(self, lookahead_ms: float, max_frames: int = 500) -> None:
        if lookahead_ms < 0:
            raise ValueError(f"lookahead_ms must not be negative, not {lookahead_ms}")
        if max_frames < 2:
            raise ValueError(f"max_frames must be at least 2, not {max_frames}")
        self.account = OrderedAccount()
        self._lookahead = self._patience = lookahead_ms / 1000
        self._buffer = FrameBuffer(max_frames)
        self._max_frames = max_frames
        self._replayed: deque[MediaFrame] = deque(maxlen=max_frames)
        self._gate = Gate()
        self._next: int | None = None
        self._silent = True
        self._void_to = 0
        self._released_to = -1
        self._waiting_since: float | None = None
        self._hold_until = float("-inf")
        self._hold_before = 0
        self._heard_at = float("-inf")
        self._asked_at: float | None = None
        self._outlives = 0.0
        self._now = float("-inf")
        self._finish_seen = float("-inf")
        self.news = 0

    def wait_for(self, answer: float) -> None:
        """What is asked for takes up to so many seconds to come: a missing piece is waited for so long, or for the lookahead."""
        self._patience = max(self._lookahead, answer)

    def outlive(self, silence: float) -> None:
        """Nothing is given up while the path is silent for up to so many seconds in the midst of a talkspurt."""
        self._outlives = silence

    def sign_of_life(self, now: float) -> None:
        """Something has come from the far end, at `now`."""
        silence = now - self._heard_at - self._quiet
        if silence > 0 and self._expects_more:
            self._waiting_since = self._waited_since + min(silence, self._outlives)
        self._heard_at = max(self._heard_at, now)

    def expect_answer(self, now: float) -> None:
        """The far end is asked for what is missing: until `answered` nothing is given up, as long as `outlive` allows."""
        if self._asked_at is None:
            self._asked_at = now

    def answered(self, sent_at: float) -> float | None:
        """What left here at `sent_at` has arrived at the far end: the questions before it need no more waiting for an answer.

        Returns:
            When the first of them was asked; None if they were not.
        """
        asked_at = self._asked_at
        if asked_at is None or sent_at < asked_at:
            return None
        self._asked_at = None
        self.news += 1
        return asked_at

    def start_at(self, pts: int) -> None:
        """What lies before `pts` has been read elsewhere, what follows it has not: it is waited for. Before the first `insert`."""
        self._next = pts
        self._silent = False
        self.news += 1

    def insert(self, frame: MediaFrame, now: float) -> None:
        """Take a frame that arrived at `now` (monotonic seconds)."""
        account = self.account
        self.sign_of_life(now)
        self.news += 1
        if frame.replayed:
            account.frames_replayed += 1
            self._replayed.append(frame)
            return
        account.frames_received += 1
        self._now = max(self._now, now)
        if not self._gate.admits(frame):
            account.frames_discarded += 1
        elif self._buffer.get(frame.pts) is not None:
            account.frames_duplicate += 1
        elif self._next is not None and frame.pts < self._next:
            account.frames_late += 1
        else:
            self._buffer.insert(Entry(frame, SourceKind.AUDIO, now, None))
            if self._buffer.overfull:
                # The reader does not read. What is oldest goes; the hole shows up as a gap.
                self._buffer.pop_first()
                account.frames_discarded += 1

    def next(self, now: float) -> MediaFrame | Gap | None:
        """The next frame or gap in order, or None while there is nothing."""
        self._now = max(self._now, now)
        if self._replayed:
            return self._replayed.popleft()
        front = self._front()
        if front is None:
            return self._end(now)
        expected = None if self._next is None else max(self._next, self._void_to)
        if expected is not None and front.pts > expected and not self._follows(front):
            if len(self._buffer) < self._max_frames and now < self._deadline():
                return None
            return self._gap(expected, front.pts)
        self._buffer.pop_first()
        self._next = front.end
        self._silent = front.frame.talkspurt_end
        self._waiting_since = None
        self.account.frames_delivered += 1
        return front.frame

    def next_timer(self) -> float | None:
        """When `next` has something without a new frame (monotonic seconds, may be past); None if only a frame can bring it."""
        if self._replayed:
            return self._now
        front = self._front()
        if front is not None:
            waits = self._next is not None and front.pts > max(self._next, self._void_to) and not self._follows(front)
            return self._deadline() if waits and len(self._buffer) < self._max_frames else front.arrival
        return None if self._gate.finish is None or self.finished else self._end_deadline()

    def hold_gaps(self, until: float, before_pts: int = MAX_PTS) -> None:
        """Declare no gap before `until` (monotonic seconds): what is missing is on its way, for example after a resume.

        Args:
            until: Monotonic seconds.
            before_pts: Holds for what is missing before this pts; what is lost later is waited for no longer than usual.
        """
        self.news += 1
        self._hold_until = max(self._hold_until, until)
        self._hold_before = before_pts
        self._released_to = -1 if self._released_to == MAX_PTS else self._released_to

    def release_gap(self) -> None:
        """What is missing before the frames held is not expected any more: `hold_gaps` no longer holds for it."""
        self.news += 1
        front = self._front()
        self._released_to = MAX_PTS if front is None else front.pts

    def narrows_gap(self, pts: int) -> bool:
        """Whether a frame with this pts would come before all that is held."""
        front = self._front()
        return front is None or pts < front.pts

    def clear(self, from_pts: int | None = None, to_pts: int | None = None, number: int | None = None) -> int:
        """Forget everything held; or, with all three, what is held of [from_pts, to_pts), and take only what follows `to_pts`.

        Args:
            from_pts: First pts to forget.
            to_pts: First pts that the track goes on with.
            number: Count of the track's clears; four values are told apart.

        Returns:
            The pts up to which frames and gaps have been given out.
        """
        self.news += 1
        if from_pts is None or to_pts is None or number is None:
            dropped = self._buffer.remove_from(0)
        else:
            self._gate.clear(from_pts, to_pts, number, self.next_pts)
            self._void_to = max(self._void_to, to_pts)
            dropped = self._buffer.remove(from_pts, to_pts) + self._buffer.remove_stale(number, to_pts)
        self.account.frames_discarded += dropped
        # What comes next begins a talkspurt, or else something between it and `to_pts` is missed.
        self._silent = to_pts is None
        self._waiting_since = None
        return self.next_pts

    def finish(self, pts: int | None = None) -> None:
        """Note that no media at or after `pts` exist; None: none after those that are here."""
        self.news += 1
        if pts is None:
            last = self._buffer.last()
            pts = self.next_pts if last is None else last.end
        self._gate.finish = pts
        self._finish_seen = self._now
        self.account.frames_discarded += self._buffer.remove_from(pts)

    @property
    def finished(self) -> bool:
        """Whether everything before the finish pts has been given out."""
        return self._gate.finish is not None and not len(self._buffer) and self.next_pts >= self._gate.finish

    @property
    def held_frames(self) -> int:
        """Frames held."""
        return len(self._buffer)

    @property
    def next_pts(self) -> int:
        """First pts that has not been given out, as frame or gap; 0 before the first."""
        return self._next or 0

    def _front(self) -> Entry | None:
        first = self._buffer.first()
        while first is not None and self._next is not None and first.pts < self._next:
            self._buffer.pop_first()
            self.account.frames_discarded += 1
            first = self._buffer.first()
        return first

    def _follows(self, front: Entry) -> bool:
        """Whether only silence lies between what was given out and `front`; the mark at either end is enough. VS-6.5-4"""
        return self._silent or front.frame.talkspurt_start

    def _deadline(self) -> float:
        """When the missing piece before the frames held is given up."""
        self._waiting_since = self._waited_since
        deadline, front = self._waiting_since + self._patience, self._front()
        if self._heard_at + self._quiet < deadline and self._expects_more:
            deadline = max(deadline, self._heard_at + self._outlives)
        if self._asked_at is not None and (front is None or front.pts > self._released_to):
            deadline = max(deadline, self._asked_at + self._outlives)
        return deadline if front is None or front.pts <= self._released_to or not self._holds else max(deadline, self._hold_until)

    @property
    def _waited_since(self) -> float:
        return self._buffer.earliest_arrival() if self._waiting_since is None else self._waiting_since

    @property
    def _expects_more(self) -> bool:
        """Whether more should come at once: after the newest frame held, or as an answer."""
        last, finish = self._buffer.last(), self._gate.finish
        if last is not None and self._asked_at is not None:
            return True
        return last is not None and not last.frame.talkspurt_end and (finish is None or last.end < finish)

    @property
    def _quiet(self) -> float:
        last = self._buffer.last()
        return QUIET if last is None else max(QUIET, QUIET_FRAMES * last.frame.units / UNITS_PER_SECOND)

    @property
    def _holds(self) -> bool:
        """Whether what is missing next is held on to. What a clear has voided is not missing."""
        return max(self.next_pts, self._void_to) < self._hold_before

    def _end_deadline(self) -> float:
        deadline = self._finish_seen + self._patience
        return deadline if self._released_to == MAX_PTS or not self._holds else max(deadline, self._hold_until)

    def _gap(self, from_pts: int, to_pts: int) -> Gap:
        self._next = to_pts
        self._waiting_since = None
        self.account.gaps += 1
        self.account.lost_units += to_pts - from_pts
        return Gap(from_pts, to_pts)

    def _end(self, now: float) -> Gap | None:
        """With nothing held: the missing end of a finished track is a gap once it has been waited for."""
        finish = self._gate.finish
        if finish is None or self.finished or now < self._end_deadline():
            return None
        if self._silent:
            # After the end of a talkspurt (or before the first) nothing shows that there was anything.
            self._next = finish
            return None
        return self._gap(self.next_pts, finish)
