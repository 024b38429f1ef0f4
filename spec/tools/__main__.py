"""Check the specification against what cites it.

    python -m spec.tools                    check, and write spec/coverage.md
    python -m spec.tools accept "reason"    agree to changed requirements, and say so in the specification's list of changes
    python -m spec.tools generate           write the parts of the specification that are made from tables
"""

from __future__ import annotations

import argparse
import datetime
import sys

from .citations import misquotes, uncited, unknown
from .coverage import TABLE, counts, table
from .generated import generate, stale
from .requirements import SPEC, changed, record

_CHANGES = "## Appendix A. Changes\n\n"


def check() -> list[str]:
    """What is wrong."""
    faults = [f"{name} {what}: python -m spec.tools accept REASON agrees to it" for name, what in changed().items()]
    faults += [f"{name} is cited and does not exist: {places}" for name, places in unknown().items()]
    faults += [f"{name} is a MUST that is not cited by {' or '.join(lacks)}" for name, lacks in uncited().items()]
    faults += misquotes()
    if stale():
        faults.append("a generated part of the specification is not current: python -m spec.tools generate")
    return faults


def accept(reason: str) -> None:
    """Record the requirements as they are, and the reason in the list of changes."""
    changes = changed()
    if not changes:
        print("nothing has changed")
        return
    text = SPEC.read_text(encoding="utf-8")
    kinds: dict[str, list[str]] = {}
    for name, what in changes.items():
        kinds.setdefault({"is new": "New", "is gone": "Withdrawn"}.get(what, "Changed"), []).append(name.removeprefix("VS-"))
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    line = f"* {day}: {reason.rstrip('.')}. " + " ".join(f"{kind}: {', '.join(names)}." for kind, names in sorted(kinds.items()))
    head, intro, entries = text.partition(_CHANGES)[0], *text.split(_CHANGES, 1)[1].split("\n\n", 1)
    SPEC.write_text(f"{head}{_CHANGES}{intro}\n\n{line}\n{entries}", encoding="utf-8")
    record()
    print(line)


def main() -> int:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="python -m spec.tools", description="Check the specification against what cites it.")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("check")
    commands.add_parser("generate")
    commands.add_parser("accept").add_argument("reason")
    arguments = parser.parse_args()
    if arguments.command == "accept":
        accept(arguments.reason)
        return 0
    if arguments.command == "generate":
        print("written" if generate() else "current")
        return 0
    faults = check()
    for fault in faults:
        print(fault, file=sys.stderr)
    TABLE.write_text(table(), encoding="utf-8")
    numbers = counts()
    others = numbers["requirements"] - numbers["musts"]
    print(
        f"{numbers['musts_cited']} of {numbers['musts']} MUSTs and {numbers['others_cited']} of {others} other requirements "
        f"are cited by code and by a test or vector; not cited, and not MUSTs: {', '.join(uncited(musts=False)) or 'none'}"
    )
    print(f"written: {TABLE.name}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
