"""Writes to a store in batches, so that no call ever waits for it."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from voicestream.store.record import SessionRecord, SessionStore

__all__ = ["INTERVAL", "StoreWriter"]

logger = logging.getLogger("voicestream.store")

INTERVAL: Final = 0.25
"""Seconds between two batches."""

REFRESH: Final = 10.0
"""Seconds after which a record that has not changed is written again, so that it does not expire under a living session."""

MAX_REMOVALS: Final = 10000
"""Ended sessions that wait to be removed; beyond that they are left to expire."""


class StoreWriter:
    """Collects what changes and writes it every 250 ms. A store that fails is tried again with the next batch.

    Args:
        store: Where to.

    Attributes:
        batches: Batches written.
        failures: Batches that the store did not take.
    """

    def __init__(self, store: SessionStore) -> None:
        self.batches = 0
        self.failures = 0
        self._store = store
        self._living: dict[bytes, SessionRecord] = {}
        self._changed: dict[bytes, None] = {}
        self._over: dict[bytes, None] = {}
        self._refreshed_at = 0.0

    def note(self, record: SessionRecord) -> None:
        """This is how a session stands now."""
        self._living[record.session_id] = record
        self._changed[record.session_id] = None

    def forget(self, session_id: bytes) -> None:
        """A session is over."""
        if self._living.pop(session_id, None) is not None:
            self._changed.pop(session_id, None)
            if len(self._over) < MAX_REMOVALS:
                self._over[session_id] = None

    async def run(self) -> None:
        """Write until cancelled."""
        loop = asyncio.get_running_loop()
        self._refreshed_at = loop.time()
        while True:
            await asyncio.sleep(INTERVAL)
            if loop.time() - self._refreshed_at >= REFRESH:
                self._refreshed_at = loop.time()
                self._changed = dict.fromkeys(self._living)
            await self.flush()

    async def flush(self) -> None:
        """Write what there is to write now."""
        changed, self._changed = self._changed, {}
        over, self._over = self._over, {}
        if not changed and not over:
            return
        try:
            await self._store.put([self._living[session_id] for session_id in changed if session_id in self._living])
            await self._store.remove(list(over))
            self.batches += 1
        except Exception:
            self.failures += 1
            logger.warning("the session store took no batch of %d records", len(changed), exc_info=True)
            self._changed = {**changed, **self._changed}
            self._over = {**over, **self._over}
