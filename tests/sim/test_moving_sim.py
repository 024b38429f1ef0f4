"""Calls whose client changes its network, over real QUIC in virtual time: rebound by a NAT, moved and told of it, or moved to nowhere."""

from __future__ import annotations

import itertools

import pytest

from voicestream import events
from voicestream.config import Limits, SessionConfig
from voicestream.quic.path_keeper import Step
from voicestream.testing.endpoint_sim import ClientHost, EndpointWorld, ServerSide
from voicestream.testing.profile import LinkProfile, NetworkProfile
from voicestream.testing.sim_keeper import SimKeeper

FRAME_S = 0.02


def call(delay_ms: float, seed: int = 1, **options: object) -> tuple[EndpointWorld, ClientHost, ServerSide, SimKeeper]:
    world = EndpointWorld(seed=seed, resumable=True)
    client = world.client(NetworkProfile.both(LinkProfile(delay_ms=delay_ms), **options))  # type: ignore[arg-type]
    world.open(client)
    return world, client, world.server.sides[0], SimKeeper(client)


@pytest.mark.parametrize("delay_ms", [10, 50, 150])
@pytest.mark.parametrize("told", [True, False])
def test_a_client_that_moves_loses_no_more_than_a_round_trip(delay_ms: float, told: bool) -> None:
    world, client, server, keeper = call(delay_ms)
    for side in (client, server):
        side.listen()
        side.speak()
    world.run(2.0)
    if told:
        keeper.network_changed()
    else:
        client.rebind()
    world.run(3.0)
    check = world.sim.check
    check(client.nat_dropped > 0, "nothing was under way to the old address")
    check(client.seen(events.Resumed) == [] and keeper.seen(Step.LOST) == [], f"the session had to be resumed: {keeper.steps}")
    for side, rtts in ((server, 0.0), (client, 1.0)):
        fates = [fate for fate in side.heard().fates if fate.sent.at < world.sim.now - 1.0]
        lost = [fate.sent.at for fate in fates if fate.played_at is None]
        # What is said until the client's next frame shows the new port goes to the old one, too.
        bound = rtts * (2 * delay_ms / 1000 / FRAME_S + 1)
        check(len(lost) <= bound, f"{side.name} missed {len(lost)} frames; a round trip has {2 * delay_ms / 1000 / FRAME_S:.0f}")


@pytest.mark.interpreted(reason="an object of another class takes a part's place")
@pytest.mark.parametrize("told", [True, False])
def test_what_the_estimate_knew_of_the_old_network_is_forgotten_at_both_ends(told: bool) -> None:
    world, client, server, keeper = call(20)
    changes = {side.name: 0 for side in (client, server)}
    for side in (client, server):
        side.speak()
        estimator = side.session._planner.estimator

        def noted(now: float, name: str = side.name, forget: object = estimator.path.changed) -> None:
            changes[name] += 1
            forget(now)  # type: ignore[operator]

        estimator.path = _Watched(estimator.path, noted)
    world.run(2.0)
    keeper.network_changed() if told else client.rebind()
    world.run(1.0)
    world.sim.check(changes == {client.name: int(told), server.name: 1}, f"{changes}")


class _Watched:
    def __init__(self, path: object, changed: object) -> None:
        object.__setattr__(self, "_path", path)
        object.__setattr__(self, "changed", changed)

    def __getattr__(self, name: str) -> object:
        return getattr(object.__getattribute__(self, "_path"), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(object.__getattribute__(self, "_path"), name, value)


@pytest.mark.parametrize("delay_ms", [10, 100])
def test_a_silent_client_that_moves_is_reached_a_moment_later(delay_ms: float) -> None:
    world, client, server, keeper = call(delay_ms)
    client.listen()
    world.run(3.0)
    keeper.network_changed()
    world.run(delay_ms / 1000 + 0.001)
    server.speak()
    world.run(2.0)
    lost = [fate for fate in client.heard().fates if fate.played_at is None and fate.sent.at < world.sim.now - 1.0]
    # Until the new address has proved itself, the server may send it no more than three times what has come from there.
    world.sim.check(len(lost) <= 2 * delay_ms / 1000 / FRAME_S, f"{len(lost)} frames were lost in a round trip of {2 * delay_ms} ms")


def test_a_silent_client_whose_nat_rebinds_is_reached_after_its_keepalive() -> None:
    world, client, server, _ = call(20, rebind=(4.0,))
    client.listen()
    world.run(4.0 + 5.0 + 0.1)
    server.speak()
    world.run(2.0)
    lost = [fate for fate in client.heard().fates if fate.played_at is None and fate.sent.at < world.sim.now - 1.0]
    world.sim.check(not lost, f"{len(lost)} frames went to the address that was left")


def test_in_the_pauses_of_its_speech_a_client_stays_reachable() -> None:
    # A NAT that forgets a flow after 10 s of silence, and an idle timeout below the length of the pauses.
    world = EndpointWorld(seed=3, resumable=True, config=SessionConfig(limits=Limits(idle_timeout=12)))
    client = world.client(LinkProfile(delay_ms=20))
    world.open(client)
    client.speak(pattern=((1.0, 25.0),))
    world.run(60.0)
    sent = [at for at, _ in client.packets["b2a"]]
    gaps = [later - earlier for earlier, later in itertools.pairwise(sent)]
    world.sim.check(max(gaps) < 5.1, f"the client was silent for {max(gaps):.1f} s")
    world.sim.check(not client.seen(events.Closed), "the call ended in a pause")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_who_moves_to_where_the_old_connection_is_not_carried_resumes_within_a_second(seed: int) -> None:
    world, client, server, keeper = call(30, seed=seed)
    for side in (client, server):
        side.speak()
    world.run(2.0)
    begin = world.sim.now
    # The new network lets no packet of the old connection through, as a firewall that has not seen its beginning.
    old = client.connection
    allowed = world.to_server

    def to_server(host: ClientHost, data: bytes, source: object) -> None:
        if host.connection is old and not (host.is_dialling and source == host._dialling[1]):
            return
        allowed(host, data, source)

    world.to_server = to_server  # type: ignore[method-assign]
    keeper.network_changed()
    world.run(3.0)
    resumed = [at - begin for at, _ in client.seen(events.Resumed)]
    world.sim.check(len(resumed) == 1 and resumed[0] < 1.0, f"resumed after {resumed}: {keeper.steps}")


def test_a_change_of_network_in_a_break_dials_at_once() -> None:
    world, client, server, keeper = call(30)
    for side in (client, server):
        side.speak()
    world.run(2.0)
    client.mute |= {"a2b", "b2a"}
    world.run(5.0)
    client.mute.clear()
    begin = world.sim.now
    keeper.network_changed()
    world.sim.check(keeper.seen(Step.DIAL)[-1] == begin, "it waited with the dial")
    world.run(1.0)
    resumed = [at - begin for at, _ in client.seen(events.Resumed)]
    # Two round trips: one for the handshake, one for the question.
    world.sim.check(len(resumed) == 1 and resumed[0] < 0.13, f"resumed after {resumed}: {keeper.steps}")
