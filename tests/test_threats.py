"""Each threat of the specification has tests, and the tests that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "spec" / "voicestream.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (T-[A-Z]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
ROWS = ROW.findall(TEXT)


def test_threats_have_names_of_their_own() -> None:
    names = [name for name, *_ in ROWS]
    assert len(names) > 15
    assert len(set(names)) == len(names)
    assert len(names) == len(re.findall(r"^\| T-", TEXT, re.MULTILINE)), "a row is not of the form of the others"


@pytest.mark.parametrize(("name", "tests"), [(name, tests) for name, _, _, tests in ROWS])
def test_each_threat_names_tests_that_exist(name: str, tests: str) -> None:
    named = TEST.findall(tests)
    assert named, f"{name} has no test"
    assert len(named) == tests.count("`") // 2, f"{name} names something else than a test"
    for path, function in named:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^ *(?:async )?def {function}\(", source, re.MULTILINE), f"{name}: there is no {function} in {path}"


def test_threats_that_tests_speak_of_are_in_the_specification() -> None:
    known = {name for name, *_ in ROWS}
    for path in ROOT.glob("tests/**/*.py"):
        spoken = set(re.findall(r"\bT-[A-Z]{3,}\b", path.read_text(encoding="utf-8")))
        assert spoken <= known, path.name
