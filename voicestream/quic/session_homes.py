"""Which session is on which connection of a server, and how it gets to another one (specification section 11.3)."""

from __future__ import annotations

from voicestream.codepoints import ErrorCode
from voicestream.errors import ProtocolError
from voicestream.quic.connection import Connection
from voicestream.session import ServerSession

__all__ = ["SessionHomes"]


class SessionHomes:
    """The living sessions of one server by id."""

    __slots__ = ("_homes",)

    def __init__(self) -> None:
        self._homes: dict[bytes, tuple[ServerSession, Connection]] = {}

    def __len__(self) -> int:
        return len(self._homes)

    def add(self, connection: Connection) -> None:
        """The session of a connection was accepted: from now on it outlives its connection."""
        session = connection.session
        if isinstance(session, ServerSession) and session.session_id is not None:
            connection.keeps_session = True
            self._homes[session.session_id] = (session, connection)

    def remove(self, session_id: bytes) -> None:
        """A session is over."""
        self._homes.pop(session_id, None)

    def find(self, session_id: bytes) -> ServerSession | None:
        """The living session of this name, or None."""
        found = self._homes.get(session_id)
        return None if found is None or found[0].is_closed else found[0]

    def waits(self, session_id: bytes, now: float) -> bool:
        """Whether this session is here and without a path, as far as can be told.

        Only then may it be moved by a request whose sender's handshake is not complete: a recorded one could take it from a living path
        otherwise (VS-11.5-5).
        """
        session, connection = self._homes.get(session_id, (None, None))
        if session is None or connection is None or session.is_closed:
            return False
        return session.is_detached or connection.is_closed or connection.hearing.is_mute(now)

    def bring(self, session: ServerSession, connection: Connection, now: float, *, identity: bytes = b"") -> None:
        """A session that another server had goes on here, on the connection on which its client has asked for it.

        Args:
            session: Restored and prepared.
            connection: Where the request came.
            now: Monotonic seconds.
            identity: Who the client has just proved to be.

        Raises:
            ProtocolError: The client may not. The request has been rejected.
        """
        fresh = connection.session
        assert isinstance(fresh, ServerSession)
        assert session.session_id is not None
        try:
            session.take_over(fresh, now, identity=identity)
        except ProtocolError as error:
            fresh.reject(now, error.code, error.reason)
            raise
        connection.adopt(session)
        connection.keeps_session = True
        self._homes[session.session_id] = (session, connection)

    def take_over(self, session_id: bytes, connection: Connection, now: float, *, identity: bytes = b"") -> Connection:
        """Bring a session to the connection on which a client has asked for it.

        Args:
            session_id: Named in `ResumeReceived`.
            connection: Where that came.
            now: Monotonic seconds.
            identity: Who the client has just proved to be.

        Returns:
            The connection that the session was on, closed with SUPERSEDED; it is to be flushed.

        Raises:
            ProtocolError: The client may not, as `ServerSession.take_over` says, or there is no such session. The request has
                been rejected.
        """
        fresh = connection.session
        assert isinstance(fresh, ServerSession)
        session = self.find(session_id)
        try:
            if session is None:
                raise ProtocolError(ErrorCode.SESSION_UNKNOWN, "there is no such session")
            session.take_over(fresh, now, identity=identity)
        except ProtocolError as error:
            fresh.reject(now, error.code, error.reason)
            raise
        before = self._homes[session_id][1]
        before.release(ErrorCode.SUPERSEDED, "the session goes on on another connection")
        connection.adopt(session)
        connection.keeps_session = True
        self._homes[session_id] = (session, connection)
        return before
