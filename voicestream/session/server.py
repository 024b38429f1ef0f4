"""The called side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from voicestream.codepoints import VERSION, ErrorCode, MessageType
from voicestream.config import SessionConfig, Track
from voicestream.core.lifecycle import Role, State
from voicestream.core.resume import ResumeToken, TokenSealer, make_session_id
from voicestream.errors import ProtocolError, StateError
from voicestream.events import HelloReceived
from voicestream.session.base import Session
from voicestream.session.grease import Grease
from voicestream.session.machine import Grant
from voicestream.session.negotiation import agree, elsewhere, limit_parameters, peer_limits
from voicestream.trace import Observer
from voicestream.wire import messages as wire

__all__ = ["ServerSession"]


class ServerSession(Session):
    """The side that is called.

    Args:
        config: Settings.
        sealer: Makes the resume token.
        entropy: Gives so many random bytes.
        observer: Takes trace records.
    """

    __slots__ = ("_agreed", "_sealer")

    def __init__(
        self,
        config: SessionConfig,
        *,
        sealer: TokenSealer,
        entropy: Callable[[int], bytes],
        observer: Observer | None = None,
    ) -> None:
        super().__init__(config, Role.SERVER, entropy, observer)
        self._sealer = sealer
        self._agreed: tuple[Track, ...] = ()

    def start(self, now: float) -> None:
        """Wait for HELLO; the time for the handshake runs. Raises StateError when called twice."""
        self._require_idle()
        self._hub.lifecycle.listen()
        self._hub.note_state(State.IDLE, now)
        self._control.start(now)

    def accept(self, now: float, *, metadata: bytes = b"", identity: bytes = b"", expires_at: int | None = None) -> None:
        """Take the call: media and events may flow.

        Args:
            now: Monotonic seconds.
            metadata: Application bytes for the client, at most 4096; those of the configuration if empty.
            identity: Who calls, as `authenticate` found, at most 256 bytes; goes into the resume token.
            expires_at: When the token is void, in seconds on the servers' shared clock; by default that of `now` serves.

        Raises:
            StateError: No client waits for an answer.
            ValueError: A value is out of its range.
        """
        config = self._hub.config
        if self.state is not State.DECIDING:
            raise StateError(f"there is nothing to accept: the session is {self.state.value}")
        if expires_at is None:
            expires_at = math.ceil(now + config.session_lifetime_s)
        session_id = make_session_id(self._hub.entropy)
        token = ResumeToken(session_id=session_id, generation=0, identity=identity, expires_at=expires_at)
        grant = Grant(
            session_id=session_id,
            resume_token=self._sealer.seal(token, self._hub.entropy),
            generation=0,
            lifetime=config.session_lifetime_s,
        )
        grease = Grease(self._hub.entropy, enabled=config.grease)
        parameters = replace(
            limit_parameters(config),
            session_id=grant.session_id,
            resume_token=grant.resume_token,
            generation=grant.generation,
            lifetime_ms=round(grant.lifetime * 1000),
            metadata=metadata or config.metadata or None,
            tracks=self._agreed,
            unknown=grease.parameters(),
        )
        self._hub.send(wire.Accept(parameters=parameters), now)
        message = grease.message()
        if message is not None:
            self._hub.send(message, now)
        self._opened(grant, self._agreed, now)
        self._take_early(now)

    def reject(
        self,
        now: float,
        code: int,
        reason: str = "",
        *,
        uri: str | None = None,
        route_token: bytes | None = None,
        retry_after: float | None = None,
    ) -> None:
        """Decline the call, or send the client elsewhere. The session is over then.

        Raises:
            StateError: No client waits for an answer.
            ValueError: A value is out of its range.
        """
        self._hub.send(wire.Reject(code=code, parameters=elsewhere(reason, uri, route_token, retry_after)), now)
        self._hub.end(now, code, reason)

    def _role_handlers(self) -> Mapping[MessageType, Callable[[Any, float], None]]:
        return {MessageType.HELLO: self._on_hello, MessageType.RESUME: self._on_resume}

    def _on_hello(self, message: wire.Hello, now: float) -> None:
        if self._is_other_version(message, now):
            return
        parameters = message.parameters
        try:
            self._agreed = agree(self._hub.config.tracks, parameters.tracks)
        except ProtocolError as error:
            self.reject(now, error.code, error.reason)
            return
        self._hub.peer = peer_limits(parameters, self._hub.peer)
        self._hub.events.put(
            HelloReceived(
                authority=parameters.authority or "",
                path=parameters.path or "/",
                token=parameters.token or b"",
                metadata=parameters.metadata or b"",
            )
        )

    def _on_resume(self, message: wire.Resume, now: float) -> None:
        """No session outlives its connection yet, so there is none to take up."""
        if not self._is_other_version(message, now):
            self.reject(now, ErrorCode.SESSION_UNKNOWN, "there is no such session")

    def _is_other_version(self, message: wire.Hello | wire.Resume, now: float) -> bool:
        if message.version == VERSION:
            return False
        # VS-3.1-2
        self.reject(now, ErrorCode.VERSION_UNSUPPORTED, f"this server speaks version {VERSION}, not {message.version}")
        return True
