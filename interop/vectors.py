"""Offline: the test vectors of the wire formats, put to a command line by line."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interop.implementations import ROOT, UNSUPPORTED, Implementation, end
from interop.model import Outcome, Result, Verdict

__all__ = ["TYPES", "Vector", "judge", "read_vectors", "same", "vector_results"]

TYPES: Final = (
    "varint", "sequence", "datagram", "parameters", "message", "event-stream", "opus-packet", "frame-duration", "repair",
)  # fmt: skip
"""Types of vectors that have an input and a value; conversations and behaviour are for the implementation's own tests."""
SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Vector:
    """A test and its group's type, parameters and requirements."""

    kind: str
    params: dict[str, Any]
    requirements: tuple[str, ...]
    test: dict[str, Any]

    def question(self) -> str:
        """The line that the command reads."""
        return json.dumps({"type": self.kind, "id": self.test["id"], "input": self.test["input"], "params": self.params})


def read_vectors(folder: Path | None = None) -> Iterator[Vector]:
    """All vectors of the types above."""
    for path in sorted((folder or ROOT / "spec" / "vectors").glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["type"] not in TYPES:
            continue
        for group in content["groups"]:
            for test in group["tests"]:
                own = (test["breaks"],) if "breaks" in test else ()
                named = dict.fromkeys((*own, *group["requirements"]))
                yield Vector(content["type"], group.get("params", {}), tuple(named), test)


def same(got: Any, want: Any) -> bool:
    """Whether two values are the same; what is absent is 0, false, empty or null."""
    if isinstance(got, dict) and isinstance(want, dict):
        return all(same(got.get(name), want.get(name)) for name in got.keys() | want.keys())
    if isinstance(got, list) and isinstance(want, list):
        return len(got) == len(want) and all(map(same, got, want))
    return bool(got == want or (not got and not want and None in (got, want)))


def judge(vector: Vector, answer: dict[str, Any] | None) -> Outcome:
    """What an answer is worth: refusing is the behaviour, its code the close."""
    test = vector.test
    if answer is None:
        return Outcome(behaviour=Verdict.FAIL, words="no answer")
    if test["result"] == "valid":
        if answer.get("result") != "valid":
            return Outcome(behaviour=Verdict.FAIL, words=f"refused with {answer.get('error')}; it is valid")
        right = same(answer.get("expect"), test["expect"])
        words = "" if right else f"read as {json.dumps(answer.get('expect'))[:300]}; it is {json.dumps(test['expect'])[:300]}"
        return Outcome(behaviour=Verdict.PASS if right else Verdict.FAIL, words=words)
    if answer.get("result") != "invalid":
        return Outcome(behaviour=Verdict.FAIL, words=f"taken as {json.dumps(answer.get('expect'))[:300]}; {test['error']} was due")
    right = answer.get("error") == test["error"]
    words = "" if right else f"{answer.get('error')}; {test['error']} was due"
    return Outcome(close=Verdict.PASS if right else Verdict.FAIL, words=words)


async def vector_results(implementation: Implementation) -> list[Result]:
    """The command's verdicts: one for each vector, or one in all where it reads the files by itself."""
    vectors = list(read_vectors())
    command = [sys.executable if part == "{python}" else part for part in implementation.command]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=implementation.cwd, env={**os.environ, **implementation.env, "ROLE": "client", "TESTCASE": "vectors"},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        questions = "".join(vector.question() + "\n" for vector in vectors)
        output, _ = await asyncio.wait_for(process.communicate(questions.encode()), SECONDS)
    except TimeoutError:
        await end(process)
        output = b""
    answers = dict(_answers(output.decode(errors="replace")))
    if not answers:
        return [_alone(implementation, process.returncode)]
    return [
        Result(
            case=vector.test["id"], title=f"{vector.kind}: {vector.test.get('comment', '')}", requirements=vector.requirements,
            subject=implementation.name, role="vectors", outcome=judge(vector, answers.get(vector.test["id"])), seconds=0.0,
            trace=[f"input {json.dumps(vector.test['input'])}"],
        )
        for vector in vectors
    ]  # fmt: skip


def _answers(output: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in output.splitlines():
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if isinstance(answer, dict) and isinstance(answer.get("id"), str):
            yield answer["id"], answer


def _alone(implementation: Implementation, status: int | None) -> Result:
    verdict = {0: Verdict.PASS, UNSUPPORTED: Verdict.UNSUPPORTED}.get(-1 if status is None else status, Verdict.FAIL)
    words = "by its own account" if verdict == Verdict.PASS else f"exit status {status}"
    return Result(
        case="vectors", title="reads spec/vectors by itself", requirements=(), subject=implementation.name, role="vectors",
        outcome=Outcome(behaviour=verdict, words=words), seconds=0.0,
    )  # fmt: skip
