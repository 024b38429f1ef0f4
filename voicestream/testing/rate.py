"""The bottleneck of an emulated link: a rate (constant, in steps, or a recorded trace) behind a drop-tail queue."""

from __future__ import annotations

import bisect
import math
from collections import deque
from collections.abc import Sequence

__all__ = ["Bottleneck", "StepServer", "TraceServer"]

TRACE_SLOT_BYTES = 1500
"""Bytes of one delivery opportunity of a mahimahi trace."""


class StepServer:
    """Serves bits at a rate that changes in steps; the last one holds for ever.

    Args:
        steps: (second, kilobits per second) pairs in order of time. A rate of 0 stalls the link.
    """

    __slots__ = ("_kbps", "_starts")

    def __init__(self, steps: Sequence[tuple[float, float]]) -> None:
        self._starts = [start for start, _ in steps]
        self._kbps = [kbps for _, kbps in steps]

    def departure(self, begin: float, size_bytes: int) -> float | None:
        """When the last bit leaves if the first may leave at `begin`; None if it never does."""
        bits = size_bytes * 8.0
        step = max(0, bisect.bisect_right(self._starts, begin) - 1)
        while True:
            rate_bps = self._kbps[step] * 1e3
            end = self._starts[step + 1] if step + 1 < len(self._starts) else math.inf
            if rate_bps and begin + bits / rate_bps <= end:
                return begin + bits / rate_bps
            if end == math.inf:
                return None
            bits -= rate_bps * max(0.0, end - begin)
            begin = max(begin, end)
            step += 1


class TraceServer:
    """Serves 1500 bytes at each of the recorded milliseconds (a mahimahi trace), from the beginning again when it ends.

    What a packet leaves of an opportunity goes to the packets that already wait behind it, and is lost otherwise.
    """

    __slots__ = ("_left", "_period_ms", "_slot", "_slots_ms")

    def __init__(self, slots_ms: Sequence[int]) -> None:
        self._slots_ms = sorted(slots_ms)
        self._period_ms = max(self._slots_ms[-1], 1)
        self._slot = 0
        self._left = TRACE_SLOT_BYTES

    def _slot_time(self) -> float:
        turn, index = divmod(self._slot, len(self._slots_ms))
        return (turn * self._period_ms + self._slots_ms[index]) / 1e3

    def _next_slot(self) -> None:
        self._slot += 1
        self._left = TRACE_SLOT_BYTES

    def departure(self, begin: float, size_bytes: int) -> float | None:
        """When the last byte leaves if the first may leave at `begin`."""
        at = self._slot_time()
        while at < begin:
            self._next_slot()
            at = self._slot_time()
        while size_bytes > self._left:
            size_bytes -= self._left
            self._next_slot()
        at = self._slot_time()
        self._left -= size_bytes
        if not self._left:
            self._next_slot()
        return at


class Bottleneck:
    """One rate limit with its queue.

    Args:
        server: What serves the queue.
        queue_s: Bound of the queue as time that a packet may spend in it, seconds; used unless `queue_bytes` is given.
        queue_bytes: Bound of the queue in bytes, the packet in service included.
    """

    __slots__ = ("_bytes", "_queue", "_queue_bytes", "_queue_s", "_server", "free_at")

    def __init__(self, server: StepServer | TraceServer, *, queue_s: float, queue_bytes: int | None) -> None:
        self._server = server
        self._queue_s = queue_s
        self._queue_bytes = queue_bytes
        self._queue: deque[tuple[float, int]] = deque()
        self._bytes = 0
        self.free_at = 0.0
        """When the last packet admitted so far has left, in seconds."""

    def backlog_bytes(self, now: float) -> int:
        """Bytes of packets that have not left at `now`."""
        queue = self._queue
        while queue and queue[0][0] <= now:
            self._bytes -= queue.popleft()[1]
        return self._bytes

    def offer(self, now: float, size_bytes: int) -> tuple[float, float] | None:
        """A packet arrives.

        Returns:
            (when its last bit leaves, seconds that it waits behind earlier packets), or None if the queue drops it.
        """
        backlog = self.backlog_bytes(now)
        begin = max(now, self.free_at)
        if self._queue_bytes is not None and backlog + size_bytes > self._queue_bytes:
            return None
        by_time = self._queue_bytes is None and bool(self._queue)
        if isinstance(self._server, TraceServer):
            # A trace's opportunities are used up when looked at, so the bound is tested on the packet in front.
            if by_time and self._queue[-1][0] - now > self._queue_s:
                return None
            out = self._server.departure(begin, size_bytes)
        else:
            out = self._server.departure(begin, size_bytes)
            if out is not None and by_time and out - now > self._queue_s:
                return None
        if out is None:
            return None
        self.free_at = out
        self._queue.append((out, size_bytes))
        self._bytes += size_bytes
        return out, begin - now
