"""The table of trace events and the code name the same ones."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = re.compile(r"[a-z]+:[a-z_]+")
EMITTERS = {"record", "_record", "encode_event"}


def emitted() -> set[str]:
    """Names of records in the code: text of that form in a call that records, or in the function that describes a decision."""
    found: set[str] = set()
    for path in sorted((ROOT / "voicestream").rglob("*.py")):
        if "testing" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                texts = node.args if name in EMITTERS else []
            elif isinstance(node, ast.FunctionDef) and node.name == "_described":
                texts = [inner for inner in ast.walk(node) if isinstance(inner, ast.Constant)]
            else:
                continue
            found |= {text.value for text in texts if isinstance(text, ast.Constant) and NAME.fullmatch(str(text.value))}
    return found


def documented() -> list[str]:
    text = (ROOT / "spec" / "trace.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `([a-z]+:[a-z_]+)` \|", text, re.M)


def test_every_record_is_in_the_table_and_every_line_of_the_table_is_a_record() -> None:
    table = documented()
    assert len(set(table)) == len(table)
    assert set(table) == emitted()
