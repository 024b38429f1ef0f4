"""Faults that are put into a copy of the package, to see whether the suite names them: `python -m interop.faults [NAME ...]`."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interop.implementations import ROOT, Implementation
from interop.model import Result, Verdict
from interop.runner import chosen, make_files, server_cases

__all__ = ["FAULTS", "Fault", "run_fault"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One line of the package that is wrong.

    Attributes:
        path, old, new: What is changed where; `old` stands there once.
        requirement: That the suite has to name.
        cases: Tags of the cases that are run against it, the right one among them.
    """

    name: str
    path: str
    old: str
    new: str
    requirement: str
    cases: tuple[str, ...]


FAULTS: Final = {
    fault.name: fault
    for fault in (
        Fault(
            name="clear numbers are ignored", path="voicestream/session/sender.py",
            old="            clear_number=self.clears.number,\n", new="            clear_number=0,\n",
            requirement="VS-8.1-1", cases=("8.1", "9.3"),
        ),
        Fault(
            name="bytes behind the last field are taken", path="voicestream/wire/buffer.py",
            old="        if not self.at_end:\n", new="        if False:\n", requirement="VS-4.1-4", cases=("4.1", "4.2"),
        ),
        Fault(
            name="CLEAR is not confirmed", path="voicestream/session/receiver.py",
            old="    def _tell_cleared(self, message: wire.Cleared, now: float) -> None:\n",
            new="    def _tell_cleared(self, message: wire.Cleared, now: float) -> None:\n        return\n\n"
            "    def _told_before(self, message: wire.Cleared, now: float) -> None:\n",
            requirement="VS-8.2-1", cases=("8.2", "8.6"),
        ),
        Fault(
            name="a used resume token is taken again", path="voicestream/core/resume.py",
            old="        if generation < self.confirmed:\n", new="        if False:\n", requirement="VS-11.3-4", cases=("11.3",),
        ),
        Fault(
            name="a parameter may come twice", path="voicestream/wire/parameters.py",
            old="            reader.require(form.field not in found,", new="            reader.require(True,",
            requirement="VS-5.3-5", cases=("5.3",),
        ),
        Fault(
            name="reports of the unsent are taken", path="voicestream/core/feedback.py",
            old="        if newest >= self.next_number:  # VS-9.3-1\n",
            new="        if newest >= self.next_number:\n            return\n        if False:\n",
            requirement="VS-9.3-1", cases=("9.3", "9.2"),
        ),
        Fault(
            name="audio before ACCEPT is taken", path="voicestream/session/link.py",
            old="            raise ProtocolError(ErrorCode.AUDIO_BEFORE_ACCEPT, \"a datagram came before ACCEPT was sent\")",
            new="            return",
            requirement="VS-5.5-3", cases=("5.5",),
        ),
    )
}  # fmt: skip


def copy_with(fault: Fault, folder: Path) -> None:
    """The package and the suite in a folder, with a fault.

    Raises:
        ValueError: The line is not there, or not once.
    """
    skipped = shutil.ignore_patterns("__pycache__", "node_modules")
    for name in ("voicestream", "interop", "spec"):
        shutil.copytree(ROOT / name, folder / name, ignore=skipped)
    path = folder / fault.path
    text = path.read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        raise ValueError(f"{fault.path} does not have, once: {fault.old.strip()}")
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")


async def run_fault(fault: Fault, jobs: int = 4) -> list[Result]:
    """What the suite says to a server with this fault."""
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder)
        copy_with(fault, own)
        faulty = Implementation(
            name="faulty", command=("{python}", "-m", "interop.endpoint"), roles=("server",), cwd=own, env={"PYTHONPATH": folder}
        )
        return await server_cases(faulty, chosen("server", fault.cases, quick=True), make_files(own), jobs=jobs)


def catches(fault: Fault, results: Iterable[Result]) -> tuple[list[Result], list[Result]]:
    """Cases that fail and name the requirement, and others that fail."""
    bad = [result for result in results if result.verdict in (Verdict.FAIL, Verdict.NON_STRICT)]
    right = [result for result in bad if fault.requirement in result.requirements]
    return right, [result for result in bad if result not in right]


async def _run(names: list[str]) -> int:
    missed = 0
    for fault in FAULTS.values():
        if names and not any(name in fault.name for name in names):
            continue
        results = await run_fault(fault)
        right, others = catches(fault, results)
        missed += not right
        print(f"{'caught' if right else 'MISSED':7} {fault.name}: {fault.requirement}, {len(results)} cases")
        for result in [*right, *others]:
            words = f"[{' '.join(result.requirements)}] {result.outcome.words}"
            print(f"        {result.verdict} {result.case} {words}", flush=True)
    return 1 if missed else 0


def main() -> int:
    """Exit status 1 when a fault is not caught."""
    parser = argparse.ArgumentParser(prog="python -m interop.faults", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of faults; all by default")
    return asyncio.run(_run(parser.parse_args().names))


if __name__ == "__main__":
    sys.exit(main())
