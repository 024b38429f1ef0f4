"""The turns of a socket owner: none takes the loop for long. The clock is the test's own."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from voicestream.quic import owner
from voicestream.quic.owner import LATER, SLICE, SocketOwner

pytestmark = pytest.mark.interpreted(reason="an heir of what is compiled")

ADDRESS = ("192.0.2.1", 1)
COST = 0.002
PER_TURN = 3  # of things that cost so much


class Slow(SocketOwner):
    """Whatever is done costs two milliseconds. Connections are strings here: the owner only passes them on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.now = 100.0
        self.log: list[str] = []
        self.on_tell: dict[str, Any] = {}
        self.told_by: list[int] = []
        self.socket: list[tuple[bytes, Any]] = []
        monkeypatch.setattr(owner, "clock", lambda: self.now)

    def spend(self, what: str) -> None:
        self.log.append(what)
        self.now += COST

    def _take_in(self, data: bytes, address: Any, now: float) -> Any:
        self.spend(f"in {data.decode()}")
        return data.decode()

    def _waiting(self) -> list[tuple[bytes, Any]]:
        taken, self.socket = self.socket, []
        return taken

    def _tell(self, connection: Any) -> None:
        self.told_by.append(threading.get_ident())
        if connection in self.on_tell:
            self.on_tell.pop(connection)()

    def _transmit(self, connection: Any, now: float) -> None:
        self.spend(f"out {connection}")

    def _next_timer(self) -> float | None:
        return None

    def _fire(self, now: float) -> list[Any]:
        return []

    async def turns(self) -> list[list[str]]:
        """What is done in each turn of the loop, until nothing is."""
        found: list[list[str]] = []
        for _ in range(30):
            self.log = []
            await asyncio.sleep(0)
            if self.log:
                found.append(self.log)
        return found


async def test_packets_are_looked_at_for_a_slice_of_time_and_then_others_get_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    assert PER_TURN - 1 < SLICE / COST <= PER_TURN
    slow._receive([(b"%d" % number, ADDRESS) for number in range(8)])
    assert slow.log == ["in 0", "in 1", "in 2"]
    turns = await slow.turns()
    assert max(map(len, turns)) <= 2 * PER_TURN  # in and out
    done = [entry for turn in turns for entry in turn]
    assert [entry for entry in done if entry.startswith("in")] == [f"in {number}" for number in range(3, 8)]
    assert [entry for entry in done if entry.startswith("out")] == [f"out {number}" for number in range(8)]
    assert slow.packets_dropped == 0


async def test_packets_that_come_meanwhile_wait_behind_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    slow._receive([(b"%d" % number, ADDRESS) for number in range(4)])
    slow._receive([(b"4", ADDRESS)])
    assert slow.log == ["in 0", "in 1", "in 2"]
    done = [entry for turn in await slow.turns() for entry in turn]
    assert [entry for entry in done if entry.startswith("in")] == ["in 3", "in 4"]


async def test_an_owner_answers_before_the_connection_is_flushed_so_that_one_flush_does(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    heard = asyncio.Event()

    async def application() -> None:
        await heard.wait()
        slow.log.append("answer")
        slow.wake_connection("a")  # type: ignore[arg-type]

    task = asyncio.create_task(application())
    await asyncio.sleep(0)
    slow.on_tell["a"] = heard.set
    slow._receive([(b"a", ADDRESS)])
    done = slow.log + [entry for turn in await slow.turns() for entry in turn]
    assert done == ["in a", "answer", "out a"]
    await task


async def test_many_connections_that_want_to_send_share_the_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    for name in "abcdefgh":
        slow.wake_connection(name)  # type: ignore[arg-type]
    assert await slow.turns() == [["out a", "out b", "out c"], ["out d", "out e", "out f"], ["out g", "out h"]]


async def test_a_connection_that_is_woken_after_it_was_flushed_is_flushed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    slow.on_tell["b"] = lambda: slow.wake_connection("a")  # type: ignore[arg-type]
    slow.wake_connection("a")  # type: ignore[arg-type]
    slow.wake_connection("b")  # type: ignore[arg-type]
    assert await slow.turns() == [["out a", "out b"], ["out a"]]


async def test_nothing_is_done_any_more_once_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    slow._receive([(b"%d" % number, ADDRESS) for number in range(8)])
    slow._stop()
    assert await slow.turns() == []
    slow._receive([(b"9", ADDRESS)])
    assert await slow.turns() == []


def in_a_thread(slow: Slow) -> None:
    """A device's thread comes while the loop is busy: it stands in this call."""
    thread = threading.Thread(target=slow.poll)
    thread.start()
    thread.join()


async def test_a_device_that_comes_while_the_loop_is_busy_finds_what_the_socket_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    slow.socket = [(b"a", ADDRESS), (b"b", ADDRESS)]
    in_a_thread(slow)
    assert slow.log == ["in a", "in b"]
    # What follows from it, telling the owners and sending, is left to the loop.
    assert not slow.told_by
    assert [entry for turn in await slow.turns() for entry in turn] == ["out a", "out b"]
    assert set(slow.told_by) == {threading.get_ident()}


async def test_what_waits_behind_a_backlog_is_left_to_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    slow._receive([(b"%d" % number, ADDRESS) for number in range(4)])
    slow.socket = [(b"a", ADDRESS)]
    in_a_thread(slow)
    assert slow.log == ["in 0", "in 1", "in 2"]
    assert len(slow.socket) == 1


async def test_the_loop_itself_need_not_look_and_a_closed_owner_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch)
    slow.socket = [(b"a", ADDRESS)]
    slow.poll()
    slow._stop()
    in_a_thread(slow)
    assert not slow.log
    assert len(slow.socket) == 1


class Alarm:
    """In place of the loop: the timers that were set, as seconds from then, and how many of them were cancelled."""

    def __init__(self) -> None:
        self.set: list[float] = []
        self.cancelled = 0

    def call_later(self, seconds: float, callback: Any) -> Alarm:
        self.set.append(round(seconds, 6))
        return self

    def cancel(self) -> None:
        self.cancelled += 1


async def test_a_timer_that_has_moved_back_is_set_anew_and_one_that_has_hardly_moved_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, alarm = Slow(monkeypatch), Alarm()
    monkeypatch.setattr(slow, "_loop", alarm)
    for at in (100.02, 100.02 + LATER / 2, 100.04, 100.03):
        monkeypatch.setattr(slow, "_next_timer", lambda at=at: at)
        slow._set_timer()
    assert alarm.set == [0.02, 0.04, 0.03]
    assert alarm.cancelled == 2


async def test_packets_after_which_their_connection_rests_move_the_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, alarm = Slow(monkeypatch), Alarm()
    monkeypatch.setattr(slow, "_loop", alarm)
    monkeypatch.setattr(slow, "_rests", lambda connection, now: True)
    monkeypatch.setattr(slow, "_next_timer", lambda: 100.03)
    slow._receive([(b"1", ADDRESS)])
    assert slow.log == ["in 1"]
    assert alarm.set == [pytest.approx(0.03 - COST)]
