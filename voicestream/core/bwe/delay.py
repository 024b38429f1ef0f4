"""Queueing delay from one-way delays whose constant part is unknown."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection
from typing import Final

from voicestream.core.bwe.samples import Sample, WindowedMin

__all__ = ["QueueDelay"]

BASE_WINDOW: Final = 30.0
"""Seconds over which the least delay counts as that of the empty path."""

STANDING_WINDOW: Final = 0.16
"""Seconds over which a queue must not have been empty to count as standing."""

STANDING_SAMPLES: Final = 3
TREND_WINDOW: Final = 0.5
MAX_SERIALISATION: Final = 0.05
"""Seconds; no more than this of a delay is explained by the datagram's own length."""

_JITTER_MEMORY: Final = 16
_JITTER_KNOWN: Final = 8
MAX_NOISE: Final = 0.02

SLOW: Final = 0.05
"""Seconds from one datagram to the next from which their lengths make more of the jitter than the path does."""

STRETCH: Final = 10.0
"""Seconds by which that is longer a second of jitter of the path's own."""

UNREST_WINDOW: Final = 2.0
"""Seconds of which the calmest moment tells the path's own jitter: a queue that begins is none."""

QUEUED: Final = 0.25
QUEUED_WINDOW: Final = 10.0
"""Seconds of waiting that no jitter explains, and for how long it speaks for a queue of which the link makes what looks like jitter."""

SHARING: Final = 0.25
"""Jitter that others on the same link make, and the lengths of datagrams, in parts of the time from one datagram to the next."""

MOST_APART: Final = 0.12
"""Seconds of that time at most: pauses of speech are none of it."""


class QueueDelay:
    """Follows the queue.

    Attributes:
        standing: Seconds of queue that does not go away between datagrams: the least delay of the last ones above the base.
        jitter: Mean difference between the delays of consecutive datagrams, in seconds. A standing queue does not raise it.
        unrest: Jitter of the path itself, in seconds: what has lasted for a while, beyond what sharing a link makes.
        newest: Delay of the newest datagram above the base, less what jitter explains.
        wait: The same with what jitter explains.
        usual: The jitter before the newest datagram.
        base_at: When the base was last seen, on the clock of arrivals.
        newest_at: Newest arrival.
    """

    __slots__ = (
        "_apart", "_base", "_jitters", "_last", "_mixed_to", "_near", "_near_at", "_raw", "_recent", "_seen", "_since", "_trend",
        "_waits", "base_at", "jitter", "newest", "newest_at", "standing", "unrest", "usual", "wait",
    )  # fmt: skip

    def __init__(self) -> None:
        self._base = WindowedMin(BASE_WINDOW)
        self._recent: deque[tuple[float, float]] = deque()
        self._near: deque[float] = deque()  # of those, the delays of the last moments, and
        self._near_at: deque[float] = deque()  # when they came; empty where that is not in order
        self._mixed_to = -math.inf  # newest arrival that has been overtaken
        self._since = -math.inf  # where those of the last moments begin
        self._raw: deque[Sample] = deque(maxlen=STANDING_SAMPLES)
        self._last: float | None = None
        self._trend: float | None = 0.0  # None: not computed since the last datagram
        self.standing = 0.0
        self.jitter = 0.0
        self.unrest = 0.0
        self._jitters = WindowedMin(UNREST_WINDOW)
        self._waits = WindowedMin(QUEUED_WINDOW)  # negative: the longest is the least
        self._apart = 0.02
        self._seen = 0
        self.newest = self.wait = self.usual = 0.0
        self.base_at = 0.0
        self.newest_at = 0.0

    def add(self, sample: Sample, capacity_bps: float | None, *, whole: bool = False) -> None:
        """Take a datagram's delay.

        Args:
            sample: The datagram.
            capacity_bps: Of the bottleneck if known: its own time on the link is no queue.
            whole: That is known too badly to be taken off: only jitter is measured without it.
        """
        at, delay = sample.arrived_at, _without_length(sample, capacity_bps)
        if at < self.newest_at:
            self._mixed_to = max(self._mixed_to, self.newest_at)
        self.newest_at = at
        self.usual = self.jitter
        if self._last is not None:
            apart = sample.sent_at - self._raw[-1].sent_at
            self._apart += 1 / _JITTER_MEMORY * ((apart if apart < MOST_APART else MOST_APART) - self._apart)
            change = abs(delay - self._last)
            self._seen += self._seen < _JITTER_MEMORY
            self.jitter += ((change if change < 0.1 else 0.1) - self.jitter) / self._seen
        self._raw.append(sample)
        self._last = delay
        if whole:
            delay = sample.delay
        if self._seen >= _JITTER_KNOWN:
            self._jitters.add(at, self.jitter)
        self._base.add(at, delay)
        self._waits.add(at, (self._base.value or 0.0) - delay)
        unrest = (self._jitters.value or 0.0) - SHARING * self._apart
        self.unrest = unrest if unrest > 0.0 and self._apart < SLOW and -(self._waits.value or 0.0) < QUEUED else 0.0
        recent = self._recent
        recent.append((at, delay))
        oldest = at - TREND_WINDOW
        while recent[0][0] < oldest and len(recent) > STANDING_SAMPLES:
            recent.popleft()
        near: Collection[float] = self._near_to(at, delay)
        if len(near) < STANDING_SAMPLES:
            near = [value for _, value in list(recent)[-STANDING_SAMPLES:]]
        base = self._base.value or 0.0
        self.wait = delay - base
        self.newest = self.wait - 4 * self.jitter
        # What the least of n jittery delays lies above the base without any queue.
        noise = 2 * self.jitter / (len(near) + 1)
        standing = min(near) - base - (noise if noise < MAX_NOISE else MAX_NOISE)
        self.standing = standing if standing > 0.0 else 0.0
        if self.standing < 0.004:
            self.base_at = at
        self._trend = None

    def _near_to(self, at: float, delay: float) -> Collection[float]:
        """The delays of what has come in the last moments, of which the newest came `at`."""
        near, near_at, since = self._near, self._near_at, at - STANDING_WINDOW - STRETCH * self.unrest
        longer, self._since = since < self._since, since
        if near_at and since > self._mixed_to and not longer:
            near.append(delay)
            near_at.append(at)
            while near_at[0] < since:
                near.popleft()
                near_at.popleft()
            return near
        points = [(moment, value) for moment, value in self._recent if moment >= since]
        near.clear()
        near_at.clear()
        if since > self._mixed_to:
            near.extend([value for _, value in points])
            near_at.extend([moment for moment, _ in points])
        return [value for _, value in points]

    @property
    def base(self) -> float:
        """Delay of the empty path, with an unknown constant."""
        return self._base.value or 0.0

    @property
    def trend(self) -> float:
        """Seconds a second at which the delay grows."""
        if self._trend is None:
            self._trend = _slope(self._recent)
        return self._trend

    def rebase(self, capacity_bps: float | None = None) -> None:
        """The path is another one, or the queue is not ours: take what stands now for the base."""
        self._base.clear()
        self._recent.clear()
        self._near.clear()
        self._near_at.clear()
        for sample in self._raw:
            delay = _without_length(sample, capacity_bps)
            self._base.add(sample.arrived_at, delay)
            self._recent.append((sample.arrived_at, delay))
        self.standing = self._trend = 0.0
        self.base_at = self.newest_at


def _without_length(sample: Sample, capacity_bps: float | None) -> float:
    """Delay of a datagram without the time that its own bytes take on the link."""
    if not capacity_bps:
        return sample.delay
    return sample.delay - min(MAX_SERIALISATION, sample.wire_bytes * 8 / capacity_bps)


def _slope(points: deque[tuple[float, float]]) -> float:
    """Of the regression line; 0 when there is too little to tell."""
    count = len(points)
    if count < STANDING_SAMPLES:
        return 0.0
    mean_at = sum([at for at, _ in points]) / count
    mean_delay = sum([delay for _, delay in points]) / count
    spread = together = 0.0
    for at, delay in points:
        apart = at - mean_at
        spread += apart * apart
        together += apart * (delay - mean_delay)
    return together / spread if spread > 1e-6 else 0.0
