"""The two pipelines: from PCM to coded frames, and from playout decisions to PCM."""

from __future__ import annotations

from voicestream.audio.capture import Capture, CodedFrame
from voicestream.audio.player import Player, PlayerStats

__all__ = ["Capture", "CodedFrame", "Player", "PlayerStats"]
