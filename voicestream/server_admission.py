"""Whether a client's call is taken: the application's check, and everything that can go wrong in it."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from voicestream.call_options import as_bytes
from voicestream.codepoints import ErrorCode
from voicestream.config import Limits
from voicestream.errors import RejectedError
from voicestream.events import HelloReceived

__all__ = ["Admission", "Authenticate", "admit"]

logger = logging.getLogger("voicestream.server")

MIN_RATE_BPS = 12000
"""Bits per second on the wire, below which there is no speech."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Admission:
    """The call is taken, on these terms: what `authenticate` returns where yes is not all that there is to say.

    Attributes:
        metadata: Bytes (or text) that the client gets as the call's ``metadata``, at most 4096; `serve`'s own if None.
        identity: Who the client is, as bytes or text. Whoever resumes the session must be given the same one. By default it is the
            same token for the same authority and path, so a token that is renewed between call and resume needs an `identity`.
        limits: What this client may cost, where that is less than `serve`'s `limits`: `max_event_size`, `events_per_second`,
            `messages_per_second` and `datagrams_per_second` count here, the rest does not.
        max_rate_bps: Bits per second on the wire each way, headers included, at least 12000; None for no bound but the path's.
        max_duration_s: Seconds after which the call is closed with LIMIT_EXCEEDED, breaks included; None for never.
    """

    metadata: str | bytes | None = field(default=None, repr=False)
    identity: str | bytes | None = field(default=None, repr=False)
    limits: Limits | None = None
    max_rate_bps: int | None = None
    max_duration_s: float | None = None

    def __post_init__(self) -> None:
        as_bytes("metadata", self.metadata, 4096)
        as_bytes("identity", self.identity, 65536)
        if self.max_rate_bps is not None and self.max_rate_bps < MIN_RATE_BPS:
            raise ValueError(f"max_rate_bps must be at least {MIN_RATE_BPS}, not {self.max_rate_bps}")
        if self.max_duration_s is not None and not self.max_duration_s > 0:
            raise ValueError(f"max_duration_s must be positive, not {self.max_duration_s}")

    def identity_of(self, hello: HelloReceived) -> bytes:
        """32 bytes that stand for the client: a hash, so that the token itself goes nowhere."""
        if self.identity is not None:
            return hashlib.sha256(b"identity:" + as_bytes("identity", self.identity, 65536)).digest()
        parts = (hello.authority.encode(), hello.path.encode(), hello.token)
        return hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()


Authenticate = Callable[[str, str, bytes, bytes, tuple[str, int]], Any]
"""Called with authority, path, token, metadata and address of a client before its call is taken; plain or a coroutine function.

A plain one runs in the server's loop: while it waits, all calls do. It is called once more when a session is resumed (without metadata,
which only a new call has), and what it decides then counts.

Returns None, bytes that the client gets as the call's ``metadata``, or an `Admission`. Declines by returning or raising a `RejectedError`;
one with the code REDIRECT, a `uri` and possibly a `route_token` and `retry_after` sends the client elsewhere.
"""


async def admit(
    authenticate: Authenticate | None, hello: HelloReceived, address: tuple[str, int], *, metadata: bytes, timeout: float
) -> Admission | RejectedError:
    """The terms of the call, or why it is declined. Never raises, except when cancelled.

    Args:
        authenticate: The application's check; None takes every call.
        hello: What the client said.
        address: Host and port of the client.
        metadata: What an accepted client gets when the check does not say.
        timeout: Seconds that the check may take.
    """
    if authenticate is None:
        return Admission(metadata=metadata)
    try:
        async with asyncio.timeout(timeout) as within:
            result = authenticate(hello.authority, hello.path, hello.token, hello.metadata, address)
            if inspect.isawaitable(result):
                result = await result
        return _terms(result, metadata)
    except RejectedError as rejection:
        return rejection
    except (Exception, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        if within.expired():
            logger.error("authenticate took longer than %g s for a call from %s", timeout, address[0])
            return RejectedError(ErrorCode.INTERNAL_ERROR, "the server could not check the call in time")
        # Where it failed, but not its words: they may quote the token, as those of a KeyError do.
        where = "".join(traceback.format_tb(error.__traceback__))
        logger.error("authenticate failed for a call from %s: %s (its words are kept back)\n%s", address[0], type(error).__name__, where)
        return RejectedError(ErrorCode.INTERNAL_ERROR, "the server could not check the call")


def _terms(result: object, metadata: bytes) -> Admission | RejectedError:
    if isinstance(result, RejectedError):
        return result
    if result is None:
        return Admission(metadata=metadata)
    if isinstance(result, Admission):
        return result if result.metadata is not None else replace(result, metadata=metadata)
    if not isinstance(result, str | bytes):
        raise TypeError(f"authenticate must return None, bytes, an Admission or a RejectedError, not {type(result).__name__}")
    return Admission(metadata=as_bytes("metadata", result, 4096))
