"""The build of an ordinary wheel, and with VOICESTREAM_COMPILE=1 of one whose busiest modules are compiled by mypyc.

Everything else about the package is in pyproject.toml; so is the list of what is compiled, `[tool.voicestream] compiled`. The sources
are in both wheels. A compiled one holds beside them what Python loads in their place.
"""

from __future__ import annotations

import os
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


def compiled_modules(project: dict[str, Any]) -> list[str]:
    """The files that the list names, in order."""
    patterns = project["tool"]["voicestream"]["compiled"]
    return sorted({path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern)})


class BuildSideBySide(build_ext):
    """Compiles the C files of an extension at the same time, as many as there are processors."""

    def build_extension(self, ext: Any) -> None:
        """One after the other is setuptools' way; mypyc makes one extension of many files."""
        one_by_one = self.compiler.compile

        def compile_all(sources: list[str], **how: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                return [name for names in pool.map(lambda source: one_by_one([source], **how), sources) for name in names]

        self.compiler.compile = compile_all
        try:
            super().build_extension(ext)
        finally:
            self.compiler.compile = one_by_one


def compiled(project: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `setup` for a compiled wheel."""
    # mypyc reads the types of what the modules import, so that is needed for the build as well.
    wanted = ["mypy>=2.0", *project["project"]["dependencies"]]
    try:
        from mypyc.build import mypycify
    except ImportError:  # pip asks first what is needed
        return {"setup_requires": wanted}
    extensions = mypycify(
        ["--config-file=", "--ignore-missing-imports", *compiled_modules(project)],
        opt_level=os.environ.get("MYPYC_OPT_LEVEL", "2"),
        debug_level="0",
        multi_file=True,
    )
    return {"setup_requires": wanted, "ext_modules": extensions, "cmdclass": {"build_ext": BuildSideBySide}}


if __name__ == "__main__":
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    setup(**(compiled(about) if os.environ.get("VOICESTREAM_COMPILE") == "1" else {}))
