"""The coded frames that wait for their playout, ordered by pts."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from voicestream.media import MediaFrame, SourceKind

__all__ = ["Entry", "FrameBuffer"]


@dataclass(slots=True)
class Entry:
    """A frame in the buffer.

    Attributes:
        frame: The frame.
        kind: How it came.
        arrival: When, in seconds.
        send_time: When it was sent, in seconds of the sender's clock, if known.
        early: How much earlier than its neighbours it was sent, against its pts, in pts units.
        pts: First pts of the frame.
        end: First pts after it.
    """

    frame: MediaFrame
    kind: SourceKind
    arrival: float
    send_time: float | None
    early: float = 0.0
    pts: int = field(init=False)
    end: int = field(init=False)

    def __post_init__(self) -> None:
        self.pts = pts = self.frame.pts
        self.end = pts + self.frame.units


class FrameBuffer:
    """Frames by pts. The owner bounds it with `max_frames` by dropping what `insert` says is too many."""

    def __init__(self, max_frames: int) -> None:
        self._max_frames = max_frames
        self._entries: dict[int, Entry] = {}
        self._order: list[int] = []
        self.coded_units = 0

    def __len__(self) -> int:
        return len(self._order)

    def get(self, pts: int) -> Entry | None:
        """The frame that begins at `pts`."""
        return self._entries.get(pts)

    def first(self) -> Entry | None:
        """The oldest frame."""
        return self._entries[self._order[0]] if self._order else None

    def second(self) -> Entry | None:
        """The one after the oldest."""
        return self._entries[self._order[1]] if len(self._order) > 1 else None

    def last(self) -> Entry | None:
        """The newest frame."""
        return self._entries[self._order[-1]] if self._order else None

    def earliest_arrival(self) -> float:
        """When the first of the frames held arrived; there must be one."""
        return min(entry.arrival for entry in self._entries.values())

    def insert(self, entry: Entry) -> None:
        """Add a frame whose pts is not there yet."""
        self._entries[entry.pts] = entry
        insort(self._order, entry.pts)
        self.coded_units += entry.frame.units

    def replace(self, entry: Entry) -> None:
        """Put a frame in the place of the one with its pts."""
        self.coded_units += entry.frame.units - self._entries[entry.pts].frame.units
        self._entries[entry.pts] = entry

    def pop_first(self) -> Entry:
        """Take the oldest frame out."""
        entry = self._entries.pop(self._order.pop(0))
        self.coded_units -= entry.frame.units
        return entry

    @property
    def overfull(self) -> bool:
        """Whether more frames are held than allowed."""
        return len(self._order) > self._max_frames

    def remove(self, from_pts: int, to_pts: int) -> int:
        """Drop every frame with audio in [from_pts, to_pts); returns how many."""
        return self._drop([pts for pts in self._order if pts < to_pts and self._entries[pts].end > from_pts])

    def remove_from(self, pts: int) -> int:
        """Drop every frame that begins at or after `pts`; returns how many."""
        return self._drop(self._order[bisect_left(self._order, pts) :])

    def remove_stale(self, clear_number: int, from_pts: int) -> int:
        """Drop frames from `from_pts` on that carry an older clear number; returns how many."""
        later = self._order[bisect_left(self._order, from_pts) :]
        return self._drop([pts for pts in later if (self._entries[pts].frame.clear_number - clear_number) % 4 > 1])

    def _drop(self, victims: list[int]) -> int:
        for pts in victims:
            self.coded_units -= self._entries.pop(pts).frame.units
        if victims:
            self._order = [pts for pts in self._order if pts in self._entries]
        return len(victims)
