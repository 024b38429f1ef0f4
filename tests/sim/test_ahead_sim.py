"""Audio sent ahead in virtual time: the far end's lookahead is filled and no more. Every failure message carries the seed."""

from __future__ import annotations

import pytest

from voicestream.testing.endpoint_sim import EndpointWorld
from voicestream.testing.profile import LinkProfile
from voicestream.testing.session_sim import SessionCall
from voicestream.testing.side import CallSide
from voicestream.testing.sim import Simulation

STEP_S = 0.01
FRAME_MS = 20.0
LOOKAHEAD_MS = 150.0


def held_ms(side: CallSide) -> float:
    """What the listener has on hand: coded, and made but not given to the device."""
    device, playout = side.devices[0]
    return (playout._intake.buffer.coded_units + device._held_units) * 2.5


def levels(sim: Simulation, side: CallSide, seconds: float) -> list[float]:
    found = []
    for _ in range(round(seconds / STEP_S)):
        sim.run(sim.now + STEP_S)
        found.append(held_ms(side))
    return found


def talking_ahead(rtt_ms: float, seed: int, *, drift_ppm: float = 0.0, loss: float = 0.0) -> SessionCall:
    call = SessionCall(LinkProfile(delay_ms=rtt_ms / 2, loss=loss), seed=seed)
    call.open()
    call.client.listen(drift_ppm=drift_ppm)
    call.server.synthesiser().say(60)
    call.run(1.0)
    return call


@pytest.mark.parametrize("rtt_ms", [20, 60, 120, 200])
@pytest.mark.parametrize("lookahead_ms", [60, 300])
def test_a_lookahead_that_changes_is_followed_both_ways(rtt_ms: int, lookahead_ms: int) -> None:
    call = talking_ahead(rtt_ms, seed=rtt_ms)
    before = levels(call.sim, call.client, 1.0)
    call.sim.check(LOOKAHEAD_MS - 2 * FRAME_MS <= max(before) <= LOOKAHEAD_MS, f"{max(before)} ms were held")
    call.client.session.update_settings(call.sim.now, lookahead_ms=lookahead_ms)
    call.client.flush()
    call.run(0.5 + rtt_ms / 1e3)
    after = levels(call.sim, call.client, 2.0)
    call.sim.check(lookahead_ms - 2 * FRAME_MS <= max(after) <= lookahead_ms, f"{max(after)} ms of {lookahead_ms} were held")
    call.sim.check(min(after) >= min(lookahead_ms - 3 * FRAME_MS, 20), f"the buffer ran down to {min(after)} ms")


@pytest.mark.parametrize("rtt_ms", [20, 60, 200])
@pytest.mark.parametrize("stall_s", [1.0, 5.0])
def test_a_listener_that_stands_still_is_not_flooded_and_goes_on_without_a_gap(rtt_ms: int, stall_s: float) -> None:
    call = talking_ahead(rtt_ms, seed=rtt_ms)
    device = call.client.devices[0][0]
    device._next_block += stall_s
    call.sim.update(device)
    stalled = levels(call.sim, call.client, stall_s)
    bound = LOOKAHEAD_MS + 150 + rtt_ms  # until two looks at its playhead show that it stands
    call.sim.check(max(stalled) <= bound, f"{max(stalled)} ms were held")
    call.sim.check(stalled[-1] <= max(stalled[: len(stalled) // 2]) + FRAME_MS, "it was sent more and more")
    missing = device.units["waiting"] + device.units["conceal"]
    levels(call.sim, call.client, 3.0)
    call.sim.check(device.units["waiting"] + device.units["conceal"] == missing, "it ran dry when it went on")
    later = levels(call.sim, call.client, 1.0)
    call.sim.check(max(later) <= LOOKAHEAD_MS + FRAME_MS, f"{max(later)} ms are still held")


@pytest.mark.parametrize("rtt_ms", [20, 60, 200])
def test_a_listener_that_reads_at_half_the_speed_gets_half(rtt_ms: int) -> None:
    call = talking_ahead(rtt_ms, seed=rtt_ms, drift_ppm=1e6)
    found = levels(call.sim, call.client, 8.0)
    call.sim.check(max(found[200:]) <= LOOKAHEAD_MS + 50 + rtt_ms / 2, f"{max(found[200:])} ms were held")


@pytest.mark.parametrize("rtt_ms", [20, 60, 200])
def test_after_a_clear_the_lookahead_is_filled_anew_and_no_more(rtt_ms: int) -> None:
    call = talking_ahead(rtt_ms, seed=rtt_ms)
    for outgoing in (True, False):
        side = call.server if outgoing else call.client
        side.session.clear(call.sim.now, outgoing=outgoing)
        side.flush()
        call.run(rtt_ms / 1e3 + 0.05)
        call.server.synthesiser().say(60)
        found = levels(call.sim, call.client, 2.0)
        call.sim.check(LOOKAHEAD_MS - 2 * FRAME_MS <= max(found) <= LOOKAHEAD_MS, f"{max(found)} ms were held")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_words_wait_for_a_broken_path_and_go_on_after_the_resume(seed: int) -> None:
    world = EndpointWorld(seed=seed, resumable=True)
    client = world.client(LinkProfile(delay_ms=30))
    world.open()
    server = world.server.sides[0]
    client.listen()
    voice = server.synthesiser()
    voice.say(60)
    world.run(2.0)
    client.redial()
    left = voice.left_frames
    server.session.path_lost(world.sim.now)
    world.sim.check(server.session.ahead_allowance(world.sim.now) == 0, "words are sent without a path")
    found = levels(world.sim, client, 4.0)
    world.sim.check(voice.left_frames < left - 100, "the words did not go on")
    world.sim.check(max(found) <= LOOKAHEAD_MS + 3 * FRAME_MS, f"{max(found)} ms were held")
    world.sim.check(max(found[200:]) >= LOOKAHEAD_MS - 2 * FRAME_MS, "the lookahead was not filled again")
