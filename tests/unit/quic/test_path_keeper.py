"""What a client does about its path: asked in virtual time over real QUIC, with a path that can be made mute one way or both."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from voicestream import events
from voicestream.codepoints import ErrorCode
from voicestream.config import Limits, SessionConfig
from voicestream.core.path_watch import PathState
from voicestream.errors import ProtocolError
from voicestream.quic.endpoint import ClientEndpoint
from voicestream.quic.path_keeper import PathKeeper, Step
from voicestream.quic.session_homes import SessionHomes
from voicestream.quic.vacancy import Hearing, Vacant
from voicestream.testing.endpoint_sim import SERVER_ADDRESS, ClientHost, EndpointWorld
from voicestream.testing.profile import LinkProfile
from voicestream.testing.sim_certificate import sim_certificate
from voicestream.testing.sim_keeper import SimKeeper


def open_call(seed: int = 1, **options: Any) -> tuple[EndpointWorld, ClientHost, SimKeeper]:
    world = EndpointWorld(seed=seed, resumable=True)
    client = world.client(LinkProfile(delay_ms=20))
    world.open(client)
    return world, client, SimKeeper(client, **options)


def times(world: EndpointWorld, keeper: SimKeeper, begin: float, step: Step) -> list[float]:
    return [round(at - begin, 1) for at in keeper.seen(step)]


@pytest.mark.parametrize("mute", [("a2b",), ("b2a",), ("a2b", "b2a")])
@pytest.mark.parametrize("speaker", ["client", "server", "both"])
def test_a_dead_path_is_noticed_whichever_way_it_is_dead_and_whoever_speaks(mute: tuple[str, ...], speaker: str) -> None:
    world, client, keeper = open_call()
    for side in (client, world.server.sides[0]):
        if speaker in (side.name[:6], "both"):
            side.speak()
    world.run(1.0)
    assert not keeper.steps
    begin = world.sim.now
    client.mute |= set(mute)
    world.run(4.0)
    (degraded,), (lost,) = times(world, keeper, begin, Step.DEGRADED), times(world, keeper, begin, Step.LOST)
    # Who only listens asks first, after a quarter of a second of silence; reports ask by themselves.
    assert 0.5 <= degraded <= 1.2
    assert 2.0 <= lost <= 2.7
    assert times(world, keeper, begin, Step.DIAL)[0] == lost


def test_a_path_that_is_only_silent_is_not_suspected() -> None:
    world, client, keeper = open_call()
    world.server.sides[0].speak(pattern=((1.0, 20.0),))
    world.run(15.0)
    assert keeper.steps == []
    assert keeper.watch.state is PathState.CONNECTED
    assert not client.seen(events.PathLost)


def test_a_short_silence_is_told_and_then_its_end() -> None:
    world, client, keeper = open_call()
    client.speak()
    world.run(1.0)
    client.mute |= {"a2b", "b2a"}
    world.run(1.3)
    client.mute.clear()
    world.run(1.0)
    assert [step for _, step in keeper.steps] == [Step.DEGRADED, Step.CONNECTED]


def test_a_session_that_is_not_resumed_in_time_is_given_up() -> None:
    world, client, keeper = open_call(timeout=10.0)
    client.speak()
    world.run(1.0)
    begin = world.sim.now
    client.mute |= {"a2b", "b2a"}
    world.run(15.0)
    assert 9.8 <= times(world, keeper, begin, Step.GAVE_UP)[0] <= 10.3
    (closed,) = client.seen(events.Closed)
    assert closed[1].code == ErrorCode.PATH_LOST
    assert len(keeper.seen(Step.GAVE_UP)) == 1


def test_pauses_between_dials_are_bounded() -> None:
    world, client, keeper = open_call()
    client.speak()
    world.run(1.0)
    client.mute |= {"a2b", "b2a"}
    world.run(60.0)
    dials = keeper.seen(Step.DIAL)
    pauses = [after - before for before, after in itertools.pairwise(dials)]
    assert 8 <= len(dials) <= 15
    assert min(pauses) >= 3.9
    assert max(pauses) <= 6.3
    assert len({round(pause, 3) for pause in pauses}) > 1


def test_without_dials_the_path_is_told_all_the_same() -> None:
    world = EndpointWorld(seed=4, resumable=True)
    client = world.client(LinkProfile(delay_ms=20))
    world.open(client)
    keeper = PathKeeper(client.session, chance=lambda: 1.0, dials=False)  # type: ignore[arg-type]
    client.speak()
    steps: list[Step] = []

    def look() -> None:
        steps.extend(keeper.look(world.sim.now, client.connection))
        world.sim.after(0.1, look)

    look()
    world.run(1.0)
    client.mute |= {"a2b", "b2a"}
    world.run(5.0)
    client.mute.clear()
    world.run(2.0)
    assert steps == [Step.DEGRADED, Step.LOST, Step.CONNECTED]


def test_a_session_that_is_over_does_not_move() -> None:
    world, client, _ = open_call()
    client.session.close(world.sim.now)
    keeper = PathKeeper(client.session, chance=lambda: 1.0)  # type: ignore[arg-type]
    assert isinstance(keeper.take_up(client.connection, world.sim.now), Vacant)
    assert keeper.look(world.sim.now, client.connection) == []


@pytest.mark.parametrize("how", ["failed", "moved"])
def test_a_dial_that_has_been_given_up_gets_no_session_when_its_handshake_ends_all_the_same(how: str) -> None:
    world, client, keeper = open_call()
    path, old = keeper._keeper, client.connection
    path.look(world.sim.now, old, error=True)  # lost: a dial begins
    given_up = path.pending(lambda: old)
    if how == "failed":
        path.dial_failed(world.sim.now, old)
    else:
        assert path.network_changed(world.sim.now, old) == [Step.STOP_DIAL, Step.DIAL]
    assert isinstance(given_up.take_up(world.sim.now), Vacant)
    assert old.session is client.session
    assert client.session.is_open
    wanted = path.pending(lambda: old)
    assert isinstance(given_up.take_up(world.sim.now), Vacant)
    assert wanted.take_up(world.sim.now) is client.session


def test_a_session_that_has_just_moved_stays_where_it_is_when_the_network_changes() -> None:
    world, client, keeper = open_call()
    path, old = keeper._keeper, client.connection
    path.look(world.sim.now, old, error=True)
    assert path.pending(lambda: old).take_up(world.sim.now) is client.session
    # The owner has still to notice: what it gives up now would take the session with it.
    assert path.network_changed(world.sim.now, old) == []


def test_only_an_acknowledgement_is_an_answer() -> None:
    hearing = Hearing()
    assert not hearing.heard(0.0, 0, ("host", 1))
    hearing.sent(1.0)
    hearing.sent(2.0)
    assert not hearing.heard(2.1, 0, ("host", 1))
    assert (hearing.unanswered_since, hearing.heard_at) == (1.0, 2.1)
    assert not hearing.heard(2.2, 1, ("host", 1))
    assert hearing.unanswered_since is None
    assert hearing.heard(2.3, 1, ("host", 2))


def test_a_connection_that_is_left_a_moment_after_it_was_heard_again_was_lost_since_the_silence_before() -> None:
    hearing = Hearing()
    hearing.heard(0.0, 0, ("host", 1))
    hearing.sent(1.0)
    hearing.heard(4.0, 1, ("host", 1))
    hearing.sent(4.1)
    hearing.heard(4.2, 2, ("host", 1))
    assert hearing.lost_since(4.3) == 1.0
    assert hearing.is_lost(4.3)
    for tick in range(60):
        hearing.heard(4.3 + tick / 10, 2, ("host", 1))
    assert not hearing.is_lost(10.2), "it is well"
    assert hearing.lost_since(10.2) == pytest.approx(10.2)
    hearing.sent(10.3)
    assert hearing.lost_since(11.4) == 10.3


def test_an_error_of_the_socket_is_enough_to_dial() -> None:
    world, client, keeper = open_call()
    steps = keeper._keeper.look(world.sim.now, client.connection, error=True)
    assert steps == [Step.LOST, Step.DIAL]


def refuse_resumes(world: EndpointWorld, code: int, times: int, retry_after: float | None = None) -> list[float]:
    """The server refuses so many resumptions; returns when it did."""
    refused: list[float] = []

    class Busy(SessionHomes):
        __slots__ = ()

        def take_over(self, session_id: bytes, connection: Any, now: float, *, identity: bytes = b"") -> Any:
            if len(refused) == times:
                return super().take_over(session_id, connection, now, identity=identity)
            refused.append(now)
            connection.session.reject(now, code, "not now", retry_after=retry_after)
            raise ProtocolError(ErrorCode.BUSY, "not now")

    world.server.homes.__class__ = Busy
    return refused


@pytest.mark.parametrize("code", [ErrorCode.BUSY, ErrorCode.INTERNAL_ERROR, 0x3D00], ids=["busy", "internal", "unknown"])
def test_a_resumption_that_is_refused_for_the_time_being_is_tried_again_with_growing_pauses(code: int) -> None:
    # VS-11.3-15, VS-13.1-1: one that is not known is taken for INTERNAL_ERROR
    world, client, keeper = open_call()
    for side in (client, world.server.sides[0]):
        side.speak()
    refused = refuse_resumes(world, code, 4)
    world.run(1.0)
    client.mute |= {"a2b", "b2a"}
    world.run(3.0)
    client.mute.clear()
    world.run(12.0)
    pauses = [after - before for before, after in itertools.pairwise(refused)]
    assert len(pauses) == 3
    assert 0.1 <= pauses[0] < pauses[1] < pauses[2] <= 2.5, pauses
    assert len(client.seen(events.Resumed)) == 1
    assert not client.seen(events.Closed)
    assert keeper.watch.state is PathState.CONNECTED


def test_the_server_says_when_a_refused_resumption_may_be_tried_again() -> None:
    world, client, _ = open_call()
    client.speak()
    refused = refuse_resumes(world, ErrorCode.BUSY, 2, retry_after=3.0)
    world.run(1.0)
    client.mute |= {"a2b", "b2a"}
    world.run(3.0)
    client.mute.clear()
    world.run(12.0)
    assert 3.0 <= refused[1] - refused[0] <= 3.5
    assert len(client.seen(events.Resumed)) == 1


def test_refused_resumptions_are_not_tried_for_ever() -> None:
    world, client, keeper = open_call(timeout=10.0)
    client.speak()
    refused = refuse_resumes(world, ErrorCode.BUSY, 1000)
    world.run(1.0)
    client.mute |= {"a2b", "b2a"}
    world.run(3.0)
    client.mute.clear()
    world.run(20.0)
    assert 3 <= len(refused) <= 8
    ((_, closed),) = client.seen(events.Closed)
    assert closed.code == ErrorCode.PATH_LOST
    assert len(keeper.seen(Step.GAVE_UP)) == 1


def test_a_resumption_that_is_refused_for_good_ends_the_session_at_once() -> None:
    world, client, _ = open_call()
    client.speak()
    refused = refuse_resumes(world, ErrorCode.SESSION_UNKNOWN, 1000)
    world.run(1.0)
    client.mute |= {"a2b", "b2a"}
    world.run(3.0)
    client.mute.clear()
    world.run(5.0)
    assert len(refused) == 1
    ((_, closed),) = client.seen(events.Closed)
    assert (closed.code, closed.remote) == (ErrorCode.SESSION_UNKNOWN, True)


def test_late_datagrams_of_the_old_connection_change_nothing_after_the_resume() -> None:
    # VS-11.3-11
    world, client, _ = open_call()
    server = world.server.sides[0]
    for side in (client, server):
        side.speak()
    world.run(1.0)
    late: list[tuple[bytes, Any]] = []
    to_server, old = world.to_server, client.connection

    def held_up(host: ClientHost, data: bytes, address: Any) -> None:
        if client.connection is old and address == client.address:
            late.append((data, address))
        else:
            to_server(host, data, address)

    world.to_server = held_up  # type: ignore[method-assign]
    world.run(4.0)
    assert len(client.seen(events.Resumed)) == 1
    assert client.connection is not old
    assert len(late) > 50
    before = server.session.stats(world.sim.now)
    for data, address in late:
        world.server.receive(data, address)
    after = server.session.stats(world.sim.now)
    assert after.datagrams_received == before.datagrams_received
    world.run(1.0)
    assert not client.seen(events.Closed)
    assert not server.seen(events.Closed)
    assert client.session.is_open
    assert server.session.is_open


def test_a_session_that_comes_back_to_a_full_server_does_not_count_twice() -> None:
    config = SessionConfig(limits=Limits(max_sessions=1, max_sessions_per_address=1))
    world = EndpointWorld(seed=1, config=config, resumable=True)
    client = world.client(LinkProfile(delay_ms=20))
    world.open(client)
    keeper = SimKeeper(client)
    for side in (client, world.server.sides[0]):
        side.speak()
    world.run(1.0)
    stranger = ClientEndpoint(sim_certificate()[2], Vacant(), entropy=random.Random(1).randbytes)
    stranger.connect(SERVER_ADDRESS, world.sim.now)
    for data, _ in stranger.datagrams_to_send(world.sim.now):
        world.server.endpoint.receive_datagram(data, ("203.0.113.5", 5), world.sim.now)
    assert world.server.endpoint.stats.refused == 1, "while the path is good there is no room for two"
    client.mute |= {"a2b", "b2a"}
    world.run(3.0)
    client.mute.clear()
    world.run(2.0)
    assert len(client.seen(events.Resumed)) == 1
    assert len(keeper.seen(Step.DIAL)) == 1
    assert len(world.server.endpoint.connections) == 1
