"""Ctrl-C and SIGTERM: the first asks politely, the second ends at once."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator

__all__ = ["polite_stop"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def polite_stop() -> Iterator[asyncio.Event]:
    """An event that the first signal sets. The second signal cancels the task that entered this block.

    Where the loop has no signal handlers (Windows), the first signal ends the program as usual.
    """
    loop, stop, task = asyncio.get_running_loop(), asyncio.Event(), asyncio.current_task()

    def on_signal() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    installed = []
    for number in SIGNALS:
        with contextlib.suppress(NotImplementedError, RuntimeError):
            loop.add_signal_handler(number, on_signal)
            installed.append(number)
    try:
        yield stop
    finally:
        for number in installed:
            loop.remove_signal_handler(number)
