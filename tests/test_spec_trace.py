"""The specification and what cites it: every requirement has an id, every id cited exists, the wire's requirements are all cited.

`python tests/test_spec_trace.py` prints which requirements are cited where, and which are not.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "spec" / "voicestream.md").read_text(encoding="utf-8")
SOURCES = ("voicestream/**/*.py", "interop/**/*.py", "tests/**/*.py", "spec/vectors/*.json")
# Requirements of these sections on what does not exist yet: sending retransmissions and copies, following a URI.
UNCITED = frozenset({"VS-4.7-3"})

ID = re.compile(r"VS-(\d+(?:\.\d+)*)-(\d+)")
KEYWORD = re.compile(r'(?<!["\w])(?:MUST|SHALL|SHOULD|REQUIRED|RECOMMENDED|MAY|OPTIONAL)(?!["\w])')
HEADING = re.compile(r"#+ (\d+(?:\.\d+)*)\. ")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z(*`])")


class Sentence(NamedTuple):
    section: str
    text: str

    @property
    def is_requirement(self) -> bool:
        return KEYWORD.search(self.text) is not None

    @property
    def is_must(self) -> bool:
        return re.search(r'(?<!["\w])(?:MUST|SHALL|REQUIRED)(?!["\w])', self.text) is not None

    @property
    def ids(self) -> list[str]:
        return [match.group() for match in ID.finditer(self.text)]


def sentences() -> list[Sentence]:
    """Sentences of the specification with their sections; examples and diagrams left out."""
    found = []
    section = ""
    for block in re.split(r"\n\s*\n", re.sub(r"^```.*?^```", "", TEXT, flags=re.MULTILINE | re.DOTALL)):
        heading = HEADING.match(block.strip())
        if heading:
            section = heading.group(1)
            continue
        for item in re.split(r"\n(?=[*|])", block):
            found += [Sentence(section, text) for text in SENTENCE_END.split(" ".join(item.split())) if text]
    return found


def citations() -> dict[str, list[str]]:
    """Files that cite each id."""
    found: dict[str, list[str]] = {}
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            if path != Path(__file__).resolve():
                for cited in {match.group() for match in ID.finditer(path.read_text(encoding="utf-8"))}:
                    found.setdefault(cited, []).append(path.relative_to(ROOT).as_posix())
    return found


SENTENCES = sentences()
IDS = [cited for sentence in SENTENCES for cited in sentence.ids]
CITED = citations()


def test_ids_are_unique_and_counted_by_section() -> None:
    assert [cited for cited, count in Counter(IDS).items() if count > 1] == []
    last: dict[str, int] = {}
    for sentence in SENTENCES:
        for cited in sentence.ids:
            section, number = ID.fullmatch(cited).groups()  # type: ignore[union-attr]
            assert section == sentence.section, f"{cited} stands in section {sentence.section}"
            assert int(number) > last.get(section, 0), f"{cited} is out of order"
            last[section] = int(number)


def test_every_requirement_ends_with_one_id_and_nothing_else_has_one() -> None:
    for sentence in SENTENCES:
        if sentence.is_requirement:
            assert re.search(r" \[VS-[\d.]+-\d+\]\.$", sentence.text), f"section {sentence.section}: no id at the end of: {sentence.text}"
            assert len(sentence.ids) == 1
        else:
            assert not sentence.ids, f"section {sentence.section}: an id, but no key word: {sentence.text}"


def test_every_id_that_is_cited_exists() -> None:
    unknown = {cited: places for cited, places in CITED.items() if cited not in IDS}
    assert unknown == {}


@pytest.mark.parametrize("section", ["4", "5", "6", "7", "12"])
def test_every_requirement_on_the_wire_is_cited_by_code_or_tests(section: str) -> None:
    required = [cited for sentence in SENTENCES if sentence.section.split(".")[0] == section for cited in sentence.ids]
    assert [cited for cited in required if cited not in CITED and cited not in UNCITED] == []


def test_the_list_of_requirements_that_wait_for_a_citation_is_no_longer_than_it_must_be() -> None:
    assert [cited for cited in sorted(UNCITED) if cited in CITED or cited not in IDS] == []


def test_how_many_requirements_are_cited_is_told() -> None:
    musts = [sentence for sentence in SENTENCES if sentence.is_must]
    cited = [sentence for sentence in musts if sentence.ids[0] in CITED]
    print(f"\n{len(cited)} of {len(musts)} MUST sentences are cited, {len(set(IDS) & set(CITED))} of {len(IDS)} requirements in all")
    assert len(cited) > len(musts) / 3


def test_references_to_sections_lead_somewhere() -> None:
    sections = {match.group(1) for match in re.finditer(r"^#+ (\d+(?:\.\d+)*)\. ", TEXT, re.MULTILINE)}
    own = re.sub(r"RFC \d+[^.;]*?sections? \d+(?:\.\d+)*", "", TEXT)
    lists = re.finditer(r"\bsections? ((?:\d+(?:\.\d+)*(?:, | and | or | to )?)+)", own)
    referred = {number for match in lists for number in re.findall(r"\d+(?:\.\d+)*", match.group(1))}
    assert referred - sections == set()


if __name__ == "__main__":
    for sentence in SENTENCES:
        for name in sentence.ids:
            print(f"{name:12} {'MUST  ' if sentence.is_must else 'SHOULD'} {', '.join(CITED.get(name, ['-']))}")
