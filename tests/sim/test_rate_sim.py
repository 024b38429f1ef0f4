"""Rate control of whole calls across narrow links, over real QUIC in virtual time: what the plan does, and when."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from voicestream.config import RateConfig, SessionConfig
from voicestream.events import PlanChanged, QualityChanged
from voicestream.testing import LinkProfile, NetworkProfile
from voicestream.testing.endpoint_sim import ClientHost, EndpointWorld
from voicestream.testing.link import own_queueing_ms

Steps = tuple[tuple[float, float], ...]


def call(link: LinkProfile, seconds: float, *, seed: int = 1, headroom: float = 1) -> tuple[EndpointWorld, ClientHost]:
    """A client that talks through `link`; the server listens and its own direction is open."""
    world = EndpointWorld(seed=seed, config=SessionConfig(rate=RateConfig(headroom=headroom)))
    client = world.client(NetworkProfile(b2a=link, a2b=LinkProfile(delay_ms=link.delay_ms)))
    world.open()
    world.server.sides[0].listen()
    client.speak(follow=True)
    world.run(seconds)
    return world, client


def reached(world: EndpointWorld, client: ClientHost, since: float, bitrate_bps: int, *, below: bool) -> float:
    """Seconds after `since` until the plan's bitrate was at most (`below`) or at least so much."""
    for at, event in client.seen(PlanChanged):
        passed = at - world.start - since
        if passed >= 0 and (event.bitrate_bps <= bitrate_bps if below else event.bitrate_bps >= bitrate_bps):
            return passed
    world.sim.fail(f"after {since} s the plan never came to {bitrate_bps} bps")


def offered_bps(client: ClientHost, begin: float, end: float) -> float:
    return sum(size for at, size in client.packets["b2a"] if begin <= at < end) * 8 / (end - begin)


def test_the_plan_follows_a_link_down_to_thirty_kilobits_and_back() -> None:
    link = LinkProfile(delay_ms=30, rate_kbps=((0.0, 200.0), (6.0, 30.0), (16.0, 200.0)))
    world, client = call(link, 23)
    check = world.sim.check
    up = reached(world, client, 0, 60_000, below=False)
    check(up <= 2.0, f"the start took {up:.1f} s")
    down = reached(world, client, 6, 16_000, below=True)
    check(down <= 3.0, f"16 kbps came after {down:.1f} s")
    held = [event.bitrate_bps for at, event in client.seen(PlanChanged) if 9 <= at - world.start < 16]
    check(all(bitrate <= 16_000 for bitrate in held), f"plans on 30 kbps: {held}")
    back = reached(world, client, 16, 64_000, below=False)
    check(back <= 5.0, f"64 kbps came back after {back:.1f} s")
    rate = offered_bps(client, 11, 16)
    check(22_000 <= rate <= 30_500, f"{rate:.0f} bps were sent into 30 kbps")
    late = own_queueing_ms(link, [packet for packet in client.packets["b2a"] if 9 <= packet[0] < 16])
    check(late.percentile(95) <= 60, f"own queue on 30 kbps: {late}")
    check([event.level for _, event in client.seen(QualityChanged)][-1] == "good", "the quality did not recover")


def test_on_a_narrow_link_a_drop_finds_little_under_way() -> None:
    """The codec takes what it began with and no more, so that less waits until the drop is known; a wide link gives it all."""
    waits = {1.0: 0.0, 3.0: 0.0}
    for headroom, drop in itertools.product(waits, (4.0, 4.05, 4.1)):
        narrow = LinkProfile(delay_ms=30, rate_kbps=((0.0, 200.0), (drop, 50.0)))
        world, client = call(narrow, 5.5, headroom=headroom)
        most = max((event.bitrate_bps for at, event in client.seen(PlanChanged) if at - world.start < drop), default=40_000)
        world.sim.check((most > 60_000) is (headroom == 1), f"{most} bps at a headroom of {headroom}")
        waits[headroom] += own_queueing_ms(narrow, [packet for packet in client.packets["b2a"] if packet[0] >= 3.5]).percentile(100)
    assert waits[3.0] < 0.85 * waits[1.0], waits
    world, client = call(LinkProfile(delay_ms=30, rate_kbps=1000.0), 6, headroom=3.0)
    assert reached(world, client, 0, 64_000, below=False) < 5


def test_the_wire_rate_follows_a_variable_capacity() -> None:  # VS-9.3-3 VS-9.4-1
    """RFC 8867 section 5.1, a tenth of its rates and a quarter of its times."""
    steps: Steps = ((0.0, 100.0), (10.0, 250.0), (20.0, 60.0), (30.0, 100.0))
    link = LinkProfile(delay_ms=50, rate_kbps=steps)
    world, client = call(link, 40)
    for (begin, kbps), end in zip(steps, (10, 20, 30, 40), strict=True):
        rate, need = offered_bps(client, begin + 5, end), min(kbps * 1e3, 92e3)
        world.sim.check(0.85 * need <= rate <= kbps * 1e3 * 1.01, f"from {begin} s: {rate:.0f} of {need:.0f} bps")
        queue = own_queueing_ms(link, [packet for packet in client.packets["b2a"] if begin + 4 <= packet[0] < end])
        world.sim.check(queue.percentile(95) <= 60, f"from {begin} s: {queue}")


def test_a_link_below_the_floor_pauses_the_audio_with_little_sent_and_goes_on_when_it_can() -> None:  # VS-9.5-2
    link = LinkProfile(delay_ms=30, rate_kbps=((0.0, 100.0), (4.0, 6.0), (16.0, 100.0)))
    world, client = call(link, 26)
    levels: Mapping[str, float] = {event.level: at - world.start for at, event in client.seen(QualityChanged)}
    world.sim.check("paused" in levels and 4 <= levels["paused"] < 16, f"levels: {levels}")
    rate = offered_bps(client, 10, 16)
    world.sim.check(rate <= 9_000, f"{rate:.0f} bps were sent into 6 kbps")
    world.sim.check(not client.session.plan.paused, "the audio never went on")
    back = reached(world, client, 16, 40_000, below=False)
    world.sim.check(back <= 8, f"40 kbps came back after {back:.1f} s")
