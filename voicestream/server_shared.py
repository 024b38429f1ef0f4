"""What servers share through a store: who has which session, and how one is taken up by another server (specification section 11.3)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final

from voicestream.call_options import CallInfo
from voicestream.codepoints import ErrorCode
from voicestream.core.resume import same_bytes
from voicestream.errors import ProtocolError, RejectedError
from voicestream.server_admission import Admission
from voicestream.session import ServerSession
from voicestream.session.carried import Carried
from voicestream.store import SessionRecord, SessionStore, StoreError, StoreWriter

__all__ = ["Claim", "Shared", "state_of"]

logger = logging.getLogger("voicestream.server")

STORE_TIMEOUT_S: Final = 2.0
"""Seconds that the store gets when somebody waits for it: a client that wants its session, a server that wants to leave."""

ATTEMPTS: Final = 4
"""How often a session is asked for whose record changes meanwhile."""

RETRY_AFTER: Final = 0.5

OWNER_SIZE: Final = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A session that is ours now. `info`: what is known of its call."""

    session: ServerSession
    record: SessionRecord
    info: CallInfo


def state_of(session: ServerSession, info: CallInfo) -> bytes:
    """What a session and its call would take along to another server."""
    carried = session.carried()
    call = (info.authority, info.path, b64encode(info.metadata).decode())
    return b"" if carried is None else json.dumps({"session": carried.to_json(), "call": call}, separators=(",", ":")).encode()


class Shared:
    """A server's part in what servers share.

    Args:
        store: Where it is.
        on_superseded: Called with the id of a session that another server has taken.
        before_batch: Called before each batch that is written.

    Attributes:
        owner: Names this server in the store.
        writer: Writes what changes.
        taken: Sessions taken up that another server had.
        unreachable: Requests to resume that were put off because the store did not answer.
    """

    __slots__ = ("_store", "owner", "taken", "unreachable", "writer")

    def __init__(self, store: SessionStore, *, on_superseded: Callable[[bytes], None], before_batch: Callable[[], None]) -> None:
        self.owner = os.urandom(OWNER_SIZE)
        self.writer = StoreWriter(store, on_superseded=on_superseded, before_batch=before_batch)
        self.taken = 0
        self.unreachable = 0
        self._store = store

    async def claim(
        self,
        session_id: bytes,
        fresh: ServerSession,
        *,
        identity: bytes,
        terms: Admission,
        new_session: Callable[[], ServerSession],
        locked: AbstractContextManager[object],
        clock: Callable[[], float],
    ) -> Claim:
        """Take a session from the store.

        Args:
            session_id: Its name.
            fresh: The session that got the RESUME.
            identity: Who the client has just proved to be.
            terms: What holds for the call here.
            new_session: Makes the session that goes on here.
            locked: Held while sessions are looked at.
            clock: Monotonic seconds.

        Raises:
            ProtocolError: It is not to be had, and why: to be told to the client.
            RejectedError: It is not to be had at present (BUSY).
            StateError: The client has given up.
        """
        with locked:
            fresh.requested(identity)  # no question to the store for somebody who has no token
        for _ in range(ATTEMPTS):
            record = await self._asked(self._store.get(session_id))
            if record is None:
                raise ProtocolError(ErrorCode.SESSION_UNKNOWN, "there is no such session")
            if not same_bytes(record.identity, identity):
                raise ProtocolError(ErrorCode.TOKEN_INVALID, "the resume token is not valid")
            carried, info = _parse(record)
            session = new_session()
            with locked:
                session.tighten(terms.limits, terms.max_rate_bps)
                claim = self._fit(session, record, carried, fresh, identity, clock())
            # VS-11.4-2
            if await self._asked(self._store.advance(claim, before=record.version)):
                self.taken += 1
                return Claim(session=session, record=claim, info=info)
            with locked:
                session.close(clock(), ErrorCode.SUPERSEDED, "another server was quicker")
        raise RejectedError(ErrorCode.BUSY, "several servers are asked for the session", retry_after=RETRY_AFTER)

    def _fit(
        self, session: ServerSession, record: SessionRecord, carried: Carried, fresh: ServerSession, identity: bytes, now: float
    ) -> SessionRecord:
        session.restore(
            carried,
            now,
            session_id=record.session_id,
            identity=record.identity,
            confirmed=record.confirmed,
            issued=record.generation,
            processed_pts=record.processed_pts,
        )
        try:
            confirmed, issued = session.prepare(fresh, identity=identity)
        except BaseException:
            session.close(now, ErrorCode.SUPERSEDED, "not to be resumed here")
            raise
        return replace(record, owner=self.owner, confirmed=confirmed, generation=issued)

    async def _asked(self, question: Any) -> Any:
        """The store's answer, or BUSY: what cannot be looked up now may be there in a second."""
        try:
            async with asyncio.timeout(STORE_TIMEOUT_S):
                return await question
        except Exception as error:
            self.unreachable += 1  # VS-11.4-3
            logger.warning("a session cannot be resumed at present, since the store does not answer: %s", error or type(error).__name__)
            pause = error.retry_after if isinstance(error, StoreError) else RETRY_AFTER
            raise RejectedError(ErrorCode.BUSY, "the session cannot be looked up at present", retry_after=max(0.1, pause)) from error

    def counters(self) -> dict[tuple[str, str], float]:
        """What became of batches, requests to the store and sessions of other servers, by name of the metric and its label."""
        writer = self.writer
        found: dict[tuple[str, str], float] = {
            ("store", "written"): writer.batches,
            ("store", "failed"): writer.failures,
            ("store", "unwritten"): writer.unwritten,
            ("takeovers", "taken"): self.taken,
            ("takeovers", "unreachable"): self.unreachable,
        }
        # A store may count for itself.
        stats = getattr(self._store, "stats", None)
        if is_dataclass(stats) and not isinstance(stats, type):
            found |= {("store_requests", one.name): getattr(stats, one.name) for one in fields(stats)}
        return found

    async def flush(self) -> None:
        """Write what there is to write, if the store takes it in time."""
        try:
            async with asyncio.timeout(STORE_TIMEOUT_S):
                await self.writer.flush()
        except TimeoutError:
            logger.warning("the session store did not take the last batch in time")


def _parse(record: SessionRecord) -> tuple[Carried, CallInfo]:
    try:
        state = json.loads(record.state)
        carried = Carried.from_json(state["session"])
        authority, path, metadata = state["call"]
        if not (isinstance(authority, str) and isinstance(path, str)):
            raise ValueError("not the state of a call")
        info = CallInfo(
            authority=authority,
            path=path,
            metadata=b64decode(metadata, validate=True),
            remote_address=("", 0),
            session_id=record.session_id,
            continued=True,
        )
    except (ValueError, TypeError, KeyError) as error:
        logger.warning("the store has a session that makes no sense: %s", error)
        raise ProtocolError(ErrorCode.SESSION_UNKNOWN, "there is no such session") from error
    return carried, info
