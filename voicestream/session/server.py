"""The called side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from voicestream.codepoints import VERSION, ErrorCode, MessageType
from voicestream.config import Limits, SessionConfig, Track
from voicestream.core.lifecycle import Role, State
from voicestream.core.resume import Generations, ResumeToken, TokenSealer, make_session_id, same_bytes
from voicestream.errors import ProtocolError, StateError
from voicestream.events import HelloReceived, Resumed, ResumeReceived
from voicestream.session.base import Session
from voicestream.session.carried import Carried, begin_after, carry, restore
from voicestream.session.grease import Grease
from voicestream.session.machine import Grant
from voicestream.session.negotiation import agree, elsewhere, limit_parameters, peer_limits
from voicestream.trace import Observer
from voicestream.wire import messages as wire
from voicestream.wire.parameters import Parameters

__all__ = ["ServerSession"]

_PER_CALL: Final = ("max_event_size", "events_per_second", "messages_per_second", "datagrams_per_second")
"""Limits that may differ from call to call."""


class ServerSession(Session):
    """The side that is called.

    Args:
        config: Settings.
        sealer: Makes the resume token.
        entropy: Gives so many random bytes.
        observer: Takes trace records.
    """

    __slots__ = ("_agreed", "_expires_at", "_generations", "_identity", "_resume", "_sealer")

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
        self._identity = b""
        self._expires_at: int | None = None
        self._generations: Generations | None = None
        self._resume: wire.Resume | None = None

    @property
    def identity(self) -> bytes:
        """Who opened the session; see `accept`."""
        return self._identity

    def start(self, now: float, rtt: float | None = None) -> None:
        """Wait for HELLO; the time for the handshake runs. Raises StateError when called twice.

        Args:
            now: Monotonic seconds.
            rtt: Round trip in seconds, where the transport has measured it already.
        """
        self._require_idle()
        self._link.reports.clock.suppose(rtt)
        self._hub.lifecycle.listen()
        self._hub.note_state(State.IDLE, now)
        self._control.start(now)

    def accept(
        self,
        now: float,
        *,
        metadata: bytes = b"",
        identity: bytes = b"",
        expires_at: int | None = None,
        limits: Limits | None = None,
        max_rate_bps: int | None = None,
    ) -> None:
        """Take the call: media and events may flow.

        Args:
            now: Monotonic seconds.
            metadata: Application bytes for the client, at most 4096; those of the configuration if empty.
            identity: Who calls, as `authenticate` found, at most 256 bytes; goes into the resume token.
            expires_at: When the token is void, in seconds on the servers' shared clock; by default that of `now` serves.
            limits: What this client may cost, where that is less than the configuration says; only the rates and the size of events
                can change now.
            max_rate_bps: Bits per second on the wire for each way, headers included.

        Raises:
            StateError: No client waits for an answer.
            ValueError: A value is out of its range.
        """
        config = self._hub.config
        if self.state is not State.DECIDING:
            raise StateError(f"there is nothing to accept: the session is {self.state.value}")
        config = self.tighten(limits, max_rate_bps)
        self._identity = identity
        self._expires_at = expires_at
        session_id = make_session_id(self._hub.entropy)
        grant = Grant(session_id=session_id, resume_token=self._seal(session_id, 0, now), generation=0, lifetime=config.session_lifetime_s)
        self._generations = Generations(session_id, identity)
        grease = Grease(self._hub.entropy, enabled=config.grease)
        parameters = replace(
            limit_parameters(config),
            session_id=grant.session_id,
            resume_token=grant.resume_token,
            generation=grant.generation,
            lifetime_ms=round(grant.lifetime * 1000),
            metadata=metadata or config.metadata or None,
            max_rate_bps=max_rate_bps,
            tracks=self._agreed,
            unknown=grease.parameters(),
        )
        self._hub.send(wire.Accept(parameters=parameters), now)
        message = grease.message()
        if message is not None:
            self._hub.send(message, now)
        self._opened(grant, self._agreed, now)
        self._take_early(now)

    def tighten(self, limits: Limits | None, max_rate_bps: int | None) -> SessionConfig:
        """Hold the client to bounds of its own."""
        config = self._hub.config
        self._hub.max_rate_bps = max_rate_bps
        if limits is None:
            return config
        asked = {name: min(getattr(limits, name), getattr(config.limits, name)) for name in _PER_CALL}
        config = self._hub.config = replace(config, limits=replace(config.limits, **asked))
        self._control.tighten(config.limits)
        self._events.tighten(config.limits)
        self._link.tighten(config.limits)
        return config

    def carried(self) -> Carried | None:
        """What the session would take along to another server; None when it is not open."""
        if self._grant is None or self.is_closed:
            return None
        return carry(self._agreed, self._hub.peer, self._grant.lifetime, self._tracks, self._events)

    def restore(
        self, carried: Carried, now: float, *, session_id: bytes, identity: bytes, confirmed: int, issued: int, processed_pts: int = 0
    ) -> None:
        """Become the session that another server had; `prepare` and `take_over` follow.

        Args:
            carried: Its values.
            now: Monotonic seconds.
            session_id: Its name.
            identity: Who opened it.
            confirmed: Highest generation whose token the client is known to hold.
            issued: Highest generation whose token was given out.
            processed_pts: Media of the first track up to which the application is done; 0 if it says nothing of that.

        Raises:
            StateError: This session has begun already.
        """
        self._hub.lifecycle.restore()
        self._identity = identity
        self._agreed = carried.tracks
        self._hub.peer = carried.peer
        self._generations = Generations(session_id, identity)
        self._generations.restore(confirmed, issued)
        self._opened(Grant(session_id=session_id, resume_token=b"", generation=issued, lifetime=carried.lifetime_s), carried.tracks, now)
        self._lost_until = now + carried.lifetime_s
        restore(carried, self._tracks, self._events, processed_pts)

    def requested(self, identity: bytes) -> ResumeToken:
        """The token of the RESUME that this fresh session has got.

        Raises:
            StateError: It has got none, or was answered.
            ProtocolError: TOKEN_INVALID: it is not good for what is asked, or not from whom it is asked.
        """
        if self._resume is None or self.state is not State.DECIDING:
            raise StateError("there is nothing to take over")
        asked = self._resume.parameters
        token = self._sealer.open(asked.resume_token or b"")
        good = same_bytes(token.session_id, asked.session_id or b"") & same_bytes(token.identity, identity)
        if not good or token.generation != asked.generation:
            raise ProtocolError(ErrorCode.TOKEN_INVALID, "the resume token is not valid")
        return token

    def prepare(self, fresh: ServerSession, *, identity: bytes) -> tuple[int, int]:
        """After `restore`: fit what the client says in its RESUME; `take_over` follows when the session is ours.

        Returns:
            The generations, confirmed and issued, with which it will go on here.

        Raises:
            StateError, ProtocolError: As `take_over`.
        """
        token = fresh.requested(identity)
        assert self._generations is not None  # restore comes first
        assert fresh._resume is not None  # requested has looked
        self._generations.restore(self._generations.confirmed, max(self._generations.issued, token.generation))
        self._generations.admit(token, token.generation, identity)
        asked = fresh._resume.parameters
        begin_after(self._tracks, asked.held)
        if asked.next_event is not None:
            self._events.begin_at(asked.next_event)
        return self._generations.confirmed, self._generations.issued

    @property
    def sent_pts(self) -> dict[int, int]:
        """Next pts of each track on which something was sent and may still be."""
        timelines = {track: sender.timeline for track, sender in self._tracks.senders.items()}
        return {track: timeline.next_pts for track, timeline in timelines.items() if timeline.next_pts and not timeline.finished}

    @property
    def generations(self) -> tuple[int, int]:
        """Confirmed and issued generation of the tokens."""
        return (0, 0) if self._generations is None else (self._generations.confirmed, self._generations.issued)

    def take_over(self, fresh: ServerSession, now: float, *, identity: bytes = b"") -> None:
        """Go on, on the connection on which `fresh` has got a RESUME for this session; `fresh` is of no use afterwards.

        Args:
            fresh: A session that reported `ResumeReceived`.
            now: Monotonic seconds.
            identity: Who the client has just proved to be.

        Raises:
            StateError: `fresh` has no such request.
            ProtocolError: The client may not, and why (TOKEN_INVALID, TOKEN_USED, SESSION_UNKNOWN): to be told by `fresh.reject`.
                This session stays as it was.
        """
        request = fresh._resume
        if request is None or fresh.state is not State.DECIDING:
            raise StateError("there is nothing to take over")
        if self._grant is None or self._generations is None or self.is_closed:
            raise ProtocolError(ErrorCode.SESSION_UNKNOWN, "there is no such session")
        asked = request.parameters
        generations = self._generations
        generations.admit(self._sealer.open(asked.resume_token or b""), asked.generation or 0, identity)
        self.path_lost(now)  # a connection that is still there is superseded
        self._restart(now)
        self._control.restart(fresh._control)
        fresh.abandon()
        generations.next_token = generations.next_token or self._seal(self._grant.session_id, generations.issued, now)
        self._grant = replace(self._grant, resume_token=generations.next_token, generation=generations.issued)
        parameters = Parameters(
            resume_token=generations.next_token,
            generation=generations.issued,
            held=self._tracks.held(now),
            next_event=self._events.inbox.next_order,
        )
        self._hub.send(wire.Resumed(parameters=parameters), now)
        self._hub.events.put(Resumed(generation=generations.issued))
        try:
            self._resumed(asked, now)
        except ProtocolError as error:
            self._hub.fail(error, now)

    def let_go(self) -> None:
        """See `Machine.let_go`; one on which nobody has called is over as well."""
        if self.state is State.IDLE:
            self.abandon()
        super().let_go()

    def _seal(self, session_id: bytes, generation: int, now: float) -> bytes:
        expires_at = self._expires_at
        if expires_at is None:
            expires_at = math.ceil(now + self._hub.config.session_lifetime_s)
        token = ResumeToken(session_id=session_id, generation=generation, identity=self._identity, expires_at=expires_at)
        return self._sealer.seal(token, self._hub.entropy)

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
        return {MessageType.HELLO: self._on_hello, MessageType.RESUME: self._on_resume, MessageType.CONFIRM: self._on_confirm}

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
        if self._is_other_version(message, now):
            return
        self._resume = message
        parameters = message.parameters
        self._hub.events.put(
            ResumeReceived(
                session_id=parameters.session_id or b"",
                authority=parameters.authority or "",
                path=parameters.path or "/",
                token=parameters.token or b"",
            )
        )

    def _on_confirm(self, message: wire.Confirm, now: float) -> None:
        assert self._generations is not None  # the table lets CONFIRM pass after RESUMED only
        self._generations.confirm(message.generation)

    def _is_other_version(self, message: wire.Hello | wire.Resume, now: float) -> bool:
        if message.version == VERSION:
            return False
        # VS-3.1-2
        self.reject(now, ErrorCode.VERSION_UNSUPPORTED, f"this server speaks version {VERSION}, not {message.version}")
        return True
