"""A link that becomes narrow while it loses datagrams, both ways at once: speech goes on in the least mode while the queue drains."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from voicestream.cli.demo.phases import COURSE, PhasedLink
from voicestream.config import SessionConfig
from voicestream.events import QualityChanged
from voicestream.testing import LinkProfile, NetworkProfile
from voicestream.testing.endpoint_sim import ClientHost, EndpointWorld
from voicestream.testing.fake_codec import FakeCodec
from voicestream.testing.loss import BurstLoss
from voicestream.testing.side import CallSide

NARROW_AT = 12.0


def gaps_ms(hearer: CallSide, begin: float, end: float) -> list[tuple[float, float]]:
    """(virtual second, milliseconds) without new audio of the far end, from 150 ms on."""
    fates = [fate for fate in hearer.heard().fates if fate.played_at is not None]
    found = []
    for before, fate in itertools.pairwise(fates):
        ended = (before.played_at or 0.0) + before.sent.units * 0.0025
        pause = (fate.played_at or 0.0) - ended
        if begin <= ended < end and pause >= 0.15:
            found.append((round(ended, 2), round(1000 * pause)))
    return found


def dropped_to(kbps: float, seed: int) -> tuple[EndpointWorld, ClientHost]:
    world = EndpointWorld(seed=seed)
    client = world.client(NetworkProfile())
    good, loss, narrow = (dataclasses.replace(phase, seconds=6.0) for phase in COURSE[:3])
    phases = (good, loss, dataclasses.replace(narrow, rate_kbps=kbps))
    client.links["b2a"] = PhasedLink(phases, 30, f"{seed}/b2a", world.start)
    client.links["a2b"] = PhasedLink((good,), 30, f"{seed}/a2b", world.start)
    world.open()
    world.server.sides[0].listen()
    client.speak(follow=True)
    world.run(18)
    return world, client


@pytest.mark.parametrize(("kbps", "seed"), [(30, 1), (30, 2), (25, 3), (25, 6)])
def test_a_drop_to_what_speech_needs_makes_no_gap(kbps: float, seed: int) -> None:
    world, client = dropped_to(kbps, seed)
    check = world.sim.check
    check(all(event.level != "paused" for _, event in client.seen(QualityChanged)), "the audio paused")
    gaps = gaps_ms(world.server.sides[0], world.start + NARROW_AT, world.start + 18)
    check(not gaps, f"gaps: {gaps}")
    large = [(round(at - world.start, 2), size) for at, size in client.packets["b2a"] if at >= world.start + NARROW_AT and size > 450]
    check(not large, f"large packets on a narrow link: {large}")


def drop_both_ways(seed: int) -> tuple[EndpointWorld, float]:
    """A call of which both ways carry 30 kbps all at once; when, in virtual seconds."""
    world = EndpointWorld(seed=seed, config=SessionConfig(bitrate_bps=64000))
    client = world.client(NetworkProfile())
    world.open()
    server = world.server.sides[0]
    good, loss, narrow = (dataclasses.replace(phase, seconds=3.0) for phase in COURSE[:3])
    phases = (dataclasses.replace(good, seconds=2.0 + 0.13 * (seed % 9)), loss, narrow)
    for way in ("a2b", "b2a"):
        client.links[way] = PhasedLink(phases, 30, f"{seed}/{way}", world.sim.now)
    narrow_at = world.sim.now + sum(phase.seconds for phase in phases[:2])
    for side in (client, server):
        side.listen()
        side.talker(codec=FakeCodec(seed=seed, bitrate_bps=64000, size_jitter=0.35))
        side.speak(follow=True)
    world.run(narrow_at + 2.2 - world.sim.now)
    return world, narrow_at


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_drop_of_both_ways_at_once_makes_no_gap(seed: int) -> None:
    world, narrow_at = drop_both_ways(seed)
    found = {side.name: gaps_ms(side, narrow_at - 0.2, narrow_at + 2) for side in (world.clients[0], world.server.sides[0])}
    world.sim.check(not any(found.values()), f"gaps: {found}")


@pytest.mark.parametrize("link", [LinkProfile(delay_ms=40, burst_loss=BurstLoss(loss=0.05, burst=3)), LinkProfile(delay_ms=30, loss=0.05)])
@pytest.mark.parametrize("seed", [2, 4])
def test_losses_that_are_not_ours_leave_the_codec_its_bits(link: LinkProfile, seed: int) -> None:
    world = EndpointWorld(seed=seed)
    client = world.client(NetworkProfile.both(link))
    world.open()
    world.server.sides[0].listen()
    client.speak(follow=True)
    rates: list[int] = []
    while world.sim.now < world.start + 20:
        world.run(0.5)
        rates.append(client.session.plan.bitrate_bps)
    mean = sum(rates[6:]) / len(rates[6:])
    world.sim.check(mean >= 58_000, f"{mean:.0f} bps in the mean")
