"""Barge-in across bad links in virtual time: how soon it works and how exactly it tells. Every failure message carries the seed."""

from __future__ import annotations

import json

import pytest

from voicestream.core.playout import Playout
from voicestream.testing import barge_in
from voicestream.testing.barge_in import BargeIns, Figures
from voicestream.testing.loss import BurstLoss
from voicestream.testing.profile import LinkProfile

UNIT_MS = 2.5
REACTION_MS = 40.0

HOSTILE = LinkProfile(delay_ms=50, jitter_ms=30, loss=0.05, reorder=True, duplicate=0.05)
BURSTY = LinkProfile(delay_ms=40, burst_loss=BurstLoss(loss=0.05, burst=3))


def keep_the_bars(figures: Figures, seed: int, late_ms: float = REACTION_MS) -> None:
    assert figures.unconfirmed == 0, f"seed {seed}"
    assert figures.old_samples.maximum == 0, f"seed {seed}: {figures.old_samples!r}"
    assert figures.heard_error_ms.maximum <= UNIT_MS, f"seed {seed}: {figures.heard_error_ms!r}"
    assert figures.told_error_ms.maximum <= UNIT_MS, f"seed {seed}: {figures.told_error_ms!r}"
    assert figures.last_old_ms.maximum <= late_ms, f"seed {seed}: {figures.last_old_ms!r}"


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("seed", [71, 72, 73])
def test_on_paths_of_all_kinds_nothing_old_is_played_and_the_talker_stops_in_time(seed: int, depth: int) -> None:
    figures = Figures()
    for call in range(3):
        BargeIns(seed * 100 + call, depth=depth, figures=figures).run(8)
    keep_the_bars(figures, seed)


@pytest.mark.parametrize("rtt_ms", [20, 60, 120, 200])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_reply_that_is_sent_ahead_is_heard_at_once(rtt_ms: int, depth: int) -> None:
    figures = Figures()
    BargeIns(rtt_ms, depth=depth, figures=figures, profile=LinkProfile(delay_ms=rtt_ms / 2), ahead=True).run(10)
    keep_the_bars(figures, rtt_ms)
    assert figures.reply_ms.maximum <= 21, f"seed {rtt_ms}: more than a block of the device after it came: {figures.reply_ms!r}"


@pytest.mark.parametrize("profile", [HOSTILE, BURSTY], ids=["hostile", "bursty"])
@pytest.mark.parametrize("seed", [81, 82])
def test_on_a_hostile_path_only_the_reaction_takes_longer(profile: LinkProfile, seed: int) -> None:
    figures = Figures()
    BargeIns(seed, depth=2, figures=figures, profile=profile).run(12)
    # A clear that is held up takes longer than the path's delay, and a run of losses can swallow one repeat after the other.
    keep_the_bars(figures, seed, late_ms=1000 if profile is BURSTY else REACTION_MS + 4 * profile.jitter_ms)


def test_a_player_that_throws_nothing_away_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Playout, "take_void", lambda self, held_units: False)
    figures = Figures()
    BargeIns(7, depth=1, figures=figures).run(10)
    assert figures.old_samples.maximum > 0


def test_the_command_prints_the_same_figures_for_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for _ in range(2):
        assert barge_in.main(["--trials", "12", "--seed", "5", "--depth", "1", "--json"]) == 0
        printed.append(json.loads(capsys.readouterr().out))
    assert printed[0] == printed[1]
    assert printed[0]["old_samples"]["n"] == 12
    assert barge_in.main(["--trials", "2", "--depth", "1"]) == 0
    assert "old samples played after the clear" in capsys.readouterr().out
