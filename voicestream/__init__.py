"""VoiceStream: live speech both ways over QUIC.

`connect` opens a call, `serve` takes calls, `Call` is what both give. Everything named here is public; modules below
``voicestream.wire``, ``voicestream.core`` and ``voicestream.session`` are for those who bring their own I/O.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voicestream.audio.files import read_wav, write_wav
    from voicestream.call import Call
    from voicestream.call_events import CallEvent
    from voicestream.call_frames import AudioBlock
    from voicestream.call_stats import CallStats
    from voicestream.client import connect
    from voicestream.codepoints import CodecId, ErrorCode, EventKind
    from voicestream.config import AudioConfig, Limits, PlayoutConfig, RateConfig, SessionConfig, Track
    from voicestream.errors import (
        AudioError,
        CallClosed,
        CallClosedError,
        CallClosedOK,
        CertificateError,
        ConnectError,
        InsecureWarning,
        LocalError,
        ProtocolError,
        RejectedError,
        StateError,
        VoiceStreamError,
    )
    from voicestream.server import Server, serve
    from voicestream.server_admission import Admission

__all__ = [
    "Admission",
    "AudioBlock",
    "AudioConfig",
    "AudioError",
    "Call",
    "CallClosed",
    "CallClosedError",
    "CallClosedOK",
    "CallEvent",
    "CallStats",
    "CertificateError",
    "CodecId",
    "ConnectError",
    "ErrorCode",
    "EventKind",
    "InsecureWarning",
    "Limits",
    "LocalError",
    "PlayoutConfig",
    "ProtocolError",
    "RateConfig",
    "RejectedError",
    "Server",
    "SessionConfig",
    "StateError",
    "Track",
    "VoiceStreamError",
    "connect",
    "read_wav",
    "serve",
    "write_wav",
]

_MODULES = {
    "audio.files": ("read_wav", "write_wav"),
    "call": ("Call",),
    "call_events": ("CallEvent",),
    "call_frames": ("AudioBlock",),
    "call_stats": ("CallStats",),
    "client": ("connect",),
    "codepoints": ("CodecId", "ErrorCode", "EventKind"),
    "config": ("AudioConfig", "Limits", "PlayoutConfig", "RateConfig", "SessionConfig", "Track"),
    "errors": (
        "AudioError",
        "CallClosed",
        "CallClosedError",
        "CallClosedOK",
        "CertificateError",
        "ConnectError",
        "InsecureWarning",
        "LocalError",
        "ProtocolError",
        "RejectedError",
        "StateError",
        "VoiceStreamError",
    ),
    "server": ("Server", "serve"),
    "server_admission": ("Admission",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    # Loaded when first used: whoever wants only an exception or the wire formats does not pay for aioquic and numpy.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
