"""Resumptions that are asked for with the first packet of a dial (0-RTT), over real QUIC in virtual time."""

from __future__ import annotations

import pytest

from voicestream import events, wire
from voicestream.config import Limits, SessionConfig
from voicestream.core.lifecycle import State
from voicestream.quic.endpoint import Address, ClientEndpoint
from voicestream.quic.vacancy import Pending
from voicestream.session import ClientSession
from voicestream.testing.endpoint_sim import PLACE, SERVER_ADDRESS, ClientHost, EndpointWorld, ServerSide
from voicestream.testing.profile import LinkProfile
from voicestream.testing.sim_certificate import sim_certificate
from voicestream.testing.sim_keeper import SimKeeper
from voicestream.wire.parameters import Parameters

DELAY_MS = 100.0
RTT = 2 * DELAY_MS / 1000
CONFIG = SessionConfig(limits=Limits(idle_timeout=2.0))
"""The old connection is gone soon."""

BREAK_S = 6.5
ELSEWHERE: Address = ("203.0.113.66", 666)


def call(
    seed: int, *, early: bool = True, retry: bool = False, loss: float = 0.0, config: SessionConfig = CONFIG
) -> tuple[EndpointWorld, ClientHost, ServerSide]:
    """A call in which both talk and listen."""
    world = EndpointWorld(seed=seed, config=config, resumable=True, early=early, retry=retry)
    client = world.client(LinkProfile(delay_ms=DELAY_MS, loss=loss))
    world.open(client)
    server = world.server.sides[0]
    SimKeeper(client)
    for side in (client, server):
        side.listen()
        side.speak()
    world.run(2.0)
    return world, client, server


def broken(world: EndpointWorld, client: ClientHost, seconds: float = BREAK_S) -> float:
    """The path dies for so long that the old connection is given up; returns when it is back."""
    client.mute = {"a2b", "b2a"}
    world.run(seconds)
    client.mute = set()
    return world.sim.now


def first_sound(side: CallSideLike, since: float) -> float:
    """Seconds until something is heard that was said since then."""
    assert side.other is not None
    sent = side.other.talkers[0].sent
    return min(one.at for one in side.devices[0][0].played if one.frame.pts in sent and sent[one.frame.pts].at >= since) - since


CallSideLike = ClientHost | ServerSide


def check_nothing_twice(world: EndpointWorld, *sides: CallSideLike) -> None:
    for side in sides:
        heard = side.heard()
        world.sim.check((heard.repeated, heard.alien) == (0, 0), f"{side.name}: {heard.repeated} frames twice")
        world.sim.check(not side.seen(events.Closed), f"{side.name}: {side.seen(events.Closed)}")


@pytest.mark.parametrize("retry", [False, True])
def test_speech_is_back_one_round_trip_sooner_both_ways(retry: bool) -> None:
    # VS-11.3-8
    sooner: list[list[float]] = []
    for early in (False, True):
        world, client, server = call(21, early=early, retry=retry)
        back = broken(world, client)
        world.run(3.0)
        check_nothing_twice(world, client, server)
        world.sim.check(world.server.endpoint.stats.early == early, "what came in early data was not counted")
        sooner.append([first_sound(client, back), first_sound(server, back)])
    for late, soon in zip(*sooner, strict=True):
        assert late - soon == pytest.approx(RTT, abs=0.021), sooner
    if not retry:
        # The first packet of a dial may leave a moment after the path is back: then there and back, and a frame.
        assert sooner[1][0] <= 1.5 * RTT + 0.2


def test_a_client_whose_ticket_is_not_taken_asks_again_and_loses_a_round_trip_only() -> None:
    found: list[float] = []
    for early in (False, True):
        world, client, server = call(22, early=early)
        if early:
            tickets = world.server.endpoint._tickets
            assert tickets is not None
            tickets._living.clear()  # as of a server that was restarted, or has too many
            tickets._of.clear()
        back = broken(world, client)
        world.run(3.0)
        check_nothing_twice(world, client, server)
        world.sim.check(world.server.endpoint.stats.early == 0, "nothing could be read early")
        world.sim.check(len(client.seen(events.Resumed)) == 1 and world.server.refused == [], f"{client.events[-3:]}")
        found.append(first_sound(client, back))
    assert found[1] == pytest.approx(found[0], abs=0.021)


def test_packets_that_are_lost_on_the_way_cost_no_frame_and_bring_none_twice() -> None:
    for seed in (30, 31):
        world, client, server = call(seed, loss=0.2)
        broken(world, client)
        world.run(6.0)
        check_nothing_twice(world, client, server)
        world.sim.check(client.session.state is State.OPEN and server.session.state is State.OPEN, "not resumed")
        world.sim.check(len(client.seen(events.Resumed)) == len(server.seen(events.Resumed)), "the two ends differ")


def tapped(world: EndpointWorld) -> list[bytes]:
    """All that clients send from now on."""
    seen: list[bytes] = []
    send = world.to_server

    def to_server(client: ClientHost, data: bytes, source: Address) -> None:
        seen.append(data)
        send(client, data, source)

    world.to_server = to_server  # type: ignore[method-assign]
    return seen


def replay(world: EndpointWorld, packets: list[bytes]) -> None:
    """Somebody who has recorded packets sends them from elsewhere."""
    for data in packets:
        world.server.receive(data, ELSEWHERE)
        world.run(0.001)


def first_flight(packets: list[bytes]) -> list[bytes]:
    """Those with long headers of version 1: Initial, 0-RTT, Handshake."""
    return [data for data in packets if data[0] & 0xC0 == 0xC0]


def test_a_first_flight_that_is_replayed_does_nothing() -> None:
    # T-EARLY, VS-11.3-9: its ticket is used up, and whoever has it cannot finish the handshake that is asked of him then.
    world, client, server = call(23)
    seen = tapped(world)
    broken(world, client)
    world.run(2.0)
    world.sim.check(world.server.endpoint.stats.early == 1, "no early data")
    flight, connection = first_flight(seen), server.connection
    assert any(data[0] & 0xF0 == 0xC0 for data in flight)
    events_before, begun, sides = len(server.events), world.server.endpoint.stats.accepted, dict(world.server.sides)
    tickets = world.server.endpoint._tickets
    assert tickets is not None
    # The connection that it opened is over and forgotten: otherwise its packets are that one's, and known by their numbers.
    for known in list(world.server.endpoint._routes):
        if known not in {cid.cid for cid in connection._quic._host_cids}:
            del world.server.endpoint._routes[known]
    world.server.endpoint._goodbyes.clear()
    replay(world, flight)
    world.run(1.0)
    stats = world.server.endpoint.stats
    world.sim.check(stats.accepted > begun, "the replay was not even looked at")
    world.sim.check(stats.early == 1, "the replay was taken for the client")
    world.sim.check(server.connection is connection, "the replay has moved the session")
    moved = [event for _, event in server.events[events_before:] if isinstance(event, events.Resumed | events.PathLost)]
    world.sim.check(moved == [] and world.server.sides == sides, f"the replay did something: {moved}")
    check_nothing_twice(world, client, server)


def test_a_flight_that_comes_first_from_elsewhere_takes_no_session_from_a_living_path() -> None:
    # T-EARLY, VS-11.5-5
    world, client, server = call(24)
    seen = tapped(world)
    client.mute = {"b2a"}
    client.redial()  # nothing of it reaches the server
    world.run(0.4)
    client.give_up_dial()
    client.mute = set()
    world.run(1.0)
    connection = server.connection
    replay(world, first_flight(seen))
    world.run(1.0)
    world.sim.check(world.server.endpoint.stats.early == 1, "the server has not read the request")
    world.sim.check(server.connection is connection, "a recording has moved a session from a living path")
    world.run(CONFIG.limits.handshake_timeout + 1.0)
    world.sim.check(server.connection is connection and not client.seen(events.Resumed), "it has later")
    check_nothing_twice(world, client, server)


def test_a_flight_that_comes_first_from_elsewhere_costs_a_broken_session_nothing() -> None:
    # T-EARLY: the session waits on a connection that nobody has, and its client takes it from there.
    world, client, server = call(25)
    seen = tapped(world)
    client.mute = {"a2b", "b2a"}
    world.run(5.0)
    answered: list[int] = []
    deliver = world.to_client

    def to_client(data: bytes, address: Address) -> None:
        answered.extend([len(data)] if address == ELSEWHERE else [])
        deliver(data, address)

    world.to_client = to_client  # type: ignore[method-assign]
    replay(world, first_flight(seen))
    world.run(0.5)
    world.sim.check(world.server.endpoint.stats.early == 1 and server.seen(events.Resumed) != [], "the recording was not taken")
    world.sim.check(0 < sum(answered) <= 3 * sum(map(len, first_flight(seen))), "more went there than QUIC allows")
    # Whoever knows the first packet can write others that seem to follow it: no such word ends the session.
    server.connection._quic.close(error_code=0x12F, frame_type=6, reason_phrase="a word of anybody")
    world.server.flush(server.connection)
    world.run(2.0)
    world.sim.check(server.session.is_detached, "the session did not outlive the connection to nowhere")
    client.mute = set()
    world.run(4.0)
    world.sim.check(len(client.seen(events.Resumed)) == 1 and client.session.state is State.OPEN, f"{client.events[-3:]}")
    check_nothing_twice(world, client, server)


def test_a_session_whose_client_can_still_be_heard_is_not_moved_early() -> None:
    # VS-11.5-5: what the client says comes on the old connection, while the way back is dead.
    world, client, server = call(26, config=SessionConfig())
    connection = server.connection
    client.mute = {"a2b"}
    world.run(6.0)
    world.sim.check(world.server.endpoint.stats.early > 0, "the client has not asked")
    world.sim.check(server.connection is connection, "the session was moved")
    world.sim.check(first_sound(server, world.sim.now - 2.0) < 0.5, "what the client says does not come any more")
    client.mute = set()
    world.run(4.0)
    check_nothing_twice(world, client, server)


def early_stranger(world: EndpointWorld, client: ClientHost, said: bytes) -> ClientEndpoint:
    """Somebody with a ticket of the client, who says this in early data; not connected yet."""
    pending = Pending(lambda now: client.session, ask=lambda now: said)
    endpoint = ClientEndpoint(
        sim_certificate()[2], pending, entropy=world.sim.entropy("stranger"), limits=CONFIG.limits, tickets=client.tickets, place=PLACE
    )
    endpoint.connect(SERVER_ADDRESS, world.sim.now)
    return endpoint


@pytest.mark.parametrize("kind", ["hello", "close", "other"])
def test_no_hello_and_nothing_else_in_early_data_does_anything_before_the_handshake_is_complete(kind: str) -> None:
    # T-EARLY, VS-11.5-4
    world = EndpointWorld(seed=27, config=CONFIG, resumable=True, early=True)
    client = world.client(LinkProfile(delay_ms=DELAY_MS))
    world.open(client)
    world.run(1.0)
    session = ClientSession(CONFIG, authority=PLACE[0], path="/0", entropy=world.sim.entropy("hello"))
    messages = {
        "hello": wire.encode_message(session._hello),
        "close": wire.encode_message(wire.Close(code=0, may_resume=False, reason="")),
        "other": wire.encode_message(wire.Settings(parameters=Parameters(max_rate_bps=20000))),
    }
    endpoint = early_stranger(world, client, messages[kind])
    known = set(world.server.endpoint.connections)
    replay(world, [data for data, _ in endpoint.datagrams_to_send(world.sim.now)])
    fresh = [one for one in world.server.endpoint.connections if one not in known]
    assert len(fresh) == 1
    world.sim.check(fresh[0]._quic.hears_early and len(fresh[0]._gate._held) == len(messages[kind]), "nothing came in early data")
    world.run(2.0)
    world.sim.check(not fresh[0].is_ready and world.server.endpoint.stats.early == 0, "it was taken")
    world.sim.check(list(world.server.sides) == [0], "a call was taken")
    world.run(12.0)
    world.sim.check(fresh[0] not in world.server.endpoint.connections, "it is kept for ever")
