"""Recordings are found by what they are, and cut where the seed says."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from voicestream.testing import LinkProfile
from voicestream.testing.traces import Recording, cut, find_recordings, read_recording


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cell").mkdir()
    (tmp_path / "cell" / "Some-LTE.down.first240s").write_text("0\n10\n10\n1000\n")
    (tmp_path / "hsdpa_norway").mkdir()
    rows = [{"duration_ms": 1000, "bandwidth_kbps": kbps} for kbps in [100, 50] * 100]
    (tmp_path / "hsdpa_norway" / "report.2010-09-22_0857CEST.json").write_text(json.dumps(rows))
    (tmp_path / "hsdpa_norway" / "other.json").write_text('{"a": 1}')
    (tmp_path / "call.csv").write_text("seq,send_s,delay_ms\n0,0.0,120\n1,0.1,130\n2,0.2,\n3,0.4,150\n")
    (tmp_path / "dish").mkdir()
    (tmp_path / "dish" / "log.csv").write_text("10,80,25,30,0.0,0.5,0\n10,80,35,30,0.02,0.5,100\n")
    (tmp_path / "notes.txt").write_text("nothing")
    return tmp_path


def by_name(folder: Path) -> dict[str, Recording]:
    return {one.name: one for one in find_recordings(folder)}


def test_files_are_known_by_what_they_hold_and_named_by_their_names(folder: Path) -> None:
    kinds = {name: one.kind for name, one in by_name(folder).items()}
    assert kinds.pop(f"{folder.name.split('_')[0]}-call") == "delays"
    assert kinds == {"Some-LTE.down": "slots", "hsdpa-2010-09-22_0857": "steps", "dish-log": "delays"}


def test_a_throughput_log_becomes_steps(folder: Path) -> None:
    whole = read_recording(by_name(folder)["hsdpa-2010-09-22_0857"])
    assert whole.rate_steps[:3] == ((0.0, 100.0), (1.0, 50.0), (2.0, 100.0))


def test_a_log_of_a_dish_becomes_delays_and_the_mean_loss(folder: Path) -> None:
    whole = read_recording(by_name(folder)["dish-log"])
    assert whole.delay_trace_ms == (25.0, 35.0)
    assert whole.loss == pytest.approx(0.01)


def test_delays_of_a_stream_stand_on_a_grid_above_the_least(folder: Path) -> None:
    whole = read_recording(next(one for name, one in by_name(folder).items() if name.endswith("-call")))
    assert whole.delay_trace_ms == (0.0, 10.0, 10.0, 10.0, 30.0)


@pytest.mark.parametrize("seed", range(4))
def test_a_piece_is_as_long_as_asked_and_begins_where_the_seed_says(folder: Path, seed: int) -> None:
    whole = read_recording(by_name(folder)["hsdpa-2010-09-22_0857"])
    piece = cut(whole, 60, random.Random(seed))
    assert piece == cut(whole, 60, random.Random(seed))
    assert piece.rate_steps[0][0] == 0.0
    assert len(piece.rate_steps) == 60
    assert {kbps for _, kbps in piece.rate_steps} == {50.0, 100.0}


def test_pieces_in_which_no_call_could_begin_are_passed_over() -> None:
    dead_first = read_steps([1.0] * 300 + [100.0] * 60)
    for seed in range(5):
        piece = cut(dead_first, 60, random.Random(seed))
        assert sum(kbps == 100.0 for _, kbps in piece.rate_steps) >= 30
        assert piece.rate_steps[0][1] == 100.0


def read_steps(rates: list[float]) -> LinkProfile:
    return LinkProfile(rate_kbps=tuple((float(second), rate) for second, rate in enumerate(rates)))
