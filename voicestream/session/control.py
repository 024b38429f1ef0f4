"""The control stream: bytes to messages, what is legal when, who handles it (specification sections 5.1 and 5.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from voicestream.codepoints import ErrorCode, MessageType
from voicestream.config import Limits
from voicestream.core.lifecycle import State
from voicestream.core.rate_limit import RateLimit
from voicestream.errors import ProtocolError
from voicestream.session.hub import MESSAGE_TYPES, Hub
from voicestream.wire.messages import MessageParser, UnknownMessage

__all__ = ["ControlChannel", "Handlers"]

Handlers = Mapping[MessageType, Callable[[Any, float], None]]
"""Who takes a message of which type: called with the message and the time."""

_HANDSHAKE: Final = frozenset({State.WAITING, State.CALLING, State.DECIDING})


class ControlChannel:
    """Receives the control stream.

    Args:
        hub: Of the session.
        handlers: For every message type that this role may receive.
    """

    __slots__ = ("_deadline", "_handlers", "_hub", "_limit", "_parser")

    def __init__(self, hub: Hub, handlers: Handlers) -> None:
        self._hub = hub
        self._handlers = handlers
        self._parser = MessageParser()
        self._limit = RateLimit(hub.config.limits.messages_per_second)
        self._deadline: float | None = None

    def tighten(self, limits: Limits) -> None:
        """Other bounds hold from now on."""
        self._limit = RateLimit(limits.messages_per_second)

    def start(self, now: float) -> None:
        """The time for the handshake runs from now."""
        self._deadline = now + self._hub.config.limits.handshake_timeout

    def restart(self, other: ControlChannel | None = None) -> None:
        """A new connection has a new control stream.

        Args:
            other: Whoever has read its beginning, if anybody has.
        """
        self._parser = MessageParser() if other is None else other._parser

    def let_go(self) -> None:
        """Nothing will be received any more."""
        self._handlers = {}

    def receive(self, data: bytes, now: float, fin: bool) -> None:
        """Take the next bytes of the stream.

        Raises:
            ProtocolError: The peer broke a rule.
        """
        for message in self._parser.feed(data):
            self._dispatch(message, now)
            if self._hub.is_closed or self._hub.lifecycle.state is State.DETACHED:
                return
        if fin:
            where = "inside a message" if self._parser.in_message else "without CLOSE"
            raise ProtocolError(ErrorCode.CONTROL_STREAM_ERROR, f"the control stream ended {where}")  # VS-5.1-5

    def _dispatch(self, message: Any, now: float) -> None:
        hub = self._hub
        hub.counts.messages_received += 1
        if not self._limit.allow(now):
            raise ProtocolError(ErrorCode.LIMIT_EXCEEDED, "too many control messages")
        if isinstance(message, UnknownMessage):
            hub.counts.messages_unknown += 1
            return
        message_type = MESSAGE_TYPES[type(message)]
        before = hub.lifecycle.state
        hub.lifecycle.received(message_type)
        hub.note_state(before, now)
        self._handlers[message_type](message, now)

    def handle_timer(self, now: float) -> None:
        """Close a session whose handshake takes too long. VS-11.1-1"""
        timer = self.next_timer()
        if timer is not None and now >= timer:
            self._hub.end(now, ErrorCode.HANDSHAKE_TIMEOUT, f"no call within {self._hub.config.limits.handshake_timeout} s")

    def next_timer(self) -> float | None:
        """When the handshake will have taken too long, or None."""
        return self._deadline if self._hub.lifecycle.state in _HANDSHAKE else None
