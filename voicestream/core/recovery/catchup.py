"""What a resumed session still owes the far end of one track: oldest first, and never at the cost of live audio."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from voicestream.config import UNITS_PER_SECOND
from voicestream.media import MediaFrame

__all__ = ["CAPACITY_SHARE", "SPEED", "CatchUp"]

SPEED: Final = 4.0  # VS-11.3-10
"""Seconds of media that may leave in a second."""

CAPACITY_SHARE: Final = 0.5  # VS-11.3-10
"""Part of what the path carries."""

BURST: Final = 0.1
"""Seconds of either that may be saved up."""

FATE_TIME: Final = 0.4
"""Seconds beyond two round trips after which a frame of which no report tells is sent again: its report was lost, and those beside it."""

ASSUMED_RTT: Final = 0.2
"""Seconds, before the first report."""

_BREATH: Final = 0.005


class CatchUp:
    """Media that is sent again after a break, within two bounds. What is lost on the way is sent once more.

    Attributes:
        sent: Frames that left.
    """

    __slots__ = ("_at", "_bytes", "_due", "_fate", "_flying", "_rate", "_units", "sent")

    def __init__(self) -> None:
        self.sent = 0
        self._due: deque[MediaFrame] = deque()
        self._flying: dict[int, tuple[MediaFrame, float]] = {}
        self._at: float | None = None
        self._units = 0.0
        self._bytes = 0.0
        self._rate = 1.0
        self._fate = FATE_TIME + 2 * ASSUMED_RTT

    def __len__(self) -> int:
        return len(self._due)

    def begin(self, frames: Iterable[MediaFrame], now: float) -> None:
        """A new connection: these are owed, and nothing else."""
        self._due = deque(frames)
        self._flying.clear()
        self._at = now
        self._units = self._bytes = 0.0

    def add(self, frames: Iterable[MediaFrame], now: float) -> None:
        """The far end asks for these as well; what is due or under way already is not doubled."""
        known = {frame.pts for frame in self._due} | self._flying.keys()
        more = [frame for frame in frames if frame.pts not in known]
        if more:
            self._due = deque(sorted([*self._due, *more], key=lambda frame: frame.pts))
        if self._at is None:
            self._at = now

    @property
    def is_busy(self) -> bool:
        """Whether anything is due, or under way."""
        return bool(self._due or self._flying)

    def clear(self) -> None:
        """What was sent is void."""
        self._due.clear()
        self._flying.clear()

    def refill(self, now: float, capacity_bps: float, rtt: float | None = None) -> None:
        """Let time count.

        Args:
            now: Monotonic seconds.
            capacity_bps: What the path carries in all.
            rtt: Its round trip in seconds, if that is known.
        """
        self._fate = FATE_TIME + 2 * (ASSUMED_RTT if rtt is None else rtt)
        if self._at is None:
            return
        passed = max(0.0, now - self._at)
        self._at = now
        self._rate = max(1.0, CAPACITY_SHARE * capacity_bps / 8)
        self._take_back(now)
        # One frame may always be saved up for, however slow the path.
        room = max(self._rate * BURST, 1500.0)
        self._bytes = min(room, self._bytes + passed * self._rate)
        self._units = min(max(SPEED * BURST * UNITS_PER_SECOND, 48.0), self._units + passed * SPEED * UNITS_PER_SECOND)

    def _take_back(self, now: float) -> None:
        """What no report tells of is due again."""
        old = [frame for frame, at in self._flying.values() if at + self._fate <= now]
        if old:
            for frame in old:
                del self._flying[frame.pts]
            self._due = deque(sorted([*old, *self._due], key=lambda frame: frame.pts))

    def peek(self, overhead: int) -> MediaFrame | None:
        """The frame that may leave now with so many bytes around it, or None."""
        if not self._due:
            return None
        frame = self._due[0]
        return frame if self._units >= frame.units and self._bytes >= len(frame.payload) + overhead else None

    def pop(self, overhead: int) -> MediaFrame:
        """Take the frame that `peek` showed."""
        frame = self._due.popleft()
        self._units -= frame.units
        self._bytes -= len(frame.payload) + overhead
        self._flying[frame.pts] = (frame, self._at or 0.0)
        self.sent += 1
        return frame

    def acked(self, pts: int) -> None:
        """The frame with this pts has arrived."""
        self._flying.pop(pts, None)

    def lost(self, pts: int) -> None:
        """The frame with this pts has not arrived; if it was one of these, it is due again, before the rest."""
        flying = self._flying.pop(pts, None)
        if flying is not None:
            self._due.appendleft(flying[0])

    def next_timer(self, overhead: int) -> float | None:
        """When the next frame may leave, or None."""
        if self._at is None or not self.is_busy:
            return None
        if not self._due:
            return min(at for _, at in self._flying.values()) + self._fate
        frame = self._due[0]
        wait = max((frame.units - self._units) / (SPEED * UNITS_PER_SECOND), (len(frame.payload) + overhead - self._bytes) / self._rate)
        return self._at + max(_BREATH, wait)
