"""Coverage-guided fuzzing: what was found before, its seeds, and that it finds what is there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from voicestream.testing import fuzz_guided
from voicestream.testing.fuzz_guided import check, kept_inputs, main, search
from voicestream.testing.fuzz_lines import LineWatch
from voicestream.testing.fuzz_targets import TARGETS, Target

KEPT = Path(__file__).resolve().parents[2] / "fuzz_inputs"


@pytest.mark.parametrize(("name", "path"), kept_inputs(KEPT), ids=lambda value: value if isinstance(value, str) else value.name)
def test_what_was_found_once_breaks_nothing_any_more(name: str, path: Path) -> None:
    assert check(name, path.read_bytes()) == ""


def test_the_kept_inputs_are_of_targets_that_there_are() -> None:
    assert len(kept_inputs(KEPT)) == sum(path.is_file() for path in KEPT.rglob("*")) > 0


@pytest.mark.interpreted(reason="lines of compiled code are not seen")
@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_are_taken_and_reach_most_of_a_decoder(name: str) -> None:
    target = TARGETS[name]
    watch = LineWatch(target.watched)
    seeds = target.seeds(random.Random(1))
    assert seeds
    for data in seeds[: 12 if name == "sessions" else 60]:
        watch.run(target.run, data)
    least = {"sessions": 0.4, "traces": 0.25, "wav": 0.3, "tokens": 0.4}.get(name, 0.5)
    assert watch.count >= least * watch.total, f"{watch.count} of {watch.total}: {watch.missing()}"


def _weak(data: bytes) -> None:
    if data[:1] == b"v":
        if data[1:2] == b"o":
            raise IndexError("found")
        len(data)


def test_the_search_finds_a_fault_behind_two_steps_and_keeps_it(monkeypatch, tmp_path, capsys) -> None:
    target = Target(run=_weak, seeds=lambda rng: [b"xyxyxyxy", b"vabcd", b"ooooo"], watched=("voicestream.uri",))
    monkeypatch.setitem(TARGETS, "uris", target)
    outcome, _ = search("uris", 20.0, 1)
    data, what = outcome.found[0]
    assert data[:2] == b"vo"
    assert "IndexError: found" in what
    lines = fuzz_guided._keep(outcome, tmp_path)
    assert kept_inputs(tmp_path)[0][1].read_bytes() in [one for one, _ in outcome.found]
    assert "kept as" in lines[0]


@pytest.mark.interpreted(reason="lines of compiled code are not seen")
def test_a_run_of_a_second_prints_coverage_and_finds_nothing(capsys, tmp_path) -> None:
    assert main(["--seconds", "1", "--seed", "3", "--target", "opus", "--plain", "--keep", str(tmp_path), "--missing"]) == 0
    said = capsys.readouterr().out
    assert "a search of our own" in said
    assert "voicestream.wire.opus_toc" in said
    assert "nothing found" in said
    assert not list(tmp_path.iterdir())
