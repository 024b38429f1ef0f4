"""What all calls of a server have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from voicestream.call import Call
from voicestream.call_options import CallOptions
from voicestream.codepoints import ErrorCode
from voicestream.errors import RejectedError
from voicestream.server_admission import Authenticate

__all__ = ["SHUTTING_DOWN", "Handler", "Rules"]

SHUTTING_DOWN: Final = "the server is shutting down"

LEAVING_RETRY_AFTER: Final = 0.5
"""Seconds after which a client may call again, at a server that takes the place of this one."""

Handler = Callable[[Call], Awaitable[None]]
"""What a server runs for each call. The call ends when it returns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What all calls of a server have in common.

    Attributes:
        handler: See `Handler`.
        authenticate: See `Authenticate`; None takes every call.
        options: Configuration of each call.
        finish_timeout: Seconds that a client gets to play what was sent when the handler has returned.
        next_uri: Where clients go when the server leaves; None if they are not told.
        next_route_token: First connection id of their dials there, for a relay.
        early_resume: A request to resume may come in early data.
        shares: Sessions are in a store: what this server leaves another one may take up.
    """

    handler: Handler
    authenticate: Authenticate | None
    options: CallOptions
    finish_timeout: float
    next_uri: str | None = None
    next_route_token: bytes | None = field(default=None, repr=False)
    early_resume: bool = True
    shares: bool = False

    @property
    def leaving(self) -> RejectedError:
        """What is said to a client that comes too late."""
        return RejectedError(
            ErrorCode.GOING_AWAY, SHUTTING_DOWN, uri=self.next_uri, route_token=self.next_route_token, retry_after=LEAVING_RETRY_AFTER
        )
