"""Whether a client's call is taken: the application's check, and everything that can go wrong in it."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

from voicestream.call_options import as_bytes
from voicestream.codepoints import ErrorCode
from voicestream.errors import RejectedError
from voicestream.events import HelloReceived

__all__ = ["Authenticate", "admit"]

logger = logging.getLogger("voicestream.server")

Authenticate = Callable[[str, str, bytes, bytes, tuple[str, int]], Any]
"""Called with authority, path, token, metadata and address of a client before its call is taken; plain or a coroutine function.

Returns None, or bytes that the client gets as the call's ``metadata``. Declines by returning or raising a `RejectedError`.
"""


async def admit(
    authenticate: Authenticate | None, hello: HelloReceived, address: tuple[str, int], *, metadata: bytes, timeout: float
) -> bytes | RejectedError:
    """Metadata of the acceptance, or why the call is declined. Never raises, except when cancelled.

    Args:
        authenticate: The application's check; None takes every call.
        hello: What the client said.
        address: Host and port of the client.
        metadata: What an accepted client gets when the check returns None.
        timeout: Seconds that the check may take.
    """
    if authenticate is None:
        return metadata
    try:
        async with asyncio.timeout(timeout):
            result = authenticate(hello.authority, hello.path, hello.token, hello.metadata, address)
            if inspect.isawaitable(result):
                result = await result
        if isinstance(result, RejectedError):
            return result
        return metadata if result is None else as_bytes("metadata", result, 4096)
    except RejectedError as rejection:
        return rejection
    except Exception:
        logger.exception("authenticate failed for a call from %s", address[0])
        return RejectedError(ErrorCode.INTERNAL_ERROR, "the server could not check the call")
