"""A call's hold on its connection: the one place where locks, clock and waking the transport are dealt with."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, cast

from voicestream.call_state import Ending
from voicestream.codepoints import ErrorCode
from voicestream.errors import CallClosedOK

if TYPE_CHECKING:
    from voicestream.events import Event
    from voicestream.quic.endpoint import Connection
    from voicestream.session import Session

__all__ = ["CallLink", "Owner"]


class Owner(Protocol):
    """What a call needs of its transport; `ClientTransport` and a server's `Link` in ``voicestream.quic`` are such owners."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Held, re-entrantly, for every operation on a connection."""

    @property
    def connection(self) -> Connection:
        """The connection that the call is on."""

    def clock(self) -> float:
        """Monotonic seconds."""

    def wake(self) -> None:
        """Have the loop send what is due and read the timer again. From any thread."""

    def poll(self) -> None:
        """Take in what has come and the loop has not got to yet. From any thread."""

    async def wait_closed(self) -> None:
        """Wait until the connection has said its last word."""


class CallLink:
    """Access to the session under the transport's lock, from any thread."""

    __slots__ = ("_ending", "_left_since", "_owner", "_session")

    def __init__(self, owner: Owner, ending: Ending) -> None:
        self._owner = owner
        self._ending = ending
        self._left_since: float | None = None
        # The connection knows of its session only what it needs to carry it. The session may outlive it.
        self._session = cast("Session", owner.connection.session)

    def move(self, owner: Owner) -> None:
        """The session goes on on another connection, whose owner has the same lock."""
        self._left_since = self._silent_since()
        self._owner = owner

    @property
    def lost_since(self) -> float | None:
        """Since when nothing has come on the connection that the session has lost, as far as it is known."""
        return self._silent_since() if self._session.is_detached else self._left_since

    def _silent_since(self) -> float | None:
        since = self._owner.connection.hearing.lost_since(self._owner.clock())
        return since if math.isfinite(since) else None

    @property
    def _is_carried(self) -> bool:
        """Whether the connection has the session, or had it to the end."""
        carried: object = self._owner.connection.session
        return carried is self._session

    @property
    def is_detached(self) -> bool:
        """Whether the session is without a connection and waits to be resumed."""
        return self._session.is_detached

    def now(self) -> float:
        """The session's clock: monotonic seconds."""
        return self._owner.clock()

    def wake(self) -> None:
        """Have due bytes leave soon."""
        self._owner.wake()

    def poll(self) -> None:
        """Take in what has come, without waiting for the loop to do so."""
        self._owner.poll()

    def next_event(self) -> Event | None:
        """What the connection has to tell; None for nothing at present."""
        with self._owner.lock:
            connection = self._owner.connection
            event = connection.next_event()
            if event is None and not self._is_carried:
                event = self._session.next_event()
            return event

    async def wait_closed(self) -> None:
        """Wait until the far end knows that the call is over, or can be taken to be gone."""
        await self._owner.wait_closed()

    def close(self, code: int, reason: str, *, may_resume: bool = False) -> None:
        """End the session; nothing if it is over. `may_resume`: tell the far end that it can be taken up, here or elsewhere."""
        with self._owner.lock:
            connection = self._owner.connection
            if self._is_carried:
                connection.close(self._owner.clock(), code, reason, may_resume=may_resume)
            else:
                self._session.close(self._owner.clock(), code, reason, may_resume)
        self.wake()

    @property
    def events_wait(self) -> bool:
        """Whether events have been sent that the far end may not have, and a connection carries them."""
        with self._owner.lock:
            if self.is_over or not self._is_carried:
                return False
            return self._session.events_waiting > 0 or self._owner.connection.events_wait

    @property
    def is_over(self) -> bool:
        """Whether nothing can be sent or received any more."""
        return self._ending.closed or self._session.is_closed

    def locked(self) -> AbstractContextManager[Session]:
        """The session, to look at it or to pull audio; alive or over."""
        return _Locked(self)

    def verbs(self) -> AbstractContextManager[tuple[Session, float]]:
        """The living session and the time, to act on it; what that makes due leaves afterwards.

        Raises:
            CallClosed: The call is over.
        """
        return _Verbs(self)

    def enter(self) -> Session:
        """Take the lock, for `locked`."""
        self._owner.lock.__enter__()
        return self._session

    def leave(self) -> None:
        """Give it back."""
        self._owner.lock.__exit__(None, None, None)

    def check(self) -> None:
        """Raise `CallClosed` when the call is over."""
        self._ending.check()
        if self._session.is_closed:
            # Closed a moment ago; the event that tells how is still on its way.
            raise CallClosedOK(ErrorCode.NO_ERROR, "the call is ending")


class _Locked(AbstractContextManager["Session"]):
    """See `CallLink.locked`. Several are entered for each frame, and a generator would be dearer."""

    __slots__ = ("_link",)

    def __init__(self, link: CallLink) -> None:
        self._link = link

    def __enter__(self) -> Session:
        return self._link.enter()

    def __exit__(self, *_: object) -> None:
        self._link.leave()


class _Verbs(AbstractContextManager["tuple[Session, float]"]):
    """See `CallLink.verbs`; likewise."""

    __slots__ = ("_link",)

    def __init__(self, link: CallLink) -> None:
        self._link = link

    def __enter__(self) -> tuple[Session, float]:
        session = self._link.enter()
        try:
            self._link.check()
            return session, self._link.now()
        except BaseException:
            self._link.leave()
            raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._link.leave()
        if kind is None:
            self._link.wake()
