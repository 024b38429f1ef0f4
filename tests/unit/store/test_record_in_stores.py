"""What every store has to do: the one in memory, and the one in Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from voicestream.store import MAX_CONTEXT, MemoryStore, RedisStore, SessionRecord, SessionStore
from voicestream.testing.redis_server import RedisServer, has_redis


@pytest.fixture(params=["memory", "redis"])
async def stores(request: pytest.FixtureRequest) -> AsyncIterator[tuple[SessionStore, SessionStore]]:
    """A store as two servers see it."""
    if request.param == "memory":
        store = MemoryStore()
        yield store, store
        return
    if not has_redis():
        pytest.skip("no redis-server, or no redis-py")
    async with RedisServer() as server:
        one, other = RedisStore(server.url, timeout=10), RedisStore(server.url, timeout=10)
        yield one, other
        await one.aclose()
        await other.aclose()


def record(number: int, generation: int = 0, context: bytes = b"", owner: bytes = b"a") -> SessionRecord:
    return SessionRecord(session_id=number.to_bytes(16, "big"), generation=generation, context=context, owner=owner)


async def test_what_one_server_writes_the_other_reads_whole(stores: tuple[SessionStore, SessionStore]) -> None:
    one, other = stores
    whole = SessionRecord(
        session_id=bytes(range(16)),
        identity=b"\0\xff" * 16,
        generation=7,
        confirmed=6,
        owner=b"\r\n\0 owner",
        context=bytes(range(256)) * (MAX_CONTEXT // 256),
        processed_pts=1 << 61,
        state=b"\x80 state",
    )
    assert await one.put([whole, record(2)]) == []
    assert await other.get(whole.session_id) == whole
    assert await other.get(record(2).session_id) == record(2)
    assert await other.get(bytes(16)) is None
    assert await one.put([]) == []


async def test_a_lower_version_changes_nothing_and_its_writer_learns_that_it_is_superseded(
    stores: tuple[SessionStore, SessionStore],
) -> None:
    one, other = stores
    await other.put([record(1, 3, owner=b"b"), record(2, 1)])
    assert await one.put([record(1, 2, b"old"), record(2, 1, b"new")]) == [record(1).session_id]
    assert await one.get(record(1).session_id) == record(1, 3, owner=b"b")
    assert await one.get(record(2).session_id) == record(2, 1, b"new")


async def test_of_two_owners_with_one_version_the_first_stays_and_the_other_is_not_told_that_it_is_over(
    stores: tuple[SessionStore, SessionStore],
) -> None:
    """Both have answered the same request; which answer the client got, its confirmation tells."""
    one, other = stores
    await one.put([record(1, 2, b"one", b"a")])
    assert await other.put([record(1, 2, b"other", b"b")]) == []
    assert await other.get(record(1).session_id) == record(1, 2, b"one", b"a")
    confirmed = replace(record(1, 2, b"other", b"b"), confirmed=2)
    assert await other.put([confirmed]) == []
    assert await one.get(record(1).session_id) == confirmed
    assert await one.put([record(1, 2, b"one", b"a")]) == [record(1).session_id]


async def test_of_servers_that_race_for_a_session_one_gets_it(stores: tuple[SessionStore, SessionStore]) -> None:  # VS-11.4-2
    one, other = stores
    await one.put([record(1, 3)])
    claims = [record(1, 4, owner=bytes([number])) for number in range(20)]
    taken = await asyncio.gather(*((one, other)[number % 2].advance(claim, before=3) for number, claim in enumerate(claims)))
    assert sum(taken) == 1
    assert await one.get(record(1).session_id) == claims[taken.index(True)]
    assert not await one.advance(record(9, 1), before=0)
    assert await one.get(record(9).session_id) is None


async def test_only_the_owner_removes_a_session(stores: tuple[SessionStore, SessionStore]) -> None:
    one, other = stores
    await one.put([record(1), record(2)])
    await other.remove([replace(record(1), owner=b"b"), record(3)])
    assert await one.get(record(1).session_id) == record(1)
    await other.remove([record(1)])
    assert await one.get(record(1).session_id) is None
    assert await one.get(record(2).session_id) == record(2)
