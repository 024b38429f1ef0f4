"""Where requirements are cited: in code, tests, vectors and interoperability cases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .requirements import ID, ROOT, requirements

__all__ = ["KINDS", "citations", "misquotes", "uncited", "unknown"]

KINDS = ("code", "tests", "vectors", "interop")
_PLACES = {
    "code": ("voicestream/**/*.py",),
    "tests": ("tests/**/*.py",),
    "vectors": ("spec/vectors/*.json",),
    "interop": ("interop/**/*.py", "interop/**/*.js"),
}
_NOT = ("tests/test_spec_trace.py", "tests/test_spec_tools.py", "tests/mutation/", "interop/lab/", "interop/netlab/", "/node_modules/")
_QUOTE = re.compile(r'(VS-\d+(?:\.\d+)*-\d+):? "([^"]{8,})"')


def _files(kind: str) -> Iterator[Path]:
    for pattern in _PLACES[kind]:
        for path in sorted(ROOT.glob(pattern)):
            if not any(part in f"/{path.relative_to(ROOT).as_posix()}" for part in _NOT):
                yield path


@cache
def citations() -> dict[str, dict[str, list[str]]]:
    """Places by id and kind: files of code, functions of tests, ids of groups of vectors."""
    found: dict[str, dict[str, list[str]]] = {}

    def note(name: str, kind: str, place: str) -> None:
        places = found.setdefault(name, {one: [] for one in KINDS})[kind]
        if place not in places:
            places.append(place)

    for kind in KINDS:
        for path in _files(kind):
            where, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
            if kind == "vectors":
                for group in json.loads(text).get("groups", []):
                    first = group["tests"][0]["id"] if group.get("tests") else path.stem
                    for name in ID.finditer(json.dumps(group)):
                        note(name.group(), kind, first if len(group.get("tests", [])) < 2 else f"{first}...")
                continue
            for name, line in _cited(text):
                note(name, kind, f"{where}::{_test_at(text, line)}" if kind == "tests" and _test_at(text, line) else where)
    return found


def _cited(text: str) -> Iterator[tuple[str, int]]:
    for match in ID.finditer(text):
        yield match.group(), match.start()


def _test_at(text: str, position: int) -> str:
    """The test function in which a place lies, or the one right below a comment or decorator outside of functions."""
    line = text[text.rfind("\n", 0, position) + 1 :].split("\n", 1)[0]
    if line.lstrip().startswith(("#", "@")) and not line.startswith((" ", "\t")):
        below = re.search(r"^(?:async )?def (test_\w+)", text[position:], re.MULTILINE)
        return below.group(1) if below else ""
    above = re.findall(r"^ *(?:async )?def (test_\w+)", text[: text.find("\n", position)], re.MULTILINE)
    return above[-1] if above else ""


def unknown() -> dict[str, dict[str, list[str]]]:
    """Ids that are cited and that the specification does not have."""
    known = requirements()
    return {name: places for name, places in citations().items() if name not in known}


def uncited(*, musts: bool = True) -> dict[str, list[str]]:
    """Requirements without a citation in code or without one in tests and vectors, and which of these lack."""
    found: dict[str, list[str]] = {}
    for name, sentence in requirements().items():
        if sentence.is_must is not musts:
            continue
        places = citations().get(name, {})
        lacks = [] if places.get("code") else ["code"]
        if not places.get("tests") and not places.get("vectors"):
            lacks.append("tests")
        if lacks:
            found[name] = lacks
    return found


def misquotes() -> list[str]:
    """Places that quote a requirement (its id and words of it in double quotes) otherwise than it is written."""
    known, found = requirements(), []
    for kind in ("code", "tests", "interop"):
        for path in _files(kind):
            for match in _QUOTE.finditer(path.read_text(encoding="utf-8")):
                name, quoted = match.group(1), " ".join(match.group(2).split())
                if name in known and quoted not in known[name].words:
                    found.append(f"{path.relative_to(ROOT).as_posix()}: {name} does not say “{quoted}”")
    return found
