"""How a flow that holds its share grows, and what it remembers of where it was turned back."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["Growth"]

ADD_BPS: Final = 1000.0
ADD_PART: Final = 0.012
ADD_LINK_PART: Final = 0.005
ADD_LEAST_BPS: Final = 300.0
"""Bits per second each second that it gains while it sees no queue: a part of its rate, or of a shared link's, within bounds.

Others see the queue half a second late, and so do we. What all add in that time is more than there is, and all have to give it back:
with twice as much the rates go up and down for ever.
"""

ADD_EMPTY_BPS: Final = 2500.0
ADD_EMPTY_UNREST_BPS: Final = 4000.0
ADD_PART_BPS: Final = 1500.0
"""The same where there has been no queue for a while; where jitter lets nothing else tell of a faster link; beside others."""

EMPTY: Final = 0.35
EMPTY_UNREST: Final = 0.6
"""Mean queue, in parts of what is aimed at, that counts as none; jitter makes some of it."""

MEMORY: Final = 1.0
"""Seconds of that mean."""

BEGIN: Final = 0.5
"""What that mean begins with."""

KNOWN: Final = 0.97
"""Below this part of our share, it is known to be there."""

KNOWN_AFTER: Final = 1.0
"""Seconds without a queue after which that is taken again."""

PATIENCE: Final = 1.5
MOST_PATIENCE: Final = 8.0
"""Seconds without a queue after which more than our share is tried: twice as many after each time that there was no more.

But where jitter hides all else, it is the only way to find what has become free, and the first wait is kept.
"""

MORE: Final = 1.25
"""A share that is so much larger than before was worth the try."""

MISLED: Final = 8.0
"""Seconds for which pairs that jitter may have moved are not believed by themselves after they have told of more than there was."""

ROOM: Final = 1.0
ROOM_PART: Final = 1.3
ROOM_UNREST: Final = 1.02
"""Part of our share from which on the lack of a queue says that it is another one: alone on the link, beside others, and with much jitter.

Others see the same empty queue. Were all to look for more at once, each would find that there is none.
"""


class Growth:
    """While there is a share to hold: when to add how much, and when to look for more."""

    __slots__ = ("_above", "_by_jitter", "_empty_since", "_known", "_misled_until", "_patience", "_queue")

    def __init__(self) -> None:
        self._queue = BEGIN  # in parts of what is aimed at
        self._empty_since: float | None = None
        self._patience = PATIENCE
        self._above: float | None = None
        self._known: float | None = None  # the share at which a queue formed last
        self._by_jitter = False
        self._misled_until = -math.inf

    def begin(self) -> None:
        """Another state begins: what was seen of the queue before does not count."""
        self._queue = BEGIN
        self._empty_since = None

    def see(self, now: float, passed: float, queue: float, target: float, *, unrest: bool) -> None:
        """Take the queue, in parts of what is aimed at, and the seconds since the last time; `unrest`: jitter is part of it."""
        self._queue += min(1.0, passed / MEMORY) * (queue - self._queue)
        if self._queue > (EMPTY_UNREST if unrest else EMPTY):
            self._empty_since = None
            self.turned_back(now, target)
        elif self._empty_since is None:
            self._empty_since = now

    def add_bps(self, now: float, target: float, share: float | None, *, unrest: bool = False, link: float | None = None) -> float:
        """Bits per second each second that may be added while no queue is seen; `link`: rate of one that others have a part of."""
        known, empty_for = share is not None and target < KNOWN * share, self._empty_for(now)
        if empty_for > (KNOWN_AFTER if known else self._waits(unrest)):
            if not known and link is not None and self._above is None:
                self._above = share
            return ADD_EMPTY_UNREST_BPS if unrest else ADD_PART_BPS if link is not None and not known else ADD_EMPTY_BPS
        # Whoever has less gains as much as who has more: so they become equal.
        return max(ADD_LEAST_BPS, min(ADD_BPS, ADD_PART * target if link is None else ADD_LINK_PART * link))

    def is_time(self, now: float, target: float, share: float | None, *, part: bool = False, unrest: bool = False) -> bool:
        """Whether to look for more: no queue has been there for a while, well above our share."""
        room = ROOM_UNREST if unrest else ROOM_PART if part else ROOM
        return share is not None and target >= room * share and self._empty_for(now) > self._waits(unrest)

    def believes_pairs(self, now: float) -> bool:
        """Whether pairs are heeded that tell of a faster link: once they have misled, only where the lack of a queue agrees."""
        return now >= self._misled_until or self._empty_for(now) > KNOWN_AFTER

    def look(self, share: float | None, *, by_jitter: bool = False) -> None:
        """More than this share is tried from now on; `by_jitter`: because of pairs that it may have moved."""
        self._above, self._by_jitter = share, by_jitter

    def turned_back(self, now: float, share: float) -> float | None:
        """A queue has formed at this share: what was to be exceeded, or None where nothing was."""
        above, self._above = self._above, None
        if above is not None:
            in_vain = share < MORE * above
            self._patience = min(MOST_PATIENCE, 2 * self._patience) if in_vain else PATIENCE
            if in_vain and self._by_jitter:
                self._misled_until = now + MISLED
        if self._known is not None and not self._known / MORE < share < self._known * MORE:
            self._patience = PATIENCE  # it is another link than the one that had no more
        self._known = share
        return above

    def _waits(self, unrest: bool) -> float:
        return PATIENCE if unrest else self._patience

    def _empty_for(self, now: float) -> float:
        return 0.0 if self._empty_since is None else now - self._empty_since
