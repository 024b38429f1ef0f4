"""The calling side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from voicestream.codepoints import VERSION, ErrorCode, MessageType
from voicestream.config import SessionConfig
from voicestream.core.lifecycle import Role, State
from voicestream.errors import ProtocolError, StateError
from voicestream.events import Accepted, Rejected, Resumed
from voicestream.session.base import Session
from voicestream.session.grease import Grease
from voicestream.session.machine import Grant
from voicestream.session.negotiation import Destination, check_answer, destination, limit_parameters, peer_limits
from voicestream.trace import Observer
from voicestream.wire import messages as wire
from voicestream.wire.parameters import Held, Parameters

__all__ = ["ClientSession"]

LASTING: Final = frozenset(ErrorCode) - {ErrorCode.BUSY, ErrorCode.INTERNAL_ERROR, ErrorCode.GOING_AWAY}
"""Codes of a REJECT that ends the session that was to be resumed. Any other says nothing about it; one that is not known is like
INTERNAL_ERROR (VS-13.1-1), and no error by itself (VS-13.1-2)."""


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

    Attributes:
        retry_after: Seconds that the server has asked to wait with the next request to resume.
        moves: Somebody looks after the session who resumes it at another server, when this one says that it may be.
        sent_to: Where the server wants the session to be resumed, until its owner dials there.
        moving_to: Where it has dialled for that reason. The server that had the session still runs: no refusal is the end.
    """

    __slots__ = ("_asked", "_hello", "moves", "moving_to", "retry_after", "sent_to")

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
        self._asked: tuple[Held, ...] = ()
        self.retry_after = 0.0
        self.moves = False
        self.sent_to: Destination | None = None
        self.moving_to: Destination | None = None
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

    def start(self, now: float, rtt: float | None = None) -> None:
        """Call: HELLO is ready to be sent. Raises StateError when called twice.

        Args:
            now: Monotonic seconds.
            rtt: Round trip in seconds, where the transport has measured it already.
        """
        self._require_idle()
        self._link.reports.clock.suppose(rtt)
        self._control.start(now)
        self._hub.send(self._hello, now)
        grease = Grease(self._hub.entropy, enabled=self._hub.config.grease).message()
        if grease is not None:
            self._hub.send(grease, now)

    def resume_on_new_connection(self, now: float, *, replay_ms: int = 0, has_asked: bool = False) -> None:
        """Ask, on a new connection, to go on with the session: RESUME is ready to be sent. `path_lost` comes first.

        Args:
            now: Monotonic seconds.
            replay_ms: How much of what was received before the break is wanted once more, marked as replayed; 0 to 2000.
            has_asked: What `request` gave has been written on that connection already: the answer is waited for.

        Raises:
            StateError: The session is not without a connection.
            ValueError: `replay_ms` is out of its range.
        """
        if self.state is not State.DETACHED or self._grant is None:
            raise StateError(f"a session that is {self.state.value} cannot be resumed")
        held = self._asked if has_asked else self._tracks.held(now)
        self._tracks.expect(held, replay_ms)
        self._restart(now)
        self._control.restart()
        if has_asked:
            before = self.state
            self._hub.lifecycle.sent(MessageType.RESUME)
            self._hub.note_state(before, now)
        else:
            self._hub.send(self._resume(self._grant, held, replay_ms), now)

    def request(self, replay_ms: int, now: float) -> bytes:
        """RESUME as it would be sent now; nothing if there is no session to be resumed. The session stays as it is."""
        if self._grant is None or self.is_closed:
            return b""
        self._asked = self._tracks.held(now)
        return wire.encode_message(self._resume(self._grant, self._asked, replay_ms))

    def _resume(self, grant: Grant, held: tuple[Held, ...], replay_ms: int) -> wire.Resume:
        said = self._hello.parameters
        parameters = Parameters(
            session_id=grant.session_id,
            resume_token=grant.resume_token,
            generation=grant.generation,
            held=held,
            next_event=self._events.inbox.next_order,
            replay_ms=replay_ms or None,
            token=said.token,
            authority=said.authority,
            path=said.path,
        )
        return wire.Resume(parameters=parameters)

    def _role_handlers(self) -> Mapping[MessageType, Callable[[Any, float], None]]:
        return {
            MessageType.ACCEPT: self._on_accept,
            MessageType.RESUMED: self._on_resumed,
            MessageType.REJECT: self._on_reject,
        }

    def _on_resumed(self, message: wire.Resumed, now: float) -> None:
        assert self._grant is not None  # the table lets RESUMED pass after RESUME only
        parameters = message.parameters
        generation = parameters.generation or 0
        self._grant = replace(self._grant, resume_token=parameters.resume_token or b"", generation=generation)
        self._hub.send(wire.Confirm(generation=generation), now)  # VS-11.3-6
        self._hub.events.put(Resumed(generation=generation))
        self._resumed(parameters, now)
        self._take_early(now)

    def _on_going_away(self, message: wire.GoingAway, now: float) -> None:
        self.sent_to = destination(message.parameters)
        self.retry_after = (message.parameters.retry_after_ms or 0) / 1000
        super()._on_going_away(message, now)

    def _on_close(self, message: wire.Close, now: float) -> None:
        if message.may_resume and self.moves and self._grant is not None:
            # VS-11.2-3: the table has called it over; the session is not, only its server is.
            self._hub.lifecycle.reopen()
            self.path_lost(now)
            return
        super()._on_close(message, now)

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
        self.retry_after = (parameters.retry_after_ms or 0) / 1000
        if self.state is State.DETACHED and (message.code not in LASTING or self.moving_to is not None):
            if message.code == ErrorCode.GOING_AWAY:
                self.sent_to = destination(parameters)
            # VS-11.3-15: the session is still there, and may be asked for again
            self._hub.record(now, "session:resume_refused", code=message.code, reason=reason, retry_after_s=self.retry_after)
            return
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
