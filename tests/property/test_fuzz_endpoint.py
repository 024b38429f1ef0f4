"""Hostile UDP payloads beside a call over real QUIC: nothing is raised, nothing is kept, the call goes on."""

from __future__ import annotations

import pytest

from voicestream import events
from voicestream.quic.endpoint import Address
from voicestream.testing.endpoint_sim import SERVER_ADDRESS, ClientHost, EndpointWorld
from voicestream.testing.fuzz_inputs import mutate
from voicestream.testing.profile import LinkProfile


def recorded(world: EndpointWorld) -> list[bytes]:
    """Every UDP payload that crosses from now on, both ways."""
    packets: list[bytes] = []
    to_server, to_client = world.to_server, world.to_client

    def up(client: ClientHost, data: bytes, source: Address) -> None:
        packets.append(data)
        to_server(client, data, source)

    def down(data: bytes, address: tuple[object, ...]) -> None:
        packets.append(data)
        to_client(data, address)

    world.to_server, world.to_client = up, down  # type: ignore[method-assign]
    return packets


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_call_outlives_replayed_mutated_and_random_packets(seed: int) -> None:
    world = EndpointWorld(seed=seed)
    packets = recorded(world)
    rng = world.sim.rng("hostile")
    client = world.client(LinkProfile(delay_ms=20))

    def hostile() -> None:
        kind = rng.randrange(4)
        data = rng.choice(packets)
        if kind == 1:
            data = mutate(data, rng.choice(packets), rng)
        elif kind == 2:
            data = rng.randbytes(rng.choice((0, 1, 20, 200, 1200, 1500)))
        elif kind == 3:
            data = data[:20] + rng.randbytes(max(0, len(data) - 20))
        own = client.address if rng.random() < 0.5 else ("203.0.113.9", rng.randrange(1, 65536))
        if rng.random() < 0.5:
            world.server.receive(data, own)
        else:
            client.connection.receive_datagram(data, SERVER_ADDRESS, world.sim.now)
            client.flush()
        if world.sim.now < world.start + 8:
            world.sim.after(rng.expovariate(300), hostile)

    world.sim.after(0.001, hostile)
    world.open()
    server = world.server.sides[0]
    for side in (client, server):
        side.listen()
        side.speak(stop=world.sim.now + 6)
    world.run(10)
    for side in (client, server):
        heard = side.heard()
        world.sim.check(not side.seen(events.Closed), f"{side.name} was closed: {side.seen(events.Closed)}")
        world.sim.check(heard.alien == heard.repeated == 0, f"{side.name} played {heard.alien} alien, {heard.repeated} repeated frames")
        world.sim.check(heard.played > 0.97 * len(heard.fates), f"{side.name} played {heard.played} of {len(heard.fates)} frames")
        world.sim.check(side.connection.stats().errors == 0, f"{side.name} caught exceptions")
    world.run(60)
    connections = len(world.server.endpoint.connections)
    world.sim.check(connections <= 1, f"the server keeps {connections} connections")
