"""What is kept of a session, and what a store has to be able to do."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

__all__ = ["MAX_CONTEXT", "MAX_STATE", "SessionRecord", "SessionStore", "StoreError", "decode_record", "encode_record"]

MAX_CONTEXT: Final = 65536
"""Bytes of application context of one session."""

MAX_STATE: Final = 32768
"""Bytes of what the session itself needs to go on elsewhere."""

MAX_NUMBER: Final = 1 << 52
"""Bound of generations: a store may count in floating point."""

_FORMAT: Final = 1
_HEAD: Final = struct.Struct(">BQQQHII")


class StoreError(Exception):
    """A store cannot be asked at present.

    Attributes:
        retry_after: Seconds after which it is worth asking again.
    """

    def __init__(self, reason: str, retry_after: float = 1.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionRecord:
    """One session as other servers may know it.

    Attributes:
        session_id: 16 bytes.
        identity: Who opened it, at most 256 bytes.
        generation: Highest generation of its tokens that was given out.
        confirmed: Highest generation whose token the client is known to hold; `generation` or one less.
        owner: Names the server that has the session, at most 32 bytes.
        context: The application's bytes, at most 65536.
        processed_pts: Media time of the far end up to which the application is done, in pts units of 2.5 ms.
        state: What the session itself needs to go on at another server, at most 32768 bytes.
    """

    session_id: bytes
    identity: bytes = field(default=b"", repr=False)
    generation: int = 0
    confirmed: int = 0
    owner: bytes = b""
    context: bytes = field(default=b"", repr=False)
    processed_pts: int = 0
    state: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if len(self.session_id) != 16 or len(self.identity) > 256 or len(self.owner) > 32:
            raise ValueError("a record needs a session id of 16 bytes, an identity of at most 256 and an owner of at most 32")
        if not 0 <= self.generation < MAX_NUMBER or not 0 <= self.confirmed <= self.generation or not 0 <= self.processed_pts < 1 << 62:
            raise ValueError("generation and processed_pts must not be negative, nor absurd, and confirmed must not exceed generation")
        if len(self.context) > MAX_CONTEXT:
            raise ValueError(f"context must have at most {MAX_CONTEXT} bytes, not {len(self.context)}")
        if len(self.state) > MAX_STATE:
            raise ValueError(f"state must have at most {MAX_STATE} bytes, not {len(self.state)}")

    @property
    def version(self) -> int:
        """Grows with each token that is given out, and with each that a client confirms: of two records the higher one is right."""
        return self.generation + self.confirmed

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return len(self.session_id) + len(self.identity) + len(self.context) + len(self.state) + 64


def encode_record(record: SessionRecord) -> bytes:
    """A record as bytes, without its session id and owner, by which a store finds it."""
    head = _HEAD.pack(
        _FORMAT,
        record.generation,
        record.confirmed,
        record.processed_pts,
        len(record.identity),
        len(record.state),
        len(record.context),
    )
    return b"".join((head, record.identity, record.state, record.context))


def decode_record(session_id: bytes, owner: bytes, data: bytes) -> SessionRecord:
    """What `encode_record` made.

    Raises:
        ValueError: It did not make this.
    """
    if len(data) < _HEAD.size:
        raise ValueError("the record is too short")
    form, generation, confirmed, processed_pts, identity_size, state_size, context_size = _HEAD.unpack_from(data)
    if form != _FORMAT or len(data) != _HEAD.size + identity_size + state_size + context_size:
        raise ValueError("the record has another form or length")
    state_at = _HEAD.size + identity_size
    context_at = state_at + state_size
    return SessionRecord(
        session_id=session_id,
        identity=data[_HEAD.size : state_at],
        generation=generation,
        confirmed=confirmed,
        owner=owner,
        context=data[context_at:],
        processed_pts=processed_pts,
        state=data[state_at:context_at],
    )


class SessionStore(Protocol):
    """A store that servers share. What is not written again within the store's time to live is gone.

    Every method may raise, best a `StoreError`: a server writes again later, and asks a client whose session it cannot look up to
    come again.
    """

    async def put(self, records: Iterable[SessionRecord]) -> list[bytes]:
        """Keep these records in place of older ones of the same sessions.

        A record changes nothing where one of a higher `version` is kept, or one of the same version and another owner.

        Returns:
            Ids of the sessions of which a higher version is kept: another server has taken them over.
        """

    async def get(self, session_id: bytes) -> SessionRecord | None:
        """The record of a session, or None."""

    async def advance(self, record: SessionRecord, *, before: int) -> bool:
        """Keep `record` if the kept one has version `before`, in one step; returns whether it did."""

    async def remove(self, records: Iterable[SessionRecord]) -> None:
        """These sessions are over; nothing changes where another owner's record is kept."""
