"""Ctrl-C and SIGTERM at a server, where they are nobody else's."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
from collections.abc import Coroutine, Iterator
from typing import Any

__all__ = ["either", "stop_signals"]


@contextlib.contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """An event that each SIGINT or SIGTERM sets.

    Not where the application has a handler of its own, outside the main thread, or where the loop cannot do it (Windows).
    """
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if _is_default(handler):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, stop.set)
                before[number] = handler
    try:
        yield stop
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _is_default(handler: object) -> bool:
    if isinstance(handler, functools.partial):
        # asyncio.run has its own SIGINT, which cancels the main task and raises KeyboardInterrupt in the end.
        return getattr(handler.func, "__module__", "") == "asyncio.runners"
    return handler in (signal.SIG_DFL, signal.default_int_handler)


async def either(first: Coroutine[Any, Any, Any], second: Coroutine[Any, Any, Any]) -> None:
    """Wait for what is done first; the other is cancelled, and waited for. What the first one raises is raised."""
    tasks = [asyncio.ensure_future(first), asyncio.ensure_future(second)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if not task.cancelled():
            task.result()
