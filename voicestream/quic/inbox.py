"""Packets that have been read from a socket and not been looked at yet.

A machine that is too slow for what comes must not fall behind without end: audio that is handled late is worth nothing, and the work
on it makes what follows late as well. So what has waited for too long is dropped unread, the way a network drops it, and the far ends'
rate control answers. A machine that was held up for a moment is not too slow: it catches up, and nothing is lost to those who read in
order.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from voicestream.quic.values import Address

__all__ = ["Inbox", "Packet"]

MAX_AGE: Final = 0.2
"""Seconds that a packet of an established connection may wait; the playout's default lookahead is not longer."""

PATIENCE: Final = 0.25
"""Seconds for which packets may have waited for longer, before any is dropped."""

MAX_HANDSHAKE_AGE: Final = 1.0
"""Seconds that a packet of a handshake may wait, which is repeated about that fast."""

MAX_PACKETS: Final = 4096
MAX_HANDSHAKES: Final = 512
"""Packets held of either kind; the oldest go."""

LONG_HEADER: Final = 0x80
HANDSHAKE_EVERY: Final = 8
"""While both kinds wait, one packet of so many is of a handshake: calls that are under way come first, and nobody waits for ever."""


class Packet(NamedTuple):
    """One UDP payload, where it came from, and when it was read."""

    data: bytes
    address: Address
    at: float


class Inbox:
    """Two queues: the packets of connections that are established, and those of handshakes, each of which costs many times more.

    Attributes:
        dropped: Packets that had waited for too long, or had to go for newer ones.
    """

    __slots__ = ("_established", "_handshakes", "_is_slow", "_late_since", "_turn", "dropped")

    def __init__(self) -> None:
        self._established: deque[Packet] = deque()
        self._handshakes: deque[Packet] = deque()
        self._turn = 0
        self._late_since: float | None = None
        self._is_slow = False
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._established) + len(self._handshakes)

    def put(self, data: bytes, address: Address, now: float) -> None:
        """A packet was read."""
        handshake = data and data[0] & LONG_HEADER
        queue, most = (self._handshakes, MAX_HANDSHAKES) if handshake else (self._established, MAX_PACKETS)
        queue.append(Packet(data, address, now))
        if len(queue) > most:
            queue.popleft()
            self.dropped += 1

    def take(self, now: float) -> Packet | None:
        """The packet to look at next, or None."""
        established, handshakes = self._established, self._handshakes
        if self._is_too_slow(now):
            while established and established[0].at < now - MAX_AGE:
                established.popleft()
                self.dropped += 1
        while handshakes and handshakes[0].at < now - MAX_HANDSHAKE_AGE:
            handshakes.popleft()
            self.dropped += 1
        if established and handshakes:
            self._turn = (self._turn + 1) % HANDSHAKE_EVERY
            return established.popleft() if self._turn else handshakes.popleft()
        queue = established or handshakes
        return queue.popleft() if queue else None

    def _is_too_slow(self, now: float) -> bool:
        """Whether packets have waited for too long for some time; until they wait for half as long again."""
        waits = now - self._established[0].at if self._established else 0.0
        if waits <= MAX_AGE / 2:
            self._late_since, self._is_slow = None, False
        elif waits > MAX_AGE and self._late_since is None:
            self._late_since = now
        if self._late_since is not None and now - self._late_since >= PATIENCE:
            self._is_slow = True
        return self._is_slow
