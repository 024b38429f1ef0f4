"""Hostile input in every state of both roles. The long run is ``python -m voicestream.testing.fuzz --inputs 200000``."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator

import pytest

from voicestream import wire
from voicestream.codepoints import ErrorCode
from voicestream.session import ClientSession
from voicestream.testing.fake_codec import FakeCodec
from voicestream.testing.fuzz import fuzz, main
from voicestream.testing.fuzz_inputs import FuzzInput, InputMaker, mutate
from voicestream.testing.fuzz_victim import CLIENT_STATES, MAX_HELD_BYTES, SERVER_STATES, Victim, held_bytes

INPUTS = int(os.environ.get("VOICESTREAM_FUZZ_INPUTS", "20000"))


def test_no_input_breaks_a_promise_in_any_state() -> None:  # VS-15-4
    report = fuzz(INPUTS, seed=20261130, max_seconds=120)
    print("\n".join(report.lines()))
    assert not report.failures, "\n".join(report.failures)
    assert report.origins["mutated"] >= report.inputs / 2
    for role, states in (("client", CLIENT_STATES), ("server", SERVER_STATES)):
        for state in states:
            assert report.outcomes[f"{role} {state}"].total() > 0, f"{role} {state} was never reached"


def test_the_command_reports_and_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--inputs", "300", "--seed", "3"]) == 0
    out = capsys.readouterr().out
    assert "300 inputs" in out
    assert "failures: 0" in out


def test_a_broken_promise_is_found_and_can_be_seen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ClientSession.receive_datagram

    def broken(session: ClientSession, data: bytes, now: float) -> None:
        if len(data) < 4:
            raise KeyError("oops")
        real(session, data, now)

    monkeypatch.setattr(ClientSession, "receive_datagram", broken)
    report = fuzz(3000, seed=1)
    assert any("oops" in failure and "seed 1" in failure for failure in report.failures)


def test_mutations_change_and_never_grow_without_bound() -> None:
    rng = random.Random(1)
    samples = [mutate(b"voicestream" * 20, b"other", rng) for _ in range(2000)]
    assert max(map(len, samples)) <= 9000
    assert sum(sample != b"voicestream" * 20 for sample in samples) > 1900


def test_valid_inputs_are_valid() -> None:
    maker = InputMaker(random.Random(2))
    for _ in range(500):
        wire.decode_datagram(maker.valid("datagram"))
        wire.MessageParser().feed(maker.valid("control"))


# Floods: one kind of valid input without end. What a session holds must stay bounded, or it must close.


def datagram(number: int, *frames: wire.Frame) -> FuzzInput:
    data = wire.encode_datagram(wire.Datagram(number=number & 0xFFFF, send_tick=number * 80 & 0xFFFF, frames=frames))
    return FuzzInput(channel="datagram", origin="valid", data=data)


def message(value: wire.Message) -> FuzzInput:
    return FuzzInput(channel="control", origin="valid", data=wire.encode_message(value))


def event(order: int, *, fin: bool = True) -> FuzzInput:
    data = wire.encode_event_header(wire.EventHeader(kind=0, event_id=order, order=order)) + bytes(1000)
    return FuzzInput(channel="stream", origin="valid", data=data, fin=fin)


def audio(pts: int, size_bytes: int = 160, track: int = 0) -> wire.AudioFrame:
    return wire.AudioFrame(pts=pts & 0xFFFF, payload=FakeCodec().encode(pts, size_bytes=size_bytes), track=track)


FLOODS: dict[str, Callable[[int], FuzzInput]] = {
    "audio": lambda n: datagram(n, audio(n * 8)),
    "audio with holes": lambda n: datagram(n, audio(n * 16)),
    "audio that jumps": lambda n: datagram(n, audio(n * 4999)),
    "audio backwards": lambda n: datagram(n, audio(60000 - n * 8)),
    "large audio": lambda n: datagram(n, audio(n * 8, 1100)),
    "audio of two tracks": lambda n: datagram(n, audio(n * 8), wire.AudioFrame(track=1, pts=n * 8 & 0xFFFF, payload=bytes(160))),
    "unknown clears in audio": lambda n: datagram(
        n, wire.AudioFrame(pts=n * 8 & 0xFFFF, payload=FakeCodec().encode(n), clear_number=n & 3)
    ),
    "anchors": lambda n: datagram(n, wire.AnchorFrame(pts=n * 100_000, ahead=bool(n & 1)), audio(n * 100_000)),
    "clears in datagrams": lambda n: datagram(n, wire.ClearFrame(message=wire.Clear(number=n + 1, from_pts=n * 8, to_pts=n * 8 + 80))),
    "clear requests": lambda n: datagram(
        n, wire.ClearFrame(message=wire.Clear(number=n + 1, from_receiver=True, from_pts=n * 8, to_pts=n * 8 + 8))
    ),
    "progress": lambda n: datagram(n, wire.ProgressFrame(message=wire.Progress(played_pts=n * 8))),
    "missing": lambda n: datagram(n, wire.MissingFrame(ranges=tuple((n * 8 + i * 16 & 0xFFFF, 8) for i in range(32)))),
    "repair": lambda n: datagram(n, wire.RepairFrame(key=n & 255, newest_pts=n * 8 & 0xFFFF, runs=((20, 8),), symbol=bytes(300))),
    "copies": lambda n: datagram(n, wire.CopyFrame(pts=n * 8 & 0xFFFF, payload=FakeCodec().encode(n))),
    "retransmissions": lambda n: datagram(n, wire.RetransmissionFrame(pts=n * 8 & 0xFFFF, payload=FakeCodec().encode(n))),
    "datagram numbers that jump": lambda n: datagram(n * 7919),
    "reports": lambda n: datagram(n, wire.ReportFrame(newest=0, arrival=n & 0xFFFF, statuses=(None,) * 200)),
    "probes": lambda n: datagram(n, wire.ProbeFrame(cluster=n, size=1000)),
    "ordered events without the first": lambda n: event(n + 2),
    "unordered events": lambda n: event(0),
    "streams without end": lambda n: event(0, fin=False),
    "settings": lambda n: message(wire.Settings(parameters=wire.Parameters(lookahead_ms=n % 500))),
    "clears in messages": lambda n: message(wire.Clear(number=n + 1, from_pts=n, to_pts=n + 8)),
    "unknown messages": lambda n: message(wire.UnknownMessage(type=0x3D, payload=bytes(4000))),
    "going away": lambda n: message(wire.GoingAway()),
}


def watch(victim: Victim, inputs: Iterator[FuzzInput], name: str, count: int) -> None:
    for index, given in enumerate(itertools.islice(inputs, count)):
        victim.feed(given)
        if index % 500 == 499:
            held = held_bytes(victim.session)
            assert held < MAX_HELD_BYTES, f"{name}: after {index + 1} inputs the session holds {held} bytes"
        if victim.session.is_closed:
            assert victim.closed[0].code in set(ErrorCode)
            return


@pytest.mark.parametrize("role", ["client", "server"])
@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_is_bounded_or_ends_the_session(name: str, role: str) -> None:  # VS-14-1
    victim = Victim(role, "open", random.Random(f"{name}/{role}"))
    watch(victim, map(FLOODS[name], itertools.count(100)), name, 4000)


@pytest.mark.parametrize("state", ["waiting", "asked"])
def test_a_flood_before_the_call_is_bounded_or_ends_the_session(state: str) -> None:  # VS-14-1
    role = "client" if state == "waiting" else "server"
    for name in ("audio", "ordered events without the first", "streams without end", "settings", "unknown messages"):
        victim = Victim(role, state, random.Random(name))
        watch(victim, map(FLOODS[name], itertools.count(100)), name, 3000)


def test_a_message_that_never_ends_is_not_collected() -> None:
    victim = Victim("server", "waiting", random.Random(1))
    for _ in range(100):
        victim.feed(FuzzInput(channel="control", origin="valid", data=b"\x01\x7f\xff" + bytes(2000)))
    assert victim.session.is_closed
    assert victim.closed[0].code == ErrorCode.MESSAGE_TOO_LARGE


def test_the_tracks_of_the_victims_are_those_of_the_inputs() -> None:
    """If these part, the fuzzer's frames die at the first check and nothing behind it is tested."""
    victim = Victim("client", "open", random.Random(1))
    assert [track.track_id for track in victim.session.tracks] == [0, 1]
