"""Requirements of the specification, read from its text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["Requirement", "requirements"]

SPEC: Final = Path(__file__).resolve().parent.parent / "spec" / "voicestream.md"
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z(*`])")
_ID: Final = re.compile(r" \[(VS-[\d.]+-\d+)\]")
_MUST: Final = re.compile(r"\b(?:MUST|SHALL|REQUIRED)\b")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A sentence with an id.

    Attributes:
        is_must: It has MUST, SHALL or REQUIRED.
    """

    name: str
    text: str
    is_must: bool


@cache
def requirements() -> dict[str, Requirement]:
    """All of them, in the order of the text."""
    text = re.sub(r"^```.*?^```", "", SPEC.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = {}
    for block in re.split(r"\n\s*\n", text):
        for item in re.split(r"\n(?=[*|])", block):
            for sentence in _SENTENCE.split(" ".join(item.split())):
                for name in _ID.findall(sentence):
                    plain = _ID.sub("", sentence)
                    found[name] = Requirement(name, plain, _MUST.search(plain) is not None)
    return found
