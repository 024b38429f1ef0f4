"""The repair code: what it brings back, and that it brings back nothing else."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from voicestream.core.recovery.fec import MAX_EQUATIONS, Repair, RepairDecoder, RepairEncoder, Source, runs_of, window_of

VECTORS = Path(__file__).resolve().parents[4] / "spec" / "vectors" / "repair.json"
FIRST = Source(pts=8, flags=8, payload=bytes.fromhex("48a1b2c3"))
SECOND = Source(pts=16, flags=0, payload=bytes.fromhex("480f"))


def sources(count: int, *, seed: int = 0, start: int = 1000) -> list[Source]:
    rng = random.Random(seed)
    return [Source(pts=start + 8 * i, flags=rng.randrange(16), payload=rng.randbytes(rng.randrange(1, 90))) for i in range(count)]


def test_the_encoder_makes_the_symbols_of_the_vectors() -> None:
    tests = [test for group in json.loads(VECTORS.read_text())["groups"] for test in group["tests"] if test["result"] == "valid"]
    for test in tests:
        encoder = RepairEncoder()
        for _ in range(test["input"]["key"]):
            encoder.add(FIRST)
            encoder.repair(1)
            encoder.clear()
        for source in test["input"]["sources"]:
            encoder.add(Source(pts=source["pts"], flags=source["flags"], payload=bytes.fromhex(source["payload"])))
        repair = encoder.repair(len(test["input"]["sources"]))
        assert repair is not None
        assert repair.symbol.hex() == test["expect"], test["id"]
    assert len(tests) >= 7


def test_one_repair_brings_back_one_loss_and_two_repairs_bring_back_two_in_one_window() -> None:
    first = Repair(key=3, window=(16, 8), symbol=bytes.fromhex("0c008a36baeb2c"))
    second = Repair(key=5, window=(16, 8), symbol=bytes.fromhex("770052e2fad802"))
    one = RepairDecoder()
    one.source(SECOND)
    assert one.repair(first) == [FIRST]
    both = RepairDecoder()
    assert both.repair(first) == []
    assert sorted(both.repair(second), key=lambda s: s.pts) == [FIRST, SECOND]


def test_any_two_losses_of_a_window_are_brought_back_by_two_repairs() -> None:  # VS-10.2-2
    sent = sources(7)
    for a in range(7):
        for b in range(a):
            encoder, decoder = RepairEncoder(), RepairDecoder()
            found: list[Source] = []
            for index, source in enumerate(sent):
                encoder.add(source)
                if index not in (a, b):
                    found += decoder.source(source)
            for _ in range(2):
                repair = encoder.repair(7)
                assert repair is not None
                found += decoder.repair(repair)
            assert {s.pts: s for s in found} == {sent[i].pts: sent[i] for i in (a, b)}


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_brought_back_is_what_was_sent_and_comes_once(seed: int) -> None:  # VS-10.3-2
    rng = random.Random(seed)
    encoder, decoder, found, lost = RepairEncoder(), RepairDecoder(), [], 0
    sent = {source.pts: source for source in sources(200, seed=seed)}
    for index, source in enumerate(sent.values()):
        encoder.add(source)
        if rng.random() < 0.1:
            lost += 1
        else:
            found += decoder.source(source)
        if index % 3 == 2 and rng.random() < 0.9:
            repair = encoder.repair(7)
            assert repair is not None
            found += decoder.repair(repair)
        decoder.forget(source.pts - 60)
        assert len(decoder) <= MAX_EQUATIONS
    assert all(sent[source.pts] == source for source in found), f"seed {seed}"
    assert len({source.pts for source in found}) == len(found), f"seed {seed}"
    assert len(found) > 0.6 * lost, f"seed {seed}"
    assert decoder.unusable == 0


def test_a_repair_that_names_what_all_came_is_unneeded_and_one_that_lies_is_unusable() -> None:
    decoder = RepairDecoder()
    decoder.source(FIRST)
    decoder.source(SECOND)
    assert decoder.repair(Repair(key=3, window=(16, 8), symbol=bytes.fromhex("0c008a36baeb2c"))) == []
    assert decoder.unneeded == 1
    lying = RepairDecoder()
    lying.source(SECOND)
    assert lying.repair(Repair(key=0, window=(16, 8), symbol=b"\xff" * 5)) == []  # flags of 0xff are none: VS-10.3-1
    assert lying.repair(Repair(key=0, window=(16, 8), symbol=b"\x00\x00")) == []  # shorter than a source that it covers
    assert lying.unusable == 2


def test_an_endless_stream_of_unsolvable_repairs_stays_bounded() -> None:  # VS-10.3-4
    decoder = RepairDecoder()
    for number in range(1000):
        width = 64 if number % 2 else 16
        decoder.repair(Repair(key=number & 0xFF, window=tuple((number + i) * 8 for i in reversed(range(width))), symbol=bytes(60)))
    assert len(decoder) <= MAX_EQUATIONS


def test_windows_are_described_by_runs_and_end_at_zero() -> None:
    for window in [(100,), (100, 92, 84), (100, 92, 84, 60, 36), (500, 100, 99)]:
        assert window_of(window[0], runs_of(window)) == window
    assert window_of(16, ((3, 8),)) is None  # VS-10.3-3


def test_a_repair_covers_only_what_is_not_past() -> None:
    encoder = RepairEncoder()
    for source in sources(5):
        encoder.add(source)
    repair = encoder.repair(5, oldest_pts=1016)
    assert repair is not None
    assert repair.window == (1032, 1024, 1016)
    assert encoder.repair(5, oldest_pts=2000) is None
    with pytest.raises(ValueError, match="1 to 64"):
        encoder.repair(65)
