"""The send queue of one track: bounded (VS-14-1), each frame with a deadline (VS-9.4-5), every drop counted (VS-3.2-4, VS-14-2).

QUIC's own datagram queue neither ends nor expires, so what waits, waits here.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from voicestream.media import MediaFrame

__all__ = ["AHEAD_DEADLINE", "QueuedFrame", "SendQueue"]

AHEAD_DEADLINE: Final = 2.0
"""Seconds that a frame sent ahead of its time may wait; a live one is useless long before."""


START_REACH_UNITS: Final = 400
"""Media that may have been dropped between the start of a talkspurt and the frame that bears its mark (1 s); beyond, it is missed."""


class QueuedFrame(NamedTuple):
    """A frame that waits to leave.

    Attributes:
        frame: The media.
        ahead: It is sent faster than real time.
        queued_at: Monotonic seconds.
        deadline: Monotonic seconds after which it must not be sent.
    """

    frame: MediaFrame
    ahead: bool
    queued_at: float
    deadline: float


class SendQueue:
    """Frames in the order in which they leave (VS-4.2-3).

    A talkspurt start that is dropped moves to the frame behind it (VS-6.5-3), for the receiver must not wait for what never comes.

    Args:
        max_frames: Most frames held; at one more the oldest is dropped.
        deadline: Seconds that a live frame may wait.

    Attributes:
        expired: Frames dropped because their deadline had passed.
        overflowed: Frames dropped because the queue was full.
        cleared: Frames dropped by a clear.
    """

    __slots__ = ("_deadline", "_dropped", "_frames", "_max_frames", "_owed_from", "cleared", "expired", "overflowed")

    def __init__(self, *, max_frames: int, deadline: float) -> None:
        self._frames: deque[QueuedFrame] = deque()
        self._dropped: deque[MediaFrame] = deque(maxlen=max_frames)
        self._max_frames = max_frames
        self._deadline = deadline
        self._owed_from: int | None = None
        self.expired = 0
        self.overflowed = 0
        self.cleared = 0

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to send, to drop or to take note of."""
        return not self._frames and not self._dropped

    @property
    def oldest_at(self) -> float | None:
        """When the frame at the head was queued; None when nothing waits."""
        return self._frames[0].queued_at if self._frames else None

    @property
    def ends_talkspurt(self) -> bool:
        """Whether the last frame of the queue ends a talkspurt, so that none follows soon."""
        return bool(self._frames) and self._frames[-1].frame.talkspurt_end

    def push(self, frame: MediaFrame, now: float, *, ahead: bool = False) -> None:
        """Queue a frame; drop the oldest if that makes one too many."""
        wait = max(AHEAD_DEADLINE, self._deadline) if ahead else self._deadline
        self._frames.append(QueuedFrame(frame, ahead, now, now + wait))
        if len(self._frames) > self._max_frames:
            self._owe_start(self._frames.popleft())
            self.overflowed += 1

    def expire(self, now: float) -> int:
        """Drop every frame whose deadline has passed; return how many."""
        for entry in self._frames:
            if entry.deadline < now:
                break
        else:
            return 0
        kept: deque[QueuedFrame] = deque()
        for entry in self._frames:
            if entry.deadline >= now:
                kept.append(entry)
            else:
                self._owe_start(entry)
        dropped = len(self._frames) - len(kept)
        self._frames = kept
        self.expired += dropped
        return dropped

    def keep_newest(self, most_bytes: int) -> None:
        """Drop all but the newest frames of so many bytes together; the newest stays in any case."""
        room = most_bytes
        for kept, entry in enumerate(reversed(self._frames)):
            room -= len(entry.frame.payload)
            if room < 0 and kept:
                while len(self._frames) > kept:
                    self._owe_start(self._frames.popleft())
                    self.expired += 1
                return

    def peek(self, index: int) -> QueuedFrame:
        """The frame at `index` from the head, as it would leave."""
        entry = self._frames[index]
        return self._with_start(entry) if index == 0 else entry

    def pop(self) -> QueuedFrame:
        """Take the frame at the head. Raises IndexError when nothing waits."""
        entry = self._with_start(self._frames.popleft())
        self._owed_from = None
        return entry

    def clear(self) -> int:
        """Drop everything on behalf of a clear; return how many frames. What comes next starts a talkspurt by itself."""
        dropped = len(self._frames)
        self._frames.clear()
        self._dropped.clear()
        self._owed_from = None
        self.cleared += dropped
        return dropped

    def take_dropped(self) -> list[MediaFrame]:
        """Frames that were dropped since the last call, for their age or for want of room; the newest of them if they are many."""
        if not self._dropped:
            return []
        dropped = list(self._dropped)
        self._dropped.clear()
        return dropped

    def _owe_start(self, dropped: QueuedFrame) -> None:
        self._dropped.append(dropped.frame)
        if dropped.frame.talkspurt_start:
            self._owed_from = dropped.frame.pts

    def _with_start(self, entry: QueuedFrame) -> QueuedFrame:
        if self._owed_from is None or entry.frame.pts - self._owed_from > START_REACH_UNITS:
            return entry
        return entry._replace(frame=_started(entry.frame))


def _started(frame: MediaFrame) -> MediaFrame:
    return MediaFrame(
        track=frame.track,
        pts=frame.pts,
        units=frame.units,
        payload=frame.payload,
        clear_number=frame.clear_number,
        talkspurt_start=True,
        talkspurt_end=frame.talkspurt_end,
    )
