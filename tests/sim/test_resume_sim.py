"""Calls over real QUIC whose path breaks at any time, in virtual time. Every failure message carries the seed.

`VOICESTREAM_BREAKS=200 python -m pytest tests/sim/test_resume_sim.py -s` runs that many breaks and prints what became of them.
"""

from __future__ import annotations

import os
import random

import pytest

from voicestream import events
from voicestream.codepoints import ErrorCode
from voicestream.config import Limits, SessionConfig
from voicestream.core.lifecycle import State
from voicestream.core.playout import Gap, OrderedReader
from voicestream.quic.path_keeper import Step
from voicestream.testing.endpoint_sim import ClientHost, EndpointWorld, ServerSide
from voicestream.testing.profile import LinkProfile, NetworkProfile
from voicestream.testing.side import CallSide
from voicestream.testing.sim_keeper import SimKeeper

BREAKS = int(os.environ.get("VOICESTREAM_BREAKS", "4"))
CALLS = max(1, BREAKS // 4)
"""Four breaks each."""


class Reading:
    """Takes a track in order, and keeps what it was given."""

    def __init__(self, side: CallSide) -> None:
        self.pts: list[int] = []
        self.payloads: dict[int, bytes] = {}
        self.gaps: list[Gap] = []
        self._side = side
        self._reader = OrderedReader(150, 3000)
        side.session.receivers[0].attach_ordered(self._reader)
        self._take()

    def _take(self) -> None:
        sim = self._side.sim
        while (item := self._reader.next(sim.now)) is not None:
            if isinstance(item, Gap):
                self.gaps.append(item)
            else:
                self.pts.append(item.pts)
                self.payloads[item.pts] = item.payload
        sim.after(0.02, self._take)


def breaks(rng: random.Random) -> tuple[tuple[float, float], ...]:
    """Four outages of 1 to 10 s, with something between them."""
    found, at = [], 3.0
    for _ in range(4):
        at += rng.uniform(2.0, 8.0)
        seconds = rng.uniform(1.0, 10.0)
        found.append((at, seconds))
        at += seconds + 6.0
    return tuple(found)


def in_a_short_break(world: EndpointWorld, at: float, outages: tuple[tuple[float, float], ...]) -> bool:
    """Whether something was said in a break that is over before the path is taken for lost, or on its edge."""
    return any(start - 0.1 <= at - world.start <= start + seconds + 0.1 and seconds < 2.5 for start, seconds in outages)


def broken_call(seed: int) -> tuple[EndpointWorld, ClientHost, ServerSide, SimKeeper, tuple[tuple[float, float], ...]]:
    outages = breaks(random.Random(seed))
    world = EndpointWorld(seed=seed, resumable=True)
    client = world.client(NetworkProfile.both(LinkProfile(delay_ms=30, loss=0.005, outages=outages)))
    world.open(client)
    return world, client, world.server.sides[0], SimKeeper(client), outages


@pytest.mark.parametrize("seed", range(1, CALLS + 1))
def test_random_breaks_lose_nothing_repeat_nothing_and_keep_the_order(seed: int) -> None:
    world, client, server, keeper, outages = broken_call(seed)
    sides = (client, server)
    readings = [Reading(side) for side in sides]
    session_id = client.session.session_id
    end = world.start + outages[-1][0] + outages[-1][1] + 2
    for side in sides:
        side.speak(stop=end)
    number = 0
    while world.sim.now < end:
        for side in sides:
            side.session.send_event(b"%d" % number, world.sim.now, kind=1)
            side.flush()
        number += 1
        world.run(0.5)
    world.run(12)
    check = world.sim.check
    resumes = client.seen(events.Resumed)
    check(not client.session.is_closed and not server.session.is_closed, f"a session was closed: {client.events[-2:]} {server.events[-2:]}")
    check(client.session.session_id == session_id, "the session is another one")
    check(world.server.refused == [], f"refused: {world.server.refused}")
    dials = len(keeper.seen(Step.DIAL))
    check(len(resumes) >= sum(seconds > 2.5 for _, seconds in outages), f"{len(resumes)} resumes, {dials} dials, {outages}")
    for side, reading in zip(sides, readings, strict=True):
        assert side.other is not None
        sent = side.other.talkers[0].sent
        check(reading.pts == sorted(set(reading.pts)), f"{side.name}: something came twice or out of order")
        check(all(sent[pts].payload == payload for pts, payload in reading.payloads.items()), f"{side.name}: other bytes than were sent")
        missing = sum(pts not in reading.payloads for pts in sent if not in_a_short_break(world, sent[pts].at, outages))
        check(missing <= 0.01 * len(sent), f"{side.name}: {missing} of {len(sent)} frames are missing, {reading.gaps}")
        orders = [int(event.payload) for _, event in side.seen(events.EventReceived)]
        check(orders == list(range(number)), f"{side.name}: events {orders}")
        print(f"\nseed {seed} {side.name}: {len(resumes)} resumes of {len(outages)} breaks, {missing} of {len(sent)} missing", end="")


def test_a_connection_that_the_client_has_left_is_closed_as_superseded() -> None:
    world = EndpointWorld(seed=5, resumable=True)
    client = world.client(LinkProfile(delay_ms=20))
    world.open(client)
    server = world.server.sides[0]
    first = server.connection
    client.redial()
    world.run(1.0)
    world.sim.check(client.seen(events.Resumed) != [] and server.seen(events.Resumed) != [], "there was no resumption")
    world.sim.check(server.connection is not first and first.is_closed, "the old connection lives on")
    world.sim.check(first.is_terminated, "the old connection says nothing")


def test_a_session_that_the_server_no_longer_has_is_refused_as_unknown() -> None:
    # VS-11.3-4
    world = EndpointWorld(seed=6, resumable=True)
    client = world.client(LinkProfile(delay_ms=20))
    world.open(client)
    assert client.session.session_id is not None
    world.server.homes.remove(client.session.session_id)
    client.redial()
    world.run(1.0)
    closed = [event for _, event in client.seen(events.Closed)]
    world.sim.check([event.code for event in closed] == [ErrorCode.SESSION_UNKNOWN], f"{closed}")
    world.sim.check(world.server.refused == [ErrorCode.SESSION_UNKNOWN], f"{world.server.refused}")


def test_a_session_that_nobody_resumes_ends_with_its_lifetime() -> None:
    # VS-11.3-14
    config = SessionConfig(session_lifetime_s=30, limits=Limits(idle_timeout=2))
    world = EndpointWorld(seed=7, config=config, resumable=True)
    client = world.client(NetworkProfile.both(LinkProfile(delay_ms=20, outages=((1.0, 100.0),))))
    world.open(client)
    client.connection.keeps_session = True
    client.speak(stop=world.sim.now + 5)
    world.run(20)
    world.sim.check(client.session.is_detached and not client.session.is_closed, "the client did not keep its session")
    world.run(40)
    codes = [event.code for _, event in client.seen(events.Closed)]
    world.sim.check(codes == [ErrorCode.PATH_LOST], f"closed with {codes}")


def test_a_session_that_an_overtaken_dial_takes_away_comes_back() -> None:
    # VS-11.3-5: two requests to resume with the same token; the one that was given up arrives last.
    world = EndpointWorld(seed=8, resumable=True)
    client = world.client(LinkProfile(delay_ms=20))
    world.open(client)
    keeper = SimKeeper(client)
    for side in (client, world.server.sides[0]):
        side.speak()
    world.run(1.0)
    server = world.server.sides[0]
    current = server.connection
    current.release(ErrorCode.SUPERSEDED, "the session goes on on another connection")
    server.session.path_lost(world.sim.now)
    server.flush()
    world.run(3.0)
    world.sim.check(len(client.seen(events.Resumed)) == 1, f"{client.events[-3:]} {keeper.steps}")
    world.sim.check(not client.session.is_closed and server.connection is not current, "the session has ended")


def test_two_takeovers_with_one_token_leave_one_session_and_lose_no_order() -> None:
    world = EndpointWorld(seed=9, resumable=True)
    client = world.client(LinkProfile(delay_ms=20))
    world.open(client)
    keeper = SimKeeper(client)
    readings = [Reading(side) for side in (client, world.server.sides[0])]
    for side in (client, world.server.sides[0]):
        side.speak(stop=world.sim.now + 6)
    world.run(1.0)
    # The answer to the first request is lost, and the client asks again on another connection with the same token.
    client.mute |= {"a2b", "b2a"}
    world.run(3.0)
    client.mute.clear()
    world.sim.run(world.sim.now + 3, stop=lambda: client.session.state is State.RESUMING)
    client.mute.add("a2b")
    world.run(5.0)
    client.mute.clear()
    world.run(6.0)
    check = world.sim.check
    check(len(keeper.seen(Step.DIAL)) >= 2 and client.seen(events.Resumed) != [], f"{keeper.steps}")
    check(not client.session.is_closed and world.server.refused == [], f"{client.events[-2:]} {world.server.refused}")
    check(len(world.server.endpoint.connections) <= 2, "connections are left behind")
    for reading in readings:
        check(reading.pts == sorted(set(reading.pts)), "something came twice or out of order")
