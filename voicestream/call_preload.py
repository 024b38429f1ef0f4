"""Loads what turns PCM into frames and back while a call is being opened, so that its first word does not wait for it.

``import voicestream`` stays quick, and the codec's library, which relays of coded frames do without, is still loaded at first use.
"""

from __future__ import annotations

import asyncio
import sys

__all__ = ["preload"]

_PIPELINE = "voicestream.audio.pipeline"


def preload() -> asyncio.Future[None]:
    """Begin to load in a thread; await the result before the call is handed out."""
    loop = asyncio.get_running_loop()
    if _PIPELINE in sys.modules:
        done: asyncio.Future[None] = loop.create_future()
        done.set_result(None)
        return done
    return loop.run_in_executor(None, _load)


def _load() -> None:
    import voicestream.audio.pipeline
    import voicestream.core.playout  # noqa: F401
