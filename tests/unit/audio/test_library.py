from __future__ import annotations

import ctypes.util
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from voicestream.audio import library
from voicestream.errors import AudioError


def bundled() -> Path:
    spec = importlib.util.find_spec("opuslib_next")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the bundled libopus is not installed")
    found = sorted(Path(spec.submodule_search_locations[0], "_native").glob("*opus*.*"))
    return found[0]


@pytest.fixture
def no_system_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    monkeypatch.setattr(library, "_MACOS_PATHS", ())
    return


def test_the_environment_variable_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.ENVIRONMENT_VARIABLE, str(bundled()))
    assert library._find_library() == str(bundled())


def test_a_wrong_path_in_the_environment_is_told_in_one_sentence_and_nothing_else_is_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = str(tmp_path / "libopus.so.9")
    monkeypatch.setenv(library.ENVIRONMENT_VARIABLE, missing)
    with pytest.raises(AudioError, match=r"VOICESTREAM_LIBOPUS names .*libopus\.so\.9") as caught:
        library._find_library()
    assert "\n" not in str(caught.value)
    assert "unset" in str(caught.value)


def test_a_library_that_is_not_libopus_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    libc = ctypes.util.find_library("c")
    if libc is None:
        pytest.skip("no libc found by name")
    monkeypatch.setenv(library.ENVIRONMENT_VARIABLE, libc)
    with pytest.raises(AudioError, match="no function opus_decode"):
        library._find_library()


@pytest.mark.usefixtures("no_system_library")
def test_without_a_system_library_the_bundled_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(library.ENVIRONMENT_VARIABLE, raising=False)
    assert Path(library._find_library()) == bundled()


@pytest.mark.usefixtures("no_system_library")
def test_a_found_library_that_does_not_load_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "libopus.so"
    broken.write_bytes(b"not a library")
    monkeypatch.delenv(library.ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: str(broken))
    assert Path(library._find_library()) == bundled()


@pytest.mark.usefixtures("no_system_library")
def test_with_no_library_at_all_one_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(library.ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(AudioError, match=r"pip install opuslib-next-bundled.*VOICESTREAM_LIBOPUS") as caught:
        library._find_library()
    assert "\n" not in str(caught.value)


def test_loading_leaves_find_library_as_it_was_and_gives_a_version() -> None:
    before = ctypes.util.find_library
    api = library.load_opus()
    assert ctypes.util.find_library is before
    assert api.version.startswith("libopus")
    assert library.load_opus() is api


def run_python(code: str, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name != library.ENVIRONMENT_VARIABLE}
    command = [sys.executable, "-W", "error", "-c", code]
    result = subprocess.run(command, env=kept | environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_importing_the_package_loads_no_codec_library() -> None:
    code = "import sys, voicestream, voicestream.audio.pipeline; print(any(n.split('.')[0] == 'opuslib' for n in sys.modules))"
    assert run_python(code).strip() == "False"


def test_opuslib_really_loads_the_library_that_was_named_and_warns_of_nothing() -> None:
    code = (
        "from voicestream.audio.library import load_opus\n"
        "from voicestream.audio.opus import OpusDecoder, OpusEncoder\n"
        "import numpy\n"
        "packet = OpusEncoder().encode(numpy.zeros(960, dtype=numpy.int16))\n"
        "print(load_opus().path, len(OpusDecoder().decode(packet)))"
    )
    path, samples = run_python(code, PYTHONDONTWRITEBYTECODE="1", **{library.ENVIRONMENT_VARIABLE: str(bundled())}).split()
    assert path == str(bundled())
    assert int(samples) == 960


def test_a_missing_opuslib_is_told_in_one_sentence() -> None:
    code = (
        "import sys; sys.modules['opuslib'] = None\n"
        "from voicestream.audio.opus import OpusDecoder\n"
        "from voicestream.errors import AudioError\n"
        "try: OpusDecoder()\n"
        "except AudioError as error: print(error)"
    )
    assert "pip install opuslib" in run_python(code)
