"""The store in memory: what is kept, for how long and how much. What it shares with other stores is in `test_record_in_stores`."""

from __future__ import annotations

import pytest

from voicestream.store import MAX_CONTEXT, MemoryStore, SessionRecord


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def record(number: int, generation: int = 0, context: bytes = b"") -> SessionRecord:
    return SessionRecord(session_id=number.to_bytes(16, "big"), generation=generation, context=context)


async def test_a_record_is_kept_for_its_time_from_the_last_writing_on() -> None:
    clock = Clock()
    store = MemoryStore(ttl=30, clock=clock)
    await store.put([record(1), record(2)])
    clock.now += 20
    await store.put([record(1, context=b"x")])
    clock.now += 10
    assert await store.get(record(2).session_id) is None
    assert await store.get(record(1).session_id) == record(1, context=b"x")
    assert (len(store), store.expired) == (1, 1)
    clock.now += 20
    assert len(store) == 0
    assert store.size == 0


async def test_number_and_bytes_are_bounded_and_the_oldest_goes() -> None:
    store = MemoryStore(max_sessions=3)
    for number in range(5):
        await store.put([record(number)])
    assert [await store.get(record(number).session_id) is not None for number in range(5)] == [False, False, True, True, True]
    assert store.evicted == 2
    small = MemoryStore(max_bytes=131072)
    for number in range(3):
        await small.put([record(number, context=bytes(MAX_CONTEXT))])
    assert len(small) == 1
    assert small.size <= 131072


async def test_what_is_removed_is_gone_and_what_was_not_there_does_no_harm() -> None:
    store = MemoryStore()
    await store.put([record(1), record(2)])
    await store.remove([record(1), record(9)])
    assert await store.get(record(1).session_id) is None
    assert len(store) == 1


@pytest.mark.parametrize("options", [{"ttl": 29}, {"ttl": 301}, {"max_sessions": 0}, {"max_bytes": 100}])
def test_bounds_of_the_arguments(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        MemoryStore(**options)
