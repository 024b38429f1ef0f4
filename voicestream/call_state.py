"""What the parts of a call wait for: a broadcast that wakes them, and the call's end."""

from __future__ import annotations

import asyncio
from typing import Final

from voicestream.codepoints import ErrorCode
from voicestream.errors import CallClosed, CallClosedError, CallClosedOK
from voicestream.events import Closed

__all__ = ["Ending", "Signal", "closed_error"]

GOOD_ENDINGS: Final = frozenset({ErrorCode.NO_ERROR, ErrorCode.GOING_AWAY})


def closed_error(event: Closed) -> CallClosed:
    """The exception that a closed session means to whoever still waits for something of the call."""
    kind = CallClosedOK if event.code in GOOD_ENDINGS else CallClosedError
    return kind(event.code, event.reason, remote=event.remote, may_resume=event.may_resume)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Signal:
    """Wakes all who wait at the moment. Costs nothing while nobody waits. Belongs to the loop's thread."""

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def awaited(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiters)

    def notify(self) -> None:
        """Wake everybody."""
        for future in self._waiters:
            _resolve(future)
        self._waiters.clear()

    async def wait(self, timeout: float | None = None) -> None:
        """Return at the next `notify`, or after `timeout` seconds. Waking up promises nothing: look again.

        A cancelled wait leaves nothing behind.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        timer = None if timeout is None else loop.call_later(timeout, _resolve, future)
        self._waiters.add(future)
        try:
            await future
        finally:
            self._waiters.discard(future)
            if timer is not None:
                timer.cancel()


class Ending:
    """How a call ended, once it has. The first `Closed` counts, later ones are its echo."""

    __slots__ = ("_event", "_signal")

    def __init__(self) -> None:
        self._event: Closed | None = None
        self._signal = Signal()

    @property
    def closed(self) -> bool:
        """Whether the call is over."""
        return self._event is not None

    @property
    def event(self) -> Closed | None:
        """The session's last word, None while the call lives."""
        return self._event

    def set(self, event: Closed) -> None:
        """Note the end and wake those who wait for it."""
        if self._event is None:
            self._event = event
            self._signal.notify()

    def check(self) -> None:
        """Raise `CallClosedOK` or `CallClosedError` when the call is over."""
        if self._event is not None:
            raise closed_error(self._event)

    def check_error(self) -> None:
        """Raise `CallClosedError` when the call ended with an error; a good end is left to the caller."""
        if self._event is not None and self._event.code not in GOOD_ENDINGS:
            raise closed_error(self._event)

    async def wait_for(self, seconds: float) -> bool:
        """Wait for the end of the call, but no longer than that; returns whether it has ended."""
        if self._event is None:
            await self._signal.wait(seconds)
        return self._event is not None

    async def wait(self) -> None:
        """Wait for the end of the call; never raises for the way it ended."""
        while self._event is None:
            await self._signal.wait()
