"""Batches: the newest state of each session, once, and again when the store failed."""

from __future__ import annotations

from collections.abc import Iterable

from voicestream.store import MemoryStore, SessionRecord, StoreWriter


class Failing(MemoryStore):
    """Fails as often as it is told to."""

    failures = 0
    calls = 0

    async def put(self, records: Iterable[SessionRecord]) -> None:
        self.calls += 1
        if self.failures:
            self.failures -= 1
            raise ConnectionError("not now")
        await super().put(records)


def record(number: int, processed_pts: int = 0) -> SessionRecord:
    return SessionRecord(session_id=number.to_bytes(16, "big"), processed_pts=processed_pts)


async def test_a_batch_has_the_newest_state_of_each_session() -> None:
    store = Failing()
    writer = StoreWriter(store)
    for processed in range(50):
        writer.note(record(1, processed))
        writer.note(record(2))
    await writer.flush()
    await writer.flush()
    assert store.calls == writer.batches == 1
    assert await store.get(record(1).session_id) == record(1, 49)
    assert len(store) == 2


async def test_what_a_store_did_not_take_comes_with_the_next_batch() -> None:
    store = Failing()
    writer = StoreWriter(store)
    writer.note(record(1))
    writer.note(record(2))
    await writer.flush()
    store.failures = 2
    writer.note(record(1, 5))
    writer.forget(record(2).session_id)
    await writer.flush()
    await writer.flush()
    assert writer.failures == 2
    assert await store.get(record(1).session_id) == record(1)
    await writer.flush()
    assert await store.get(record(1).session_id) == record(1, 5)
    assert await store.get(record(2).session_id) is None


async def test_a_session_that_is_over_is_not_written_again() -> None:
    store = Failing()
    writer = StoreWriter(store)
    writer.note(record(1))
    writer.forget(record(1).session_id)
    writer.forget(record(1).session_id)
    await writer.flush()
    assert len(store) == 0
