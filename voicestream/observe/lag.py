"""How late the event loop comes to what is due: the same measure in a server's figures, in the soak and under load."""

from __future__ import annotations

import asyncio
from typing import Final

__all__ = ["LAG_STEP", "late_by"]

LAG_STEP: Final = 0.02
"""Seconds between two looks of those who do nothing else: a frame."""


async def late_by(seconds: float = LAG_STEP) -> float:
    """Sleep so long; seconds that the loop came back later than that, 0 or more."""
    clock = asyncio.get_running_loop().time
    due = clock() + seconds
    await asyncio.sleep(seconds)
    return max(0.0, clock() - due)
