"""Small frames that are repeated in datagrams until a report shows that one of them arrived (specification section 8.4)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from voicestream.wire.frame_values import Frame

__all__ = ["GIVE_UP_AFTER", "REPEAT_INTERVAL", "RIDE_INTERVAL", "Repeats"]

RIDE_INTERVAL: Final = 0.04
"""Seconds between repeats that ride on a datagram which leaves anyway."""

REPEAT_INTERVAL: Final = 0.1  # VS-8.4-2
"""Seconds after which a repeat leaves in a datagram of its own."""

URGENT_INTERVAL: Final = 0.015  # VS-8.4-4
"""Seconds after which each of the first repeats of something urgent leaves, in a datagram of its own if need be."""

URGENT_REPEATS: Final = 4

SLOW_PATH: Final = 0.22
"""Seconds of round trip from which what is patient is not repeated before an answer can have come."""

GIVE_UP_AFTER: Final = 5.0  # VS-8.4-1
"""Seconds after which repeating ends: what matters for longer goes on the control stream as well."""


@dataclass(slots=True)
class _Item:
    frame: Frame
    version: int
    since: float
    sent_at: float | None
    patience: float
    urgent: int
    answer_after: float = 0.0  # seconds from `sent_at` before which no answer can come

    @property
    def rides_after(self) -> float:
        return URGENT_INTERVAL if self.urgent else max(RIDE_INTERVAL, self.answer_after)

    @property
    def alone_after(self) -> float:
        return URGENT_INTERVAL if self.urgent else max(REPEAT_INTERVAL, self.answer_after)


class Repeats:
    """Holds the newest frame of each kind that the far end is not known to have.

    Kinds are few (three for each track and direction), which bounds it.
    """

    __slots__ = ("_items", "_version")

    def __init__(self) -> None:
        self._items: dict[Hashable, _Item] = {}
        self._version = 0

    def __len__(self) -> int:
        return len(self._items)

    def put(self, key: Hashable, frame: Frame, now: float, *, patience: float = 0.0, urgent: bool = False) -> None:
        """Begin to repeat `frame`, in place of an older one of the same key.

        Args:
            key: Kind of the frame.
            frame: The frame.
            now: Monotonic seconds.
            patience: Seconds that the first one may wait for a datagram that leaves anyway.
            urgent: A loss must not cost time: the first repeats follow soon.
        """
        self._version += 1
        self._items[key] = _Item(frame, self._version, now, None, patience, URGENT_REPEATS if urgent else 0)

    def withdraw(self, key: Hashable) -> None:
        """Stop repeating, for the matter is settled."""
        self._items.pop(key, None)

    def confirm(self, key: Hashable, version: int) -> None:
        """A datagram with this version has arrived."""
        item = self._items.get(key)
        if item is not None and item.version == version:
            del self._items[key]

    def riding(self, now: float) -> list[tuple[Hashable, int, Frame]]:
        """(key, version, frame) of what should ride on a datagram that leaves now; call `sent` for those that do."""
        if not self._items:
            return []
        self._give_up(now)
        return [
            (key, item.version, item.frame)
            for key, item in self._items.items()
            if item.sent_at is None or now >= item.sent_at + item.rides_after
        ]

    def sent(self, key: Hashable, now: float, rtt: float = 0.0) -> None:
        """The frame of this key is in a datagram that leaves now.

        On a slow path, what had `patience` is not sent again before a round trip has passed: each repeat calls for a report.
        """
        item = self._items.get(key)
        if item is not None:
            item.answer_after = rtt if item.patience and rtt > SLOW_PATH else 0.0
            if item.sent_at is not None:
                item.urgent = max(0, item.urgent - 1)
            item.sent_at = now

    def due_alone(self, now: float) -> bool:
        """Whether something should leave now even if nothing else does."""
        if not self._items:
            return False
        self._give_up(now)
        return bool(self._items) and now >= min(map(_due_at, self._items.values()))

    def next_timer(self) -> float | None:
        """When something will have to leave by itself, or None."""
        return min(map(_due_at, self._items.values())) if self._items else None

    def _give_up(self, now: float) -> None:
        for item in self._items.values():
            if now - item.since > GIVE_UP_AFTER:
                break
        else:
            return
        for key in [key for key, item in self._items.items() if now - item.since > GIVE_UP_AFTER]:
            del self._items[key]


def _due_at(item: _Item) -> float:
    if item.sent_at is None:
        return item.since + item.patience
    return item.sent_at + item.alone_after
