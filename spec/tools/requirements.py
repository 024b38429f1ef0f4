"""The requirements of the specification: its sentences with a BCP 14 key word, each with its id."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["ID", "RECORD", "ROOT", "SPEC", "Sentence", "changed", "record", "recorded", "requirements", "sentences", "spec_text"]

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec" / "voicestream.md"
RECORD = ROOT / "spec" / "requirements.json"

ID = re.compile(r"VS-(\d+(?:\.\d+)*)-(\d+)")
_KEYWORD = re.compile(r'(?<!["\w])(MUST|SHALL|SHOULD|REQUIRED|NOT RECOMMENDED|RECOMMENDED|MAY|OPTIONAL)(?!["\w])')
_MUST = re.compile(r'(?<!["\w])(?:MUST|SHALL|REQUIRED)(?!["\w])')
_HEADING = re.compile(r"#+ (\d+(?:\.\d+)*)\. ")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z(*`])")


class Sentence(NamedTuple):
    """A sentence and the section in which it stands."""

    section: str
    text: str

    @property
    def is_requirement(self) -> bool:
        """Whether it has a key word."""
        return _KEYWORD.search(self.text) is not None

    @property
    def is_must(self) -> bool:
        """Whether that leaves no choice."""
        return _MUST.search(self.text) is not None

    @property
    def ids(self) -> list[str]:
        """The ids in it: one, for a requirement."""
        return [match.group() for match in ID.finditer(self.text)]

    @property
    def words(self) -> str:
        """The text without its id."""
        return re.sub(r" \[VS-[\d.]+-\d+\]", "", self.text)


def spec_text() -> str:
    """The specification up to its appendices, which require nothing."""
    return re.split(r"^## Appendix", SPEC.read_text(encoding="utf-8"), maxsplit=1, flags=re.MULTILINE)[0]


def sentences(text: str | None = None) -> list[Sentence]:
    """The sentences with their sections; examples and diagrams left out."""
    found = []
    section = ""
    prose = re.sub(r"^```.*?^```", "", spec_text() if text is None else text, flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\s*\n", prose):
        heading = _HEADING.match(block.strip())
        if heading:
            section = heading.group(1)
            continue
        for item in re.split(r"\n(?=[*|]|- |\d+\. )", block):
            found += [Sentence(section, words) for words in _SENTENCE_END.split(" ".join(item.split())) if words]
    return found


def requirements() -> dict[str, Sentence]:
    """The requirements by id."""
    return {name: sentence for sentence in sentences() for name in sentence.ids}


def recorded() -> dict[str, dict[str, str]]:
    """What was agreed last: level and text by id. An id of level "withdrawn" is not used again."""
    kept: dict[str, dict[str, str]] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return kept


def changed() -> dict[str, str]:
    """Ids whose requirement is not as it was agreed, and how."""
    known, now = recorded(), {name: _entry(sentence) for name, sentence in requirements().items()}
    found = dict.fromkeys(now.keys() - known.keys(), "is new")
    for name, entry in known.items():
        if name not in now:
            if entry["level"] != "withdrawn":
                found[name] = "is gone"
        elif entry["level"] == "withdrawn":
            found[name] = "was withdrawn and cannot be used again"
        elif now[name] != entry:
            found[name] = "has another text"
    return dict(sorted(found.items(), key=lambda item: order(item[0])))


def record() -> None:
    """Agree to the requirements as they are."""
    entries = {name: _entry(sentence) for name, sentence in requirements().items()}
    for name, entry in recorded().items():
        entries.setdefault(name, {"level": "withdrawn", "text": entry["text"]})
    lines = [f" {json.dumps(name)}: {json.dumps(entries[name], ensure_ascii=False)}" for name in sorted(entries, key=order)]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def order(name: str) -> tuple[tuple[int, ...], int]:
    """To sort ids by."""
    match = ID.fullmatch(name)
    assert match, name
    return tuple(int(part) for part in match.group(1).split(".")), int(match.group(2))


def _entry(sentence: Sentence) -> dict[str, str]:
    return {"level": "MUST" if sentence.is_must else "SHOULD", "text": sentence.words}
