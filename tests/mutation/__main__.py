"""How many of the faults that could be made in the code of the wire and of the resume tokens the tests find.

    python -m tests.mutation [--sample N] [--seed N] [--jobs N] [--only WORDS...] [--write]

Each fault (an operator, a bound, a constant, a statement left out) is put into a module, and the tests of these modules run until one
fails. Faults that none finds stand in survivors.json with the reason why that is all right; any other is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from pathlib import Path

import pytest

from .mutants import Module, Mutant
from .run import Runner

ROOT = Path(__file__).resolve().parents[2]
SURVIVORS = Path(__file__).with_name("survivors.json")
MODULES = ("voicestream/wire/*.py", "voicestream/core/resume.py")
TESTS = (
    "tests/unit/wire",
    "tests/unit/core/test_resume.py",
    "tests/unit/test_vectors.py",
    "tests/test_codepoints.py",
    "tests/property/test_wire.py",
)
LEAST = 90
"""Percent of the faults that must be found."""


def modules() -> list[Module]:
    """The modules that are changed."""
    paths = [path for pattern in MODULES for path in sorted(ROOT.glob(pattern)) if path.stem != "__init__"]
    return [Module(".".join(path.relative_to(ROOT).with_suffix("").parts), path) for path in paths]


def chosen(arguments: argparse.Namespace) -> list[tuple[Module, Mutant]]:
    """The mutants that are asked for."""
    only = arguments.only or [""]
    every = [(module, mutant) for module in modules() for mutant in module.mutants if any(words in mutant.name for words in only)]
    random.Random(arguments.seed).shuffle(every)
    return every[: arguments.sample or len(every)]


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants at random, not all")
    parser.add_argument("--seed", type=int, default=1, help="of their order, and so of the sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--only", nargs="*", help="mutants with any of these in their name, such as wire.frames")
    parser.add_argument("--write", action="store_true", help="add survivors to the list, to be given their reasons by hand")
    arguments = parser.parse_args()
    os.environ["HYPOTHESIS_PROFILE"] = "mutation"
    mutants = chosen(arguments)
    runner = Runner(mutants, arguments.jobs)
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={ROOT}"]
    status = pytest.main([*options, *(str(ROOT / test) for test in TESTS)], plugins=[runner])
    if runner.done != len(mutants):
        return int(status) or 1
    known: dict[str, str] = json.loads(SURVIVORS.read_text(encoding="utf-8")) if SURVIVORS.exists() else {}
    usable = len(mutants) - len(runner.unusable)
    score = 100 * (1 - len(runner.survivors) / usable) if usable else 100.0
    new = [mutant for mutant in runner.survivors if mutant.name not in known]
    found = {mutant.name for _, mutant in mutants} & set(known) - {mutant.name for mutant in runner.survivors}
    print(f"\n{usable} mutants, {len(runner.survivors)} survived ({len(new)} of them without a reason): {score:.1f} % found")
    for mutant in new:
        print(f"no reason: {mutant.name}")
    for name in sorted(found):
        print(f"found, so it needs no reason any more: {name}")
    if arguments.write:
        known = {name: reason for name, reason in known.items() if name not in found} | {mutant.name: "" for mutant in new}
        SURVIVORS.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
    return int(bool(new) or score < LEAST)


if __name__ == "__main__":
    sys.exit(main())
