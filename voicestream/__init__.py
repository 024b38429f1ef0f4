"""VoiceStream: live speech both ways over QUIC."""

from __future__ import annotations
