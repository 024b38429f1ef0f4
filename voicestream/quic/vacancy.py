"""A connection between two sessions: one that has let its session go, and one that gets it when its handshake is complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from voicestream.events import Event
from voicestream.quic.streams import SessionPort
from voicestream.quic.values import Address

__all__ = ["Hearing", "Pending", "Vacant"]

LOST_AFTER: Final = 1.0
"""Seconds without an answer after which a client may be dialling anew."""

LONGEST_SILENCE: Final = 6.0
"""Seconds without a packet after which it may be as well; a client that is there says so every 5 s."""

BACK_FOR: Final = 5.0
"""Seconds after its return in which it may still bring the session to another connection."""


class Vacant:
    """Takes the place of a session that is not there: takes everything and says nothing."""

    __slots__ = ()

    @property
    def is_open(self) -> bool:
        """Nobody says anything."""
        return False

    @property
    def is_closed(self) -> bool:
        """Nothing can be over that has not begun."""
        return False

    @property
    def has_left(self) -> bool:
        """Nobody was here."""
        return False

    @property
    def target_bps(self) -> float:
        """What nobody needs."""
        return 0.0

    def path_lost(self, now: float) -> bool:
        """There is nothing to keep."""
        return False

    def path_changed(self, now: float) -> None:
        """Nothing was known of it."""

    def suppose_rtt(self, rtt: float | None) -> None:
        """Nobody wants to know."""

    def start(self, now: float, rtt: float | None = None) -> None:
        """Nothing begins."""

    def receive_datagram(self, data: bytes, now: float) -> None:
        """Not taken."""

    def receive_control(self, data: bytes, now: float, fin: bool = False) -> None:
        """Not taken."""

    def receive_stream(self, stream_key: int, data: bytes, fin: bool, now: float) -> None:
        """Not taken."""

    def reset_stream(self, stream_key: int, now: float) -> None:
        """Not taken."""

    def transport_closed(self, now: float, code: int, reason: str = "", *, remote: bool = True) -> None:
        """Nothing ends."""

    def let_go(self) -> None:
        """Nothing is held."""

    def handle_timer(self, now: float) -> None:
        """Nothing is due."""

    def next_timer(self) -> float | None:
        """Never."""
        return None

    def idle_until(self, now: float) -> float | None:
        """No time is known."""
        return None

    def is_calm(self, until: float) -> bool:
        """Nobody knows."""
        return False

    def datagrams_to_send(self, now: float) -> Sequence[bytes]:
        """None."""
        return ()

    def control_to_send(self) -> bytes:
        """None."""
        return b""

    def streams_to_send(self, now: float) -> Sequence[tuple[int, bytes, bool]]:
        """None."""
        return ()

    def streams_to_stop(self) -> Sequence[tuple[int, int]]:
        """None."""
        return ()

    def next_event(self) -> Event | None:
        """None."""
        return None

    def close(self, now: float, code: int = 0, reason: str = "", may_resume: bool = False) -> None:
        """Nothing ends."""


class Asked:
    """Whether a request has been written; `done` says so."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = False


class Pending(Vacant):
    """A session that is still on another connection, and comes to this one when its handshake is complete.

    Args:
        take_up: Called then with the time; takes the session from where it is, has it ask for its resumption, and returns it.
        is_urgent: There is no other connection on which the return of the path would be noticed.
        ask: The request itself, for a server that takes it before the handshake is complete. The session stays where it is until then.

        asked: Where it is noted that this was written on the connection. `take_up` looks there: one that knew this object, which knows it,
            would keep all of a call until the garbage collector comes by.
    """

    __slots__ = ("ask", "asked", "is_urgent", "take_up")

    def __init__(
        self,
        take_up: Callable[[float], SessionPort],
        *,
        is_urgent: bool = False,
        ask: Callable[[float], bytes] = lambda now: b"",
        asked: Asked | None = None,
    ) -> None:
        self.take_up = take_up
        self.is_urgent = is_urgent
        self.ask = ask
        self.asked = asked or Asked()


class Hearing:
    """How long the far end has owed an answer. Only what shows that our packets reach it is one: a path may be dead one way.

    Attributes:
        unanswered_since: When the first packet left that calls for an answer and after which none has come; None if the far end owes
            none.
        heard_at: When a packet of the far end has come last.
    """

    __slots__ = ("_acked", "_address", "_back_at", "_floor", "_silent_from", "heard_at", "unanswered_since")

    def __init__(self) -> None:
        self.unanswered_since: float | None = None
        self.heard_at = float("-inf")
        self._acked = self._floor = -1
        self._back_at = self._silent_from = float("-inf")
        self._address: Address | None = None

    def heard(self, now: float, acked: int, address: Address | None) -> bool:
        """A packet of the far end has come; returns whether it lives at another address than before.

        Args:
            now: Monotonic seconds.
            acked: Number of the newest packet that it has acknowledged.
            address: Where packets go from now on.
        """
        if self._address is not None and self._is_silent(now):
            self._back_at, self._silent_from = now, self._since
        self.heard_at = now
        if acked != self._acked:
            self._acked = acked
            if acked >= self._floor:
                self.unanswered_since = None
        if address == self._address:
            return False
        is_first, self._address = self._address is None, address
        return not is_first

    def is_lost(self, now: float) -> bool:
        """Whether the far end may have lost its path, and be about to come back on another connection."""
        return self._is_silent(now) or now - self._back_at < BACK_FOR

    def lost_since(self, now: float) -> float:
        """Where this connection is left now: since when nothing has come on it, or came before the path was back a moment ago."""
        return self._silent_from if now - self._back_at < BACK_FOR and not self._is_silent(now) else self._since

    @property
    def _since(self) -> float:
        return self.heard_at if self.unanswered_since is None else self.unanswered_since

    def _is_silent(self, now: float) -> bool:
        owes = self.unanswered_since is not None and now - self.unanswered_since >= LOST_AFTER
        return owes or now - self.heard_at >= LONGEST_SILENCE

    def is_mute(self, now: float) -> bool:
        """Whether nothing comes of the far end any more. One that only does not hear us is not mute: its speech comes here."""
        return self._is_silent(now) and now - self.heard_at >= LOST_AFTER

    def moved(self, now: float, number: int) -> None:
        """This side has another network: no answer to what left before the packet with this number says anything about it."""
        self._floor = number
        self.sent(now)

    def sent(self, now: float) -> None:
        """A packet leaves that calls for an answer."""
        if self.unanswered_since is None:
            self.unanswered_since = now
