"""The machine that users embed: used as they would, and shown to find faults."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from voicestream.config import SessionConfig
from voicestream.core.pacer import SendQueue
from voicestream.core.playout import OrderedReader
from voicestream.core.timeline import Timeline
from voicestream.session import ServerSession
from voicestream.testing import stateful
from voicestream.testing.stateful import BrokenPromise, CallMachine, HostileCall

QUICK = settings(
    max_examples=10, stateful_step_count=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


class AgentCalls(CallMachine):
    """What a user writes: settings of its own, and a verb more."""

    client_config = SessionConfig(bitrate_bps=16000)

    @rule(words=st.text(max_size=20))
    def the_agent_answers(self, words: str) -> None:
        server = self.call.server
        if server.session.is_open and len(server.events_sent) < 40:
            self.call.send_event(server, b'"%s"' % words.encode().hex().encode(), ordered=True)


def test_calls_in_any_order_over_a_hostile_network_keep_what_is_promised() -> None:
    run_state_machine_as_test(AgentCalls, settings=QUICK)


def test_the_example_of_the_documentation_is_a_machine() -> None:
    assert stateful.__doc__ is not None
    (code,) = re.findall(r"added \(needs.*?\):\n\n(.*?)\n\nWhat it holds", stateful.__doc__, re.S)
    space: dict[str, Any] = {"my_answer": lambda words: b'"%s"' % words.encode().hex().encode()}
    exec("\n".join(line.removeprefix("    ") for line in code.splitlines()), space)
    few = settings(QUICK, max_examples=3)
    run_state_machine_as_test(space["MyCalls"], settings=few)


def lose_frames_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    real = SendQueue.pop

    def pop(queue: SendQueue) -> Any:
        entry = real(queue)
        return real(queue) if len(queue) and entry.frame.pts % 5 == 0 else entry

    monkeypatch.setattr(SendQueue, "pop", pop)


def give_some_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    real, last = OrderedReader.next, {}

    def twice(reader: OrderedReader, now: float) -> Any:
        item = last.pop(id(reader), None) or real(reader, now)
        if getattr(item, "pts", 1) % 7 == 0 and getattr(item, "clear_number", 0):
            last[id(reader)] = item
        return item

    monkeypatch.setattr(OrderedReader, "next", twice)


def use_media_time_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Timeline.skip

    def skip(timeline: Timeline, units: int) -> None:
        before = timeline.next_pts
        real(timeline, units)
        timeline.next_pts = max(0, before - 8)

    monkeypatch.setattr(Timeline, "skip", skip)


def do_not_hear_the_close(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ServerSession.receive_control

    def receive(session: ServerSession, data: bytes, now: float, fin: bool = False) -> None:
        if data[:1] != b"\x0e":
            real(session, data, now, fin)

    monkeypatch.setattr(ServerSession, "receive_control", receive)


REPLACED = pytest.mark.interpreted(reason="a method is replaced that compiled code calls directly")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        pytest.param(lose_frames_silently, "accounted for", marks=REPLACED),
        (give_some_twice, "comes after"),
        pytest.param(
            use_media_time_again_after_a_pause, "goes back|comes after|closed by itself|not what was sent|accounted for", marks=REPLACED
        ),
        (do_not_hear_the_close, "the client ended with"),
    ],
)
def test_a_fault_is_found(fault: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    search = settings(QUICK, max_examples=400, stateful_step_count=30, phases=[Phase.generate])
    with pytest.raises(BrokenPromise, match=words):
        run_state_machine_as_test(CallMachine, settings=search)


def test_a_call_can_be_driven_without_hypothesis() -> None:
    call = HostileCall(random.Random(1))
    call.open()
    call.fates.loss = 0.2
    for serial in range(50):
        call.send(call.client, b"\x08" + serial.to_bytes(4, "big") + bytes(20), 8, start=serial == 0)
        call.wait(0.02)
    call.fates.loss = 0.0
    call.wait(0.3)
    call.lose()
    for serial in range(50, 60):
        call.send(call.client, b"\x08" + serial.to_bytes(4, "big") + bytes(20), 8)
        call.wait(0.02)
    call.resume()
    call.wait(5.0)
    assert call.server.heard == [serial * 8 for serial in range(60)]
    call.close(call.server, 0)
    call.wait(1.0)
    call.check_close()
    call.check_frames()


def test_the_machine_is_named_where_users_look_for_it() -> None:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    assert "voicestream.testing.stateful" in readme
