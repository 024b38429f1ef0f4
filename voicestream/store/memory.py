"""A store in the memory of one process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

from voicestream.store.record import SessionRecord

__all__ = ["MemoryStore"]


class MemoryStore:
    """Keeps records in memory, bounded in number, bytes and time.

    Args:
        ttl: Seconds for which a record is kept after it was last written, 30 to 300.
        max_sessions: Records kept, 1 to 1000000; the one that was written longest ago goes.
        max_bytes: Bytes kept, at least 131072, likewise.
        clock: Monotonic seconds.

    Attributes:
        evicted: Records dropped for want of room.
        expired: Records dropped for their age.

    Raises:
        ValueError: An argument is out of its range.
    """

    def __init__(
        self, *, ttl: float = 300.0, max_sessions: int = 10000, max_bytes: int = 1 << 28, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not 30 <= ttl <= 300:
            raise ValueError(f"ttl must be 30 to 300, not {ttl}")
        if not 1 <= max_sessions <= 1000000:
            raise ValueError(f"max_sessions must be 1 to 1000000, not {max_sessions}")
        if max_bytes < 131072:
            raise ValueError(f"max_bytes must be at least 131072, not {max_bytes}")
        self.evicted = 0
        self.expired = 0
        self._ttl = ttl
        self._max_sessions = max_sessions
        self._max_bytes = max_bytes
        self._clock = clock
        self._records: OrderedDict[bytes, tuple[SessionRecord, float]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        self._expire()
        return len(self._records)

    @property
    def size(self) -> int:
        """Bytes kept, about."""
        return self._bytes

    async def put(self, records: Iterable[SessionRecord]) -> list[bytes]:
        """See `SessionStore.put`."""
        self._expire()
        superseded = []
        for record in records:
            kept = self._records.get(record.session_id)
            known = None if kept is None else kept[0]
            if known is None or known.version < record.version or (known.version, known.owner) == (record.version, record.owner):
                self._keep(record)
            elif known.version > record.version:
                superseded.append(record.session_id)
        return superseded

    async def get(self, session_id: bytes) -> SessionRecord | None:
        """See `SessionStore.get`."""
        self._expire()
        kept = self._records.get(session_id)
        return None if kept is None else kept[0]

    async def advance(self, record: SessionRecord, *, before: int) -> bool:
        """See `SessionStore.advance`."""
        self._expire()
        kept = self._records.get(record.session_id)
        if kept is None or kept[0].version != before:
            return False
        self._keep(record)
        return True

    async def remove(self, records: Iterable[SessionRecord]) -> None:
        """See `SessionStore.remove`."""
        for record in records:
            kept = self._records.get(record.session_id)
            if kept is not None and kept[0].owner == record.owner:
                self._drop(record.session_id)

    def _keep(self, record: SessionRecord) -> None:
        self._drop(record.session_id)
        self._records[record.session_id] = (record, self._clock() + self._ttl)
        self._bytes += record.size
        while len(self._records) > self._max_sessions or self._bytes > self._max_bytes:
            self._drop(next(iter(self._records)))
            self.evicted += 1

    def _drop(self, session_id: bytes) -> None:
        kept = self._records.pop(session_id, None)
        if kept is not None:
            self._bytes -= kept[0].size

    def _expire(self) -> None:
        # Written last, kept longest: the oldest stand in front.
        now = self._clock()
        while self._records and next(iter(self._records.values()))[1] <= now:
            self._drop(next(iter(self._records)))
            self.expired += 1
