"""Batches: the newest state of each session, once, and again when the store failed."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from voicestream.store import MemoryStore, SessionRecord, StoreWriter


class Failing(MemoryStore):
    """Fails as often as it is told to."""

    failures = 0
    calls = 0

    async def put(self, records: Iterable[SessionRecord]) -> list[bytes]:
        self.calls += 1
        if self.failures:
            self.failures -= 1
            raise ConnectionError("not now")
        return await super().put(records)


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


async def test_what_has_not_changed_is_not_written_but_when_asked() -> None:
    store = Failing()
    writer = StoreWriter(store)
    for again in (False, False, True):
        writer.note(record(1), again=again)
        await writer.flush()
    assert store.calls == 2


async def test_a_session_that_another_server_has_taken_is_told_and_left_to_it() -> None:
    store = Failing()
    lost: list[bytes] = []
    writer = StoreWriter(store, on_superseded=lost.append)
    mine = SessionRecord(session_id=bytes(16), owner=b"a")
    writer.note(mine)
    await writer.flush()
    theirs = SessionRecord(session_id=bytes(16), owner=b"b", generation=1)
    assert await store.advance(theirs, before=0)
    writer.note(mine, again=True)
    await writer.flush()
    assert lost == [bytes(16)]
    writer.forget(bytes(16))
    await writer.flush()
    assert await store.get(bytes(16)) == theirs


async def test_a_store_that_fails_is_complained_of_once(caplog: pytest.LogCaptureFixture) -> None:
    store = Failing()
    store.failures = 5
    writer = StoreWriter(store)
    writer.note(record(1))
    for _ in range(5):
        await writer.flush()
    assert writer.failures == 5
    assert len(caplog.records) == 1
