"""The list of faults that no test finds, and the tool that makes them."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from tests.mutation.__main__ import SURVIVORS, modules
from tests.mutation.mutants import Module

SOURCE = '''
"""Words."""
__all__ = ["f"]
LIMIT: int = 3


def make(n: int = 2) -> int:
    return n + 1


TABLE = make(LIMIT)


def f(a: int) -> bool:
    """Words 1."""
    if a < LIMIT and not a:
        raise ValueError(f"{a + 1}")
    return True
'''


def test_each_survivor_is_a_fault_that_can_be_made_and_has_a_reason() -> None:
    survivors = json.loads(SURVIVORS.read_text(encoding="utf-8"))
    names = [mutant.name for module in modules() for mutant in module.mutants]
    assert len(set(names)) == len(names) > 1000
    assert [name for name in survivors if name not in names] == [], "it can no longer be made: python -m tests.mutation --write"
    assert [name for name, reason in survivors.items() if len(reason) < 20] == []
    assert len(survivors) < 0.1 * len(names)


def test_faults_are_made_one_at_a_time_and_neither_in_words_nor_in_types(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text(SOURCE)
    module = Module("m", path)
    assert [mutant.name for mutant in module.mutants] == [
        "m module: 3 -> 4",
        "m make: n + 1 -> n - 1",
        "m make: 1 in n + 1 -> 2",
        "m f: a < LIMIT and (not a) -> a < LIMIT or not a",
        "m f: a < LIMIT -> a <= LIMIT",
        "m f: a < LIMIT -> a >= LIMIT",
        "m f: not a -> a",
        "m f: raise ValueError(f'{a + 1}') -> pass",
        "m f: True -> False",
    ]
    assert [mutant.function for mutant in module.mutants][:4] == ["", "", "", "f"]  # make() is called when the module is imported
    namespace: dict[str, object] = {}
    exec(module.code(module.mutants[2]), namespace)
    assert namespace["TABLE"] == 5
    assert ast.dump(Module("m", path)._tree) == ast.dump(module._tree), "the tree is as it was"
