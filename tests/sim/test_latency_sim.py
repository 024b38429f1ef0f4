"""Mouth to ear and turns as sessions measure them, against what the simulation knows, in virtual time."""

from __future__ import annotations

from functools import cache

import pytest

from voicestream.testing.profile import LinkProfile, NetworkProfile
from voicestream.testing.session_sim import SessionCall
from voicestream.testing.side import FrameFate

PATHS = {
    "perfect": NetworkProfile.both(LinkProfile()),
    "near": NetworkProfile.both(LinkProfile(delay_ms=20, jitter_ms=5)),
    "far": NetworkProfile.both(LinkProfile(delay_ms=120, jitter_ms=10)),
    "lossy": NetworkProfile.both(LinkProfile(delay_ms=40, jitter_ms=10, loss=0.05)),
    "restless": NetworkProfile.both(LinkProfile(delay_ms=150, jitter_ms=20)),
    "lopsided": NetworkProfile(a2b=LinkProfile(delay_ms=20), b2a=LinkProfile(delay_ms=90, jitter_ms=10)),
}


@cache
def conversation(path: str, seed: int, *, ahead: bool = False) -> SessionCall:
    """The client talks for 2 s of each 5 s; the server answers 0.7 s later for 1 s."""
    call = SessionCall(PATHS[path], seed=seed)
    call.open()
    call.client.listen(phase_s=0.007)
    call.server.listen(phase_s=0.011)
    call.client.speak(pattern=((2.0, 3.0),))
    if ahead:
        voice = call.server.synthesiser()
        for turn in range(8):
            call.run(2.7 if not turn else 5.0)
            voice.say(1.0)
        call.run(2.3)
    else:
        call.run(2.7)
        call.server.speak(pattern=((1.0, 4.0),))
        call.run(37.3)
    return call


def true_turns(user: SessionCall) -> list[float]:
    """From the end of each of the client's talkspurts to the first sample of the server's next one at the client."""
    ends = [fate.sent.at for fate in user.server.heard().fates if fate.sent.end]
    starts = [fate.played_at for fate in user.client.heard().fates if fate.sent.start and fate.played_at is not None]
    found = []
    for index, end in enumerate(ends):
        until = ends[index + 1] if index + 1 < len(ends) else float("inf")
        found += [start - end for start in starts if end < start < until][:1]
    return found


def captured_at(fate: FrameFate) -> float:
    return fate.sent.at - fate.sent.units * 0.0025


@pytest.mark.parametrize("path", PATHS)
def test_turns_are_measured_at_both_ends_as_they_were(path: str) -> None:
    call = conversation(path, seed=11)
    truth = true_turns(call)
    mean_ms = sum(truth) / len(truth) * 1000
    here = call.client.session.stats(call.sim.now).latency.turn
    there = call.server.session.stats(call.sim.now).latency.answer
    for who, found in (("client", here), ("server", there)):
        # A talkspurt whose first or last frame is lost for good is no turn; most are.
        assert len(truth) * 0.6 <= found.count <= len(truth), f"{path}: {who} found {found.count} of {len(truth)}"
        assert found.mean_ms == pytest.approx(mean_ms, abs=30), f"{path}: {who} {found} of {truth}"


def test_an_answer_that_is_sent_ahead_of_time_is_a_turn_too() -> None:
    call = conversation("far", seed=12, ahead=True)
    truth = true_turns(call)
    assert len(truth) >= 7
    there = call.server.session.stats(call.sim.now).latency.answer
    assert there.count >= len(truth) - 2
    assert there.mean_ms == pytest.approx(sum(truth) / len(truth) * 1000, abs=30)
    # What is sent ahead has no time of capture.
    assert call.client.session.stats(call.sim.now).latency.mouth_to_ear.count == 0


@pytest.mark.parametrize("path", PATHS)
def test_mouth_to_ear_is_right_within_the_bound_that_is_told_with_it(path: str) -> None:
    call = conversation(path, seed=11)
    for side in (call.client, call.server):
        stats = side.session.stats(call.sim.now)
        played = [(fate.played_at - captured_at(fate)) * 1000 for fate in side.heard().fates if fate.played_at is not None]
        truth, found = sum(played) / len(played), stats.latency.mouth_to_ear
        assert found.count > 20
        assert stats.clock_error_ms is not None
        assert found.mean_ms is not None
        # 10 ms: the samples are not the frames.
        assert abs(found.mean_ms - truth) <= stats.clock_error_ms + 10, f"{path} {side.name}: {found} instead of {truth:.1f}"


@pytest.mark.parametrize("seed", [100, 104, 108, 111])
def test_jitter_in_a_silence_is_no_queue_so_that_the_next_talkspurt_is_heard_from_its_start(seed: int) -> None:
    call = conversation("restless", seed=seed)
    for side in (call.client, call.server):
        fates = side.heard().fates
        missing = [fate.sent.at for fate in fates if fate.played_at is None]
        assert len(fates) > 300
        assert len(missing) <= 3, f"seed {seed}, {side.name}: {len(missing)} of {len(fates)} frames were not played, from {missing[0]}"
