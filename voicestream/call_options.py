"""From the keyword arguments of `connect` and `serve` to checked configuration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, SupportsFloat

from voicestream.codepoints import CodecId
from voicestream.config import AudioConfig, Limits, PlayoutConfig, RateConfig, SessionConfig, Track
from voicestream.trace import Observer

__all__ = ["CallInfo", "CallOptions", "as_bytes", "as_seconds", "call_options"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CallOptions:
    """Configuration of the calls of one `connect` or `serve`.

    Attributes:
        audio: Form of the application's PCM and of its coding.
        session: Everything that the session needs.
        observer: Takes trace records, if anybody does.
    """

    audio: AudioConfig
    session: SessionConfig
    observer: Observer | None = None

    @property
    def voice_track(self) -> Track:
        """The track that PCM is sent and heard on: the first one."""
        return self.session.tracks[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class CallInfo:
    """What is known of a call when it begins.

    Attributes:
        authority: Host and port that the client called.
        path: Path that the client called.
        metadata: Bytes that the far end sent with its hello or its acceptance.
        remote_address: Host and port of the far end.
        session_id: 16 random bytes that name the session.
        continued: Another server had the call before.
    """

    authority: str
    path: str
    metadata: bytes = field(repr=False)
    remote_address: tuple[str, int]
    session_id: bytes
    continued: bool = False


def as_bytes(name: str, value: str | bytes | None, most: int) -> bytes:
    """An option that may be given as text.

    Raises:
        TypeError: Neither text nor bytes.
        ValueError: More than `most` bytes.
    """
    if value is None:
        return b""
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes | bytearray):
        raise TypeError(f"{name} must be str or bytes, not {type(value).__name__}")
    if len(value) > most:
        raise ValueError(f"{name} must have at most {most} bytes, not {len(value)}")
    return bytes(value)


def call_options(
    *,
    sample_rate_hz: int,
    channels: int,
    bitrate_bps: int,
    frame_ms: int,
    application: Literal["voip", "audio", "lowdelay"],
    dtx: bool,
    complexity: int,
    lookahead_ms: int,
    tracks: Sequence[Track] | None,
    rate: RateConfig | None,
    limits: Limits | None,
    retain_s: float,
    session_lifetime_s: float,
    metadata: str | bytes,
    observer: Observer | None,
) -> CallOptions:
    """Check and sort the arguments that `connect` and `serve` share.

    Raises:
        TypeError, ValueError: With the name of the argument and what it may be.
    """
    audio = AudioConfig(
        sample_rate_hz=sample_rate_hz,
        channels=channels,
        bitrate_bps=bitrate_bps,
        frame_ms=frame_ms,
        application=application,
        dtx=dtx,
        complexity=complexity,
    )
    session = SessionConfig(
        tracks=tuple(tracks) if tracks is not None else (Track(codec=CodecId.OPUS, channels=channels),),
        rate=rate or RateConfig(),
        playout=PlayoutConfig(lookahead_ms=lookahead_ms, start_ms=min(PlayoutConfig().start_ms, lookahead_ms)),
        limits=limits or Limits(),
        frame_ms=frame_ms,
        bitrate_bps=bitrate_bps,
        retain_s=retain_s,
        session_lifetime_s=session_lifetime_s,
        metadata=as_bytes("metadata", metadata, 4096),
    )
    return CallOptions(audio=audio, session=session, observer=observer)


def as_seconds(name: str, value: float, most: float = math.inf) -> float:
    """A time of the media, or of a device.

    Raises:
        TypeError: No number.
        ValueError: Below 0, above `most`, or not finite.
    """
    if isinstance(value, str | bytes) or not isinstance(value, SupportsFloat):
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    seconds = float(value)
    if not (math.isfinite(seconds) and 0 <= seconds <= most):
        bounds = "0 or more" if most == math.inf else f"0 to {most:g}"
        raise ValueError(f"{name} must be {bounds} seconds, not {value}")
    return seconds
