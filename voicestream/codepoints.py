"""Every number that has a meaning on the wire (specification section 12, Registries).

The JSON files in ``spec/registries`` are the normative lists; ``tests/test_codepoints.py`` holds the two equal.
Decoders keep values that are not listed here: an unknown value is the caller's to skip, never an error by itself.
"""

from __future__ import annotations

import enum
from typing import Final

ALPN: Final = "voicestream/1"
"""ALPN token of protocol version 1 (specification section 3)."""

VERSION: Final = 1
"""Protocol version that HELLO carries."""

GREASE_STEP: Final = 0x1F
GREASE_BASE: Final = 0x3D

AUDIO_BIT: Final = 0x80
"""Set in the type byte of an AUDIO frame; the other seven bits are its fields."""


def is_grease(value: int) -> bool:
    """Whether `value` is reserved to exercise the skipping of unknown values (specification section 12.1). VS-12.1-1"""
    return value >= GREASE_BASE and (value - GREASE_BASE) % GREASE_STEP == 0


class FrameType(enum.IntEnum):
    """Types of frames in a datagram below 0x80. Where `track` applies, the two low bits are the track id."""

    PADDING = 0x00
    REPORT = 0x01
    PROBE = 0x02
    REPAIR = 0x10
    COPY = 0x14
    RETRANSMISSION = 0x18
    ANCHOR = 0x1C
    CLEAR = 0x20
    CLEARED = 0x24
    PROGRESS = 0x28
    MISSING = 0x2C


class StreamType(enum.IntEnum):
    """First varint of a unidirectional stream."""

    EVENT = 0x01


class MessageType(enum.IntEnum):
    """Types of control messages."""

    HELLO = 0x01
    ACCEPT = 0x02
    REJECT = 0x03
    RESUME = 0x04
    RESUMED = 0x05
    CONFIRM = 0x06
    SETTINGS = 0x07
    CLEAR = 0x08
    CLEARED = 0x09
    PROGRESS = 0x0A
    FINISH = 0x0B
    FINISHED = 0x0C
    GOING_AWAY = 0x0D
    CLOSE = 0x0E


class ParameterId(enum.IntEnum):
    """Ids of parameters in the messages that carry a parameter list."""

    AUTHORITY = 0x01
    PATH = 0x02
    TOKEN = 0x03
    METADATA = 0x04
    TRACK = 0x05
    MAX_DATAGRAM_SIZE = 0x06
    MAX_EVENT_SIZE = 0x07
    LOOKAHEAD_MS = 0x08
    RETAIN_MS = 0x09
    MAX_RATE_BPS = 0x0A
    SESSION_ID = 0x10
    RESUME_TOKEN = 0x11
    GENERATION = 0x12
    LIFETIME_MS = 0x13
    HELD = 0x14
    NEXT_EVENT = 0x15
    REPLAY_MS = 0x16
    REASON = 0x20
    URI = 0x21
    ROUTE_TOKEN = 0x22
    RETRY_AFTER_MS = 0x23


class CodecId(enum.IntEnum):
    """Codecs of a track."""

    OPUS = 0x01
    PCMU = 0x02
    PCMA = 0x03
    L16 = 0x04
    PRIVATE = 0x40


class EventKind(enum.IntEnum):
    """What the payload of an application event is."""

    BYTES = 0x00
    TEXT = 0x01
    JSON = 0x02


class ErrorCode(enum.IntEnum):
    """Codes of REJECT and CLOSE, and the application error codes of the QUIC connection and its streams."""

    NO_ERROR = 0x00
    INTERNAL_ERROR = 0x01
    FRAME_ENCODING_ERROR = 0x02
    MESSAGE_ENCODING_ERROR = 0x03
    MESSAGE_TOO_LARGE = 0x04
    UNEXPECTED_MESSAGE = 0x05
    CONTROL_STREAM_ERROR = 0x06
    VERSION_UNSUPPORTED = 0x07
    PARAMETER_ERROR = 0x08
    AUDIO_BEFORE_ACCEPT = 0x09
    MEDIA_ERROR = 0x0A
    TRACK_ERROR = 0x0B
    EVENT_ENCODING_ERROR = 0x0C
    EVENT_TOO_LARGE = 0x0D
    LIMIT_EXCEEDED = 0x0E
    HANDSHAKE_TIMEOUT = 0x0F
    IDLE_TIMEOUT = 0x10
    UNAUTHORIZED = 0x11
    FORBIDDEN = 0x12
    NOT_FOUND = 0x13
    BUSY = 0x14
    REDIRECT = 0x15
    GOING_AWAY = 0x16
    HANDLER_ERROR = 0x17
    SESSION_UNKNOWN = 0x18
    TOKEN_INVALID = 0x19
    TOKEN_USED = 0x1A
    SUPERSEDED = 0x1B
    PATH_LOST = 0x1C
    REPORT_ERROR = 0x1D


def error_name(code: int) -> str:
    """The registered name of an error code, or its number in hexadecimal when it is not registered."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"0x{code:x}"
