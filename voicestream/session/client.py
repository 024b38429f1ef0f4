"""The calling side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from voicestream.codepoints import VERSION, ErrorCode, MessageType
from voicestream.config import SessionConfig
from voicestream.core.lifecycle import Role
from voicestream.errors import ProtocolError
from voicestream.events import Accepted, Rejected
from voicestream.session.base import Session
from voicestream.session.grease import Grease
from voicestream.session.machine import Grant
from voicestream.session.negotiation import check_answer, limit_parameters, peer_limits
from voicestream.trace import Observer
from voicestream.wire import messages as wire

__all__ = ["ClientSession"]


class ClientSession(Session):
    """The side that calls.

    Args:
        config: Settings.
        authority: Host and optional port that are called, at most 255 bytes of UTF-8.
        path: What is called there, beginning with "/".
        token: For the server's `authenticate`, at most 2048 bytes.
        entropy: Gives so many random bytes.
        observer: Takes trace records.

    Raises:
        ValueError: A value does not fit HELLO.
    """

    __slots__ = ("_hello",)

    def __init__(
        self,
        config: SessionConfig,
        *,
        authority: str,
        path: str = "/",
        token: bytes = b"",
        entropy: Callable[[int], bytes],
        observer: Observer | None = None,
    ) -> None:
        super().__init__(config, Role.CLIENT, entropy, observer)
        self._hello = wire.Hello(
            parameters=replace(
                limit_parameters(config),
                authority=authority,
                path=path,
                token=token or None,
                metadata=config.metadata or None,
                tracks=config.tracks,
                unknown=Grease(entropy, enabled=config.grease).parameters(),
            )
        )
        wire.encode_message(self._hello)  # a bad value fails here, at the caller's line

    def start(self, now: float) -> None:
        """Call: HELLO is ready to be sent. Raises StateError when called twice."""
        self._require_idle()
        self._control.start(now)
        self._hub.send(self._hello, now)
        grease = Grease(self._hub.entropy, enabled=self._hub.config.grease).message()
        if grease is not None:
            self._hub.send(grease, now)

    def _role_handlers(self) -> Mapping[MessageType, Callable[[Any, float], None]]:
        return {MessageType.ACCEPT: self._on_accept, MessageType.REJECT: self._on_reject}

    def _on_accept(self, message: wire.Accept, now: float) -> None:
        if message.version != VERSION:
            raise ProtocolError(ErrorCode.VERSION_UNSUPPORTED, f"the server accepted version {message.version}, which was not offered")
        parameters = message.parameters
        tracks = check_answer(self._hub.config.tracks, parameters.tracks)
        self._hub.peer = peer_limits(parameters, self._hub.peer)
        grant = Grant(
            session_id=parameters.session_id or b"",
            resume_token=parameters.resume_token or b"",
            generation=parameters.generation or 0,
            lifetime=(parameters.lifetime_ms or 0) / 1000,
        )
        self._hub.events.put(Accepted(session_id=grant.session_id, metadata=parameters.metadata or b""))
        self._opened(grant, tracks, now)
        self._take_early(now)

    def _on_reject(self, message: wire.Reject, now: float) -> None:
        parameters = message.parameters
        reason = parameters.reason or ""
        self._hub.events.put(
            Rejected(
                code=message.code,
                reason=reason,
                uri=parameters.uri,
                route_token=parameters.route_token,
                retry_after=None if parameters.retry_after_ms is None else parameters.retry_after_ms / 1000,
            )
        )
        self._hub.end(now, message.code, reason, remote=True)
