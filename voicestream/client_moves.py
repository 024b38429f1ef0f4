"""Changes of network while a client dials for the first time."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["Moves", "check_address"]

T = TypeVar("T")


def check_address(local_address: str | None) -> None:
    """See that this is an address, if it is anything.

    Raises:
        ValueError: It is not.
    """
    if local_address is not None:
        try:
            ipaddress.ip_address(local_address)
        except ValueError:
            raise ValueError(f"local_address must be an IPv4 or IPv6 address of this machine, not {local_address!r}") from None


class Moves:
    """Tells a dial that the network has changed. Made anywhere; used by one dial at a time."""

    __slots__ = ("_changed", "_loop")

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed: asyncio.Future[None] | None = None

    def network_changed(self) -> None:
        """Say so, from any thread; nothing where nobody dials."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(self._note)

    def _note(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def _listen(self) -> asyncio.Future[None]:
        self._loop = asyncio.get_running_loop()
        self._changed = self._loop.create_future()
        return self._changed

    async def until(self, attempt: Callable[[], Coroutine[Any, Any, T]], leave: Callable[[T], None]) -> T:
        """Run an attempt, and begin anew at once when the network changes meanwhile, or has changed as it fails.

        Args:
            attempt: Makes something.
            leave: Ends what was made and is not wanted any more.
        """
        while True:
            changed = self._listen()
            task = asyncio.ensure_future(attempt())
            try:
                await asyncio.wait((task, changed), return_when=asyncio.FIRST_COMPLETED)
                if task.done() and (task.exception() is None or not changed.done()):
                    return task.result()
                await self._end(task, leave)
            except asyncio.CancelledError:
                await self._end(task, leave)
                raise
            finally:
                self._loop = None
                del task  # its error, which may be on its way, has this frame in its traceback

    @staticmethod
    async def _end(task: asyncio.Task[T], leave: Callable[[T], None]) -> None:
        task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled() and task.exception() is None:
            leave(task.result())

    async def while_waiting(self, answer: asyncio.Future[T], move: Callable[[], Awaitable[object]]) -> T:
        """Wait for an answer, and call `move` whenever the network changes meanwhile."""
        while True:
            changed = self._listen()
            try:
                await asyncio.wait((answer, changed), return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._loop = None
            if answer.done():
                return answer.result()
            with contextlib.suppress(OSError):
                await move()
