"""The specification and what cites it: every requirement has an id, every id cited exists, every MUST is cited by code and by a test.

`make spec` prints what is missing and writes the table of who cites what.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from spec.tools import citations, generated
from spec.tools.__main__ import accept
from spec.tools.coverage import counts, table
from spec.tools.requirements import ID, SPEC, Sentence, changed, order, recorded, requirements, sentences, spec_text

SENTENCES = sentences()
IDS = [cited for sentence in SENTENCES for cited in sentence.ids]


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
    assert citations.unknown() == {}


def test_every_must_is_cited_by_code_and_by_a_test_or_vector() -> None:
    assert citations.uncited() == {}


def test_quotations_are_true() -> None:
    assert citations.misquotes() == []


def test_no_requirement_has_changed_in_silence() -> None:
    assert changed() == {}, 'python -m spec.tools accept "why" agrees to changes and lists them in appendix A'


def test_ids_of_the_record_are_listed_in_order() -> None:
    assert list(recorded()) == sorted(recorded(), key=order)


def test_generated_parts_are_current() -> None:
    assert not generated.stale(), "python -m spec.tools generate"


def test_references_to_sections_lead_somewhere() -> None:
    text = SPEC.read_text(encoding="utf-8")
    found = {match.group(1) for match in re.finditer(r"^#+ (\d+(?:\.\d+)*)\. ", text, re.MULTILINE)}
    for whole in (text, (SPEC.parent / "guide.md").read_text(encoding="utf-8")):
        own = re.sub(r"RFC \d+[^.;]*?sections? \d+(?:\.\d+)*", "", whole)
        lists = re.finditer(r"\bsections? ((?:\d+(?:\.\d+)*(?:, | and | or | to )?)+)", own)
        referred = {number for match in lists for number in re.findall(r"\d+(?:\.\d+)*", match.group(1))}
        assert referred - found == set()


# The tools themselves


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A specification of two requirements, agreed to."""
    spec = tmp_path / "spec.md"
    spec.write_text("## 1. One\n\nA MUST b [VS-1-1]. C MAY d [VS-1-2].\n\n## Appendix A. Changes\n\nNewest first.\n\n* Before.\n")
    for module in ("spec.tools.requirements", "spec.tools.__main__"):
        monkeypatch.setattr(f"{module}.SPEC", spec)
    monkeypatch.setattr("spec.tools.requirements.RECORD", tmp_path / "requirements.json")
    accept("begun")
    return spec


def test_a_changed_a_new_and_a_withdrawn_requirement_are_noticed_and_listed_when_agreed_to(scratch: Path) -> None:
    assert changed() == {}
    text = scratch.read_text()
    scratch.write_text(text.replace("A MUST b [VS-1-1]. C MAY d [VS-1-2].", "A MUST NOT b [VS-1-1]. E SHOULD f [VS-1-3]."))
    assert changed() == {"VS-1-1": "has another text", "VS-1-2": "is gone", "VS-1-3": "is new"}
    accept("better so")
    assert changed() == {}
    listed = r"Newest first\.\n\n\* [\d-]+: better so\. Changed: 1-1\. New: 1-3\. Withdrawn: 1-2\.\n\* [\d-]+: begun"
    assert re.search(listed, scratch.read_text())
    scratch.write_text(scratch.read_text().replace("E SHOULD f [VS-1-3].", "E SHOULD f [VS-1-3]. C MAY d [VS-1-2]."))
    assert changed() == {"VS-1-2": "was withdrawn and cannot be used again"}


def test_what_is_not_cited_and_what_does_not_exist_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {kind: [] for kind in citations.KINDS}
    cited = {"VS-6.1-1": {**nothing, "code": ["x.py"]}, "VS-99-1": {**nothing, "tests": ["t.py"]}}
    monkeypatch.setattr(citations, "citations", lambda: cited)
    assert list(citations.unknown()) == ["VS-99-1"]
    assert citations.uncited()["VS-6.1-1"] == ["tests"]
    assert citations.uncited()["VS-6.1-2"] == ["code", "tests"]


def test_a_wrong_quotation_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "voicestream").mkdir()
    (tmp_path / "voicestream" / "a.py").write_text(
        '# VS-6.1-2: "Audio frames of one track and direction MUST NOT overlap"\n# VS-6.1-2 "Audio frames MAY overlap"\n'
    )
    monkeypatch.setattr(citations, "ROOT", tmp_path)
    assert citations.misquotes() == ["voicestream/a.py: VS-6.1-2 does not say “Audio frames MAY overlap”"]


def test_citations_name_the_test_in_which_they_stand() -> None:
    text = "# VS-1-1\n@mark\ndef test_one():  # VS-1-2\n    # VS-1-3\n    pass\n\n\ndef helper():\n    pass\n"
    at = {name: citations._test_at(text, position) for name, position in citations._cited(text)}
    assert at == {"VS-1-1": "test_one", "VS-1-2": "test_one", "VS-1-3": "test_one"}


def test_the_table_has_every_requirement_once() -> None:
    rows = re.findall(r"^\| (VS-[\d.]+-\d+) \|", table(), re.MULTILINE)
    assert rows == sorted(IDS, key=order)
    assert counts()["musts"] == sum(sentence.is_must for sentence in requirements().values())


def test_sentences_of_tables_lists_and_quotations_are_told_apart() -> None:
    found = sentences('## 2. T\n\n* A MUST b [VS-2-1].\n- C.\n\n"MUST" is quoted.\n\n```\nMUST\n```\n')
    assert found == [Sentence("2", "* A MUST b [VS-2-1]."), Sentence("2", "- C."), Sentence("2", '"MUST" is quoted.')]
    assert [sentence.is_requirement for sentence in found] == [True, False, False]


def test_the_record_is_of_what_stands_in_the_specification() -> None:
    assert json.dumps(recorded(), ensure_ascii=False).count('"level": "MUST"') == sum(sentence.is_must for sentence in SENTENCES)
    assert "Appendix" not in spec_text()
