"""Arguments of connect and serve."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import voicestream
from voicestream.call_options import as_bytes, call_options
from voicestream.config import AudioConfig, SessionConfig, Track

DEFAULTS: dict[str, Any] = {
    "sample_rate_hz": 48000,
    "channels": 1,
    "bitrate_bps": 40000,
    "frame_ms": 20,
    "application": "voip",
    "dtx": False,
    "complexity": 9,
    "lookahead_ms": 150,
    "tracks": None,
    "rate": None,
    "limits": None,
    "retain_s": 30.0,
    "session_lifetime_s": 300.0,
    "metadata": b"",
    "observer": None,
}


def test_the_defaults_are_those_of_the_configuration() -> None:
    options = call_options(**DEFAULTS)
    assert options.audio == AudioConfig()
    assert options.session == SessionConfig()
    assert options.voice_track == Track()


@pytest.mark.parametrize("front", [voicestream.connect, voicestream.serve])
def test_connect_and_serve_show_the_same_defaults(front: Any) -> None:
    parameters = inspect.signature(front).parameters
    for name, value in DEFAULTS.items():
        assert parameters[name].default == value, name
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("front", [voicestream.connect, voicestream.serve])
def test_every_argument_is_explained(front: Any) -> None:
    doc = inspect.getdoc(front) or ""
    for name in inspect.signature(front).parameters:
        assert f"    {name}: " in doc, f"{front.__name__}({name})"


@pytest.mark.parametrize(
    "change",
    [
        {"sample_rate_hz": 4000},
        {"channels": 3},
        {"bitrate_bps": 128000},
        {"frame_ms": 25},
        {"application": "music"},
        {"complexity": 11},
        {"lookahead_ms": 10},
        {"tracks": []},
        {"retain_s": 1},
        {"session_lifetime_s": 10},
        {"metadata": b"x" * 4097},
    ],
)
def test_a_value_out_of_range_is_refused_by_name(change: dict[str, Any]) -> None:
    (name,) = change
    with pytest.raises(ValueError, match=name):
        call_options(**{**DEFAULTS, **change})


def test_a_short_lookahead_starts_short_too() -> None:
    assert call_options(**{**DEFAULTS, "lookahead_ms": 20}).session.playout.start_ms == 20


def test_stereo_goes_out_on_a_stereo_track() -> None:
    assert call_options(**{**DEFAULTS, "channels": 2}).voice_track.channels == 2


def test_a_token_may_be_text_or_bytes() -> None:
    assert as_bytes("token", "ü", 10) == "ü".encode()
    assert as_bytes("token", b"x", 10) == b"x"
    assert as_bytes("token", None, 10) == b""
    with pytest.raises(TypeError, match="token"):
        as_bytes("token", 5, 10)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at most 3 bytes"):
        as_bytes("token", "1234", 3)
