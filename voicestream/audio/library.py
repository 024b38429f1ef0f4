"""Finds libopus and makes opuslib use it.

Order: the file that ``VOICESTREAM_LIBOPUS`` names, the system's library, the one inside the ``opuslib-next-bundled`` wheel.
Nothing is searched or loaded before the first Opus codec is made, so the package can be imported on a machine without libopus.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import importlib.util
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voicestream.errors import AudioError

__all__ = ["ENVIRONMENT_VARIABLE", "OpusApi", "PacketError", "load_opus"]

ENVIRONMENT_VARIABLE = "VOICESTREAM_LIBOPUS"

_HINT = (
    "no usable libopus was found: install it (Debian: libopus0, Homebrew: opus), or run `pip install opuslib-next-bundled`, "
    f"or set {ENVIRONMENT_VARIABLE} to the library's path"
)
# Homebrew and MacPorts put libraries where the loader does not look by itself.
_MACOS_PATHS = ("/opt/homebrew/lib/libopus.dylib", "/usr/local/lib/libopus.dylib", "/opt/local/lib/libopus.dylib")
_BUNDLED_NAMES = ("libopus*.so*", "libopus*.dylib", "*opus*.dll")

_lock = threading.Lock()
_api: OpusApi | None = None


class PacketError(AudioError):
    """A packet that the codec cannot decode. The pipeline turns it into concealment; applications do not see it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpusApi:
    """The parts of ``opuslib.api`` in use, bound to one libopus.

    Attributes:
        path: The library's file or name.
        version: What libopus says of itself.
        encoder: Module ``opuslib.api.encoder``.
        decoder: Module ``opuslib.api.decoder``.
        int16_pointer: ``opuslib.api.c_int16_pointer``.
    """

    path: str
    version: str
    encoder: Any
    decoder: Any
    int16_pointer: Any


def load_opus() -> OpusApi:
    """The binding to libopus, loaded at the first call.

    Raises:
        AudioError: No usable libopus; the message says what to do.
    """
    global _api
    with _lock:
        if _api is None:
            _api = _bind(_find_library())
        return _api


def _find_library() -> str:
    """Path or name of the first library that loads and is libopus."""
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        fault = _fault_of(named)
        if fault:
            raise AudioError(
                f"{ENVIRONMENT_VARIABLE} names {named!r}, which is not a usable libopus ({fault}): correct the path or unset the variable"
            )
        return named
    for candidate in _candidates():
        if not _fault_of(candidate):
            return candidate
    raise AudioError(_HINT)


def _candidates() -> Iterator[str]:
    for name in ("opus", "libopus-0", "libopus"):
        found = ctypes.util.find_library(name)
        if found:
            yield found
    if sys.platform == "darwin":
        yield from (path for path in _MACOS_PATHS if os.path.exists(path))
    # find_spec does not run the package: its own loader would pick a library before we do.
    spec = importlib.util.find_spec("opuslib_next")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for pattern in _BUNDLED_NAMES:
            yield from map(str, sorted(Path(place, "_native").glob(pattern)))


def _fault_of(path: str) -> str:
    """Why `path` is no libopus; empty when it is one."""
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        return str(error).split("\n")[0]
    return "" if hasattr(library, "opus_decode") else "it has no function opus_decode"


def _bind(path: str) -> OpusApi:
    """Import opuslib so that it loads `path`, and mend what is unsafe in its declarations."""
    original = ctypes.util.find_library

    def find(name: str) -> str | None:
        return path if name == "opus" else original(name)

    # opuslib searches while it is imported; it must find what we found. Its `is 0` comparisons warn when compiled.
    ctypes.util.find_library = find
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            api = importlib.import_module("opuslib.api")
            encoder = importlib.import_module("opuslib.api.encoder")
            decoder = importlib.import_module("opuslib.api.decoder")
    except ImportError as error:
        raise AudioError("the Opus codec needs opuslib: run `pip install opuslib`") from error
    finally:
        ctypes.util.find_library = original
    # The ctl functions are variadic: without the types of their fixed arguments ctypes passes the others wrongly on
    # Apple's arm64, where they travel on the stack.
    encoder.libopus_ctl.argtypes = (encoder.EncoderPointer, ctypes.c_int)
    decoder.libopus_ctl.argtypes = (decoder.DecoderPointer, ctypes.c_int)
    version = api.libopus.opus_get_version_string
    version.restype = ctypes.c_char_p
    return OpusApi(
        path=str(getattr(api.libopus, "_name", path)),
        version=(version() or b"").decode("ascii", "replace"),
        encoder=encoder,
        decoder=decoder,
        int16_pointer=api.c_int16_pointer,
    )
