"""The thread that writes traces: one for all calls of the process, there only while there are some."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from typing import ClassVar, Final, Protocol

from voicestream.observe.lines import line

__all__ = ["Background", "Job"]

logger = logging.getLogger("voicestream")

INTERVAL: Final = 0.25
"""Seconds in which records gather before they are written."""

LINGER: Final = 10.0
"""Seconds without anything to write after which the thread ends."""


class Job(Protocol):
    """Something that has something to write."""

    def write(self) -> None:
        """Write what waits; may raise OSError."""


class Background:
    """Writes what is due, soon and elsewhere."""

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _writing: ClassVar[threading.Lock] = threading.Lock()
    _due: ClassVar[dict[Job, None]] = {}
    _thread: ClassVar[threading.Thread | None] = None
    _wake: ClassVar[threading.Event] = threading.Event()

    @classmethod
    def due(cls, job: Job) -> None:
        """Have a job written within a moment. From any thread; never waits for the disk."""
        with cls._lock:
            cls._due[job] = None
            cls._wake.set()
            if cls._thread is None or not cls._thread.is_alive():
                # A daemon, lest a disk that hangs keep the process: what is left is written by `finish`.
                cls._thread = threading.Thread(target=cls._run, name="voicestream traces", daemon=True)
                cls._thread.start()

    @classmethod
    def write(cls, job: Job) -> None:
        """Write a job now, by whoever calls."""
        with cls._lock:
            cls._due.pop(job, None)
        # One at a time, so that the parts of a file do not overtake each other.
        with cls._writing:
            try:
                job.write()
            except OSError as error:
                logger.warning("%s", line("trace_failed", reason=error.strerror or str(error), trace=repr(job)))

    @classmethod
    def finish(cls) -> None:
        """Write everything that is due."""
        for job in cls._taken():
            cls.write(job)

    @classmethod
    def _taken(cls) -> list[Job]:
        with cls._lock:
            jobs = list(cls._due)
            cls._due.clear()
        return jobs

    @classmethod
    def _run(cls) -> None:
        while True:
            if not cls._wake.wait(LINGER):
                with cls._lock:
                    if not cls._due:
                        cls._thread = None
                        return
            cls._wake.clear()
            time.sleep(INTERVAL)
            cls.finish()


atexit.register(Background.finish)
