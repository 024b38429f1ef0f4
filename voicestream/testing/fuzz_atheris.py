"""The child of `voicestream.testing.fuzz_guided` that fuzzes one target with atheris; to be imported with instrumentation."""

from __future__ import annotations

import sys
from typing import Any

from voicestream.testing.fuzz_targets import TARGETS

__all__ = ["command", "run"]

# atheris goes by the first part of a module's name alone, so all that is not to be instrumented is named: instrumenting everything
# takes longer than many a target gets.
_COMMAND = """
import sys
from importlib.util import find_spec
from pathlib import Path
import atheris
name, watched = sys.argv[1], sys.argv[2].split(",")
root = Path(find_spec("voicestream").origin).parent
parts = [("voicestream", *path.relative_to(root).with_suffix("").parts) for path in root.rglob("*.py")]
names = [".".join(one).removesuffix(".__init__") for one in parts]
others = [one for one in names if not any(one.startswith(it) if it.endswith(".") else one == it for it in watched)]
with atheris.instrument_imports(include=["voicestream"], exclude=others):
    from voicestream.testing import fuzz_atheris
fuzz_atheris.run(atheris, name, sys.argv[3:])
"""


def command(name: str) -> list[str]:
    """What to run, before libFuzzer's arguments. Only what the target watches is instrumented."""
    return [sys.executable, "-c", _COMMAND, name, ",".join(TARGETS[name].watched)]


def run(atheris: Any, name: str, arguments: list[str]) -> None:
    """Fuzz until libFuzzer ends the process."""
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name].run)
    atheris.Fuzz()
