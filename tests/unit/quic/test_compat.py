"""What we change in aioquic, and that the installed aioquic still has what we touch."""

from __future__ import annotations

import ast
import inspect
import itertools
import time
from pathlib import Path
from typing import Any

import aioquic
import pytest
from aioquic._buffer import Buffer
from aioquic._crypto import HeaderProtection
from aioquic.quic import events
from aioquic.quic.connection import QuicConnection
from aioquic.quic.crypto import CryptoPair
from aioquic.quic.packet import QuicErrorCode, pull_quic_transport_parameters
from aioquic.quic.recovery import QuicPacketPacer
from aioquic.quic.stream import QuicStream

from voicestream.codepoints import EventKind
from voicestream.quic import compat, compat_packets, compat_windows
from voicestream.quic.compat import VoiceQuic
from voicestream.quic.compat_packets import PacketQuic, _ack, _frames, _number
from voicestream.quic.compat_windows import NoPacer, WindowedQuic
from voicestream.quic.connection_ids import ConnectionIds, random_ids
from voicestream.quic.connection_values import ConnectionView
from voicestream.quic.endpoint import Connection
from voicestream.testing import LinkProfile, NetworkProfile
from voicestream.testing.endpoint_sim import EndpointWorld
from voicestream.testing.side import CallSide

SERVER = ("192.0.2.1", 4433)


def quic_of(connection: Connection) -> VoiceQuic:
    return connection._quic


def private_names() -> list[tuple[str, str]]:
    """Every private attribute in compat.py that is not its own, with the expression that it is read from."""
    found: set[tuple[str, str]] = set()
    for module in (compat, compat_packets, compat_windows):
        source = Path(module.__file__).with_name(f"{module.__name__.rpartition('.')[2]}.py")  # where it is compiled, that lies beside it
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith(("__", "_voice")):
                found.add((ast.unparse(node.value), node.attr))
    own = {name for owner in (VoiceQuic, PacketQuic, WindowedQuic) for name in vars(owner) if not hasattr(QuicConnection, name)}
    return sorted((owner, name) for owner, name in found if name not in own)


@pytest.mark.parametrize(("owner", "name"), private_names())
def test_the_installed_aioquic_has_the_private_attribute(world: Any, owner: str, name: str) -> None:
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    quic = quic_of(endpoint.connection)
    objects = {
        "self": quic,
        "super()": super(VoiceQuic, quic),
        "self._loss": quic._loss,
        "stream.sender": QuicStream(stream_id=0).sender,
        "context": quic.tls,
        "keys": CryptoPair(),
        "keys.hp": HeaderProtection(b"aes-128-ecb", bytes(16)),
    }
    assert owner in objects, f"compat.py reaches into {owner}.{name}: teach this test what that is"
    assert hasattr(objects[owner], name), f"aioquic {aioquic.__version__} has no {owner}.{name} any more; compat.py needs a look"


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (QuicConnection.datagrams_to_send, ["self", "now"]),
        (QuicConnection.get_timer, ["self"]),
        (QuicConnection._handle_ack_frame, ["self", "context", "frame_type", "buf"]),
        (QuicConnection._payload_received, ["self", "context", "plain", "crypto_frame_required"]),
        (QuicConnection._replenish_connection_ids, ["self"]),
        (QuicConnection._serialize_transport_parameters, ["self"]),
        (QuicConnection._write_connection_limits, ["self", "builder", "space"]),
        (QuicConnection._write_stream_limits, ["self", "builder", "space", "stream"]),
        (QuicPacketPacer.next_send_time, ["self", "now"]),
    ],
)
def test_what_we_override_has_the_same_arguments(function: Any, parameters: list[str]) -> None:
    found = list(inspect.signature(function).parameters)
    assert found == parameters, f"{function.__qualname__} of aioquic {aioquic.__version__} has changed"


def test_no_clock_is_read_on_the_way_of_a_packet(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> float:
        raise AssertionError("a clock was read")

    for name in ("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns"):
        monkeypatch.setattr(time, name, forbidden)
    endpoint, server_side = world.connect()
    endpoint.connection.session.out_datagrams.append(b"audio")
    world.run(0.2)
    endpoint.connection.close(world.now)
    world.run(1)
    assert server_side.session.datagrams == [b"audio"]
    assert endpoint.connection.stats().errors == server_side.stats().errors == 0


def test_the_transport_parameters_promise_an_ack_delay_of_100_ms(world: Any) -> None:
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    parameters = pull_quic_transport_parameters(Buffer(data=quic_of(endpoint.connection)._serialize_transport_parameters()))
    assert parameters.max_ack_delay == 100
    assert parameters.max_udp_payload_size == 1472
    assert parameters.max_datagram_frame_size == 65536
    assert parameters.initial_max_streams_bidi == 2
    _, server_side = world.connect()
    assert quic_of(server_side)._loss.max_ack_delay == pytest.approx(0.1)


def stream_audio(world: Any, sides: list[Connection], frames: int, *, interval: float = 0.02) -> None:
    """`frames` datagrams of 100 bytes from each of `sides`."""
    for _ in range(frames):
        for side in sides:
            side.session.out_datagrams.append(bytes(100))
        world.run(interval)


def test_acks_ride_on_audio_when_both_sides_talk(world: Any) -> None:
    endpoint, server_side = world.connect()
    stream_audio(world, [endpoint.connection, server_side], 50)
    near, far = endpoint.connection.stats(), server_side.stats()
    world.to_client = world.to_server = 0
    stream_audio(world, [endpoint.connection, server_side], 500)
    assert endpoint.connection.stats().lone_acks_sent - near.lone_acks_sent <= 2
    assert server_side.stats().lone_acks_sent - far.lone_acks_sent <= 2
    assert 500 <= world.to_server <= 505
    assert 500 <= world.to_client <= 505


@pytest.mark.parametrize("interval", [0.01, 0.02, 0.04, 0.06])
def test_acks_ride_on_audio_whatever_the_frame_length(world: Any, interval: float) -> None:
    endpoint, server_side = world.connect()
    stream_audio(world, [endpoint.connection, server_side], 50, interval=interval)
    before = endpoint.connection.stats().lone_acks_sent + server_side.stats().lone_acks_sent
    stream_audio(world, [endpoint.connection, server_side], 200, interval=interval)
    assert endpoint.connection.stats().lone_acks_sent + server_side.stats().lone_acks_sent - before <= 4


def test_a_side_that_only_listens_sends_an_ack_every_100_ms(world: Any) -> None:
    endpoint, server_side = world.connect()
    stream_audio(world, [endpoint.connection], 50)
    before = server_side.stats().lone_acks_sent
    stream_audio(world, [endpoint.connection], 500)
    lone = server_side.stats().lone_acks_sent - before
    assert 80 <= lone <= 105, lone  # 10 s of audio
    assert endpoint.connection.stats().packets_lost == 0


def test_a_listener_that_reports_every_100_ms_sends_no_lone_ack(world: Any) -> None:
    endpoint, server_side = world.connect()
    before = server_side.stats().lone_acks_sent
    for n in range(500):
        endpoint.connection.session.out_datagrams.append(bytes(100))
        if n % 5 == 0:
            server_side.session.out_datagrams.append(bytes(30))
        world.run(0.02)
    assert server_side.stats().lone_acks_sent - before <= 3


def test_an_ack_of_stream_data_waits_25_ms_at_most(world: Any) -> None:
    endpoint, server_side = world.connect()
    world.run(1)
    quic = quic_of(endpoint.connection)
    endpoint.connection.session.out_control = b"message\n"
    world.run(world.delay + 0.001)
    assert server_side.session.control == b"message\n"
    assert quic.unacknowledged(0) > 0
    world.run(0.025 + world.delay)
    assert quic.unacknowledged(0) == 0


def test_the_reported_ack_delay_keeps_the_round_trip_true(world: Any) -> None:
    endpoint, _ = world.connect()
    stream_audio(world, [endpoint.connection], 200)
    assert endpoint.connection.rtt == pytest.approx(2 * world.delay, abs=0.005)


def test_a_datagram_that_fits_no_packet_is_refused_and_blocks_nothing(world: Any) -> None:
    endpoint, server_side = world.connect()
    largest = endpoint.connection.max_datagram_size
    assert largest == 1200 - 1 - 8 - 2 - 16 - 3
    endpoint.connection.session.out_datagrams.extend([bytes(largest + 1), bytes(largest), b"after"])
    world.run(0.2)
    assert [len(data) for data in server_side.session.datagrams] == [largest, 5]
    assert endpoint.connection.stats().datagrams_oversize == 1


def test_the_limit_of_the_peer_is_kept(world: Any) -> None:
    endpoint, server_side = world.connect()
    quic_of(endpoint.connection)._remote_max_datagram_frame_size = 203
    assert endpoint.connection.max_datagram_size == 200
    endpoint.connection.session.out_datagrams.extend([bytes(201), bytes(200)])
    world.run(0.2)
    assert [len(data) for data in server_side.session.datagrams] == [200]
    assert not server_side.is_closed


def test_no_datagram_stays_queued_when_nothing_is_acknowledged(world: Any) -> None:
    endpoint, server_side = world.connect()
    world.keep = lambda data, source, target: source == SERVER
    for _ in range(1000):
        endpoint.connection.session.out_datagrams.append(bytes(160))
        world.run(0.02)
        assert not quic_of(endpoint.connection)._datagrams_pending
    stats = endpoint.connection.stats()
    assert stats.datagrams_blocked > 0
    assert stats.bytes_in_flight <= 64 * 1024
    world.keep = lambda data, source, target: True
    server_side.session.datagrams.clear()
    for n in range(100):
        endpoint.connection.session.out_datagrams.append(bytes([n]) * 160)
        world.run(0.02)
    # The next probe finds the path, and everything after that flows: half a second and a round trip at most.
    assert len(server_side.session.datagrams) >= 100 - (0.5 + 2 * world.delay) / 0.02 - 3
    assert server_side.session.datagrams[0][0] > 0, "stale audio was sent"


def test_a_grant_raises_the_bound_on_bytes_in_flight(world: Any) -> None:
    endpoint, _ = world.connect()
    world.delay = 0.7
    endpoint.connection.session.target_bps = 512000
    for _ in range(200):
        endpoint.connection.session.out_datagrams.append(bytes(1100))
        world.run(0.0175)
    assert endpoint.connection.stats().datagrams_blocked == 0
    assert endpoint.connection.stats().bytes_in_flight > 64 * 1024


def test_the_first_destination_id_is_the_route_token(world: Any) -> None:
    token = bytes(range(17))
    seen: list[bytes] = []
    world.keep = lambda data, source, target: not (data[0] & 0x80 and target == SERVER and seen.append(data[6 : 6 + data[5]]))
    endpoint, _ = world.connect(route_token=token)
    assert seen[0] == token
    assert endpoint.connection.is_up


@pytest.mark.parametrize("length", [1, 4, 8, 17, 20])
def test_servers_may_have_connection_ids_of_any_length(make_world: Any, length: int) -> None:
    made: list[bytes] = []

    def generate() -> bytes:
        made.append(len(made).to_bytes(length, "big"))
        return made[-1]

    world = make_world(ids=ConnectionIds(length, generate))
    endpoint, server_side = world.connect()
    endpoint.connection.session.out_datagrams.append(b"audio")
    world.run(0.2)
    assert server_side.session.datagrams == [b"audio"]
    assert len(made) == 8
    assert endpoint.connection.max_datagram_size == 1178 - length


def test_all_ids_and_reset_tokens_come_from_the_given_entropy(world: Any) -> None:
    endpoint = world.client()
    quic = quic_of(endpoint.connection)
    calls: list[int] = []

    def counting(size: int) -> bytes:
        calls.append(size)
        return bytes(size)

    again = VoiceQuic(quic.configuration, windows=quic._voice_windows, ids=random_ids(counting, 4), entropy=counting)
    assert again.host_cid == bytes(4)
    assert again.original_destination_connection_id == bytes(8)
    assert calls == [4, 8]


def test_one_byte_at_each_limit_does_not_widen_the_windows(world: Any) -> None:
    """aioquic by itself doubles both windows whenever half of one is reached, gaps included."""
    endpoint, server_side = world.connect()
    hostile, victim = quic_of(endpoint.connection), quic_of(server_side)
    largest = 0
    for _ in range(40):
        stream = hostile._get_or_create_stream_for_send(2)
        target = min(stream.max_stream_data_remote, hostile._remote_max_data) - 1
        if target > largest:
            sender = stream.sender
            sender._buffer_start = sender._buffer_stop = target
            sender._pending.subtract(0, target)
            hostile.send_stream_data(2, b"x")
            largest = target
        world.run(0.1)
    assert not victim.errors
    windows = victim._voice_windows
    assert largest < windows.connection
    assert len(victim._streams[2].receiver._buffer) <= windows.connection


def test_windows_follow_what_was_delivered(world: Any) -> None:
    """More than one window's worth passes, on the control stream and on event streams."""
    endpoint, server_side = world.connect()
    session = endpoint.connection.session
    window = quic_of(server_side)._voice_windows
    for _ in range(2 * window.control // 10000 + 1):
        session.out_control = b"c" * 10000
        world.run(0.1)
    assert len(server_side.session.control) > 2 * window.control
    rounds = 3 * window.connection // 60000 + 1
    for n in range(rounds):
        session.out_streams.append((n, bytes(60000), True))
        world.run(0.2)
    assert len(server_side.session.finished) == rounds
    assert not server_side.is_closed


def test_a_reset_event_gives_its_window_back(world: Any) -> None:
    endpoint, server_side = world.connect()
    quic = quic_of(endpoint.connection)
    window = quic_of(server_side)._voice_windows
    for n in range(3 * window.connection // 50000):
        endpoint.connection.session.out_streams.append((n, bytes(50000), False))
        world.run(0.2)
        quic.reset_stream(2 + 4 * n, 0)
        world.run(0.1)
    assert not endpoint.connection.is_closed
    assert quic._remote_max_data > 2 * window.connection


@pytest.mark.parametrize("after", [0.0, 0.03, 0.05, 0.07])
def test_a_long_close_reason_is_cut_while_the_handshake_goes_on(world: Any, after: float) -> None:
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    world.run(after)
    quic_of(endpoint.connection).close_with(1, "ä" * 2000)
    assert quic_of(endpoint.connection).packets_to_send(world.now)
    assert quic_of(endpoint.connection).errors == 0


def test_a_long_close_reason_is_cut_and_still_sent(world: Any) -> None:
    endpoint, server_side = world.connect()
    endpoint.connection.session.close(world.now, 1, "ä" * 600)
    world.run(2)
    assert endpoint.connection.is_terminated
    assert server_side.is_terminated
    assert endpoint.connection.stats().errors == 0


def test_an_exception_in_a_packet_of_the_peer_closes_with_internal_error(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint, server_side = world.connect()

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    quic = quic_of(server_side)
    monkeypatch.setattr(quic._streams.setdefault(2, QuicStream(stream_id=2, max_stream_data_local=100)).receiver, "handle_frame", broken)
    endpoint.connection.session.out_streams.append((1, b"x", True))
    world.run(1)
    assert server_side.is_terminated
    assert server_side.stats().errors == 1
    closed = endpoint.connection.next_event()
    assert closed is not None
    assert closed.reason == "QUIC: INTERNAL_ERROR: ZeroDivisionError"


def test_an_exception_before_a_packet_is_authenticated_only_counts(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint, server_side = world.connect()
    quic = quic_of(server_side)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(quic, "_find_network_path", broken)
        server_side.receive_datagram(b"\x40" + quic.host_cid + bytes(40), ("203.0.113.9", 9), world.now)
    assert server_side.stats().errors == 1
    endpoint.connection.session.out_datagrams.append(b"audio")
    world.run(0.2)
    assert server_side.session.datagrams == [b"audio"]


@pytest.mark.interpreted(reason="puts its own in place of methods")
def test_an_exception_while_sending_ends_the_connection_and_does_not_escape(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint, server_side = world.connect()

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    for name in ("_write_application", "_pack"):
        monkeypatch.setattr(quic_of(server_side), name, broken)
    server_side.session.out_datagrams.append(b"x")
    world.run(1)
    assert server_side.is_terminated
    assert endpoint.connection.is_terminated
    endpoint, server_side = world.connect()
    quic = quic_of(server_side)
    monkeypatch.setattr(quic, "_pack", broken)
    monkeypatch.setattr(quic, "_write_connection_close_frame", broken)
    server_side.session.out_datagrams.append(b"x")
    world.run(1)
    assert server_side.is_terminated
    assert world.server.connections == []


def test_a_dead_path_is_probed_twice_a_second(world: Any) -> None:
    endpoint, _ = world.connect()
    world.run(1)
    sent_at: list[float] = []

    def drop(data: bytes, source: Any, target: Any) -> bool:
        if target == SERVER:
            sent_at.append(world.now)
        return False

    world.keep = drop
    endpoint.connection.session.out_control = b"anyone?\n"
    world.run(10)
    gaps = [later - earlier for earlier, later in itertools.pairwise(sent_at)]
    assert len(gaps) > 15
    assert max(gaps) <= 0.55


def test_stopping_and_resetting_streams_that_are_gone_does_nothing(world: Any) -> None:
    endpoint, _ = world.connect()
    quic = quic_of(endpoint.connection)
    quic.refuse_stream(3, 0)
    quic.refuse_stream(2, 0)
    assert quic.offer_stream_data(2, b"", fin=True)
    assert not quic.offer_stream_data(2, b"more")
    assert not quic.offer_stream_data(3, b"not mine")


def test_aioquic_ends_an_idle_connection_with_the_words_we_know(make_world: Any) -> None:
    """VS-9.1-5"""
    """VS-3.2-4"""
    from voicestream.config import Limits
    from voicestream.quic.endings import IDLE_TIMEOUT

    world = make_world(limits=Limits(idle_timeout=2))
    endpoint, _ = world.connect()
    world.keep = lambda data, source, target: False
    world.run(4)
    end = quic_of(endpoint.connection).end
    assert end is not None
    assert (end.code, end.reason, end.silent, end.by_peer) == (QuicErrorCode.INTERNAL_ERROR, IDLE_TIMEOUT, True, False)
    assert all(not isinstance(event, events.StreamDataReceived) for event in quic_of(endpoint.connection).drain_events())


def lossy(seed: int, loss: float) -> tuple[EndpointWorld, CallSide, CallSide]:
    """A call over a path that loses so much each way, with its client and its server."""
    world = EndpointWorld(seed=seed)
    client = world.client(NetworkProfile.both(LinkProfile(delay_ms=20, loss=loss)))
    world.open()
    return world, client, world.server.sides[0]


@pytest.mark.interpreted(reason="puts its own in place of methods")
@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_is_to_be_said_aioquic_finds_nothing_either(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    asked = {True: 0, False: 0}
    is_quiet = VoiceQuic._is_quiet

    def checked(quic: VoiceQuic, now: float) -> bool:
        # aioquic has to look for itself, and our pacer would tell it.
        quic._loss._pacer = NoPacer(lambda now: False, max_datagram_size=1200)
        quiet = is_quiet(quic, now)
        asked[quiet] += 1
        if quiet:
            assert quic._build(now) == [], f"seed {seed}, at {now}"
        return quiet

    monkeypatch.setattr(VoiceQuic, "_is_quiet", checked)
    world, client, server = lossy(seed, 0.05 * seed)
    for side in (client, server):
        side.listen()
        side.speak()
    for _ in range(4):
        client.session.send_event(b"a" * 3000, world.sim.now, kind=EventKind.TEXT)
        server.session.send_event(b"b" * 300, world.sim.now, kind=EventKind.TEXT)
        world.run(1.0)
    assert asked[True] > 100
    assert asked[False] > 100


@pytest.mark.parametrize("delay", [0.02, 0.09, 0.101, 0.15, 0.4])
def test_the_round_trip_is_known_when_the_handshake_is_complete(world: Any, delay: float) -> None:
    world.delay = delay
    endpoint = world.client()
    endpoint.connect(SERVER, world.now)
    world.run(10 * delay)
    server_side = world.server.next_connection()
    assert endpoint.connection.is_up
    for connection in (endpoint.connection, server_side):
        assert connection.session.rtt_at_start == pytest.approx(2 * delay, rel=0.6), "more than half of it, and no more than a probe more"


@pytest.mark.interpreted(reason="puts its own in place of methods")
@pytest.mark.parametrize("seed", range(3))
def test_the_timer_of_a_confirmed_connection_is_aioquics(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    asked = 0
    timer = VoiceQuic.get_timer

    def checked(quic: VoiceQuic) -> float | None:
        nonlocal asked
        found = timer(quic)
        loss_at = quic._loss_at
        assert found == QuicConnection.get_timer(quic), f"seed {seed}"
        assert loss_at == quic._loss_at, f"seed {seed}"
        asked += quic._handshake_confirmed
        return found

    monkeypatch.setattr(VoiceQuic, "get_timer", checked)
    world, client, server = lossy(seed, 0.1 * seed)
    for side in (client, server):
        side.speak(pattern=((0.5, 0.5),))
    client.session.send_event(b"a" * 3000, world.sim.now, kind=EventKind.TEXT)
    client.flush()
    world.run(2.0)
    client.move()
    world.run(2.0)
    assert asked > 500


@pytest.mark.interpreted(reason="puts its own in place of methods")
@pytest.mark.parametrize(
    ("path", "least_calm"),
    [
        (NetworkProfile.both(LinkProfile(delay_ms=20)), 0.5),
        (NetworkProfile.both(LinkProfile(delay_ms=30, jitter_ms=20, reorder=True, duplicate=0.05, loss=0.05)), 0.1),
        (NetworkProfile.both(LinkProfile(delay_ms=30, outages=((6.0, 1.0),)), rebind=(4.0,)), 0.1),
    ],
    ids=["clean", "reordered", "moving"],
)
def test_a_call_is_the_same_packet_for_packet_without_the_shorter_ways(
    path: NetworkProfile, least_calm: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call() -> tuple[str, list[object], list[object]]:
        sent.append(0)
        world = EndpointWorld(seed=11)
        client = world.client(path)
        world.open()
        sides = [client, world.server.sides[0]]
        for side in sides:
            side.listen()
            side.speak()
        world.run(9)
        return world.digest(), [side.connection.stats() for side in sides], [side.session.stats(world.sim.now) for side in sides]

    sent: list[int] = []
    calm: list[bool] = []
    pack, is_calm = PacketQuic._pack, ConnectionView.is_calm

    def counted(self: PacketQuic, *args: Any) -> Any:
        packet = pack(self, *args)
        sent[-1] += packet is not None
        return packet

    def noted(self: ConnectionView, until: float) -> bool:
        calm.append(is_calm(self, until))
        return calm[-1]

    monkeypatch.setattr(PacketQuic, "_pack", counted)
    monkeypatch.setattr(ConnectionView, "is_calm", noted)
    quick = call()
    monkeypatch.setattr(PacketQuic, "_one_rtt_keys", lambda self: None)
    monkeypatch.setattr(PacketQuic, "_says_nothing_else", WindowedQuic._says_nothing_else)
    monkeypatch.setattr(ConnectionView, "is_calm", lambda self, until: False)
    slow = call()
    assert quick == slow
    assert sent[0] > 500, "nothing went the shorter way"
    assert sent[1] == 0
    assert sum(calm) > least_calm * len(calm), "the server looked at everything for each packet"


def test_a_ping_leaves_though_nothing_else_is_to_be_said(world: Any) -> None:
    connection = world.connect()[0].connection
    world.run(3)
    before = connection._quic.next_number
    connection.probe()
    world.run(0.2)
    assert connection._quic.next_number > before, "on its own"
    connection.session.out_datagrams.append(bytes(50))
    connection.probe()
    world.run(0.2)
    assert not connection._quic._ping_pending, "beside a datagram"


def test_an_ack_of_a_packet_that_came_after_the_look_at_the_clock_tells_of_no_delay(world: Any) -> None:
    """A device's thread takes in a packet in between."""
    quic = world.connect()[0].connection._quic
    world.run(3)
    space, now = quic._after_handshake[0], world.now
    space.ack_queue.add(space.largest_received_packet)
    space.largest_received_time, space.ack_at = now + 50e-6, now
    quic._datagrams_pending.append(bytes(50))
    assert len(quic.datagrams_to_send(now)) == 1


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        (b"\x31\x03abc", [b"abc"]),
        (b"\x31\x40\x03abc\x00\x00", [b"abc"]),
        (b"\x30abc", [b"abc"]),
        (b"\x00\x31\x01a\x31\x02bc", [b"a", b"bc"]),
        (b"\x31\x04abc", None),
        (b"\x31\x80\x00\x00\x01a", None),
        (b"\x31", None),
        (b"\x31\x41", None),
        (b"", None),
        (b"\x00\x00", None),
        (b"\x01\x30abc", None),
        (b"\x02\x05", None),
        (b"\x02\x00\x00\x00\x05", None),
        (b"\x30" + bytes(20), None),
    ],
)
def test_only_datagrams_and_acks_are_taken_the_shorter_way(payload: bytes, found: list[bytes] | None) -> None:
    taken = _frames(payload, 20)
    assert (None if taken is None else taken[1]) == found


@pytest.mark.parametrize("value", [0, 63, 64, 16383, 16384, 2**30 - 1, 2**30, 2**62 - 1])
def test_numbers_are_written_as_aioquic_writes_them(value: int) -> None:
    buffer = Buffer(capacity=8)
    buffer.push_uint_var(value)
    assert _number(value) == buffer.data
    taken = _frames(_ack(range(value, value + 1), 7), 20)
    assert taken is not None
    assert taken[0] is not None
    assert (list(taken[0][0]), taken[0][1]) == ([range(value, value + 1)], 7)
