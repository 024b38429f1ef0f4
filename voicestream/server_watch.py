"""How the paths of a server's calls look: what a handler is told before a session loses its connection."""

from __future__ import annotations

from typing import Final

from voicestream.call_parts import CallParts
from voicestream.core.path_watch import DEGRADED_AFTER, PathState, PathWatch
from voicestream.quic.connection import Connection
from voicestream.session import Session

__all__ = ["LOOK_INTERVAL", "CallWatch"]

LOOK_INTERVAL: Final = 0.25
"""Seconds between two looks at the calls of a server."""


class CallWatch:
    """Watches the path of one call at the server, which waits where a client dials."""

    __slots__ = ("_told", "_watch")

    def __init__(self) -> None:
        self._watch = PathWatch()
        self._told = False

    def look(self, session: Session, connection: Connection, parts: CallParts, now: float) -> None:
        """Tell the call if its path has become silent, or answers again. The session's lock is held."""
        watch = self._watch
        if not session.is_open:
            # That the session has lost its connection, and has another one, it tells itself.
            watch.resumed()
            self._told = False
            return
        hearing = connection.hearing
        since = hearing.unanswered_since
        if since is None and session.awaits_media and now - hearing.heard_at >= DEGRADED_AFTER:
            since = hearing.heard_at
        watch.look(now, since)
        if watch.is_answered:
            watch.resumed()
        silent = watch.state is not PathState.CONNECTED
        if silent is not self._told:
            self._told = silent
            parts.tell_path(PathState.DEGRADED.value if silent else PathState.CONNECTED.value)
