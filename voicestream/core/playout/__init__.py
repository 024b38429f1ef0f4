"""Playout: when which frame of a received track is played, and the reader for those who want every frame in order."""

from __future__ import annotations

from voicestream.core.playout.account import PlayoutAccount
from voicestream.core.playout.decision import Accelerate, Conceal, Decision, Decode, Expand, Merge, Repair, Silence
from voicestream.core.playout.ordered import Gap, OrderedAccount, OrderedReader
from voicestream.core.playout.playout import Playout

__all__ = [
    "Accelerate",
    "Conceal",
    "Decision",
    "Decode",
    "Expand",
    "Gap",
    "Merge",
    "OrderedAccount",
    "OrderedReader",
    "Playout",
    "PlayoutAccount",
    "Repair",
    "Silence",
]
