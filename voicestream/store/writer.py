"""Writes to a store in batches, so that no call ever waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
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

    What waits is the newest state of each living session, once, and the ids of at most 10000 that are over.

    Args:
        store: Where to.
        on_superseded: Called with the id of a session that another server has taken over.
        before_batch: Called before each batch, to `note` what has changed without a word.

    Attributes:
        batches: Batches written.
        failures: Batches that the store did not take.
        unwritten: Ended sessions that were left in the store for want of room here.
    """

    def __init__(
        self,
        store: SessionStore,
        *,
        on_superseded: Callable[[bytes], None] = lambda session_id: None,
        before_batch: Callable[[], None] = lambda: None,
    ) -> None:
        self.batches = 0
        self.failures = 0
        self.unwritten = 0
        self._store = store
        self._on_superseded = on_superseded
        self._before_batch = before_batch
        self._living: dict[bytes, SessionRecord] = {}
        self._changed: dict[bytes, None] = {}
        self._over: dict[bytes, SessionRecord] = {}
        self._refreshed_at = 0.0
        self._is_failing = False
        self._turn = asyncio.Lock()

    def note(self, record: SessionRecord, *, again: bool = False) -> None:
        """This is how a session stands now. `again`: write it also if nothing has changed."""
        if not again and self._living.get(record.session_id) == record:
            return
        self._living[record.session_id] = record
        self._changed[record.session_id] = None

    def forget(self, session_id: bytes, *, keep: bool = False) -> None:
        """A session is over; `keep` leaves its record to the server that has it now, or will."""
        record = self._living.pop(session_id, None)
        if record is not None:
            self._changed.pop(session_id, None)
            if keep:
                return
            if len(self._over) < MAX_REMOVALS:
                self._over[session_id] = record
            else:
                self.unwritten += 1

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
        async with self._turn:
            self._before_batch()
            changed, self._changed = self._changed, {}
            over, self._over = self._over, {}
            if changed or over:
                await self._write(changed, over)

    async def _write(self, changed: dict[bytes, None], over: dict[bytes, SessionRecord]) -> None:
        try:
            superseded = await self._store.put([self._living[session_id] for session_id in changed if session_id in self._living])
            await self._store.remove(list(over.values()))
        except Exception as error:
            self.failures += 1
            if not self._is_failing:
                logger.warning("the session store took no batch; calls go on, but could not be resumed elsewhere: %s", error)
            self._is_failing = True
            # All of it: a store that comes back may have lost what it had.
            self._changed = dict.fromkeys(self._living)
            self._over = dict(list({**over, **self._over}.items())[:MAX_REMOVALS])
            return
        self.batches += 1
        if self._is_failing:
            logger.info("the session store takes batches again")
        self._is_failing = False
        for session_id in superseded or ():
            self._on_superseded(session_id)
