"""The list of what mypyc compiles on request."""

from __future__ import annotations

import ast
import importlib.util
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LISTED: list[str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["voicestream"]["compiled"]
FILES = sorted({path for pattern in LISTED for path in ROOT.glob(pattern)})


@pytest.mark.parametrize("pattern", LISTED)
def test_what_is_listed_is_there(pattern: str) -> None:
    assert list(ROOT.glob(pattern)), f"{pattern} in pyproject.toml names no file"


def test_the_build_takes_the_files_of_the_list_and_no_others() -> None:
    spec = importlib.util.spec_from_file_location("build_of_voicestream", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    named = build.compiled_modules({"tool": {"voicestream": {"compiled": LISTED}}})
    assert named == [path.relative_to(ROOT).as_posix() for path in FILES]
    assert "voicestream/session/machine.py" in named
    assert "voicestream/call.py" not in named, "callers and devices give it what only the interpreter takes"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_compiled_protocol_has_no_ellipsis_for_a_default(path: Path) -> None:
    """mypyc evaluates the defaults of a protocol's methods and refuses `...` when the module is imported."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            for default in [*node.args.defaults, *node.args.kw_defaults]:
                found = isinstance(default, ast.Constant) and default.value is Ellipsis
                assert not found, f"{path.name}:{node.lineno} {node.name} has ... for a default"
