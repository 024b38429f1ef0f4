"""A connection carries a session, and ends as it should."""

from __future__ import annotations

import random
from typing import Any

import pytest
from aioquic.quic.packet import QuicErrorCode

from voicestream.codepoints import ErrorCode
from voicestream.config import Limits
from voicestream.errors import CertificateError, ConnectError, StateError
from voicestream.events import Closed
from voicestream.quic.configuration import ClientTls

SERVER = ("192.0.2.1", 4433)


# VS-11.3-8
def test_a_session_starts_only_when_the_handshake_is_complete(world: Any) -> None:
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    session = endpoint.connection.session
    session.out_datagrams.append(b"early")
    session.out_control = b"HELLO\n"
    world.run(0.03)
    assert session.started_at is None
    assert session.out_control
    world.run(0.2)
    assert session.started_at is not None
    assert endpoint.connection.is_up
    server_side = world.server.next_connection()
    assert server_side is not None
    assert server_side.session.control == b"HELLO\n"
    assert server_side.session.datagrams == [b"early"]


def test_the_hello_arrives_one_and_a_half_round_trips_after_the_first_packet(world: Any) -> None:
    begun = world.now
    endpoint = world.client()
    endpoint.connection.session.out_control = b"HELLO\n"
    endpoint.connect(SERVER, world.now)
    times: list[float] = []
    world.flush()
    world.run(0.055)
    assert not times
    world.sessions[0].on_control = times.append
    world.run(0.1)
    assert times[0] - begun == pytest.approx(3 * world.delay)


def test_datagrams_control_and_events_go_both_ways(world: Any) -> None:
    endpoint, server_side = world.connect()
    for near, far in ((endpoint.connection.session, server_side.session), (server_side.session, endpoint.connection.session)):
        near.out_datagrams.append(b"\x01" * 1000)
        near.out_control = b"message\n"
        near.out_streams.append((7, b"x" * 30000, False))
        near.out_streams.append((8, b"short", True))
        world.run(0.3)
        near.out_streams.append((7, b"y", True))
        world.run(0.2)
        assert far.datagrams == [b"\x01" * 1000]
        assert far.control == b"message\n"
        assert sorted(far.streams.values()) == [b"short", b"x" * 30000 + b"y"]
        assert len(far.finished) == 2


def test_connecting_twice_is_the_callers_mistake(world: Any) -> None:
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    with pytest.raises(StateError):
        endpoint.connect(SERVER, world.now)


def test_the_timer_of_the_session_is_served(world: Any) -> None:
    endpoint, server_side = world.connect()
    endpoint.connection.session.timer = world.now + 0.5
    server_side.session.timer = at = world.now + 0.7
    world.run(2)
    assert endpoint.connection.session.timers_fired == [pytest.approx(at - 0.2)]
    assert server_side.session.timers_fired == [pytest.approx(at)]


# Closing


def test_both_ends_learn_the_code_and_reason_of_a_close(world: Any) -> None:
    endpoint, server_side = world.connect()
    endpoint.connection.close(world.now, ErrorCode.GOING_AWAY, "good night")
    world.run(1.0)
    near, far = endpoint.connection.next_event(), server_side.next_event()
    assert near == Closed(code=ErrorCode.GOING_AWAY, reason="good night", remote=False, may_resume=False)
    assert far == Closed(code=ErrorCode.GOING_AWAY, reason="good night", remote=True, may_resume=True)
    assert endpoint.connection.next_event() is None
    assert endpoint.connection.is_terminated
    assert server_side.is_terminated
    assert world.server.connections == []


def test_a_connection_is_closed_at_once_but_terminated_only_when_the_far_end_knows(world: Any) -> None:
    endpoint, _ = world.connect()
    endpoint.connection.close(world.now)
    world.flush()
    assert endpoint.connection.is_closed
    assert endpoint.connection.next_event() is not None
    assert not endpoint.connection.is_terminated
    world.run(2 * world.delay + 0.001)
    assert endpoint.connection.is_terminated


def test_quic_closes_with_the_code_of_the_session_also_when_the_event_was_fetched_before(world: Any) -> None:
    endpoint, server_side = world.connect()
    server_side.session.close(world.now, ErrorCode.MEDIA_ERROR, "not Opus")
    assert server_side.next_event().code == ErrorCode.MEDIA_ERROR
    # The CLOSE message never arrives, nor any acknowledgement: only CONNECTION_CLOSE, in the end.
    held = []
    world.keep = lambda data, source, target: not held.append(data) and (source != SERVER or server_side.is_terminated)
    world.run(3)
    assert endpoint.connection.next_event() == Closed(code=ErrorCode.MEDIA_ERROR, reason="not Opus", remote=True, may_resume=False)


def test_the_side_that_is_told_closes_quic_with_no_error(world: Any) -> None:
    """VS-13.2-1"""
    endpoint, server_side = world.connect()
    endpoint.connection.session.out_control = b"HELLO\n"
    world.run(0.1)
    server_side.session.close(world.now, ErrorCode.BUSY, "sorry")
    world.run(world.delay + 0.001)
    assert endpoint.connection.is_terminated
    assert endpoint.connection._quic.end.code == ErrorCode.NO_ERROR
    world.run(1)
    assert server_side.is_terminated
    assert server_side.next_event().reason == "sorry"


@pytest.mark.interpreted(reason="a method of one object is replaced")
def test_the_control_stream_ends_with_the_close(world: Any) -> None:
    endpoint, server_side = world.connect()
    fins: list[bool] = []
    take = server_side.session.receive_control
    server_side.session.receive_control = lambda data, now, fin=False: (fins.append(fin), take(data, now, fin))
    endpoint.connection.close(world.now)
    world.run(1)
    assert fins == [True]


@pytest.mark.parametrize("seed", range(20))
def test_a_close_arrives_with_all_it_says_although_a_third_of_the_packets_is_lost(world: Any, seed: int) -> None:
    endpoint, server_side = world.connect()
    rng = random.Random(seed)
    world.keep = lambda data, source, target: rng.random() > 0.33
    endpoint.connection.close(world.now, ErrorCode.GOING_AWAY, "later")
    world.run(5)
    closed = server_side.next_event()
    if closed is None:
        pytest.fail(f"seed {seed}: nothing arrived")
    assert (closed.code, closed.reason, closed.remote) == (ErrorCode.GOING_AWAY, "later", True), seed


def test_closing_a_dead_path_takes_a_second_at_most(world: Any) -> None:
    endpoint, _ = world.connect()
    world.keep = lambda data, source, target: False
    endpoint.connection.close(world.now)
    world.run(1.01)
    assert endpoint.connection.is_terminated


def test_both_may_close_at_the_same_time(world: Any) -> None:
    endpoint, server_side = world.connect()
    endpoint.connection.close(world.now, ErrorCode.NO_ERROR, "a")
    server_side.close(world.now, ErrorCode.NO_ERROR, "b")
    world.run(2)
    assert endpoint.connection.next_event().reason == "a"
    assert server_side.next_event().reason == "b"
    assert endpoint.connection.next_event() is server_side.next_event() is None
    assert world.server.connections == []


def test_aborting_says_goodbye_at_once(world: Any) -> None:
    endpoint, server_side = world.connect()
    endpoint.connection.abort(world.now, ErrorCode.HANDLER_ERROR, "crash")
    world.flush()
    assert endpoint.connection.is_terminated
    world.run(0.1)
    assert server_side.next_event().reason == "crash"


def test_late_packets_are_answered_with_the_goodbye_ever_more_rarely(world: Any) -> None:
    endpoint, server_side = world.connect()
    world.keep = lambda data, source, target: source != SERVER
    server_side.abort(world.now, ErrorCode.NO_ERROR, "over")
    world.flush()
    assert server_side.is_terminated
    before = world.to_client
    for _ in range(16):
        endpoint.connection.session.out_datagrams.append(b"still here")
        world.run(0.01)
    world.run(world.delay)
    assert world.to_client - before == 5  # for the 1st, 2nd, 4th, 8th and 16th
    assert world.server.stats.accepted == 1
    world.keep = lambda data, source, target: True
    for _ in range(40):
        endpoint.connection.session.out_datagrams.append(b"still here")
        world.run(0.005)
    assert endpoint.connection.next_event().reason == "over"


def test_an_idle_timeout_is_one_also_where_answers_were_late(make_world: Any) -> None:
    world = make_world(limits=Limits(idle_timeout=8))
    endpoint, server_side = world.connect()
    for connection in (endpoint.connection, server_side):
        # A path that was stuck for long: probe timeouts of more than 60 s.
        connection._quic._loss._rtt_smoothed = 15.0
        connection._quic._loss._rtt_variance = 15.0
        assert connection._quic._loss.get_probe_timeout() > 60
    endpoint.connection.session.out_datagrams.append(b"the last that is heard")
    world.run(0.1)
    world.keep = lambda data, source, target: False
    world.run(8.5)
    assert endpoint.connection.is_terminated
    assert server_side.is_terminated


def test_the_silence_of_the_far_end_ends_in_an_idle_timeout(make_world: Any) -> None:
    world = make_world(limits=Limits(idle_timeout=3))
    endpoint, server_side = world.connect()
    world.keep = lambda data, source, target: False
    world.run(5)
    for connection in (endpoint.connection, server_side):
        closed = connection.next_event()
        assert closed.code == ErrorCode.IDLE_TIMEOUT
        assert closed.may_resume
        assert not closed.remote
        assert connection.next_event() is None
        assert connection.is_closed
        assert connection.is_terminated
    assert world.server.connections == []


def test_the_session_ends_with_its_connection(make_world: Any) -> None:
    world = make_world(limits=Limits(idle_timeout=2))
    endpoint, server_side = world.connect()
    endpoint.connection._quic.close(QuicErrorCode.PROTOCOL_VIOLATION, 0, "hostile")
    world.run(1)
    assert server_side.session.is_closed
    assert server_side.next_event() == Closed(
        code=ErrorCode.INTERNAL_ERROR, reason="QUIC: PROTOCOL_VIOLATION: hostile", remote=True, may_resume=False
    )
    assert server_side.next_event() is None


def test_a_session_can_begin_on_a_second_connection_when_the_first_did_not_come_about(world: Any, certificate: Any) -> None:
    first = world.client(tls=ClientTls(server_name="other.example", cafile=certificate[0]))
    first.connect(SERVER, world.now)
    world.run(1)
    session = first.connection.session
    assert first.connection.connect_error is not None
    assert not session.is_closed
    second = world.client()
    second.connection.session = session
    second.connect(SERVER, world.now)
    world.run(0.3)
    assert session.started_at is not None


def test_events_of_the_session_come_before_the_loss_of_the_connection(make_world: Any) -> None:
    from voicestream.events import Progress

    world = make_world(limits=Limits(idle_timeout=2))
    endpoint, _ = world.connect()
    endpoint.connection.session.events.append(Progress(track=0, played_pts=5))
    world.keep = lambda data, source, target: False
    world.run(5)
    assert isinstance(endpoint.connection.next_event(), Progress)
    assert isinstance(endpoint.connection.next_event(), Closed)


# A peer that breaks the rules


def test_a_second_bidirectional_stream_is_a_control_stream_error(world: Any) -> None:
    endpoint, server_side = world.connect()
    endpoint.connection._quic.send_stream_data(4, b"x")
    world.run(1)
    assert server_side.next_event().code == ErrorCode.CONTROL_STREAM_ERROR
    assert endpoint.connection.next_event().code == ErrorCode.CONTROL_STREAM_ERROR


def test_a_bidirectional_stream_of_the_server_is_a_control_stream_error(world: Any) -> None:
    endpoint, server_side = world.connect()
    server_side._quic.send_stream_data(1, b"x")
    world.run(1)
    assert endpoint.connection.next_event().code == ErrorCode.CONTROL_STREAM_ERROR


@pytest.mark.parametrize("verb", ["reset_stream", "stop_stream"])
def test_resetting_or_stopping_the_control_stream_is_an_error(world: Any, verb: str) -> None:
    endpoint, server_side = world.connect()
    endpoint.connection.session.out_control = b"message\n"
    world.run(0.2)
    getattr(endpoint.connection._quic, verb)(0, 7)
    world.run(2)
    assert server_side.next_event().code == ErrorCode.CONTROL_STREAM_ERROR
    assert server_side.is_terminated


def test_the_end_of_the_control_stream_is_told_to_the_session(world: Any) -> None:
    endpoint, server_side = world.connect()
    fins: list[bool] = []
    server_side.session.receive_control = lambda data, now, fin=False: fins.append(fin)
    endpoint.connection._quic.send_stream_data(0, b"half a mess", end_stream=True)
    world.run(0.2)
    assert fins == [True]


def test_an_event_that_the_peer_stops_ends_without_harm(world: Any) -> None:
    endpoint, server_side = world.connect()
    session = endpoint.connection.session
    session.out_streams.append((1, bytes(1000), False))
    world.run(0.2)
    server_side.session.out_stops.append((2, ErrorCode.EVENT_TOO_LARGE))
    world.run(0.2)
    session.out_streams.append((1, bytes(1000), False))
    session.out_streams.append((1, bytes(1000), True))
    session.out_streams.append((2, b"next", True))
    world.run(0.3)
    assert b"next" in server_side.session.streams.values()
    assert len(server_side.session.streams[2]) == 1000
    assert not endpoint.connection.is_closed
    assert not server_side.is_closed


def test_a_reset_event_is_told_to_the_session(world: Any) -> None:
    endpoint, server_side = world.connect()
    endpoint.connection.session.out_streams.append((1, b"half", False))
    world.run(0.2)
    endpoint.connection._quic.reset_stream(2, 0)
    world.run(0.2)
    assert server_side.session.resets == [2]
    assert not server_side.is_closed


def test_a_peer_that_takes_no_control_messages_loses_the_session(world: Any) -> None:
    endpoint, server_side = world.connect()
    server_side._quic._write_stream_limits = lambda **_: None
    for _ in range(400):
        endpoint.connection.session.out_control = bytes(1024)
        world.run(0.02)
        if endpoint.connection.is_closed:
            break
    assert endpoint.connection.next_event().code == ErrorCode.LIMIT_EXCEEDED
    world.run(2)
    assert endpoint.connection.is_terminated


def test_event_data_is_left_with_the_session_while_the_peer_does_not_take_it(world: Any) -> None:
    endpoint, server_side = world.connect()
    world.keep = lambda data, source, target: False
    session = endpoint.connection.session
    session.out_streams.append((1, bytes(65536), False))
    world.run(0.1)
    session.out_streams.append((1, b"later", True))
    world.run(0.5)
    assert list(session.out_streams) == [(1, b"later", True)]
    world.keep = lambda data, source, target: True
    world.run(3)
    assert server_side.session.streams == {2: bytes(65536) + b"later"}


def test_events_that_are_due_but_blocked_do_not_spin_the_timer(world: Any) -> None:
    endpoint, _ = world.connect()
    world.keep = lambda data, source, target: False
    connection, session = endpoint.connection, endpoint.connection.session
    session.out_streams.append((1, bytes(65536), False))
    world.run(0.1)
    session.out_streams.append((1, b"later", True))
    looks: list[float] = []
    session.handle_timer = looks.append
    session.next_timer = lambda: 0.0
    world.run(1)
    assert connection.next_timer() > world.now
    assert 40 <= len(looks) <= 60


def test_no_more_events_are_begun_than_the_peer_lets(make_world: Any) -> None:
    world = make_world(limits=Limits(max_event_streams=2))
    endpoint, server_side = world.connect()
    session = endpoint.connection.session
    session.out_streams.extend((n, b"x", False) for n in range(3))
    world.run(0.2)
    session.out_streams.append((3, b"y", True))
    world.run(0.2)
    assert session.out_streams
    assert len(server_side.session.streams) == 2


# The server is not the one that was meant


def fails(world: Any, tls: ClientTls, **options: Any) -> tuple[Any, ConnectError]:
    endpoint = world.client(tls=tls, **options)
    endpoint.connection.session.out_control = b"HELLO secret\n"
    endpoint.connect(SERVER, world.now)
    world.run(11)
    error = endpoint.connection.connect_error
    assert error is not None
    assert endpoint.connection.session.started_at is None
    assert endpoint.connection.session.out_control
    assert all(session.control == b"" for session in world.sessions)
    assert isinstance(endpoint.connection.next_event(), Closed)
    assert world.server.next_connection() is None
    assert world.server.connections == []
    return endpoint, error


def test_an_authority_that_certifi_does_not_know_is_not_trusted(world: Any) -> None:
    _, error = fails(world, ClientTls(server_name="voice.example"))
    assert isinstance(error, CertificateError)
    assert "voice.example" in str(error)
    assert "self-signed" in str(error)


def test_a_certificate_for_another_name_is_refused(world: Any, certificate: Any) -> None:
    _, error = fails(world, ClientTls(server_name="other.example", cafile=certificate[0]))
    assert isinstance(error, CertificateError)
    assert "'other.example' doesn't match" in str(error)


def test_another_certificate_than_the_pinned_one_is_refused_and_its_fingerprint_told(world: Any, certificate: Any) -> None:
    _, error = fails(world, ClientTls(server_name="voice.example", pin="00" * 32))
    assert isinstance(error, CertificateError)
    assert certificate[2] in str(error)


def test_a_pinned_certificate_is_trusted_whatever_its_name(make_world: Any, certificate: Any) -> None:
    world = make_world()
    colons = ":".join(certificate[2][i : i + 2] for i in range(0, 64, 2)).upper()
    endpoint, _ = world.connect(tls=ClientTls(server_name="other.example", pin=colons))
    assert endpoint.connection.peer_certificate is not None


def test_an_ip_address_is_checked_against_the_certificate(make_world: Any, certificate: Any) -> None:
    make_world().connect(tls=ClientTls(server_name="192.0.2.1", cafile=certificate[0]))
    _, error = fails(make_world(), ClientTls(server_name="192.0.2.2", cafile=certificate[0]))
    assert isinstance(error, CertificateError)


def test_a_server_of_another_protocol_is_named_as_that(world: Any) -> None:
    world.server._configuration.alpn_protocols = ["h3"]
    _, error = fails(world, world.tls)
    assert str(error) == "voice.example does not speak voicestream/1"


def test_a_client_of_another_protocol_is_no_connection(world: Any) -> None:
    endpoint = world.client()
    endpoint.connection._quic.configuration.alpn_protocols = ["h3"]
    endpoint.connect(SERVER, world.now)
    world.run(1)
    assert endpoint.connection._quic.end.code == QuicErrorCode.CRYPTO_ERROR + 120
    assert world.server.next_connection() is None


def test_a_server_without_datagrams_is_refused(world: Any) -> None:
    world.server._configuration.max_datagram_frame_size = None
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    world.run(1)
    assert str(endpoint.connection.connect_error) == "voice.example takes no QUIC datagrams of 1200 bytes"


def test_no_answer_is_told_after_the_timeout(make_world: Any) -> None:
    world = make_world(limits=Limits(handshake_timeout=4))
    world.keep = lambda data, source, target: False
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    world.run(3.9)
    assert endpoint.connection.connect_error is None
    world.run(0.2)
    assert str(endpoint.connection.connect_error) == "voice.example does not answer within 4 s"
    assert endpoint.connection.next_event().code == ErrorCode.HANDSHAKE_TIMEOUT


def test_a_server_of_other_versions_only_is_named_as_that(world: Any) -> None:
    endpoint = world.client()
    endpoint.connection._quic.configuration.supported_versions = [0x6B3343CF]
    endpoint.connect(SERVER, world.now)
    world.run(1)
    assert world.server.stats.negotiated == 1
    assert str(endpoint.connection.connect_error) == "voice.example does not speak QUIC version 1"


def test_giving_up_a_handshake_is_told_to_the_server(world: Any) -> None:
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    world.run(0.05)
    endpoint.connection.close(world.now)
    world.run(1)
    assert endpoint.connection.is_terminated
    assert world.server.connections == []


def test_a_connection_that_never_began_can_be_closed(world: Any) -> None:
    endpoint = world.client()
    assert endpoint.next_timer() is None
    endpoint.connection.close(world.now)
    assert endpoint.datagrams_to_send(world.now) == []
    assert endpoint.connection.is_terminated


# A path that changes


def test_a_call_goes_on_when_the_nat_gives_the_client_another_address(world: Any) -> None:
    endpoint, server_side = world.connect()
    received = server_side.session.datagrams
    for n in range(100):
        if n == 50:
            world.move(endpoint, ("203.0.113.99", 1234))
        endpoint.connection.session.out_datagrams.append(bytes([n]))
        server_side.session.out_datagrams.append(bytes([n]))
        world.run(0.02)
    world.run(0.1)
    assert received == [bytes([n]) for n in range(100)]
    assert server_side.peer_address == ("203.0.113.99", 1234)
    assert (server_side.session.paths, endpoint.connection.session.paths) == (2, 1)
    # Lost on the way back: what was under way to the old address, a round trip's worth.
    assert len(endpoint.connection.session.datagrams) >= 100 - 2 * world.delay / 0.02 - 1


def test_a_new_path_that_must_prove_itself_delays_audio_and_drops_none(world: Any) -> None:
    world.delay = 0.03
    endpoint, server_side = world.connect()
    for n in range(100):
        if n % 25 == 10:
            world.move(endpoint, ("203.0.113.99", 1000 + n))
        endpoint.connection.session.out_datagrams.append(bytes(100))
        world.run(0.01)
        server_side.session.out_datagrams.append(bytes(100))
        world.run(0.01)
    world.run(0.2)
    assert server_side.stats().datagrams_blocked == 0


def test_audio_waits_for_a_new_path_a_tenth_of_a_second_at_most(world: Any) -> None:
    endpoint, server_side = world.connect()
    world.move(endpoint, ("203.0.113.99", 1234))
    endpoint.connection.session.out_datagrams.append(b"moved")
    world.run(world.delay + 0.001)
    assert server_side.peer_address == ("203.0.113.99", 1234)
    world.keep = lambda data, source, target: False  # the new path goes dead before it is validated
    for _ in range(50):
        server_side.session.out_datagrams.append(bytes(100))
        world.run(0.02)
        assert len(server_side._quic._datagrams_pending) <= 6
    assert server_side.stats().datagrams_blocked > 20


def test_a_call_goes_on_when_the_client_changes_its_network_and_knows_it(world: Any) -> None:
    endpoint, server_side = world.connect()
    for n in range(100):
        if n % 20 == 19:
            world.move(endpoint, ("203.0.113.99", 1234 + n))
            endpoint.connection.moved(world.now)
        endpoint.connection.session.out_datagrams.append(bytes([n]))
        world.run(0.02)
    world.run(0.2)
    assert len(server_side.session.datagrams) == 100
    assert server_side.peer_address == ("203.0.113.99", 1234 + 99)


def test_garbage_from_elsewhere_does_not_move_the_call(world: Any) -> None:
    endpoint, server_side = world.connect()
    cid = server_side._quic.host_cid
    for n in range(50):
        world.server.receive_datagram(bytes([0x40 | n]) + cid + bytes(40), ("203.0.113.5", n), world.now)
    endpoint.connection.session.out_datagrams.append(b"audio")
    world.run(0.1)
    assert server_side.peer_address == world.clients[0][1]
    assert server_side.session.datagrams == [b"audio"]


@pytest.mark.parametrize("seed", range(10))
def test_damaged_packets_never_raise_and_never_end_a_call(world: Any, seed: int) -> None:
    rng = random.Random(seed)
    endpoint, server_side = world.connect()

    def damage(data: bytes, source: Any, target: Any) -> bool:
        for _ in range(3):
            bad = bytearray(data)
            for _ in range(rng.randrange(1, 5)):
                bad[rng.randrange(len(bad))] = rng.randrange(256)
            del bad[rng.randrange(1, len(bad) + 1) :]
            world.deliver(bytes(bad), source, target)
        return True

    world.keep = damage
    for n in range(100):
        endpoint.connection.session.out_datagrams.append(bytes([n]) * 50)
        server_side.session.out_datagrams.append(bytes([n]) * 50)
        world.run(0.02)
    world.run(0.1)
    assert not endpoint.connection.is_closed, seed
    assert not server_side.is_closed, seed
    assert len(server_side.session.datagrams) == len(endpoint.connection.session.datagrams) == 100, seed


@pytest.mark.parametrize("seed", range(10))
def test_damaged_handshakes_never_raise(make_world: Any, seed: int) -> None:
    """VS-3.2-1"""
    """VS-3.1-4"""
    """VS-3.1-1"""
    """VS-5.1-5"""
    """VS-3.3-1"""
    rng = random.Random(seed)
    world = make_world()

    def damage(data: bytes, source: Any, target: Any) -> bool:
        if rng.random() < 0.7:
            bad = bytearray(data)
            bad[rng.randrange(min(40, len(bad)))] ^= 1 << rng.randrange(8)
            world.deliver(bytes(bad), source, target)
        return True

    world.keep = damage
    for _ in range(5):
        world.client().connect(SERVER, world.now)
        world.run(1)
    world.run(45)
    assert sum(endpoint.connection.is_up for endpoint, _ in world.clients) >= 3, seed
