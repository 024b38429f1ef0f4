"""The side of the playout that faces the network: admits frames, measures when they came, keeps them in order."""

from __future__ import annotations

from collections import OrderedDict

from voicestream.config import PTS_UNIT_MS, UNITS_PER_SECOND, PlayoutConfig
from voicestream.core.playout.account import PlayoutAccount
from voicestream.core.playout.buffer import Entry, FrameBuffer
from voicestream.core.playout.delay import DelayEstimator
from voicestream.core.playout.gate import Gate
from voicestream.media import MediaFrame, SourceKind

__all__ = ["Intake"]

_REMEMBERED_FRAMES = 1024
_COPIES = 8
_WARMUP_COPIES = 4
_TYPICAL_FRAME_UNITS = 8


class Intake:
    """Frames on their way from the network to the playhead.

    Attributes:
        buffer: The frames that wait.
        delay: What their arrivals tell.
        gate: Which of them are wanted.
        playhead: First pts that has not been decided; moved by the owner.
        last_arrival: When the last frame came, in pts units.
        account: Where every frame's fate is counted.

    Args:
        config: See `PlayoutConfig`.
        account: Where every frame's fate is counted.
    """

    def __init__(self, config: PlayoutConfig, account: PlayoutAccount) -> None:
        start_units = max(0.0, config.start_ms / PTS_UNIT_MS - _TYPICAL_FRAME_UNITS)
        self.buffer = FrameBuffer(config.max_frames)
        self.delay = DelayEstimator(start_units, round(config.lookahead_ms / PTS_UNIT_MS))
        self.gate = Gate()
        self.playhead = 0
        self.last_arrival = float("-inf")
        self.account = account
        self._played: OrderedDict[int, None] = OrderedDict()
        self._copies: OrderedDict[int, MediaFrame] = OrderedDict()

    def insert(
        self, frame: MediaFrame, now: float, kind: SourceKind, send_time: float | None, *, idle: bool
    ) -> int | None:
        """Take a frame; returns the end of one that had to go for it.

        Args:
            frame: The frame.
            now: Seconds.
            kind: How it came.
            send_time: Seconds of the sender's clock.
            idle: Nothing was played yet.
        """
        self.account.frames_received += 1
        if kind is SourceKind.COPY:
            self._copies[frame.pts] = frame
            if len(self._copies) > _COPIES:
                self._copies.popitem(last=False)
        if frame.units < 1 or not self.gate.admits(frame):
            self.account.frames_discarded += 1
            return None
        entry = Entry(frame, kind, now, send_time)
        if self._is_duplicate(entry):
            self.account.frames_duplicate += 1
            return None
        # Before the late ones are dropped: else the estimate would confirm itself.
        self._measure(entry)
        self.last_arrival = max(self.last_arrival, now * UNITS_PER_SECOND)
        if frame.pts < self.playhead and not idle:
            self.account.frames_late += 1
            return None
        self.buffer.insert(entry)
        if not self.buffer.overfull:
            return None
        self.account.frames_discarded += 1
        return self.buffer.pop_first().end

    def front(self) -> Entry | None:
        """The oldest frame that can still be played; frames that overlap what was decided are dropped."""
        first = self.buffer.first()
        while first is not None and first.pts < self.playhead:
            self.buffer.pop_first()
            self.account.frames_discarded += 1
            first = self.buffer.first()
        return first

    def take(self) -> Entry:
        """Take the oldest frame out, to be played."""
        entry = self.buffer.pop_first()
        self._played[entry.pts] = None
        if len(self._played) > _REMEMBERED_FRAMES:
            self._played.popitem(last=False)
        return entry

    def pass_over(self) -> Entry:
        """Drop the oldest frame, which has come too late; returns the one after it. There must be two."""
        self.buffer.pop_first()
        self.account.frames_late += 1
        following = self.buffer.first()
        assert following is not None
        return following

    def copies_before(self, pts: int) -> tuple[MediaFrame, ...]:
        """The copies that lead up to `pts` without a gap, oldest first."""
        found: list[MediaFrame] = []
        for earlier in sorted(self._copies, reverse=True):
            copy = self._copies[earlier]
            if copy.pts + copy.units == pts and len(found) < _WARMUP_COPIES:
                found.append(copy)
                pts = copy.pts
        return tuple(reversed(found))

    def age(self, entry: Entry) -> float:
        """How far behind the newest frame `entry` was sent, in units: how old it is against what is live."""
        newest = self.buffer.last()
        if newest is None:
            return 0.0
        span = float(newest.end - entry.end)
        if entry.kind is SourceKind.AUDIO is newest.kind and entry.send_time is not None and newest.send_time is not None:
            return min(span, (newest.send_time - entry.send_time) * UNITS_PER_SECOND)
        return span

    def expire(self, limit: float) -> int:
        """Drop live frames from the front that are older than `limit` units; returns how many."""
        count = 0
        first = self.front()
        while first is not None and len(self.buffer) > 1 and not self.gate.is_ahead(first.pts) and self.age(first) > limit:
            self.buffer.pop_first()
            count += 1
            first = self.buffer.first()
        self.account.frames_expired += count
        return count

    def clear(self, from_pts: int, to_pts: int, number: int) -> None:
        """Close [from_pts, to_pts) for good, and drop what is held of it."""
        self.gate.clear(from_pts, to_pts, number, self.playhead)
        dropped = self.buffer.remove(from_pts, to_pts) + self.buffer.remove_stale(number, to_pts)
        self.account.frames_discarded += dropped

    def finish(self, pts: int) -> None:
        """Close everything from `pts` on."""
        self.gate.finish = pts
        self.account.frames_discarded += self.buffer.remove_from(pts)

    def cut_reached(self, front: Entry | None, waited: float, frame_units: int) -> bool:
        """Whether what lay before a clear has been played, or its rest will not come."""
        cut = self.gate.cut
        if cut is None or (front is not None and front.pts < cut):
            return False
        return cut - self.playhead < frame_units or waited >= frame_units

    def _is_duplicate(self, entry: Entry) -> bool:
        held = self.buffer.get(entry.pts)
        if held is None:
            return entry.pts in self._played
        if held.kind is SourceKind.COPY and entry.kind is not SourceKind.COPY:
            # The frame itself takes its copy's place; the copy is the duplicate.
            self.buffer.replace(entry)
        return True

    def _measure(self, entry: Entry) -> None:
        frame, arrival = entry.frame, entry.arrival * UNITS_PER_SECOND
        send_time = None if entry.send_time is None or entry.kind is not SourceKind.AUDIO else entry.send_time * UNITS_PER_SECOND
        if self.gate.is_ahead(frame.pts):
            self.delay.observe_ahead(frame.units, arrival, send_time)
            return
        start, repaired = frame.talkspurt_start, entry.kind is not SourceKind.AUDIO
        entry.early = self.delay.observe(entry.end, frame.units, arrival, send_time, talkspurt_start=start, repaired=repaired)
