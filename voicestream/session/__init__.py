"""The session without input and output of its own (specification sections 5 to 8): bytes, time and verbs in, bytes and events out."""

from __future__ import annotations

from voicestream.session.base import Session
from voicestream.session.client import ClientSession
from voicestream.session.machine import Grant
from voicestream.session.negotiation import PeerLimits
from voicestream.session.receiver import Receiver
from voicestream.session.server import ServerSession
from voicestream.session.stats import SessionStats, TrackStats

__all__ = ["ClientSession", "Grant", "PeerLimits", "Receiver", "ServerSession", "Session", "SessionStats", "TrackStats"]
