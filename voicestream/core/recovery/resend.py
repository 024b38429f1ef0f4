"""Retransmissions of one track: which of the frames asked for are sent again, and once more beside later audio."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final

from voicestream.media import MediaFrame

__all__ = ["ResendQueue"]

MAX_WAITING: Final = 32
"""Frames that wait to be sent again; one more than that and the oldest, whose time is nearest, goes."""

MAX_ASKED: Final = 128
"""Frames of one question that are considered, the newest ones; the queue holds fewer."""

MAX_REMEMBERED: Final = 256
LEAST_INTERVAL: Final = 0.01
DEADLINE: Final = 0.2
"""Seconds after a question at which its answer is no longer sent."""

ECHO_AFTER: Final = 0.003
ECHO_WITHIN: Final = 0.045
"""When an answer may ride on audio once more (seconds after it), lest it be lost: a second question would cost a round trip."""

MAX_ECHOES: Final = 8
"""Answers that wait for it; who misses more at once has had an outage."""


class ResendQueue:
    """Frames that the far end has asked for.

    Attributes:
        expired: Frames that waited too long, or had to go for others.
    """

    __slots__ = ("_echoes", "_resent", "_waiting", "expired")

    def __init__(self) -> None:
        self._waiting: deque[tuple[MediaFrame, float]] = deque()
        self._resent: OrderedDict[int, float] = OrderedDict()
        self._echoes: deque[tuple[MediaFrame, float, int]] = deque(maxlen=MAX_ECHOES)
        self.expired = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def asked(self, frames: list[MediaFrame], now: float, rtt: float) -> None:
        """The far end misses these. One that was sent again less than a round trip ago is still under way."""
        for frame in frames[-MAX_ASKED:]:
            last = self._resent.get(frame.pts)
            if last is not None and now - last < max(LEAST_INTERVAL, rtt):
                continue
            self._resent[frame.pts] = now
            self._resent.move_to_end(frame.pts)
            if len(self._resent) > MAX_REMEMBERED:
                self._resent.popitem(last=False)
            self._waiting.append((frame, now))
            if len(self._waiting) > MAX_WAITING:
                self._waiting.popleft()
                self.expired += 1

    def peek(self, now: float) -> MediaFrame | None:
        """The frame to send next, or None."""
        while self._waiting and now - self._waiting[0][1] > DEADLINE:
            self._waiting.popleft()
            self.expired += 1
        return self._waiting[0][0] if self._waiting else None

    def pop(self, now: float) -> MediaFrame:
        """Take the frame that `peek` showed, and send it."""
        frame, _ = self._waiting.popleft()
        self._echoes.append((frame, now, 0))
        return frame

    def echoes(self, now: float, times: int = 1) -> list[MediaFrame]:
        """The frames that were sent again a moment ago and are worth it once more, each `times` in all."""
        found: list[MediaFrame] = []
        for _ in range(len(self._echoes)):
            frame, at, echoed = self._echoes.popleft()
            if now - at < ECHO_AFTER:
                self._echoes.append((frame, at, echoed))
            elif now - at <= ECHO_WITHIN:
                found.append(frame)
                if echoed + 1 < times:
                    self._echoes.append((frame, at, echoed + 1))
        return found

    def drop_larger(self, payload_bytes: int) -> int:
        """Drop frames with a larger payload; returns how many."""
        kept = [entry for entry in self._waiting if len(entry[0].payload) <= payload_bytes]
        dropped = len(self._waiting) - len(kept)
        if dropped:
            self._waiting = deque(kept)
            self.expired += dropped
        return dropped

    def clear(self) -> None:
        """What was sent is void."""
        self._waiting.clear()
        self._echoes.clear()
