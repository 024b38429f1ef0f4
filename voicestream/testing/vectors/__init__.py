"""The test vectors of the specification that a program makes: conversations and behaviour.

    python -m voicestream.testing.vectors            # says which files of spec/vectors are not as they would be made now; status 1 then
    python -m voicestream.testing.vectors --write    # makes them

Conversations are what two sessions really send, with the times, or what breaks a rule in the midst of that. Behaviour is written down
from the specification's words. How to read the files is said in ``spec/README.md``. The vectors of the formats (datagrams, messages,
parameters, events, repairs, numbers) are written by hand; no program makes them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from voicestream.testing.vectors import behaviour
from voicestream.testing.vectors.conversations import conversations

__all__ = ["files", "main"]

_SOURCE_SESSIONS = "Recorded from two sessions in virtual time by voicestream.testing.vectors; what breaks a rule is written by hand."
_SOURCE_WORDS = "Written by hand from the specification, as a program (voicestream.testing.vectors)."

_KINDS = {
    "handshake": "Calls are taken, refused and ended",
    "clear": "Speech is taken back or interrupted",
    "resume": "Calls outlive breaks",
}

_BEHAVIOUR: dict[str, tuple[str, str, list[str], Callable[[], list[dict[str, Any]]]]] = {
    "behaviour-reports": ("report", "What a report says of what arrived.", ["VS-9.2-1", "VS-9.2-2", "VS-4.4-1"], behaviour.reports),
    "behaviour-echo": ("echo", "Round trip and offset of the clocks, from one report.", ["VS-9.3-2", "VS-6.3-2"], behaviour.echoes),
    "behaviour-loss": ("loss", "Which datagrams count as arrived and lost.", ["VS-9.3-1"], behaviour.losses),
    "behaviour-timing": ("report-timing", "When reports leave.", ["VS-9.1-1", "VS-9.1-4"], behaviour.timings),
    "behaviour-playout": (
        "playout", "What is played of what comes.", ["VS-16-1", "VS-16-2", "VS-6.1-5", "VS-6.5-1", "VS-4.8-1"], behaviour.playouts,
    ),
    "behaviour-rate": ("rate", "How a sender fits a path.", ["VS-9.3-3", "VS-9.3-4"], behaviour.rates),
}  # fmt: skip


def _conversation(kind: str) -> dict[str, Any]:
    groups: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for number, one in enumerate(conversations(kind), 1):
        steps = one["steps"]
        test: dict[str, Any] = {"id": f"conversation-{kind}-{number}", "comment": one["comment"]}
        if "error" in one:
            test["roles"] = ["client" if steps[-1]["from"] == "server" else "server"]
            refused.append(test | {"input": {"steps": steps}, "result": "invalid", "error": one["error"], "breaks": one["breaks"]})
            continue
        test["roles"] = [role for role in ("client", "server") if any("must" in step and step["from"] == role for step in steps)]
        over = {"CLOSE", "REJECT"} & {step.get("value", {}).get("message") for step in steps}
        test |= {"input": {"steps": steps}, "result": "valid", "expect": "closed" if over else "open"}
        groups.append({"comment": "As it should go", "requirements": one["requirements"], "tests": [test]})
    broken = sorted({test["breaks"] for test in refused})
    groups.append({"comment": "The last step breaks a rule", "requirements": broken, "tests": refused})
    return _file("conversation", f"{_KINDS[kind]}: what each side sends, when, and what must be answered.", _SOURCE_SESSIONS, groups)


def _behaviour(name: str) -> dict[str, Any]:
    kind, description, requirements, make = _BEHAVIOUR[name]
    tests = [{"id": f"{name}-{number}", **test} for number, test in enumerate(make(), 1)]
    groups = [{"comment": description.rstrip("."), "requirements": requirements, "tests": tests}]
    return _file(kind, description, _SOURCE_WORDS, groups)


def _file(kind: str, description: str, source: str, groups: list[dict[str, Any]]) -> dict[str, Any]:
    head = {"spec": "voicestream/1", "type": kind, "schema": "schema/vectors.json", "description": description, "source": source}
    return {**head, "flags": {}, "groups": groups}


def _text(file: dict[str, Any]) -> str:
    """A test a line, and in conversations a step a line, so that a change can be read."""
    groups = []
    for group in file["groups"]:
        tests = [_test_text(test) for test in group["tests"]]
        head = json.dumps({key: value for key, value in group.items() if key != "tests"})[:-1]
        groups.append(f'{head}, "tests": [\n        ' + ",\n        ".join(tests) + "\n    ]}")
    head = json.dumps({key: value for key, value in file.items() if key != "groups"}, indent=2).removesuffix("\n}")
    return f'{head},\n  "groups": [\n    ' + ",\n    ".join(groups) + "\n  ]\n}\n"


def _test_text(test: dict[str, Any]) -> str:
    if "steps" not in test["input"]:
        return json.dumps(test)
    steps = ",\n          ".join(json.dumps(step) for step in test["input"]["steps"])
    before, after = json.dumps({**test, "input": {"steps": []}}).split('"steps": []')
    return f'{before}"steps": [\n          {steps}\n        ]{after}'


def files() -> dict[str, str]:
    """The files that are made, by name, as text."""
    made = {f"conversation-{kind}": _conversation(kind) for kind in _KINDS}
    made |= {name: _behaviour(name) for name in _BEHAVIOUR}
    return {f"{name}.json": _text(file) for name, file in made.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status: 1 if a file is not current and was not to be written."""
    parser = argparse.ArgumentParser(prog="python -m voicestream.testing.vectors", description="Make test vectors, or say which are old.")
    parser.add_argument("--write", action="store_true", help="write the files")
    parser.add_argument("--folder", type=Path, default=Path("spec/vectors"), help="where they are (spec/vectors)")
    options = parser.parse_args(arguments)
    old = []
    for name, text in files().items():
        path: Path = options.folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            old.append(name)
            if options.write:
                path.write_text(text, encoding="utf-8")
    print(f"{'written' if options.write else 'not current'}: {', '.join(old)}" if old else "all are current")
    return 1 if old and not options.write else 0
