"""Bounds on handshakes, and Retry while many are under way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.config import Limits
from voicestream.errors import RejectedError
from voicestream.quic.packets import Preamble, initial_token, read_preamble

SERVER = ("192.0.2.1", 4433)
LIMITS = Limits(max_handshakes=6, max_handshakes_per_address=3, retry_above=4, handshake_timeout=2.0)


def forged(n: int) -> tuple[str, int]:
    return (f"203.0.113.{n}", 1000 + n)


def knock(world: Any, address: Any) -> None:
    """The first packet of a client that then stays mute."""
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    world.clients.pop()
    world.server.receive_datagram(endpoint.datagrams_to_send(world.now)[0][0], address, world.now)


def test_while_few_handshakes_are_under_way_nobody_has_to_prove_an_address(make_world: Any) -> None:
    world = make_world(limits=LIMITS)
    for n in range(3):
        knock(world, forged(n))
    world.connect()
    assert world.server.stats.retried == 0


def test_from_some_number_of_handshakes_on_newcomers_prove_their_address(make_world: Any) -> None:
    """T-FLOOD: what a forger of addresses begins costs no memory, and an honest client one round trip."""
    world = make_world(limits=LIMITS)
    for n in range(1000):
        knock(world, forged(n % 250))
        world.server.replies_to_send()
    assert len(world.server.connections) == LIMITS.retry_above
    assert world.server.stats.retried == 1000 - LIMITS.retry_above
    assert len(world.sessions) == LIMITS.retry_above
    begun = world.now
    endpoint, _ = world.connect()
    assert endpoint.connection.session.started_at - begun == pytest.approx(4 * world.delay)
    world.run(3)
    assert len(world.server.connections) == 1
    before = world.server.stats.retried
    world.connect()
    assert world.server.stats.retried == before


def test_one_address_gets_its_share_of_handshakes_and_no_more(make_world: Any) -> None:  # VS-15-1
    world = make_world(limits=replace(LIMITS, retry_above=1000))
    for _ in range(5):
        knock(world, forged(1))
    assert len(world.server.connections) == LIMITS.max_handshakes_per_address
    assert world.server.stats.refused == 2
    world.connect(address=forged(2))


def test_handshakes_are_bounded_in_all(make_world: Any) -> None:
    world = make_world(limits=replace(LIMITS, retry_above=1000))
    for n in range(20):
        knock(world, forged(n))
    assert len(world.server.connections) == LIMITS.max_handshakes
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    world.run(0.3)
    error = endpoint.connection.connect_error
    assert isinstance(error, RejectedError)
    assert error.code == ErrorCode.BUSY


def test_a_connection_on_which_no_call_is_taken_counts_as_a_handshake(make_world: Any) -> None:
    """T-SLOW: TLS that is done and a HELLO that does not come hold a place no longer than the handshake may take, and few of them."""
    world = make_world(limits=replace(LIMITS, retry_above=1000))
    world.takes_calls = False
    mute = []
    for port in range(3):
        endpoint, server_side = world.connect(address=(forged(9)[0], port + 1))
        mute.append(endpoint)
    refused = world.client(forged(9))
    refused.connect(SERVER, world.now)
    world.run(0.3)
    assert isinstance(refused.connection.connect_error, RejectedError)
    server_side.session.takes_calls = True
    mute[-1].connection.session.out_datagrams.append(b"x")
    world.run(0.1)
    world.connect(address=forged(9))


def test_handshakes_do_not_take_the_place_of_calls(make_world: Any) -> None:
    """T-FLOOD: with room for two calls, four first packets of nobody do not lock the door."""
    world = make_world(limits=replace(LIMITS, max_sessions=2))
    for n in range(4):
        knock(world, forged(n))
    world.connect()
    world.connect()


def test_who_dials_many_times_at_once_gets_no_more_calls_than_an_address_may_have(make_world: Any) -> None:
    world = make_world(limits=Limits(max_sessions_per_address=2))
    ends = [world.client(("203.0.113.5", port)) for port in range(1, 6)]
    for end in ends:
        end.connect(SERVER, world.now)
    world.run(0.5)
    closed = [end.connection.session.closed for end in ends]
    assert sum(one is None for one in closed) == 2
    assert {one.code for one in closed if one is not None} == {ErrorCode.BUSY}
    world.run(2)
    assert len(world.server.connections) == 2


def test_nothing_is_counted_when_all_is_over(make_world: Any) -> None:
    world = make_world(limits=LIMITS)
    for n in range(4):
        knock(world, forged(n))
    endpoint, _ = world.connect()
    endpoint.connection.close(world.now)
    world.run(5)
    doors = world.server._doors
    assert (doors.total, dict(doors._hosts), dict(world.server._hosts)) == (0, {}, {})


def test_a_retry_that_was_asked_for_under_load_is_good_when_the_load_is_gone(make_world: Any) -> None:
    world = make_world(limits=LIMITS)
    for n in range(4):
        knock(world, forged(n))
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    world.run(world.delay + 0.001)  # the Retry is on its way
    for connection in world.server.connections:
        connection.abort(world.now)
    world.run(world.delay + 0.001)
    world.run(0.5)
    assert endpoint.connection.is_up


def test_forged_tokens_open_nothing_and_are_ignored_without_load(make_world: Any) -> None:
    world = make_world(limits=LIMITS)
    for n in range(4):
        knock(world, forged(n))
    doors, preamble = world.server._doors, Preamble(1, b"12345678", b"")
    with pytest.raises(ValueError, match="invalid"):
        doors.check(preamble, b"\x07" * 60, forged(1), world.now)
    world.run(5)
    assert doors.check(preamble, b"\x07" * 60, forged(1), world.now).retry_source_id is None


def test_a_token_is_good_for_its_address_its_id_and_half_a_minute(make_world: Any) -> None:
    """T-REPLAY: a Retry token that somebody else has seen is of no use to him."""
    world = make_world(retry=True)
    doors, now = world.server._doors, world.now
    endpoint = world.client()
    endpoint.connect(SERVER, now)
    world.clients.pop()
    world.server.receive_datagram(endpoint.datagrams_to_send(now)[0][0], forged(1), now)
    endpoint.connection.receive_datagram(world.server.replies_to_send()[0][0], SERVER, now)
    packet = endpoint.datagrams_to_send(now)[0][0]
    preamble, token = read_preamble(packet, 8), initial_token(packet)
    assert doors.check(preamble, token, (forged(1)[0], 9), now + 29).retry_source_id == preamble.destination_id
    other = replace(preamble, destination_id=b"x" * 8)
    for address, later, one in ((forged(2), 0, preamble), (forged(1), 31, preamble), (forged(1), 0, other)):
        with pytest.raises(ValueError, match=r"match|expired"):
            doors.check(one, token, address, now + later)
