"""The child of `voicestream.testing.fuzz_guided` that fuzzes one target with atheris; to be imported with instrumentation."""

from __future__ import annotations

import sys
from typing import Any

from voicestream.testing.fuzz_targets import TARGETS

__all__ = ["COMMAND", "run"]

COMMAND = (
    "import atheris, sys\n"
    "with atheris.instrument_imports(include=['voicestream']):\n"
    "    from voicestream.testing import fuzz_atheris\n"
    "fuzz_atheris.run(atheris, sys.argv[1], sys.argv[2:])\n"
)
"""What a Python with -c has to run, with the target's name and libFuzzer's arguments."""


def run(atheris: Any, name: str, arguments: list[str]) -> None:
    """Fuzz until libFuzzer ends the process."""
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name].run)
    atheris.Fuzz()
