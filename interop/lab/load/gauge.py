"""What a server process under load measures of itself: CPU, loop lag, frames, and whose code the time goes to."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from types import FrameType
from typing import Any

from voicestream.observe.lag import late_by
from voicestream.testing.measure import Samples

__all__ = ["Gauge", "Shares", "obey"]

SAMPLE_S = 0.002
"""CPU seconds between two samples of the profile."""

OWNERS = (
    ("libopus", ("/voicestream/audio/opus.py", "/av/", "/aiortc/codecs/")),
    ("aioquic", ("/aioquic/",)),
    ("voicestream", ("/voicestream/",)),
    ("aiortc", ("/aiortc/", "/aioice/", "/pylibsrtp/", "/pyee/")),
    ("application", ("/interop/lab/",)),
    ("event loop", ("/asyncio/", "/uvloop/", "/selectors.py")),
)
"""Whose a frame is by its file, first match. The innermost frame that has an owner counts."""


class Shares:
    """A sampling profile of the main thread: a signal every few milliseconds of CPU, which looks at the stack.

    A call into C, such as an encryption or the encoder, counts for the Python code that made it.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def start(self) -> None:
        """Begin to sample; only in the main thread."""
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)

    def stop(self) -> dict[str, float]:
        """The share of each owner, 0 to 1."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        total = sum(self.counts.values()) or 1
        return {owner: count / total for owner, count in sorted(self.counts.items(), key=lambda item: -item[1])}

    def _sample(self, number: int, frame: FrameType | None) -> None:
        owner = "other"
        while frame is not None:
            found = _owner(frame.f_code.co_filename)
            if found is not None:
                owner = found
                break
            frame = frame.f_back
        self.counts[owner] = self.counts.get(owner, 0) + 1


def _owner(filename: str, known: dict[str, str | None] = {}) -> str | None:  # noqa: B006 - it is to be kept
    if filename not in known:
        known[filename] = next((owner for owner, parts in OWNERS if any(part in filename for part in parts)), None)
    return known[filename]


class Gauge:
    """Between `start` and `stop`: CPU of the process, how late the loop is, how many frames came and went."""

    def __init__(self) -> None:
        self.frames_in = self.frames_out = 0
        self._lags = Samples()
        self._task: asyncio.Task[None] | None = None
        self._shares: Shares | None = None
        self._began = (0.0, 0.0, 0, 0)

    def start(self, *, profile: bool) -> None:
        """Begin; with `profile` the CPU figure is a few per cent too high."""
        self._task = asyncio.get_running_loop().create_task(self._watch())
        if profile:
            self._shares = Shares()
            self._shares.start()
        self._began = (time.process_time(), time.monotonic(), self.frames_in, self.frames_out)

    def stop(self) -> dict[str, Any]:
        """The figures."""
        cpu, wall, came, went = self._began
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
        shares = self._shares.stop() if self._shares else None
        if self._task is not None:
            self._task.cancel()
        return {
            "cpu_percent": 100 * cpu / wall,
            "frames_in_per_s": (self.frames_in - came) / wall,
            "frames_out_per_s": (self.frames_out - went) / wall,
            "lag_ms_p50": 1e3 * self._lags.median,
            "lag_ms_p99": 1e3 * self._lags.percentile(99),
            "shares": shares,
        }

    async def _watch(self) -> None:
        while True:
            self._lags.add(await late_by())


async def obey(gauge: Gauge) -> None:
    """Do as the words on standard input say, until "stop" has been answered with the figures; "profile" starts with samples."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print("ready", flush=True)
    while word := (await reader.readline()).decode().strip():
        if word == "stop":
            print(json.dumps(gauge.stop()), flush=True)
            return
        gauge.start(profile=word == "profile")
