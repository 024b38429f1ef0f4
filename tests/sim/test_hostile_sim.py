"""Calls beside one of a hostile client: he is stopped with the right code, or harms himself alone; nobody else's speech suffers.

Which threat each test stands for is said in section 15 of the specification.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from voicestream import wire
from voicestream.codepoints import ErrorCode
from voicestream.config import Limits, SessionConfig
from voicestream.core.resume import TokenSealer
from voicestream.quic.endpoint import Address, ClientEndpoint
from voicestream.session import ClientSession, ServerSession
from voicestream.testing.attacker import Attacker
from voicestream.testing.endpoint_sim import SERVER_ADDRESS, EndpointWorld
from voicestream.testing.fake_codec import FakeCodec
from voicestream.testing.fuzz_victim import held_bytes
from voicestream.testing.profile import LinkProfile
from voicestream.testing.side import CallSide
from voicestream.testing.sim_certificate import sim_certificate
from voicestream.wire import frame_values as frames

SEED = 20
SECONDS = 4.5
PATH = LinkProfile(delay_ms=20, loss=0.02)
LIMITS = Limits(events_per_second=20, messages_per_second=20, datagrams_per_second=200, handshake_timeout=3.0, max_event_size=1 << 17)
"""Smaller than by default, so that a flood need not be as long."""

CODEC = FakeCodec(seed=5)


def begin(attackers: int = 0) -> tuple[EndpointWorld, list[Attacker]]:
    """Two honest clients who talk with the server, and beside them others who have heard a little from it."""
    world = EndpointWorld(seed=SEED, config=SessionConfig(limits=LIMITS))
    for _ in range(2):
        world.client(PATH)
    found = [Attacker(world) for _ in range(attackers)]
    world.open()
    for side in honest(world):
        side.listen()
        side.speak()
    for attacker in found:
        world.server.sides[world.clients.index(attacker.client)].speak(stop=world.sim.now + 0.2)
    world.run(1)
    return world, found


def honest(world: EndpointWorld) -> list[CallSide]:
    return [*world.clients[:2], world.server.sides[0], world.server.sides[1]]


def concealed(world: EndpointWorld) -> list[float]:
    world.run(world.start + SECONDS - world.sim.now)
    return [side.heard().concealed_share for side in honest(world)]


@pytest.fixture(scope="module")
def undisturbed() -> list[float]:
    return concealed(begin()[0])


def check(world: EndpointWorld, undisturbed: list[float]) -> None:
    """The others have heard each other as well as without the attack, and nothing that was not said."""
    for side, share, before in zip(honest(world), concealed(world), undisturbed, strict=True):
        assert not side.session.is_closed
        assert share <= before + 0.01, f"{side.name}: {share:.4f}, and {before:.4f} without an attack (seed {SEED})"
        assert side.heard().alien == side.heard().repeated == 0


def event(order: int, size: int = 10, event_id: int | None = None) -> bytes:
    header = wire.EventHeader(kind=0, event_id=order if event_id is None else event_id, order=order)
    return wire.encode_event_header(header) + bytes(size)


def audio(pts: int) -> frames.AudioFrame:
    return frames.AudioFrame(pts=pts & 0xFFFF, payload=CODEC.encode(pts))


def report(attacker: Attacker, beyond: int) -> frames.ReportFrame:
    newest = attacker.victim._link.reports.sent.next_number - 1 + beyond
    return frames.ReportFrame(newest=newest & 0xFFFF, arrival=0)


FLOOD = 300
ENDS: dict[str, tuple[ErrorCode, Callable[[Attacker], None]]] = {
    "control messages": (ErrorCode.LIMIT_EXCEEDED, lambda a: a.message(*[wire.Settings()] * FLOOD)),
    "unknown messages": (ErrorCode.LIMIT_EXCEEDED, lambda a: a.message(*[wire.UnknownMessage(type=0x3D, payload=b"")] * FLOOD)),
    "events": (ErrorCode.LIMIT_EXCEEDED, lambda a: a.open_streams(*[event(n + 1) for n in range(FLOOD)])),
    "events without order": (ErrorCode.LIMIT_EXCEEDED, lambda a: a.open_streams(*[event(0, event_id=n) for n in range(FLOOD)])),
    "events that wait for the first": (ErrorCode.LIMIT_EXCEEDED, lambda a: a.open_streams(*[event(n + 2, size=0) for n in range(FLOOD)])),
    "events beyond all numbers": (
        ErrorCode.LIMIT_EXCEEDED, lambda a: a.open_streams(*[event((1 << 61) + n, event_id=(1 << 62) - 1 - n) for n in range(FLOOD)]),
    ),
    "an event that is too large": (ErrorCode.EVENT_TOO_LARGE, lambda a: a.open_streams(event(1, LIMITS.max_event_size + 1))),
    "datagrams": (ErrorCode.LIMIT_EXCEEDED, lambda a: a.say(times=2 * FLOOD)),
    "datagrams full of frames": (
        ErrorCode.LIMIT_EXCEEDED, lambda a: a.say(*[frames.ProgressFrame(message=wire.Progress(played_pts=0))] * 60, times=30),
    ),
    "a pts beyond all numbers": (ErrorCode.TRACK_ERROR, lambda a: a.say(frames.AnchorFrame(pts=(1 << 62) - 1), audio(0))),
    "a clear beyond all numbers": (ErrorCode.PARAMETER_ERROR, lambda a: a.message(wire.Clear(number=(1 << 62) - 1, from_pts=0, to_pts=8))),
    "a clear of what is never said": (ErrorCode.TRACK_ERROR, lambda a: a.message(wire.Clear(number=1, from_pts=0, to_pts=(1 << 62) - 1))),
    "a generation that nobody gave": (ErrorCode.UNEXPECTED_MESSAGE, lambda a: a.message(wire.Confirm(generation=(1 << 62) - 1))),
    "a second control stream": (ErrorCode.CONTROL_STREAM_ERROR, lambda a: a.open_streams(b"x", fin=False, unidirectional=False)),
    "a report of the unsent": (ErrorCode.REPORT_ERROR, lambda a: a.say(report(a, 1))),
    "a report of the far unsent": (ErrorCode.REPORT_ERROR, lambda a: a.say(report(a, 30000))),
    "a report of what was before the first": (
        ErrorCode.REPORT_ERROR, lambda a: a.say(frames.ReportFrame(newest=0, arrival=0, statuses=(1, 1, 1))),
    ),
    "a message of a gigabyte": (ErrorCode.MESSAGE_TOO_LARGE, lambda a: a.stream(0, b"\x07\xbf\xff\xff\xff")),
    "garbage": (ErrorCode.FRAME_ENCODING_ERROR, lambda a: a.datagram(bytes(4) + b"\x01\xff")),
}  # fmt: skip


def test_who_breaks_a_rule_is_out_with_its_code_and_nobody_else_notices(undisturbed: list[float]) -> None:
    world, attackers = begin(len(ENDS))
    for attacker, (_, attack) in zip(attackers, ENDS.values(), strict=True):
        attack(attacker)
        world.run(0.05)
    world.run(1)
    fates = {what: None if one.fate is None else (one.fate.code, one.fate.reason) for what, one in zip(ENDS, attackers, strict=True)}
    wrong = {what: fates[what] for what, (code, _) in ENDS.items() if fates[what] is None or fates[what][0] != code}  # type: ignore[index]
    assert wrong == {}
    check(world, undisturbed)


def repairs(attacker: Attacker) -> None:
    """Repairs of what he has said himself, that decode to garbage."""
    rng = random.Random(SEED)
    for n in range(60):
        attacker.say(audio(4000 + 48 * n))
        attacker.say(frames.RepairFrame(key=n & 255, newest_pts=4000 + 48 * n, runs=((5, 8),), symbol=rng.randbytes(60)))


def time_travel(attacker: Attacker) -> None:
    rng = random.Random(SEED)
    for n in range(200):
        attacker.say(audio(4000 + 8 * n), tick=rng.randrange(1 << 16))


HARMLESS: dict[str, Callable[[Attacker], None]] = {
    "an event of the largest size": lambda a: a.open_streams(event(1, LIMITS.max_event_size)),
    "datagram numbers that jump": lambda a: [a.say(number=n * 7919) for n in range(200)],
    "one datagram again and again": lambda a: a.say(audio(4000), number=9999, times=200),
    "times that travel": time_travel,
    "repairs of garbage": repairs,
    "questions for everything": lambda a: a.say(frames.MissingFrame(ranges=tuple((n * 8, 12000) for n in range(32))), times=100),
    "anchors that run away": lambda a: [a.say(frames.AnchorFrame(pts=100_000 * n), audio(100_000 * n)) for n in range(100)],
    "streams of no known type": lambda a: a.open_streams(*[b"\x3d" + bytes(500)] * 100),
}


def test_what_breaks_no_rule_costs_memory_and_work_within_bounds(undisturbed: list[float]) -> None:
    world, attackers = begin(len(HARMLESS))
    for attacker, attack in zip(attackers, HARMLESS.values(), strict=True):
        attack(attacker)
        world.run(0.05)
    world.run(1.5)
    for what, attacker in zip(HARMLESS, attackers, strict=True):
        assert attacker.fate is None, f"{what}: {attacker.fate}"
        held = held_bytes(attacker.victim)
        assert held < 4 << 20, f"{what}: the session holds {held} bytes"
    assert attackers[list(HARMLESS).index("repairs of garbage")].victim.stats(world.sim.now).recovery.frames_repaired == 0
    check(world, undisturbed)


# Reports that lie

NARROW = LinkProfile(delay_ms=20, rate_kbps=40, queue_ms=200)


def test_who_lies_about_what_arrives_is_sent_no_more_than_a_good_path_gets() -> None:
    """He can have his own path flooded, to the rate that the server's owner allows for a call and not beyond."""
    world = EndpointWorld(seed=SEED)
    wide, narrow, greedy, starving = (Attacker(world, path) for path in (None, NARROW, NARROW, None))
    world.open()
    for side in world.server.sides.values():
        side.speak()
    greedy.lie(lambda told: replace(told, statuses=(1,) * len(told.statuses)))
    starving.lie(lambda told: replace(told, statuses=(None,) * len(told.statuses)))
    world.run(4)
    everyone = wide, narrow, greedy, starving
    before = [sum(size for _, size in one.client.packets["a2b"]) for one in everyone]
    world.run(4)
    rates = [(sum(size for _, size in one.client.packets["a2b"]) - old) * 8 / 4 for one, old in zip(everyone, before, strict=True)]
    assert rates[1] < 70_000
    assert rates[2] < 1.1 * rates[0]
    assert rates[3] < 1.1 * rates[0]
    assert rates[0] < 150_000
    assert all(one.fate is None for one in everyone)


# Strangers


def first_packet(n: int) -> bytes:
    rng = random.Random(n)
    session = ClientSession(SessionConfig(), authority="x", path="/", entropy=rng.randbytes)
    endpoint = ClientEndpoint(sim_certificate()[2], session, entropy=rng.randbytes)
    endpoint.connection.connect(SERVER_ADDRESS, 0.0)
    return endpoint.connection.datagrams_to_send(0.0)[0][0]


def test_a_thousand_first_packets_of_nobody_cost_64_handshakes_and_no_call_its_speech(undisturbed: list[float]) -> None:
    world, _ = begin()
    attacker = Attacker(world)
    some = [first_packet(n) for n in range(100)]
    endpoint, most = world.server.endpoint, Limits().retry_above
    # Those that open no connection are all new to the server: it remembers none of them.
    attacker.forge(1000, lambda n: some[n] if n < 64 else some[64 + n % 36])
    assert len(endpoint.connections) <= 2 + 1 + most
    assert endpoint.stats.retried >= 1000 - most - 1
    newcomer = world.client(PATH)
    world.open(newcomer, attacker.client)
    check(world, undisturbed)
    assert len(endpoint.connections) == 4


def test_packets_replayed_from_elsewhere_move_no_call_and_say_nothing_twice(undisturbed: list[float]) -> None:
    """The newest ones, again and again, from addresses of nobody and from the client's own."""
    world, _ = begin()
    attacker = Attacker(world)
    victim, copied, take = world.clients[0], [], world.server.receive

    def tap(data: bytes, source: Address) -> None:
        take(data, source)
        if source == victim.address:
            copied.append(data)

    world.server.receive = tap  # type: ignore[method-assign]
    for _ in range(20):
        world.run(0.1)
        again = copied[-20:]
        attacker.forge(len(again), again.__getitem__)
        for data in again:
            take(data, victim.address)
    assert world.server.sides[0].connection.peer_address == victim.address
    check(world, undisturbed)


# What all of it costs


def test_a_hello_that_comes_byte_by_byte_is_not_waited_for() -> None:
    rng = random.Random(SEED)
    server = ServerSession(SessionConfig(), sealer=TokenSealer(bytes(32)), entropy=rng.randbytes)
    now = 50.0
    server.start(now)
    while (timer := server.next_timer()) is not None:
        now = min(now + 0.5, timer)
        server.receive_control(b"\x01\x5f\x40" if now == 50.5 else b"\0", now)
        server.handle_timer(now)
    assert server.is_closed
    assert now == 50 + Limits().handshake_timeout
