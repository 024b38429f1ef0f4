"""The table of what mends the losses."""

from __future__ import annotations

from voicestream.testing.recovery import measure


def test_every_lost_frame_is_mended_by_one_tool_or_concealed() -> None:
    outcome = measure(60, 0.05, seeds=(5,), seconds=10)
    assert outcome.frames == 500
    assert outcome.wrong == 0
    assert 5 < outcome.lost < 60
    assert outcome.mended["resent"] > 0
    assert sum(outcome.mended.values()) <= outcome.lost <= sum(outcome.mended.values()) + outcome.concealed
    assert 0 < outcome.redundancy_share < 0.36


def test_retransmission_alone_has_no_repairs() -> None:
    outcome = measure(60, 0.05, seeds=(5,), seconds=5, bare=True)
    assert outcome.mended["repair"] == outcome.mended["copy"] == 0
