"""asyncio under the endpoints: sockets, one timer and one lock for each owner of sockets, and no policy.

Everything happens in the loop's thread except `wake` and `poll`, which any thread may call, and whatever threads do while they hold `lock`.
The clock is `time.monotonic`: the loop's own may have a grain of a millisecond.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from voicestream.codepoints import ErrorCode
from voicestream.quic.connection import Connection
from voicestream.quic.inbox import Inbox
from voicestream.quic.values import Address

__all__ = ["OnActivity", "SocketOwner", "clock"]

T = TypeVar("T")

OnActivity = Callable[[Connection], None]
"""Called in the loop's thread after packets or a timer did something to a connection, and before what is due is sent."""

clock: Final = time.monotonic
"""Seconds; the `now` of every connection and session under these transports."""

LATER: Final = 0.001
"""Seconds by which a timer has to move back to be set anew. One that is left too early wakes the process for nothing, which costs more
where it had time to sleep."""

SLICE: Final = 0.005
"""Seconds of work on packets, or on connections that have something to send, before the loop gets its turn."""


class SocketOwner(abc.ABC):
    """The one timer, the one lock and the wake-up of whoever has sockets.

    Attributes:
        lock: Held, re-entrantly, for every operation on a connection or its session.
    """

    def __init__(self, lock: threading.RLock | None = None) -> None:
        self.lock = lock or threading.RLock()
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self._inbox = Inbox()
        self._reading_is_due = False
        self._woken: deque[Connection] = deque()
        self._told: set[Connection] = set()
        self._wake_is_due = False
        self._is_open = True

    @staticmethod
    def clock() -> float:
        """Seconds of the clock that all calls on connections and sessions take."""
        return clock()

    @property
    def packets_dropped(self) -> int:
        """Packets dropped unread, for this machine was too slow for all that came; see `Inbox`."""
        return self._inbox.dropped

    def wake_connection(self, connection: Connection) -> None:
        """Have the loop send what a connection has to send, and read its timer again. From any thread."""
        self._woken.append(connection)
        self._told.discard(connection)
        if self._wake_is_due or not self._is_open:
            return
        self._wake_is_due = True
        if threading.get_ident() == self._thread_id:
            self._loop.call_soon(self._serve_woken)
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing can leave any more
            self._loop.call_soon_threadsafe(self._serve_woken)

    def _serve_woken(self) -> None:
        # Cleared first: a wake that comes from now on may find the queue already read, and needs a turn of its own.
        self._wake_is_due = False
        woken: dict[Connection, None] = {}
        while self._woken:
            woken[self._woken.popleft()] = None
        told, self._told = self._told, set()
        if not self._is_open:
            return
        connections, until = deque(woken), clock() + SLICE
        while connections and clock() < until:
            connection = connections.popleft()
            if connection not in told:
                self._tell(connection)
            self._let_leave(connection, clock())
        self._set_timer()
        for connection in reversed(connections):
            self._woken.appendleft(connection)
        if connections:
            self._wake_soon()

    def _wake_soon(self) -> None:
        if not self._wake_is_due:
            self._wake_is_due = True
            self._loop.call_soon(self._serve_woken)

    def _receive(self, packets: Iterable[tuple[bytes, Address]]) -> None:
        """A socket has these packets."""
        if not self._is_open:
            return
        now = clock()
        for data, address in packets:
            self._inbox.put(data, address, now)
        if not self._reading_is_due:
            self._read()

    def _read(self) -> None:
        """Look at packets, but not for so long that timers and applications would have to wait."""
        self._reading_is_due = False
        if not self._is_open:
            return
        touched: dict[Connection, None] = {}
        now = clock()
        until = now + SLICE
        with self.lock:
            while now < until and (packet := self._inbox.take(now)) is not None:
                connection = self._take_in(packet.data, packet.address, now)
                if connection is not None:
                    touched[connection] = None
                now = clock()
        self._taken_in()
        self._told.update(touched)  # first: who is woken by another thread from now on is told again
        for connection in touched:
            self._tell(connection)
        # What they answer leaves together with what their owners have to say to it, who have a turn before that.
        with self.lock:
            now = clock()
            answering = [connection for connection in touched if not self._rests(connection, now)]
        self._woken.extend(answering)
        if answering:
            self._wake_soon()
        elif touched:
            self._set_timer()
        if len(self._inbox):
            self._reading_is_due = True
            self._loop.call_soon(self._read)

    def _serve(self, connections: list[Connection], now: float) -> None:
        """After something happened to these connections: tell their owners, send, and set the timer."""
        for connection in connections:
            self._tell(connection)
        for connection in connections:
            self._let_leave(connection, max(clock(), now))
        self._set_timer()

    def _let_leave(self, connection: Connection, now: float) -> None:
        """Send what a connection has to send. One that cannot say it, by a fault of ours, ends with that; the others go on."""
        with self.lock:
            now = max(now, clock())  # a device's thread may have taken in a packet since: no ACK is written before what it tells of
            if self._does(self._transmit, connection, now):
                return
            self._does(connection.break_off, now, ErrorCode.INTERNAL_ERROR, "an internal error")
            self._does(self._transmit, connection, now)
        self._tell(connection)

    def _does(self, action: Callable[..., object], *arguments: object) -> bool:
        """Whether something could be done; what it raises is the loop's to report."""
        try:
            action(*arguments)
        except Exception as exc:
            self._loop.call_exception_handler({"message": "a fault in VoiceStream ends a connection", "exception": exc})
            return False
        return True

    def poll(self) -> None:
        """Take in what has come and the loop has not got to yet. From any thread; the loop's own looks at its sockets before all else.

        For a device that is about to be told that there is nothing: a loop that is busy elsewhere must not make audio late.
        """
        # What waits behind packets that the loop has read is the loop's: it decides what a slow machine lets go.
        if not self._is_open or threading.get_ident() == self._thread_id or len(self._inbox):
            return
        touched: dict[Connection, None] = {}
        with self.lock:
            now = clock()
            packets = self._waiting()
            for data, address in packets:
                connection = self._take_in(data, address, now)
                if connection is not None:
                    touched[connection] = None
        for connection in touched:
            self.wake_connection(connection)
        if packets:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._taken_in)

    def _set_timer(self) -> None:
        with self.lock:
            at = self._next_timer()
        if at is None or not self._is_open:
            return
        if at < self._timer_at or at > self._timer_at + LATER:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = at
            self._timer = self._loop.call_later(max(at - clock(), 0.0), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        at, self._timer_at = self._timer_at, float("inf")
        if not self._is_open:
            return
        now = clock()
        # A loop with a coarse clock may fire a little early; a timer that is due by its own reckoning must find itself due.
        if at - now < 0.002:
            now = max(now, at)
        due: list[Connection] = []
        with self.lock:
            self._does(lambda: due.extend(self._fire(now)))
        self._serve(due, now)

    def _call(self, callback: Callable[[T], None], argument: T) -> None:
        """Call the application; what it raises is the loop's to report, and the other connections go on."""
        try:
            callback(argument)
        except Exception as exc:
            self._loop.call_exception_handler({"message": "a callback of a VoiceStream transport failed", "exception": exc})

    def _stop(self) -> None:
        self._is_open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @abc.abstractmethod
    def _take_in(self, data: bytes, address: Address, now: float) -> Connection | None:
        """Give a packet to its connection, which is returned; the lock is held."""

    @abc.abstractmethod
    def _waiting(self) -> list[tuple[bytes, Address]]:
        """A few packets that the sockets hold, taken out of them; the lock is held."""

    def _taken_in(self) -> None:  # noqa: B027  # most have nothing to add
        """Packets have been taken in."""

    @abc.abstractmethod
    def _tell(self, connection: Connection) -> None:
        """Call the connection's owner; the lock is not held."""

    @abc.abstractmethod
    def _transmit(self, connection: Connection, now: float) -> None:
        """Send what a connection has to send; the lock is held."""

    def _rests(self, connection: Connection, now: float) -> bool:
        """Whether nothing of a connection leaves, after packets of it have come, before its timer comes up; the lock is held."""
        return False

    @abc.abstractmethod
    def _next_timer(self) -> float | None:
        """When `_fire` wants to be called; the lock is held."""

    @abc.abstractmethod
    def _fire(self, now: float) -> list[Connection]:
        """Do what is due; the lock is held. Returns the connections concerned."""
