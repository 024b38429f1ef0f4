"""Traces of calls: records are taken in a moment, and written by a thread of their own as they come."""

from __future__ import annotations

import errno
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from voicestream.observe.qlog import SUFFIX, Vantage, encode_event, encode_header
from voicestream.observe.writing import Background
from voicestream.trace import Observer

__all__ = ["CallTrace", "Traces"]

MAX_WAITING: Final = 4096
"""Records of one call that wait to be written; further ones are dropped and counted. A quarter of a minute at least."""

MAX_WAITING_ALL: Final = 65536
"""The same of all calls of one `Traces`."""

MAX_UNOPENED: Final = 256
"""Records of one call that has not been taken."""

MAX_FILE_BYTES: Final = 256 << 20
"""Where a file ends, for a call that goes on for days."""

OPENED: Final = "session:opened"
CLOSED: Final = "session:closed"


class Traces:
    """Where the traces of calls go.

    Args:
        target: A folder, which gets a file for each call, named by session and vantage point; or, for a client, the file itself.
        vantage: Which end of the calls this is.
    """

    def __init__(self, target: str | os.PathLike[str], vantage: Vantage) -> None:
        self.vantage = vantage
        self.folder: Path | None = Path(target) if Path(target).is_dir() else None
        self.lock = threading.Lock()
        self.waiting = 0
        self._target = target
        self._calls = 0

    def begin(self, observer: Observer | None = None) -> CallTrace:
        """The trace of the next call; `observer` gets the records as well."""
        self._calls += 1
        path = None
        if self.folder is None:
            number = "" if self._calls == 1 else f"-{self._calls}"
            given = Path(self._target)
            path = given.with_name(f"{given.stem}{number}{given.suffix}")
        return CallTrace(self, path, observer)

    def flush(self) -> None:
        """Write what waits of all calls, now. For those who have the time, not for the loop."""
        Background.finish()

    def check(self) -> None:
        """See that they can be written.

        Raises:
            OSError: They cannot; one sentence that says why.
        """
        path = Path(self._target)
        if self.folder is not None:
            if not os.access(path, os.W_OK | os.X_OK):
                raise PermissionError(f"traces cannot be written to {path}: permission denied")
        elif self.vantage == "server" or os.fspath(self._target).endswith(os.sep):
            raise NotADirectoryError(f"there is no folder {path} for the traces")
        elif not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent} for the trace {path.name}")
        else:
            try:
                path.open("ab").close()
            except OSError as error:
                raise OSError(f"the trace {path} cannot be written: {(error.strerror or str(error)).lower()}") from error


class CallTrace:
    """An observer that writes down one call. From any thread; it never waits and never raises.

    What comes before the call was taken waits for the session's name. At a server, what was never taken leaves no file, so that
    strangers cannot fill the disk; at a client it does, since somebody will want to know why.

    Attributes:
        dropped: Records that were not written: the disk was too slow, or full, or the file had got too long.
        path: The file, once it is known.
    """

    __slots__ = (
        "_began",
        "_bytes",
        "_failed",
        "_observer",
        "_ready",
        "_records",
        "_session_id",
        "_told",
        "_traces",
        "_wall",
        "dropped",
        "path",
    )

    def __init__(self, traces: Traces, path: Path | None, observer: Observer | None) -> None:
        self.path = path
        self.dropped = 0
        self._traces = traces
        self._observer = observer
        self._records: deque[tuple[float, str, Mapping[str, object]]] = deque()
        self._began: float | None = None
        self._wall = 0.0
        self._session_id = ""
        self._ready = False
        self._bytes = 0
        self._told = 0
        self._failed = False

    def __repr__(self) -> str:
        return f"<CallTrace {self.path}, {self.dropped} records dropped>"

    def record(self, now: float, name: str, data: Mapping[str, object]) -> None:
        """Take one record; see `Observer`."""
        if self._observer is not None:
            self._observer.record(now, name, data)
        if self._began is None:
            self._began, self._wall = now, time.time()
        with self._traces.lock:
            if not self._take_in(now, name, data):
                return
        if not self._ready and (name == OPENED or (name == CLOSED and self._traces.vantage == "client")):
            self._open(str(data.get("session_id", "")))
        elif self._ready and len(self._records) == 1:
            Background.due(self)

    def _take_in(self, now: float, name: str, data: Mapping[str, object]) -> bool:
        waiting = len(self._records)
        full = waiting >= MAX_WAITING or self._traces.waiting >= MAX_WAITING_ALL if self._ready else waiting >= MAX_UNOPENED
        if full or self._failed:
            self.dropped += 1
            return False
        self._records.append((now, name, data))
        self._traces.waiting += self._ready
        return True

    def _open(self, session_id: str) -> None:
        with self._traces.lock:
            self._session_id = session_id
            self._ready = True
            self._traces.waiting += len(self._records)
        Background.due(self)

    def end(self) -> None:
        """Nothing more comes: of a call that never came about, what there is is written as well."""
        if not self._ready and self._began is not None:
            self._open("")

    def flush(self) -> None:
        """Write what waits, now. For those who have the time, not for the loop."""
        if self._ready:
            Background.write(self)

    def write(self) -> None:
        """For the thread that writes.

        Raises:
            OSError: It cannot. The trace ends there.
        """
        records = self._take()
        if self._failed:
            self.dropped += len(records)
        if self._failed or (not records and self._told == self.dropped):
            return
        parts = [] if self._bytes else [self._header()]
        for now, name, data in records:
            try:
                parts.append(encode_event(self._time_ms(now), name, data))
            except (ValueError, TypeError, RecursionError):
                self.dropped += 1
        if self.dropped > self._told:
            last = records[-1][0] if records else self._began or 0.0
            parts.append(encode_event(self._time_ms(last), "trace:dropped", {"records": self.dropped - self._told}))
            self._told = self.dropped
        self._append(b"".join(parts))

    def _take(self) -> list[tuple[float, str, Mapping[str, object]]]:
        with self._traces.lock:
            records = list(self._records)
            self._records.clear()
            self._traces.waiting -= len(records)
        return records

    def _append(self, data: bytes) -> None:
        assert self.path is not None  # the header named it
        try:
            if self._bytes + len(data) > MAX_FILE_BYTES:
                raise OSError(errno.EFBIG, "it has reached its greatest length")
            # Opened anew each time: a thousand calls do not hold a thousand files, and a rotated one is let go.
            with self.path.open("ab" if self._bytes else "wb") as file:
                file.write(data)
        except OSError:
            self._failed = True
            raise
        self._bytes += len(data)

    def _header(self) -> bytes:
        if self.path is None:
            assert self._traces.folder is not None  # without a folder the path was given
            when = datetime.fromtimestamp(self._wall, UTC).strftime("%Y%m%dT%H%M%S")
            name = self._session_id or f"unopened-{when}-{secrets.token_hex(4)}"
            self.path = self._traces.folder / f"{name}-{self._traces.vantage}{SUFFIX}"
        wall = datetime.fromtimestamp(self._wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return encode_header(vantage=self._traces.vantage, group_id=self._session_id, wall_clock_time=wall)

    def _time_ms(self, now: float) -> float:
        return (now - (self._began or 0.0)) * 1000
