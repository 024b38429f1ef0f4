"""Coded media as the frames of a datagram: the same frame travels as audio, as a retransmission or as a low-rate copy."""

from __future__ import annotations

from typing import TypeVar

from voicestream.media import MediaFrame
from voicestream.wire.frame_values import AudioFrame, CopyFrame, RetransmissionFrame

__all__ = ["coded"]

F = TypeVar("F", AudioFrame, RetransmissionFrame, CopyFrame)


def coded(kind: type[F], media: MediaFrame) -> F:
    """The frame of this kind that carries `media`, byte for byte what was coded (VS-4.7-2)."""
    return kind(
        track=media.track,
        pts=media.pts & 0xFFFF,
        payload=media.payload,
        clear_number=media.clear_number & 3,
        talkspurt_start=media.talkspurt_start,
        talkspurt_end=media.talkspurt_end,
    )
