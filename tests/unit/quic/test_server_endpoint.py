"""A server's endpoint routes, limits, negotiates, and forgets."""

from __future__ import annotations

import gc
import random
import weakref
from typing import Any

import pytest
from aioquic.quic.packet import QuicPacketType, encode_quic_version_negotiation
from aioquic.quic.packet_builder import QuicPacketBuilder

from voicestream.codepoints import ErrorCode
from voicestream.config import Limits
from voicestream.errors import ConnectError, RejectedError
from voicestream.quic.connection_ids import random_ids
from voicestream.quic.server_endpoint import MAX_RETIRED

SERVER = ("192.0.2.1", 4433)
ELSEWHERE = ("203.0.113.5", 5)


def initial(world: Any, **options: Any) -> bytes:
    """The first packet of a client that then stays mute."""
    endpoint = world.client(**options)
    endpoint.connect(SERVER, world.now)
    world.clients.pop()
    packet: bytes = endpoint.datagrams_to_send(world.now)[0][0]
    return packet


def test_connections_are_handed_out_once_when_their_handshake_is_complete(world: Any) -> None:
    first, second = world.client(), world.client()
    first.connect(SERVER, world.now)
    second.connect(SERVER, world.now)
    world.run(0.03)
    assert world.server.next_connection() is None
    world.run(0.2)
    handed = [world.server.next_connection(), world.server.next_connection()]
    assert world.server.next_connection() is None
    assert len(set(handed)) == 2
    assert set(handed) == set(world.server.connections)
    assert world.server.stats.accepted == 2


@pytest.mark.interpreted(reason="compiled objects take no weak references")
def test_two_hundred_calls_leave_nothing_behind(world: Any) -> None:
    gone: list[weakref.ref[Any]] = []
    for n in range(200):
        endpoint, server_side = world.connect()
        endpoint.connection.session.out_datagrams.append(b"x")
        gone.append(weakref.ref(server_side))
        (endpoint.connection if n % 2 else server_side).close(world.now)
        world.run(0.3)
        world.clients.clear()
        del endpoint, server_side
    world.sessions.clear()
    world.run(5)
    server = world.server
    for table in (server._entries, server._routes, server._hosts, server._goodbyes, server._timers, server._new, server._replies):
        assert not table
    gc.collect()
    assert not [ref for ref in gone if ref() is not None]
    assert server.next_timer() is None


def test_timers_of_a_long_call_do_not_pile_up(world: Any) -> None:
    endpoint, server_side = world.connect()
    for _ in range(500):
        endpoint.connection.session.out_datagrams.append(b"x")
        server_side.session.out_datagrams.append(b"y")
        world.run(0.02)
    assert len(world.server._timers) < 20


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"\x40" * 8,
        b"\x40" * 1300,
        b"\x80" + b"\x00" * 1300,
        b"\xc0\x00\x00\x00\x01" + bytes(1300),
        b"\xc0\x00\x00\x00\x01\xff" + bytes(1300),
        b"\xc0\x00\x00\x00\x01\x08" + bytes(8) + b"\xff" + bytes(1300),
        b"\xe0\x00\x00\x00\x01\x08" + bytes(8) + b"\x08" + bytes(1300),
        b"\x80\x00\x00\x00\x01\x08" + bytes(8) + b"\x08" + bytes(1300),
        b"\xc0\x00\x00\x00\x00\x08" + bytes(8) + b"\x08" + bytes(1300),
    ],
)
def test_unknown_packets_are_dropped_in_silence(world: Any, data: bytes) -> None:
    assert world.server.receive_datagram(data, ELSEWHERE, world.now) is None
    assert world.server.datagrams_to_send(world.now) == []
    assert world.server.connections == []
    assert world.server.stats.ignored == 1
    assert world.server.next_timer() is None


def test_an_initial_that_cannot_be_decrypted_opens_nothing(world: Any) -> None:
    packet = bytearray(initial(world))
    packet[100] ^= 1
    world.server.receive_datagram(bytes(packet), ELSEWHERE, world.now)
    assert world.server.connections == []
    assert not world.server._routes
    assert world.server.datagrams_to_send(world.now) == []


def test_an_initial_in_less_than_1200_bytes_is_dropped(world: Any) -> None:
    packet = initial(world)
    assert len(packet) == 1200
    world.server.receive_datagram(packet[:1199], ELSEWHERE, world.now)
    assert world.server.datagrams_to_send(world.now) == []
    assert world.server.stats.ignored == 1


def test_an_unknown_version_is_answered_with_ours_if_the_packet_is_large_enough(world: Any) -> None:
    packet = b"\xc0\x1a\x2a\x3a\x4a\x08clientxx\x04mine"
    world.server.receive_datagram(packet + bytes(1170), ELSEWHERE, world.now)
    assert world.server.datagrams_to_send(world.now) == []
    world.server.receive_datagram(packet + bytes(1200), ELSEWHERE, world.now)
    ((reply, address),) = world.server.datagrams_to_send(world.now)
    assert address == ELSEWHERE
    expected = encode_quic_version_negotiation(source_cid=b"clientxx", destination_cid=b"mine", supported_versions=[1])
    assert reply[1:] == expected[1:]
    assert reply[0] & 0x80
    assert world.server.connections == []


def test_version_negotiation_is_never_answered(world: Any) -> None:
    packet = encode_quic_version_negotiation(source_cid=b"clientxx", destination_cid=b"mine", supported_versions=[7] * 400)
    assert len(packet) > 1200
    world.server.receive_datagram(packet, ELSEWHERE, world.now)
    assert world.server.datagrams_to_send(world.now) == []


def test_what_is_sent_to_strangers_is_never_more_than_they_sent(world: Any) -> None:
    rng = random.Random(5)
    for _ in range(3000):
        head = rng.choice([b"\xc0\x00\x00\x00\x01\x08", b"\xc0\x01\x02\x03\x04\x08", b"\xc0\x00\x00\x00\x01\x14", b"\x40"])
        packet = head + rng.randbytes(rng.choice([10, 40, 1194, 1300]))
        world.server.receive_datagram(packet, ELSEWHERE, world.now)
        sent = sum(len(data) for data, _ in world.server.datagrams_to_send(world.now))
        assert sent <= len(packet)
    assert world.server.connections == []


def test_unanswered_handshakes_are_forgotten_after_the_handshake_timeout(make_world: Any) -> None:
    world = make_world(limits=Limits(handshake_timeout=2, idle_timeout=60))
    for _ in range(10):
        world.server.receive_datagram(initial(world), ELSEWHERE, world.now)
    assert len(world.server.connections) == 10
    world.run(1.9)
    assert len(world.server.connections) == 10
    world.run(0.2)
    assert world.server.connections == []
    assert world.server.next_connection() is None


def refused(world: Any, address: Any = None) -> ConnectError | None:
    endpoint = world.client(address)
    endpoint.connect(SERVER, world.now)
    world.run(0.3)
    error: ConnectError | None = endpoint.connection.connect_error
    return error


def test_one_call_too_many_is_refused_as_busy(make_world: Any) -> None:
    world = make_world(limits=Limits(max_sessions=2))
    first, _ = world.connect()
    world.connect()
    error = refused(world)
    assert isinstance(error, RejectedError)
    assert error.code == ErrorCode.BUSY
    assert "no room" in error.reason
    assert world.server.stats.refused == 1
    assert len(world.server.connections) == 2
    first.connection.close(world.now)
    world.run(1)
    assert refused(world) is None


def test_one_address_cannot_take_all_the_room(make_world: Any) -> None:
    world = make_world(limits=Limits(max_sessions_per_address=2))
    for port in (1, 2):
        world.connect(address=("203.0.113.5", port))
    assert isinstance(refused(world, ("203.0.113.5", 3)), RejectedError)
    assert refused(world, ("203.0.113.6", 3)) is None


def test_a_server_that_refuses_new_calls_keeps_the_old_ones(world: Any) -> None:
    endpoint, server_side = world.connect()
    world.server.refuse_new()
    assert isinstance(refused(world), RejectedError)
    endpoint.connection.session.out_datagrams.append(b"still here")
    world.run(0.1)
    assert server_side.session.datagrams == [b"still here"]


def test_closing_the_server_closes_all_connections(world: Any) -> None:
    ends = [world.connect()[0].connection for _ in range(3)]
    half_open = world.client()
    half_open.connect(SERVER, world.now)
    world.run(0.03)
    world.server.close(world.now, ErrorCode.GOING_AWAY, "restart")
    world.run(1)
    assert [end.next_event().reason for end in ends] == ["restart"] * 3
    assert half_open.connection.is_closed
    assert world.server.connections == []
    assert isinstance(refused(world), RejectedError)


def test_a_late_copy_of_the_first_packet_opens_no_second_connection(world: Any) -> None:
    firsts: list[tuple[bytes, Any]] = []
    world.keep = lambda data, source, target: firsts.append((data, source)) or True
    _, server_side = world.connect()
    server_side.abort(world.now)
    world.run(0.2)
    assert world.server.connections == []
    data, source = firsts[0]
    world.server.receive_datagram(data, source, world.now)
    assert world.server.connections == []
    assert world.server.stats.late >= 1
    assert world.server.stats.accepted == 1


# Connection ids


def test_packets_find_their_connection_by_every_id_that_the_client_may_use(world: Any) -> None:
    endpoint, server_side = world.connect()
    for n in range(30):
        endpoint.connection.moved(world.now)
        endpoint.connection.session.out_datagrams.append(bytes([n]))
        world.run(0.1)
    assert [data[0] for data in server_side.session.datagrams] == list(range(30))
    ids = len(world.server._routes)
    assert ids <= 8 + MAX_RETIRED + 1
    late = world.server._entries[server_side].retired[-1]
    assert world.server.receive_datagram(b"\x40" + late + bytes(40), ELSEWHERE, world.now) is server_side


def test_ids_of_a_generator_with_a_wrong_length_are_the_callers_mistake(make_world: Any) -> None:
    ids = random_ids(lambda size: bytes(size + 1))
    world = make_world(ids=ids)
    with pytest.raises(ValueError, match="promised 8 bytes and gave 9"):
        world.server.receive_datagram(initial(world), ELSEWHERE, world.now)


# Retry


def test_with_retry_a_client_proves_its_address_first(make_world: Any) -> None:
    world = make_world(retry=True)
    begun = world.now
    world.server.receive_datagram(initial(world), ELSEWHERE, world.now)
    ((reply, address),) = world.server.datagrams_to_send(world.now)
    assert address == ELSEWHERE
    assert len(reply) < 250
    assert world.server.connections == []
    assert not world.sessions
    endpoint, server_side = world.connect()
    assert endpoint.connection.session.started_at - begun == pytest.approx(4 * world.delay)
    assert world.server.stats.retried == 2
    server_side.session.out_datagrams.append(b"audio")
    world.run(0.1)
    assert endpoint.connection.session.datagrams == [b"audio"]


def test_a_nat_that_rebinds_during_retry_changes_nothing(make_world: Any) -> None:
    world = make_world(retry=True)
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    world.run(world.delay * 2 + 0.001)
    host, port = next(entry[3] for entry in world.wire)
    world.move(endpoint, (host, port + 1))
    world.wire[:] = [(at, n, data, (host, port + 1), target) for at, n, data, _, target in world.wire]
    world.run(0.3)
    assert endpoint.connection.is_up


def test_a_token_of_another_address_is_refused(make_world: Any) -> None:
    world = make_world(retry=True)
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    world.run(world.delay * 2 + 0.001)
    world.move(endpoint, ("203.0.113.77", 7))
    for entry in world.wire:
        assert entry[4] == SERVER
    world.wire[:] = [(at, n, data, ("203.0.113.77", 7), target) for at, n, data, _, target in world.wire]
    world.run(0.3)
    assert world.server.connections == []
    assert "INVALID_TOKEN" in str(endpoint.connection.connect_error)


def test_a_route_token_works_with_retry(make_world: Any) -> None:
    world = make_world(retry=True)
    endpoint, _ = world.connect(route_token=b"\x55" * 17)
    assert endpoint.connection.is_up


@pytest.mark.parametrize("length", [0, 7, 21])
def test_a_route_token_has_8_to_20_bytes(world: Any, length: int) -> None:
    with pytest.raises(ValueError, match="8 to 20"):
        world.client(route_token=bytes(length))


def test_timers_that_are_due_together_can_be_seen_to_by_and_by(world: Any) -> None:
    for _ in range(3):
        world.connect()
    connections, later = set(world.server.connections), world.now + 1000  # idle timeouts, at the latest
    first = world.server.handle_timer(later, 2)
    for connection in first:
        world.server.flush(connection, later)
    assert len(set(first)) == 2
    assert world.server.next_timer() <= later
    assert {*first, *world.server.handle_timer(later, 2)} == connections


def stray(world: Any, payload: bytes) -> tuple[bytes, Any]:
    """A padded Initial of a client whose ClientHello has not arrived, with the payload given; and that client."""
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    quic = endpoint.connection._quic
    builder = QuicPacketBuilder(
        host_cid=quic.host_cid,
        peer_cid=quic._peer_cid.cid,
        version=1,
        is_client=True,
        max_datagram_size=1200,
        packet_number=7,
    )
    builder.start_packet(QuicPacketType.INITIAL, quic._cryptos_initial[1])
    builder.start_frame(payload[0]).push_bytes(payload[1:] + bytes(1100))
    packet: bytes = builder.flush()[0][0]
    return packet, endpoint


@pytest.mark.parametrize(("what", "payload"), [("goodbye of a dial that was given up", b"\x1c\x0c\0\0"), ("probe", b"\x01")])
def test_a_first_packet_that_begins_no_handshake_is_neither_answered_nor_held_against_its_client(
    world: Any, what: str, payload: bytes
) -> None:
    packet, endpoint = stray(world, payload)
    address = world.clients[-1][1]
    assert world.server.receive_datagram(packet, address, world.now) is None, what
    assert (world.server.replies_to_send(), world.server.connections, world.server.stats.accepted) == ([], [], 0)
    assert world.server.stats.ignored == 1
    world.run(0.5)
    assert endpoint.connection.is_up
    assert endpoint.connection.connect_error is None
    assert world.server.stats.accepted == 1


def test_a_connection_that_brings_too_many_packets_is_not_looked_at_and_costs_no_other_anything(make_world: Any) -> None:
    """T-PACKETS: what a client sends beyond its share is dropped unread."""
    world = make_world(limits=Limits(packets_per_second=200))
    _, loud = world.connect(address=("203.0.113.9", 1))
    endpoint, quiet = world.connect()
    packet = b"\x40" + next(iter(world.server._entries[loud].ids)) + bytes(40)
    for _ in range(5000):
        world.server.receive_datagram(packet, ("203.0.113.9", 1), world.now)
    assert world.server.stats.unread >= 4600
    endpoint.connection.session.out_datagrams.append(b"speech")
    world.run(0.1)
    assert quiet.session.datagrams == [b"speech"]
    unread = world.server.stats.unread
    world.run(2)
    world.server.receive_datagram(packet, ("203.0.113.9", 1), world.now)
    assert world.server.stats.unread == unread
