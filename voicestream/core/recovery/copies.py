"""Low-rate copies of one sent track: a second encoding of a frame that leaves some frames after it (specification section 4.7)."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import replace
from typing import Final

from voicestream.media import MediaFrame

__all__ = ["CopyQueue"]

MAX_OFFERED: Final = 128
"""Copies kept of frames that have not left yet."""

MAX_WAITING: Final = 32
PATIENCE: Final = 50
"""Frames without a copy after which the source is taken to make none."""


class CopyQueue:
    """Copies on their way out.

    Attributes:
        dropped: Copies for which there was no budget, no room or no time.
    """

    __slots__ = ("_offered", "_waiting", "_without", "dropped")

    def __init__(self) -> None:
        self._offered: OrderedDict[int, bytes] = OrderedDict()
        self._waiting: deque[tuple[MediaFrame, bytes | None]] = deque(maxlen=MAX_WAITING)
        self._without = 0
        self.dropped = 0

    @property
    def has_source(self) -> bool:
        """Whether copies come when they are asked for."""
        return self._without < PATIENCE

    def offer(self, pts: int, payload: bytes) -> None:
        """The source has made a copy of the frame at `pts`, which waits to leave."""
        self._without = 0
        self._offered[pts] = payload
        if len(self._offered) > MAX_OFFERED:
            self._offered.popitem(last=False)
            self.dropped += 1

    def left(self, frame: MediaFrame, *, wanted: bool) -> None:
        """A frame has left; its copy, if there is one, follows when `wanted`."""
        payload = self._offered.pop(frame.pts, None)
        self._without += wanted and payload is None
        if wanted:
            self._waiting.append((frame, payload))
        else:
            self._waiting.clear()

    def due(self, offset: int, *, last: bool = False) -> list[MediaFrame]:
        """Copies that leave beside the next frame: those of the frames `offset` before it and earlier.

        Args:
            offset: Frames from a frame to its copy, at least 1.
            last: No frame follows for some time, so nothing can wait any longer.
        """
        found: list[MediaFrame] = []
        while self._waiting and (last or len(self._waiting) >= offset):
            frame, payload = self._waiting.popleft()
            if payload is not None:
                found.append(replace(frame, payload=payload))  # VS-4.7-3
        return found

    def clear(self) -> None:
        """What was sent is void."""
        self._offered.clear()
        self._waiting.clear()
