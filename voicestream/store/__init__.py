"""Where servers keep what a session needs to be known by (specification section 11.3), beside the living sessions themselves."""

from __future__ import annotations

from voicestream.store.memory import MemoryStore
from voicestream.store.record import MAX_CONTEXT, SessionRecord, SessionStore, StoreError
from voicestream.store.redis import RedisStore
from voicestream.store.writer import StoreWriter

__all__ = ["MAX_CONTEXT", "MemoryStore", "RedisStore", "SessionRecord", "SessionStore", "StoreError", "StoreWriter"]
