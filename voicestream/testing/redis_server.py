"""A redis-server of one's own, for tests and measurements."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
from types import TracebackType

__all__ = ["RedisServer", "has_redis"]

READY_WITHIN = 10.0


def has_redis() -> bool:
    """Whether there is a redis-server to start, and redis-py to speak with it."""
    try:
        import redis.asyncio  # noqa: F401
    except ImportError:
        return False
    return shutil.which("redis-server") is not None


class RedisServer:
    """Runs redis-server on a free port of this machine, with nothing on disk; as an asynchronous context manager.

    Args:
        options: More of its command line, such as ``("--maxmemory", "2mb")``.
    """

    def __init__(self, *options: str) -> None:
        self._options = options
        self._process: asyncio.subprocess.Process | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]

    @property
    def url(self) -> str:
        """Where it is."""
        return f"redis://127.0.0.1:{self.port}/0"

    async def __aenter__(self) -> RedisServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start it, empty, on the same port as before."""
        binary = shutil.which("redis-server")
        if binary is None:
            raise FileNotFoundError("there is no redis-server")
        self._process = await asyncio.create_subprocess_exec(
            binary, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", *self._options,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        async with asyncio.timeout(READY_WITHIN):
            while not await self._answers():
                await asyncio.sleep(0.02)

    async def stop(self) -> None:
        """End it, with all that it has."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            await process.wait()

    def freeze(self) -> None:
        """Let it answer no more, with its connections open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    async def _answers(self) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.write(b"PING\r\n")
        answer = await reader.readline()
        writer.close()
        await writer.wait_closed()
        return answer.startswith(b"+PONG")
