"""What most cases do: send something, and see whether the far end refuses or takes it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from interop.model import ROLES, Outcome, Unsupported, Verdict, case
from interop.peers.meeting import Met
from voicestream.codepoints import ErrorCode, error_name
from voicestream.wire import AudioFrame, ReportFrame

__all__ = ["alive", "audio_comes", "failed", "message", "number", "parameter", "passed", "refusals", "refused", "takes"]

REACTION: Final = 3.0
"""Seconds within which an error has to end the session. The wire answers in milliseconds; a busy machine does not."""

ASKED_AGAIN: Final = 0.5
"""Seconds after which a question in a datagram is repeated."""


def passed(words: str = "", **measured: float) -> Outcome:
    return Outcome(words=words, measured=measured)


def failed(words: str) -> Outcome:
    return Outcome(behaviour=Verdict.FAIL, words=words)


async def refused(peer: Met, *codes: ErrorCode, harmless: bool = False, timeout: float = REACTION) -> Outcome:
    """The far end has to end the session, with one of these codes."""
    begun = time.monotonic()
    end = await peer.ended(timeout)
    wanted = " or ".join(code.name for code in codes)
    if end is None:
        return Outcome(behaviour=Verdict.NON_STRICT if harmless else Verdict.FAIL, words=f"goes on; {wanted} was due")
    reaction = (time.monotonic() - begun) * 1000
    words = f"{end}"
    right = end.code in codes
    if not right:
        words += f"; {wanted} was due"
    return Outcome(close=Verdict.PASS if right else Verdict.FAIL, words=words, measured={"reaction_ms": round(reaction, 1)})


async def alive(peer: Met, timeout: float = 5.0) -> Outcome:
    """The far end has to go on: it answers a datagram without frames with a report (VS-9.1-1)."""
    own, found = peer.say(), None
    begun = time.monotonic()
    while found is None and peer.end is None and time.monotonic() - begun < timeout:
        found = await peer.first(ReportFrame, ASKED_AGAIN, where=lambda report: (report.newest - own) & 0xFFFF < 0x8000)
        if found is None and peer.end is None:
            peer.say()  # a datagram may be lost
    if peer.end is not None:
        return Outcome(behaviour=Verdict.FAIL, close=None, words=f"ended the session: {peer.end}")
    if found is None:
        return failed("does not answer any more: no report")
    return passed("goes on")


async def audio_comes(peer: Met, frames: int = 10, timeout: float = 5.0) -> list[AudioFrame]:
    """So many audio frames of the far end.

    Raises:
        Unsupported: It does not speak.
    """
    await peer.until(lambda: peer.audio() if len(peer.audio()) >= frames else None, timeout)
    heard = peer.audio()
    if len(heard) < frames:
        raise Unsupported("it sends no audio, without which there is nothing to see")
    return heard


def refusals(
    *each: tuple[str, str, str, Callable[[Met], Any]],
    code: ErrorCode | tuple[ErrorCode, ...],
    roles: tuple[str, ...] = ROLES,
    opened: bool = True,
    harmless: bool = False,
    **setup: Any,
) -> None:
    """Register cases of (name, requirement(s), title, what is sent), all of which are to be refused with this code."""
    codes = code if isinstance(code, tuple) else (code,)

    def one(send: Callable[[Met], Any]) -> Callable[[Met], Any]:
        async def run(peer: Met) -> Outcome:
            send(peer)
            return await refused(peer, *codes, harmless=harmless)

        return run

    for name, requirements, title, send in each:
        words = f"{title}: {' or '.join(error_name(code) for code in codes)}"
        case(*requirements.split(), title=words, roles=roles, opened=opened, harmless=harmless, name=name, **setup)(one(send))


def takes(*each: tuple[str, str, str, Callable[[Met], Any]], roles: tuple[str, ...] = ROLES, **setup: Any) -> None:
    """Register cases of what is to be taken or skipped without an end of the session."""

    def one(send: Callable[[Met], Any]) -> Callable[[Met], Any]:
        async def run(peer: Met) -> Outcome:
            send(peer)
            return await alive(peer)

        return run

    for name, requirements, title, send in each:
        case(*requirements.split(), title=f"{title}: is taken or skipped", roles=roles, name=name, **setup)(one(send))


def number(value: int, size: int | None = None) -> bytes:
    """A variable-length integer, in a form of this many bytes if that is given."""
    if size is None:
        size = next(size for size in (1, 2, 4, 8) if value < 1 << 8 * size - 2)
    return (value | {1: 0, 2: 1, 4: 2, 8: 3}[size] << 8 * size - 2).to_bytes(size, "big")


def parameter(name: int, value: bytes) -> bytes:
    """A parameter in its list."""
    return number(name) + number(len(value)) + value


def message(kind: int, payload: bytes) -> bytes:
    """A control message."""
    return number(kind) + number(len(payload)) + payload
