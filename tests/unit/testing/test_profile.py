from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from voicestream.testing.loss import BurstLoss
from voicestream.testing.profile import LinkProfile, NetworkProfile


@pytest.mark.parametrize(
    "values",
    [
        {"delay_ms": -1},
        {"jitter_ms": -1},
        {"delay_trace_ms": (1, -1)},
        {"delay_trace_step_ms": 0},
        {"loss": 1.1},
        {"duplicate": -0.1},
        {"loss_trace": (0, 2)},
        {"rate_kbps": -1},
        {"rate_kbps": ()},
        {"rate_kbps": ((0, 10), (0, 20))},
        {"rate_kbps": 10, "rate_trace_ms": (1,)},
        {"rate_trace_ms": (-1,)},
        {"queue_ms": -1},
        {"queue_bytes": 0},
        {"outages": ((1, 0),)},
        {"outages": ((-1, 2),)},
    ],
)
def test_a_value_out_of_range_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|exclude"):
        LinkProfile(**values)


@pytest.mark.parametrize("model", [{"loss": 1.0, "burst": 2}, {"loss": 0.1, "burst": 0.5}, {"loss": 0.8, "burst": 1}])
def test_an_impossible_burst_model_is_refused(model: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"must be|needs bursts"):
        BurstLoss(**model)


def test_every_key_of_a_profile_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "delays.txt").write_text("1.5\n20\n")
    (tmp_path / "fates.txt").write_text("0\n1\n")
    (tmp_path / "slots.txt").write_text("5\n17\n")
    forward = {
        "delay_ms": 30, "jitter_ms": 5, "reorder": True, "delay_trace": "delays.txt", "trace_step_ms": 100,
        "loss": 0.01, "ge": {"loss": 0.05, "burst": 3}, "loss_trace": "fates.txt",
        "rate_kbps": [[0, 200], [6, 50]], "queue_ms": 500, "queue_bytes": 9000, "duplicate": 0.02, "outages": [[9, 3]],
    }  # fmt: skip
    backward = {"rate_trace": "slots.txt"}
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"a2b": forward, "b2a": backward, "rebind": [5, 10]}))
    profile = NetworkProfile.from_json(file)
    assert profile == NetworkProfile(
        a2b=LinkProfile(
            delay_ms=30, jitter_ms=5, reorder=True, delay_trace_ms=(1.5, 20), delay_trace_step_ms=100,
            loss=0.01, burst_loss=BurstLoss(loss=0.05, burst=3), loss_trace=(0, 1),
            rate_kbps=((0, 200), (6, 50)), queue_ms=500, queue_bytes=9000, duplicate=0.02, outages=((9, 3),),
        ),
        b2a=LinkProfile(rate_trace_ms=(5, 17)),
        rebind=(5, 10),
    )  # fmt: skip


def test_both_describes_both_directions() -> None:
    profile = NetworkProfile.from_json('{"both": {"rate_kbps": 64}}')
    assert profile == NetworkProfile.both(LinkProfile(rate_kbps=64))
    assert profile.a2b.rate_steps == ((0.0, 64),)


def test_an_empty_profile_is_a_perfect_path() -> None:
    assert NetworkProfile.from_json({}) == NetworkProfile()


@pytest.mark.parametrize(
    "text",
    ['{"up": {}}', '{"both": {"dealy_ms": 3}}', '{"both": {"ge": {"loss": 2, "burst": 2}}}', '{"rebind": [-1]}'],
)
def test_a_profile_with_an_error_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"unknown|must"):
        NetworkProfile.from_json(text)
