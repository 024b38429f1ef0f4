"""A store in Redis, for servers that take over each other's sessions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from voicestream.store.record import SessionRecord, StoreError, decode_record, encode_record

__all__ = ["RedisStore", "RedisStoreStats"]

_T = TypeVar("_T")

BATCH_RECORDS: Final = 256
BATCH_BYTES: Final = 1 << 20
"""What goes to Redis in one piece: a batch is written piece by piece, so that little waits in memory a second time."""

FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 5.0
"""Seconds for which a Redis that failed is left alone: they double."""

MAX_CONNECTIONS: Final = 4

MAX_VALUE: Final = 1 << 18
"""Bytes of a value that can be a record."""

# What is kept under a key: a hash of v(ersion), o(wner) and d(ata). Whatever else is there is not ours and makes room.
_KEPT: Final = """
local kept = redis.pcall('HMGET', KEYS[1], 'v', 'o')
local version, owner = nil, nil
if kept.err then redis.call('DEL', KEYS[1]) else version, owner = tonumber(kept[1] or ''), kept[2] end
"""

_WRITE: Final = """
redis.call('HSET', KEYS[1], 'v', ARGV[1], 'o', ARGV[2], 'd', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
"""

PUT: Final = (
    _KEPT
    + """
local mine = tonumber(ARGV[1])
if version and (version > mine or (version == mine and owner ~= ARGV[2])) then
    return version > mine and 2 or 1
end
"""
    + _WRITE
    + "return 0"
)

ADVANCE: Final = _KEPT + "if version ~= tonumber(ARGV[5]) then return 0 end" + _WRITE + "return 1"

REMOVE: Final = _KEPT + "if version and owner == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0"


@dataclass(kw_only=True, slots=True)
class RedisStoreStats:
    """What became of the requests to Redis.

    Attributes:
        written: Records written.
        superseded: Records not written since another server has the session.
        failures: Requests that failed: no connection, no answer in time, out of memory, an answer that makes no sense.
        skipped: Requests not made, since Redis had failed shortly before.
        garbage: Values that were no records.
    """

    written: int = 0
    superseded: int = 0
    failures: int = 0
    skipped: int = 0
    garbage: int = 0


class RedisStore:
    """Keeps records in Redis. Servers that are given the same one, and the same keys, take over each other's sessions.

    Each request gets `timeout` seconds. After one that fails Redis is left alone for a while, 0.25 s at first, 5 s at most; requests
    fail at once meanwhile. No call waits for Redis: a server writes beside its calls, and what fails is written again.

    Redis sees the applications' contexts and metadata as they are. Whoever can write to it can take over sessions only with the
    servers' keys, but can end them; so it belongs into the servers' own network, with a password.

    Args:
        url: As redis-py takes it: ``redis://[[user]:password@]host[:port][/database]``, ``rediss://`` for TLS, ``unix://``.
        ttl: Seconds for which a record is kept after it was last written, 30 to 300. Not less than the servers'
            `session_lifetime_s`.
        prefix: Begins every key.
        timeout: Seconds for a request, more than 0 and at most 10.
        client: A ready ``redis.asyncio.Redis`` in place of `url`, that gives bytes.

    Attributes:
        stats: Counters.

    Raises:
        ImportError: redis-py is not installed: ``pip install voicestream[redis]``.
        ValueError: An argument is out of its range.
    """

    def __init__(
        self,
        url: str = "redis://localhost:6379/0",
        *,
        ttl: float = 300.0,
        prefix: str = "voicestream:session:",
        timeout: float = 1.0,
        client: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 30 <= ttl <= 300:
            raise ValueError(f"ttl must be 30 to 300, not {ttl}")
        if not 0 < timeout <= 10:
            raise ValueError(f"timeout must be more than 0 and at most 10, not {timeout}")
        self.stats = RedisStoreStats()
        self._ttl_ms = round(ttl * 1000)
        self._prefix = prefix.encode()
        self._timeout = timeout
        self._clock = clock
        self._pause = FIRST_PAUSE
        self._closed_until = float("-inf")
        self._redis = _client(url, timeout) if client is None else client
        self._put = self._redis.register_script(PUT)
        self._advance = self._redis.register_script(ADVANCE)
        self._remove = self._redis.register_script(REMOVE)

    async def put(self, records: Iterable[SessionRecord]) -> list[bytes]:
        """See `SessionStore.put`.

        Raises:
            StoreError: Redis did not take all of them. Those that it took are none the worse for coming again.
        """
        superseded: list[bytes] = []
        for batch in _batches(records):
            calls = [
                (self._put, record.session_id, (record.version, record.owner, encode_record(record), self._ttl_ms)) for record in batch
            ]
            for record, answer in zip(batch, await self._run(calls), strict=True):
                if answer == 0:
                    self.stats.written += 1
                elif answer == 2:
                    self.stats.superseded += 1
                    superseded.append(record.session_id)
        return superseded

    async def get(self, session_id: bytes) -> SessionRecord | None:
        """See `SessionStore.get`.

        Raises:
            StoreError: Redis did not answer.
        """
        owner, data = await self._guarded(lambda: self._fetch(session_id))
        if data is None:
            return None
        try:
            return decode_record(session_id, owner or b"", data)
        except (ValueError, TypeError):
            self.stats.garbage += 1
            return None

    async def advance(self, record: SessionRecord, *, before: int) -> bool:
        """See `SessionStore.advance`.

        Raises:
            StoreError: Redis did not answer; whether it did it is not known.
        """
        arguments = (record.version, record.owner, encode_record(record), self._ttl_ms, before)
        answers = await self._run([(self._advance, record.session_id, arguments)])
        return bool(answers[0] == 1)

    async def remove(self, records: Iterable[SessionRecord]) -> None:
        """See `SessionStore.remove`.

        Raises:
            StoreError: Redis did not answer.
        """
        for batch in _batches(records):
            await self._run([(self._remove, record.session_id, (record.owner,)) for record in batch])

    async def aclose(self) -> None:
        """Close the connections to Redis."""
        await self._redis.aclose()

    async def _fetch(self, session_id: bytes) -> tuple[bytes | None, bytes | None]:
        from redis.exceptions import ResponseError

        try:
            owner, data = await self._redis.hmget(self._key(session_id), "o", "d")
        except ResponseError as error:
            if not str(error).startswith("WRONGTYPE"):
                raise
            self.stats.garbage += 1
            return None, None
        if not (data is None or (isinstance(data, bytes) and len(data) <= MAX_VALUE)):
            self.stats.garbage += 1
            return None, None
        return owner, data

    async def _run(self, calls: list[tuple[Any, bytes, tuple[Any, ...]]]) -> list[Any]:
        async def run() -> list[Any]:
            async with self._redis.pipeline(transaction=False) as pipe:
                for script, session_id, arguments in calls:
                    await script(keys=[self._key(session_id)], args=arguments, client=pipe)
                return list(await pipe.execute())

        return await self._guarded(run)

    async def _guarded(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Do a request in its time, unless Redis failed just before."""
        now = self._clock()
        if now < self._closed_until:
            self.stats.skipped += 1
            raise StoreError("Redis failed a moment ago", self._closed_until - now)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await request()
        except Exception as error:
            # Whatever it is: a dead server, a full one, a strange one. None of it may reach a call.
            self.stats.failures += 1
            self._closed_until = self._clock() + self._pause
            pause, self._pause = self._pause, min(LONGEST_PAUSE, 2 * self._pause)
            raise StoreError(f"Redis failed: {type(error).__name__}: {error}"[:200], pause) from error
        self._pause = FIRST_PAUSE
        return answer

    def _key(self, session_id: bytes) -> bytes:
        return self._prefix + session_id.hex().encode()


def _client(url: str, timeout: float) -> Any:
    try:
        import redis.asyncio as library
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ImportError as error:
        raise ImportError("a store in Redis needs redis-py: pip install 'voicestream[redis]'") from error
    pool = library.BlockingConnectionPool.from_url(
        url,
        max_connections=MAX_CONNECTIONS,
        timeout=timeout,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        decode_responses=False,
    )
    return library.Redis.from_pool(pool)


def _batches(records: Iterable[SessionRecord]) -> Iterator[list[SessionRecord]]:
    batch: list[SessionRecord] = []
    size = 0
    for record in records:
        if batch and (len(batch) == BATCH_RECORDS or size + record.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += record.size
    if batch:
        yield batch
