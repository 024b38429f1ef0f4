"""The package's front: what it promises is there, documented, and importing it is cheap."""

from __future__ import annotations

import inspect
import subprocess
import sys

import voicestream


def test_every_promised_name_exists_and_is_documented() -> None:
    for name in voicestream.__all__:
        value = getattr(voicestream, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"voicestream.{name} has no docstring"


def test_the_list_is_sorted_and_has_no_doubles() -> None:
    assert len(set(voicestream.__all__)) == len(voicestream.__all__)
    assert list(voicestream.__all__) == sorted(voicestream.__all__)


def test_all_exceptions_are_exported_and_have_one_root() -> None:
    from voicestream import errors

    for name in errors.__all__:
        assert name in voicestream.__all__, f"{name} is not exported"
        if not issubclass(getattr(errors, name), Warning):
            assert issubclass(getattr(errors, name), voicestream.VoiceStreamError)


def test_importing_the_package_loads_neither_codec_nor_test_tools() -> None:
    heavy = "('opuslib', 'sounddevice', 'hypothesis', 'uvloop')"
    script = f"import sys, voicestream; print([m for m in sys.modules if m.split('.')[0] in {heavy}])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_public_functions_are_fully_annotated() -> None:
    for name in voicestream.__all__:
        value = getattr(voicestream, name)
        if inspect.isfunction(value):
            missing = [p for p, v in inspect.signature(value).parameters.items() if v.annotation is inspect.Parameter.empty]
            assert not missing, f"voicestream.{name}: {missing} have no annotation"
