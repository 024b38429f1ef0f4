"""What is kept of a session, and what a store has to be able to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

__all__ = ["MAX_CONTEXT", "SessionRecord", "SessionStore"]

MAX_CONTEXT: Final = 65536
"""Bytes of application context of one session."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionRecord:
    """One session as other servers may know it.

    Attributes:
        session_id: 16 bytes.
        identity: Who opened it, at most 256 bytes.
        generation: Highest generation of its tokens that was given out.
        context: The application's bytes, at most 65536.
        processed_pts: Media time of the far end up to which the application is done, in pts units of 2.5 ms.
    """

    session_id: bytes
    identity: bytes = field(default=b"", repr=False)
    generation: int = 0
    context: bytes = field(default=b"", repr=False)
    processed_pts: int = 0

    def __post_init__(self) -> None:
        if len(self.session_id) != 16 or len(self.identity) > 256:
            raise ValueError("a record needs a session id of 16 bytes and an identity of at most 256")
        if self.generation < 0 or self.processed_pts < 0:
            raise ValueError("generation and processed_pts must not be negative")
        if len(self.context) > MAX_CONTEXT:
            raise ValueError(f"context must have at most {MAX_CONTEXT} bytes, not {len(self.context)}")

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return len(self.session_id) + len(self.identity) + len(self.context) + 64


class SessionStore(Protocol):
    """A store that servers share. What is not written again within the store's time to live is gone."""

    async def put(self, records: Iterable[SessionRecord]) -> None:
        """Keep these records in place of older ones of the same sessions; one of a lower generation than the kept one changes nothing."""

    async def get(self, session_id: bytes) -> SessionRecord | None:
        """The record of a session, or None."""

    async def advance(self, record: SessionRecord, *, before: int) -> bool:
        """Keep `record` if the kept one has generation `before`, in one step; returns whether it did."""

    async def remove(self, session_ids: Iterable[bytes]) -> None:
        """These sessions are over."""
