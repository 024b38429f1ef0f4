"""What a process uses while it runs: memory, tasks, descriptors, and how late its loop is."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from voicestream.observe.lag import late_by

__all__ = ["KEPT", "Gauge", "left_over", "slope"]

KEPT: Final = ("Call", "CallParts", "Connection", "ClientSession", "ServerSession", "Reception", "CallLink", "Playout", "Player", "Capture")
"""Classes of which none may be left when all calls are over."""


def rss_bytes() -> int:
    """Resident memory of this process; the most so far where the system does not tell the present."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def descriptors() -> int:
    """Open file descriptors; 0 where the system does not tell."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        with contextlib.suppress(OSError):
            return len(os.listdir(folder)) - 1
    return 0


def left_over() -> dict[str, int]:
    """Objects of the classes in `KEPT` that this process still holds, garbage collected before."""
    gc.collect()
    found: Counter[str] = Counter()
    for thing in gc.get_objects():
        kind = type(thing)
        if kind.__name__ in KEPT and kind.__module__.startswith("voicestream."):
            found[kind.__name__] += 1
    return dict(found)


def slope(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Slope of the straight line through the points by least squares, and its standard error; zeros for less than three."""
    count = len(points)
    if count < 3:
        return 0.0, 0.0
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if not spread:
        return 0.0, 0.0
    rise = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    rest = sum((y - mean_y - rise * (x - mean_x)) ** 2 for x, y in points)
    return rise, (rest / (count - 2) / spread) ** 0.5


class Gauge:
    """Watches the process it is in, from a task of the running loop."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        self._task = asyncio.get_running_loop().create_task(self._watch(), name="soak gauge")

    def look(self, **more: Any) -> dict[str, Any]:
        """How things stand; the lags since the last look are in it."""
        lags, self.lags = self.lags, []
        return {
            "at": time.monotonic(),
            "rss": rss_bytes(),
            "blocks": sys.getallocatedblocks(),
            "tasks": len(asyncio.all_tasks()),
            "descriptors": descriptors(),
            "lags": [round(lag, 4) for lag in lags],
            **more,
        }

    async def close(self) -> None:
        """End watching."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _watch(self) -> None:
        while True:
            self.lags.append(await late_by())
