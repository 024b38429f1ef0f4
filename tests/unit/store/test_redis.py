"""Redis as it may be: slow, full, dead, empty, or full of something else."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest

from voicestream.store import RedisStore, SessionRecord, StoreError, StoreWriter
from voicestream.testing.redis_server import RedisServer, has_redis

needs_redis = pytest.mark.skipif(not has_redis(), reason="no redis-server, or no redis-py")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def record(number: int, context: bytes = b"") -> SessionRecord:
    return SessionRecord(session_id=number.to_bytes(16, "big"), context=context)


@pytest.fixture
async def server() -> AsyncIterator[RedisServer]:
    async with RedisServer("--maxmemory", "8mb") as running:
        yield running


@needs_redis
async def test_a_record_expires_and_each_writing_gives_it_its_whole_time(server: RedisServer) -> None:
    store = RedisStore(server.url, ttl=30, timeout=10)
    await store.put([record(1)])
    redis = store._redis
    key = f"voicestream:session:{record(1).session_id.hex()}"
    assert 29000 < await redis.pttl(key) <= 30000
    await redis.pexpire(key, 1000)
    await store.put([record(1)])
    assert await redis.pttl(key) > 29000
    await redis.pexpire(key, 1)
    await asyncio.sleep(0.02)
    assert await store.get(record(1).session_id) is None
    assert not await store.advance(record(1), before=0)
    await store.aclose()


@needs_redis
async def test_a_redis_that_does_not_answer_costs_its_timeout_once_then_nothing_until_it_is_asked_again(server: RedisServer) -> None:
    clock = Clock()
    store = RedisStore(server.url, timeout=0.1, clock=clock)
    await store.put([record(1)])
    server.freeze()
    with pytest.raises(StoreError, match="Timeout"):
        await store.put([record(1)])
    for _ in range(100):
        with pytest.raises(StoreError, match="a moment ago") as caught:
            await store.get(record(1).session_id)
        assert 0 < caught.value.retry_after <= 0.25
    assert (store.stats.failures, store.stats.skipped) == (1, 100)
    server.thaw()
    clock.now += 0.3
    assert await store.get(record(1).session_id) == record(1)
    await store.aclose()


@needs_redis
async def test_pauses_double_up_to_five_seconds_and_begin_anew_after_an_answer(server: RedisServer) -> None:
    clock = Clock()
    store = RedisStore(server.url, timeout=10, clock=clock)
    await server.stop()
    pauses = []
    for _ in range(7):
        with pytest.raises(StoreError) as caught:
            await store.put([record(1)])
        pauses.append(caught.value.retry_after)
        clock.now += caught.value.retry_after
    assert pauses == [0.25, 0.5, 1, 2, 4, 5, 5]
    await server.start()
    await store.put([record(1)])
    await server.stop()
    with pytest.raises(StoreError) as caught:
        await store.put([record(1)])
    assert caught.value.retry_after == 0.25
    await store.aclose()


@needs_redis
async def test_a_full_redis_is_an_error_that_names_it_and_what_was_there_stays(server: RedisServer) -> None:
    clock = Clock()
    store = RedisStore(server.url, timeout=10, clock=clock)
    await store.put([record(1, b"first")])
    with pytest.raises(StoreError, match="OutOfMemory"):
        await store.put([record(number, bytes(65536)) for number in range(2, 200)])
    clock.now += 10
    assert await store.get(record(1).session_id) == record(1, b"first")
    await store.aclose()


@needs_redis
@pytest.mark.parametrize(
    "garbage",
    [
        ("SET", "text"),
        ("RPUSH", "one", "two"),
        ("HSET", "d", "no record", "v", "not a number", "o", "x"),
        ("HSET", "v", "1"),
        ("HSET", "d", "\x01" + "\xff" * 40),
    ],
)
async def test_a_value_that_is_no_record_is_none_and_is_written_over(server: RedisServer, garbage: tuple[str, ...]) -> None:
    store = RedisStore(server.url, timeout=10)
    command, *rest = garbage
    await store._redis.execute_command(command, f"voicestream:session:{record(1).session_id.hex()}", *rest)
    assert await store.get(record(1).session_id) is None
    wanted = SessionRecord(session_id=record(1).session_id, generation=2)
    await store.put([wanted])
    assert await store.get(record(1).session_id) == wanted
    await store.aclose()


async def test_a_server_that_speaks_something_else_is_a_store_error() -> None:
    pytest.importorskip("redis")

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as liar:
        port = liar.sockets[0].getsockname()[1]
        store = RedisStore(f"redis://127.0.0.1:{port}", timeout=0.5)
        with pytest.raises(StoreError):
            await store.put([record(1)])
        await store.aclose()


@needs_redis
async def test_a_large_batch_goes_in_pieces_and_what_failed_comes_with_the_next_one_also_into_an_empty_redis(server: RedisServer) -> None:
    clock = Clock()
    store = RedisStore(server.url, timeout=10, clock=clock)
    writer = StoreWriter(store)
    for number in range(1000):
        writer.note(record(number, b"x" * 100))
    await writer.flush()
    assert (writer.batches, store.stats.written) == (1, 1000)
    await server.stop()
    writer.note(record(1, b"changed"))
    writer.forget(record(2).session_id)
    for _ in range(3):
        await writer.flush()
    assert writer.failures == 3
    assert (store.stats.failures, store.stats.skipped) == (1, 2)
    await server.start()
    clock.now += 10
    await writer.flush()
    assert await store.get(record(1).session_id) == record(1, b"changed")
    assert await store.get(record(2).session_id) is None
    assert await store.get(record(999).session_id) == record(999, b"x" * 100)
    await store.aclose()


@pytest.mark.parametrize("options", [{"ttl": 29}, {"ttl": 301}, {"timeout": 0}, {"timeout": 11}])
def test_bounds_of_the_arguments(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        RedisStore(**options)


def test_without_redis_py_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(ImportError, match=r"voicestream\[redis\]"):
        RedisStore()
