"""A simulated microphone and loudspeaker, for measuring voice systems in real time. Needs numpy, soundfile, soxr.

`Microphone` paces speech by absolute deadlines: the frame of [t, t + 20 ms) is handed over at t + 20 ms, as a capture device does.
`Speaker` is a thread whose clock plays 20 ms a tick, in one of two ways:

push  The system calls `push`; the card's FIFO is the playout buffer. It starts with `prebuffer_ms` of audio and is unbounded unless
      `max_ms` is set: then the oldest goes. It neither stretches nor conceals. A tick that finds too little plays what there is and
      silence after it (an underflow).
pull  `source` is the system's own playout buffer: each tick calls it with the number of samples wanted; it returns int16 samples, or
      (samples, how many of them it made up). Fewer than asked for is an underflow. It runs in the card's thread and must not wait.

What was played goes to a WAV with a JSON file beside it. All times in it are time.time() seconds: both hosts share one clock.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

__all__ = ["Meter", "Microphone", "Speaker", "load_speech", "write_json"]

Pcm = npt.NDArray[np.int16]
TICK_MS = 20


def load_speech(path: str, rate: int, seconds: float | None = None) -> Pcm:
    """Mono samples of an audio file at `rate` Hz, cut to `seconds`."""
    data, own_rate = soundfile.read(path, dtype="float32", always_2d=True)
    mono = data.mean(axis=1)
    if own_rate != rate:
        mono = soxr.resample(mono, own_rate, rate)
    if seconds:
        mono = mono[: int(seconds * rate)]
    return (np.clip(mono, -1, 1) * 32767).astype(np.int16)


def write_json(path: str, value: Any) -> None:
    """Write a JSON file in one step."""
    with open(path + ".tmp", "w") as file:
        json.dump(value, file, indent=1)
    os.replace(path + ".tmp", path)


class Meter:
    """CPU of this process, all threads, between `start` and `report`: imports and set-up do not count."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Count from here."""
        self._cpu, self._wall = _cpu_seconds(), time.time()

    def report(self) -> dict[str, float]:
        """CPU seconds, wall seconds and per cent of one core."""
        cpu, wall = _cpu_seconds() - self._cpu, time.time() - self._wall
        return {"cpu_s": round(cpu, 3), "wall_s": round(wall, 3), "cpu_percent": round(100 * cpu / max(wall, 1e-9), 2)}


def _cpu_seconds() -> float:
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


class Microphone:
    """`async for frame in Microphone(samples, rate)` gives frames in real time.

    Args:
        samples: What is said.
        rate: Its sample rate.
        frame_ms: 10 or 20.

    Attributes:
        start_wall: time.time() at which the first sample was spoken.
    """

    def __init__(self, samples: Pcm, rate: int, frame_ms: int = 20) -> None:
        self.start_wall: float | None = None
        self._samples, self._rate, self._frame_ms = samples, rate, frame_ms
        self._frame = rate * frame_ms // 1000
        self._count = len(samples) // self._frame

    async def __aiter__(self) -> AsyncIterator[Pcm]:
        self.start_wall, origin = time.time(), time.monotonic()
        for index in range(self._count):
            wait = origin + (index + 1) * self._frame_ms / 1e3 - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            yield self._samples[index * self._frame : (index + 1) * self._frame]

    def save(self, path: str, **more: Any) -> None:
        """Write the JSON file of the speaking side."""
        write_json(path, {"capture_start": self.start_wall, "rate": self._rate, "seconds": self._count * self._frame_ms / 1e3, **more})


class _Fifo:
    """Samples pushed from any thread."""

    def __init__(self, limit: int) -> None:
        self.held = self.received = self.dropped = 0
        self._limit = limit
        self._parts: list[Pcm] = []
        self._lock = threading.Lock()

    def push(self, samples: Pcm) -> int:
        """Take samples; how many are held then."""
        with self._lock:
            self._parts.append(samples)
            self.held += len(samples)
            self.received += len(samples)
            if self._limit and self.held > self._limit:
                self.dropped += len(self._take(self.held - self._limit))
            return self.held

    def pop(self, count: int) -> Pcm:
        """Up to `count` samples."""
        with self._lock:
            return self._take(count)

    def _take(self, count: int) -> Pcm:
        parts = []
        while count and self._parts:
            head = self._parts[0]
            if len(head) <= count:
                parts.append(self._parts.pop(0))
            else:
                parts.append(head[:count])
                self._parts[0] = head[count:]
            count -= len(parts[-1])
            self.held -= len(parts[-1])
        return np.concatenate(parts) if parts else np.zeros(0, np.int16)


class Speaker:
    """A loudspeaker, fed by `push` from any thread or by `source`; `close` writes what it played.

    Args:
        rate: Sample rate.
        prebuffer_ms: Audio with which it starts (push).
        max_ms: Bound of its FIFO, 0 for none (push).
        source: Where it pulls from.
    """

    def __init__(self, rate: int, prebuffer_ms: int = 20, max_ms: int = 0, source: Callable[[int], Any] | None = None) -> None:
        self._rate, self._frame, self._source = rate, rate * TICK_MS // 1000, source
        self._prebuffer = rate * prebuffer_ms // 1000
        self._fifo = _Fifo(rate * max_ms // 1000)
        self._ready = threading.Event()
        self._stopping = False
        self._played: list[Pcm] = []
        self._underflows: list[tuple[int, float]] = []
        self._depths: list[int] = []
        self._concealed = 0
        self._start_wall: float | None = None
        if source is not None:
            self._ready.set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def received(self) -> int:
        """Samples that came in so far."""
        return self._fifo.received

    def push(self, samples: Pcm) -> None:
        """Audio to play."""
        if self._fifo.push(samples) >= self._prebuffer:
            self._ready.set()

    def _next(self) -> Pcm:
        if self._source is None:
            self._depths.append(self._fifo.held)
            return self._fifo.pop(self._frame)
        given = self._source(self._frame)
        pcm, concealed = given if isinstance(given, tuple) else (given, 0)
        self._concealed += concealed
        self._fifo.received += len(pcm) - concealed
        return pcm[: self._frame]

    def _run(self) -> None:
        self._ready.wait()
        origin, self._start_wall, tick = time.monotonic(), time.time(), 0
        while not self._stopping:
            pcm = self._next()
            if len(pcm) < self._frame:
                lack = self._frame - len(pcm)
                self._underflows.append((tick, round(lack * 1e3 / self._rate, 2)))
                pcm = np.concatenate([pcm, np.zeros(lack, np.int16)])
            self._played.append(pcm)
            tick += 1
            time.sleep(max(0.0, origin + tick * TICK_MS / 1e3 - time.monotonic()))

    def close(self, wav: str, **more: Any) -> None:
        """Stop; write `wav`, and `wav`.json with the start, the underflows, and depths (push) or the share made up (pull)."""
        self._stopping = True
        self._ready.set()
        self._thread.join(2)
        audio = np.concatenate(self._played) if self._played else np.zeros(0, np.int16)
        soundfile.write(wav, audio, self._rate, subtype="PCM_16")
        facts: dict[str, Any] = {
            "playout_start": self._start_wall,
            "rate": self._rate,
            "ticks": len(self._played),
            "underflow_ticks": [tick for tick, _ in self._underflows],
            "underflow_ms": [lack for _, lack in self._underflows],
            "received_s": round(self._fifo.received / self._rate, 3),
            "dropped_s": round(self._fifo.dropped / self._rate, 3),
        }
        if self._source is None:
            facts["fifo_ms_p50"] = float(np.median(self._depths or [0])) * 1e3 / self._rate
        else:
            facts["concealed_share"] = round(self._concealed / max(1, len(audio)), 4)
        write_json(wav + ".json", {**facts, **more})
