"""When reports leave (specification section 9.1)."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["GrowthWatch", "ReportSchedule"]

STEP: Final = 0.005
"""Seconds by which the delay of a datagram must exceed that of the one before to count as growing."""

RISES: Final = 2
GROWN: Final = 0.025
"""Seconds by which the delay must have grown to be told at once, or more where it always varies."""

LONG: Final = 0.08
"""Seconds by which it has grown where the path carries much less all at once."""

NOISE: Final = 4.0
STEADY: Final = 0.003
"""Seconds of jitter below which no datagram comes so much later than the one before for nothing."""

OVERDUE: Final = 0.04
"""Seconds beyond its time, and beyond what is usual, after which the lack of a datagram is told."""

AGAIN: Final = 2.0
"""Seconds from one time that this is told to the next."""

SCARCE: Final = 0.1
"""The same where a queue of ours is being emptied: a report alone takes a third of the packet that speech would."""

LONGEST_SPACING: Final = 0.07
"""Seconds between datagrams up to which the next one is expected at a certain time."""

TOGETHER: Final = 0.0015
"""Seconds within which two datagrams left together: the second one waits for the first whatever the queue."""


class GrowthWatch:
    """Whether the delay of what arrives grows, or nothing arrives where something should, so that its sender should know soon.

    Attributes:
        due_at: When the lack of a datagram is to be told; None where none is expected.
    """

    __slots__ = ("_delay", "_jitter", "_left_at", "_missed", "_missed_at", "_risen", "_rises", "_spacing", "due_at")

    @property
    def is_long(self) -> bool:
        """Whether a queue has grown at once that is no jitter by any measure."""
        return self._rises > RISES and self._risen > max(LONG, 2 * NOISE * self._jitter)

    def __init__(self) -> None:
        self._delay: float | None = None
        self._left_at = 0.0
        self._spacing = math.inf
        self._missed = False
        self._missed_at = -math.inf
        self.due_at: float | None = None
        self._jitter = 0.0
        self._rises = 0
        self._risen = 0.0

    def overdue(self, now: float) -> bool:
        """Whether it is time to tell that nothing has come; once for each time that nothing comes, but not often."""
        if self.due_at is None or now < self.due_at:
            return False
        again, self.due_at = now - self._missed_at >= AGAIN, None
        if again:
            self._missed, self._missed_at = True, now
        return again

    def arrived(self, left_at: float, now: float, *, more: bool = False) -> bool:
        """Take a datagram that left at `left_at`, on any clock; whether the delay has been growing up to it.

        `more`: another one should follow at the pace of the last ones.
        """
        missed, self._missed = self._missed, False
        delay, before = now - left_at, self._delay
        spacing = left_at - self._left_at
        if before is not None and 0 <= spacing < TOGETHER:
            return missed
        self._delay, self._left_at = delay, left_at
        self.due_at = None
        if before is None:
            return missed
        if more and 0 < spacing <= LONGEST_SPACING and self._spacing <= LONGEST_SPACING:
            self.due_at = now + max(spacing, self._spacing) + OVERDUE + NOISE * self._jitter
        self._spacing = spacing
        grown = delay - before
        usual = NOISE * self._jitter
        self._jitter += (min(abs(grown), 0.1) - self._jitter) / 16
        if grown > STEP:
            self._rises += 1
            self._risen += grown
        elif grown < -STEP:
            self._rises, self._risen = 0, 0.0
        if usual < NOISE * STEADY and grown > GROWN:  # one step is enough
            return True
        return missed or (self._rises >= RISES and self._risen > (GROWN if usual < GROWN else usual))


class ReportSchedule:
    """When a report leaves, and what it may cost.

    Reports ride on datagrams that leave anyway. Alone they leave when such a datagram is not in sight: every 100 ms while something
    arrives that calls for them, and no later than 100 ms after it; at once where it is a keepalive, which nothing follows soon. Their
    bytes are kept at 5 % of what they report on, as far as that allows; a report that rides is always better than one alone, which
    costs a packet.

    Attributes:
        scarce: Our own direction has too much to carry as it is: what grows is told no sooner than the rest.
        sent: Reports sent.
        sent_bytes: Bytes of their frames, and of the headers of datagrams that carry nothing else.
    """

    RIDE_INTERVAL: Final = 0.05  # VS-9.1-2
    LEAN_RIDE_INTERVAL: Final = 0.08
    MAX_INTERVAL: Final = 0.1  # VS-9.1-1
    HURRY_INTERVAL: Final = 0.02
    """Seconds from one report to the next while a queue grows."""
    SOON: Final = 0.03
    """Seconds between datagrams of ours that are close enough to wait for one."""
    PATIENCE: Final = 0.02
    """Seconds that a report waits for a datagram to ride on while none leaves regularly."""
    SHARE: Final = 0.05  # VS-9.1-3
    _MAX_CREDIT: Final = 200.0
    _LEAN_PLAYOUT: Final = 4
    _MAX_GAP: Final = 0.2
    _SLACK: Final = 0.005

    __slots__ = (
        "_again",
        "_at_once",
        "_chance_at",
        "_credit",
        "_gap",
        "_hurried",
        "_last_at",
        "_since_playout",
        "_waiting_since",
        "scarce",
        "sent",
        "sent_bytes",
    )

    def __init__(self) -> None:
        self.sent = 0
        self.sent_bytes = 0
        self.scarce = False
        self._credit = 0.0
        self._last_at: float | None = None
        self._waiting_since: float | None = None
        self._again = False
        self._at_once = False
        self._hurried = False
        self._since_playout = 0
        self._chance_at: float | None = None
        self._gap = math.inf  # seconds between the last two datagrams of ours that a report could ride on

    def arrived(self, wire_bytes: int, now: float, *, eliciting: bool, keepalive: bool = False) -> None:
        """A datagram came; `eliciting` when it holds more than reports and padding, or nothing at all: then it is a `keepalive`."""
        self._credit = min(self._MAX_CREDIT, self._credit + self.SHARE * wire_bytes)
        if eliciting and self._waiting_since is None:
            self._waiting_since = now
            self._at_once = keepalive

    def hurry(self, now: float) -> None:
        """What has arrived should be told sooner than usual, as long as the share is not far exceeded: a queue grows."""
        last_at = self._last_at
        interval = SCARCE if self.scarce else self.HURRY_INTERVAL
        if self.twice and (last_at is None or now >= last_at + interval):
            self._hurried = True
            if self._waiting_since is None:
                self._waiting_since = now

    @property
    def rich(self) -> bool:
        """Whether the share is not used up."""
        return self._credit >= 0

    @property
    def playout_due(self) -> bool:
        """Whether the next report should tell the playouts' state: always while the share lasts, else now and then."""
        return self.rich or self._since_playout + 1 >= self._LEAN_PLAYOUT

    @property
    def twice(self) -> bool:
        """Whether the next report should cover again what the last one told; not when far beyond the share."""
        return self._credit > -self._MAX_CREDIT

    def chance(self, now: float) -> None:
        """A datagram leaves now that a report can ride on."""
        if self._chance_at is not None and now > self._chance_at:
            self._gap = now - self._chance_at
        self._chance_at = now

    def rides(self, now: float) -> bool:
        """Whether a report should ride on a datagram that leaves now."""
        if self._waiting_since is None and not self._again:
            return False
        if self._last_at is None or self._hurried:
            return True
        passed = now - self._last_at
        if passed < self.RIDE_INTERVAL:
            return False
        # Beyond the share a report is put off, but not so that it would have to leave alone.
        return self.rich or passed >= self.LEAN_RIDE_INTERVAL or passed + self._gap > self.MAX_INTERVAL

    def due_alone(self, now: float) -> bool:
        """Whether a report should leave in a datagram of its own."""
        waiting = self._waiting_since
        if self._hurried and waiting is not None:
            return now >= self._hurry_at(waiting)
        if (waiting is None and not self._again) or (self._last_at is not None and now < self._last_at + self.MAX_INTERVAL):
            return False  # whatever the patience
        if waiting is not None and now < waiting + self.PATIENCE and not self._at_once:
            return False  # which is never less
        timer = self.next_timer()
        return timer is not None and now >= timer

    def next_timer(self) -> float | None:
        """When a report will have to leave by itself, or None."""
        last_at = self._last_at
        if self._hurried and self._waiting_since is not None:
            return self._hurry_at(self._waiting_since)
        if self._waiting_since is not None:
            soon = self._waiting_since + self._patience(self._waiting_since)
            return soon if last_at is None else max(soon, last_at + self.MAX_INTERVAL)
        if self._again and last_at is not None:
            return last_at + self.MAX_INTERVAL + self._patience(last_at)
        return None

    def is_calm(self, until: float) -> bool:
        """Whether surely no report leaves alone before `until`: cheaper to know than `next_timer`."""
        waiting, last_at = self._waiting_since, self._last_at
        if self._hurried or self._at_once:
            return False
        if waiting is not None and waiting + self.PATIENCE >= until:
            return True
        return (waiting is None and not self._again) or (last_at is not None and last_at + self.MAX_INTERVAL >= until)

    def _hurry_at(self, since: float) -> float:
        """When what may not wait leaves alone: at once, unless a datagram to ride on is about to leave."""
        if self._chance_at is None or self._gap > self.SOON:
            return since
        return max(since, self._chance_at + self._gap + self._SLACK)

    def _patience(self, since: float) -> float:
        """Seconds worth waiting from `since` on for a datagram to ride on, given how regularly they leave."""
        if self._at_once:
            return 0.0
        if self._chance_at is None or self._gap > self._MAX_GAP or since - self._chance_at > self._gap + self._SLACK:
            return self.PATIENCE
        patience = self._gap + self._SLACK
        if patience < self.PATIENCE:
            return self.PATIENCE
        return patience if patience < self.MAX_INTERVAL else self.MAX_INTERVAL

    def left(self, size: int, now: float, *, with_playout: bool) -> None:
        """A report of this many bytes leaves now."""
        self.sent += 1
        self.sent_bytes += size
        self._credit = max(-2 * self._MAX_CREDIT, self._credit - size)
        self._since_playout = 0 if with_playout else self._since_playout + 1
        # After a keepalive there is time until the next one, whose report tells of it again.
        self._again = self._waiting_since is not None and not self._at_once
        self._at_once = self._hurried = False
        self._waiting_since = None
        self._last_at = now
