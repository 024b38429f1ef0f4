"""What a run has found, on the terminal, as JSON and as JUnit XML."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from interop.model import Result, Verdict, worst
from interop.rules import requirements

__all__ = ["by_requirement", "line", "not_observed", "summary", "to_json", "write_junit"]


def line(result: Result) -> str:
    """A result in a line of the terminal."""
    outcome = result.outcome
    figures = " ".join(f"{name} {value:g}" for name, value in outcome.measured.items())
    apart = "" if outcome.close is None else f"behaviour {outcome.behaviour}, close {outcome.close}; "
    told = "" if result.verdict == Verdict.PASS else f"  [{result.requirements[0] if result.requirements else ''}] {apart}{outcome.words}"
    return f"{result.verdict:11} {result.subject} {result.role:6} {result.case:30} {figures}{told}".rstrip()


def by_requirement(results: Iterable[Result]) -> dict[str, dict[str, Verdict]]:
    """For each requirement the verdict of each subject and role ("voicestream server") over its cases."""
    found: dict[str, dict[str, list[Verdict]]] = {}
    for result in results:
        for name in result.requirements:
            found.setdefault(name, {}).setdefault(f"{result.subject} {result.role}", []).append(result.verdict)
    order = {name: n for n, name in enumerate(requirements())}
    return {
        name: {who: worst(each) for who, each in found[name].items()} for name in sorted(found, key=lambda name: order.get(name, 1 << 20))
    }


def not_observed(results: Iterable[Result]) -> list[str]:
    """Requirements with MUST that no case of the suite can show from outside."""
    from interop.model import CASES

    named = {name for case in CASES.values() for name in case.requirements} | {name for r in results for name in r.requirements}
    return [name for name, requirement in requirements().items() if requirement.is_must and name not in named]


def summary(results: list[Result]) -> str:
    """A table of counts, and what failed."""
    rows = []
    for who in dict.fromkeys((result.subject, result.role) for result in results):
        counts = Counter(result.verdict for result in results if (result.subject, result.role) == who)
        rows.append(f"{who[0]:28} {who[1]:7}" + "".join(f"{counts[verdict]:12}" for verdict in Verdict))
    head = f"{'':28} {'':7}" + "".join(f"{verdict:>12}" for verdict in Verdict)
    bad = [line(result) for result in results if result.verdict in (Verdict.FAIL, Verdict.NON_STRICT)]
    musts = [name for name, each in requirements().items() if each.is_must]
    seen = len(musts) - len(not_observed(results))
    words = f"{seen} of {len(musts)} MUST requirements have a case; the others cannot be observed from outside, or have none yet"
    return "\n".join([head, *rows, "", *bad, words])


def to_json(results: list[Result], about: dict[str, Any]) -> str:
    """Everything, traces included."""
    each = [{**asdict(result), "verdict": result.verdict} for result in results]
    content = {"about": about, "results": each, "requirements": by_requirement(results), "not_observed": not_observed(results)}
    return json.dumps(content, indent=1)


def write_junit(results: list[Result], path: Path) -> None:
    """JUnit XML: a suite for each subject and role; NON-STRICT passes with a note."""
    root = ElementTree.Element("testsuites")
    for who in dict.fromkeys((result.subject, result.role) for result in results):
        own = [result for result in results if (result.subject, result.role) == who]
        counts = Counter(result.verdict for result in own)
        suite = ElementTree.SubElement(
            root, "testsuite", name=" ".join(who), tests=str(len(own)), failures=str(counts[Verdict.FAIL]), errors="0",
            skipped=str(counts[Verdict.UNSUPPORTED]), time=f"{sum(result.seconds for result in own):.3f}",
        )  # fmt: skip
        for result in own:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"{result.subject}.{result.role}", name=f"{result.case} [{' '.join(result.requirements)}]",
                time=f"{result.seconds:.3f}",
            )  # fmt: skip
            words = result.outcome.words
            if result.verdict == Verdict.FAIL:
                ElementTree.SubElement(case, "failure", message=_xml(words)).text = _xml("\n".join(result.trace))
            elif result.verdict == Verdict.UNSUPPORTED:
                ElementTree.SubElement(case, "skipped", message=_xml(words))
            elif words:
                ElementTree.SubElement(case, "system-out").text = _xml(f"{result.verdict}: {words}")
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _xml(text: str) -> str:
    """Text that XML can hold: a peer's words can have anything in them."""
    return "".join(char if char >= " " or char in "\n\t" else "?" for char in text)
