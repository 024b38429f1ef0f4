"""The session as a whole: ends, timers that come to rest, and that a bad peer is never an exception."""

from __future__ import annotations

import random

import pytest

from voicestream.codepoints import ErrorCode, EventKind
from voicestream.config import SessionConfig
from voicestream.core.lifecycle import State
from voicestream.errors import StateError
from voicestream.events import Closed
from voicestream.session import Session
from voicestream.wire import AudioFrame, Close, Datagram, MessageParser, UnknownMessage, encode_datagram, encode_message

FRAME = bytes((0x78,)) + bytes(60)  # 20 ms of Opus


class TestEnds:
    def test_a_side_that_closes_says_why_and_both_see_one_end(self, pair) -> None:
        pair.client.close(pair.now, ErrorCode.HANDLER_ERROR, "stopped", may_resume=True)
        pair.run(0.1)
        assert pair.closed("client") == Closed(code=ErrorCode.HANDLER_ERROR, reason="stopped", remote=False, may_resume=True)
        assert pair.closed("server") == Closed(code=ErrorCode.HANDLER_ERROR, reason="stopped", remote=True, may_resume=True)
        assert pair.client.state is pair.server.state is State.CLOSED

    def test_the_other_side_does_not_answer(self, pair) -> None:
        pair.client.close(pair.now)
        pair.server.receive_control(pair.client.control_to_send(), pair.now)
        assert pair.server.control_to_send() == b""  # VS-13.2-1

    def test_both_sides_may_close_at_once(self, pair) -> None:
        pair.client.close(pair.now, ErrorCode.NO_ERROR, "c")
        pair.server.close(pair.now, ErrorCode.GOING_AWAY, "s")
        pair.run(0.1)
        assert pair.closed("client").reason == "c"
        assert pair.closed("server").reason == "s"

    def test_closing_again_does_nothing(self, pair) -> None:
        pair.client.close(pair.now, ErrorCode.NO_ERROR, "once")
        pair.client.close(pair.now, ErrorCode.INTERNAL_ERROR, "twice")
        assert pair.closed("client").reason == "once"

    def test_the_loss_of_the_connection_is_an_end_without_close(self, pair) -> None:
        pair.client.transport_closed(pair.now, ErrorCode.IDLE_TIMEOUT, "nothing heard", remote=False)
        assert pair.client.control_to_send() == b""
        assert pair.closed("client") == Closed(code=ErrorCode.IDLE_TIMEOUT, reason="nothing heard", remote=False, may_resume=False)
        pair.client.transport_closed(pair.now, ErrorCode.PATH_LOST)
        pair.client.close(pair.now)
        assert pair.closed("client").code == ErrorCode.IDLE_TIMEOUT

    def test_a_close_of_the_connection_after_close_adds_nothing(self, pair) -> None:
        pair.server.receive_control(encode_message(Close(code=7, reason="x")), pair.now)
        pair.server.transport_closed(pair.now, 7, "x")
        assert pair.closed("server") == Closed(code=7, reason="x", remote=True, may_resume=False)

    def test_after_the_end_everything_that_comes_is_ignored(self, pair, kit) -> None:
        pair.talk(0.2)
        pair.server.close(pair.now)
        before = pair.server.stats(pair.now)
        pair.server.receive_datagram(b"rubbish", pair.now)
        pair.server.receive_datagram(kit.datagram(AudioFrame(pts=0, payload=kit.frame())), pair.now)
        pair.server.receive_control(b"\xff" * 50, pair.now, fin=True)
        pair.server.receive_stream(1, b"\x01\xff", True, pair.now)
        pair.server.reset_stream(1, pair.now)
        pair.server.handle_timer(pair.now + 100)
        assert pair.server.stats(pair.now) == before  # VS-13.2-3
        assert len(pair.of("server", Closed)) == 0
        assert pair.closed("server").code == ErrorCode.NO_ERROR

    def test_after_the_end_nothing_leaves_but_the_close(self, pair) -> None:
        pair.client.send_event(bytes(5000), pair.now, kind=0)
        pair.client.send_frame(b"\x08" + bytes(50), pair.now)
        pair.client.close(pair.now, ErrorCode.NO_ERROR, "bye")
        assert pair.client.datagrams_to_send(pair.now + 1) == []
        assert pair.client.streams_to_send(pair.now + 1) == []
        assert MessageParser().feed(pair.client.control_to_send()) == [Close(code=0, reason="bye")]
        assert pair.client.next_timer() is None  # VS-13.2-2

    def test_after_the_end_every_verb_is_refused(self, pair, kit) -> None:
        pair.client.close(pair.now)
        for verb in (
            lambda: pair.client.send_frame(kit.frame(), pair.now),
            lambda: pair.client.skip(8),
            lambda: pair.client.ahead_allowance(pair.now),
            lambda: pair.client.send_event(b"{}", pair.now),
            lambda: pair.client.clear(pair.now, outgoing=True),
            lambda: pair.client.report_played(0, pair.now),
            lambda: pair.client.finish(pair.now),
            lambda: pair.client.update_settings(pair.now),
            lambda: pair.client.going_away(pair.now),
        ):
            with pytest.raises(StateError):
                verb()

    @pytest.mark.parametrize("code", [-1, 1 << 62])
    def test_a_code_that_cannot_be_carried_is_refused(self, pair, code: int) -> None:
        with pytest.raises(ValueError, match="code"):
            pair.client.close(pair.now, code)
        assert pair.client.is_open

    def test_the_course_of_the_states_is_recorded(self, pair) -> None:
        pair.client.close(pair.now, ErrorCode.NO_ERROR, "done")
        pair.run(0.1)
        states = [(one["old"], one["new"]) for one in pair.logs["client"].named("session:state")]
        assert states == [("idle", "calling"), ("calling", "open"), ("open", "closed")]
        states = [(one["old"], one["new"]) for one in pair.logs["server"].named("session:state")]
        assert states == [("idle", "waiting"), ("waiting", "deciding"), ("deciding", "open"), ("open", "closed")]
        assert pair.logs["server"].named("session:closed") == [{"code": 0, "reason": "done", "remote": True, "may_resume": False}]


class TestTimers:
    def test_after_its_outputs_are_fetched_a_session_rests(self, kit) -> None:
        """Every timer lies ahead of the time at which everything was done: nobody spins."""
        rng = random.Random(8)
        pair = kit.Pair(
            SessionConfig(), SessionConfig(), to_server=kit.lossy(1, 0.2, jitter=0.1), to_client=kit.lossy(2, 0.2, jitter=0.1)
        ).open()
        for _ in range(400):
            self.something(pair, kit, rng)
            pair.run(rng.random() * 0.05)
            for session in (pair.client, pair.server):
                session.handle_timer(pair.now)
                pair.drain()
                pair.drain()
                timer = session.next_timer()
                assert timer is None or timer > pair.now

    def something(self, pair, kit, rng: random.Random) -> None:
        session = rng.choice([pair.client, pair.server])
        choice = rng.randrange(7)
        if choice <= 2:
            session.send_frame(kit.frame(), pair.now)
        elif choice == 3:
            session.send_event(bytes(rng.randrange(3000)), pair.now, kind=0)
        elif choice == 4:
            session.clear(pair.now, outgoing=rng.random() < 0.5)
        elif choice == 5:
            session.report_played(rng.randrange(1000), pair.now)
        else:
            session.skip(rng.randrange(100))

    def test_a_timer_that_is_called_early_or_late_does_no_harm(self, pair) -> None:
        for moment in (-50.0, 0.0, 1e6):
            pair.client.handle_timer(pair.now + moment)
        assert pair.client.is_open

    def test_an_open_idle_client_only_waits_for_its_keepalive(self, pair) -> None:
        pair.run(1.0)
        assert pair.client.next_timer() == pytest.approx(pair.now - 1.0 + 5.0, abs=0.2)
        assert pair.server.next_timer() is None


class TestBadPeers:
    @pytest.mark.parametrize("seed", range(30))
    @pytest.mark.parametrize("state", ["waiting", "deciding", "open"])
    def test_rubbish_is_an_end_or_nothing_but_never_an_exception(self, kit, seed: int, state: str) -> None:
        rng = random.Random(seed)
        pair = kit.Pair()
        if state == "waiting":
            pair.server.start(pair.now)
        else:
            pair.ask() if state == "deciding" else pair.open()
        server: Session = pair.server
        for step in range(60):
            data = rng.randbytes(rng.randrange(30))
            now = pair.now + step * 0.01
            match rng.randrange(4):
                case 0:
                    server.receive_datagram(data, now)
                case 1:
                    server.receive_control(data, now, fin=rng.random() < 0.02)
                case 2:
                    server.receive_stream(rng.randrange(10), data, rng.random() < 0.3, now)
                case _:
                    server.handle_timer(now)
            server.datagrams_to_send(now)
            server.streams_to_send(now)
            server.streams_to_stop()
        events = []
        while (event := server.next_event()) is not None:
            events.append(event)
        assert server.is_closed is any(isinstance(one, Closed) for one in events)
        assert sum(isinstance(one, Closed) for one in events) <= 1
        MessageParser().feed(server.control_to_send())

    def test_messages_without_end_are_cut_off(self, pair) -> None:
        data = encode_message(UnknownMessage(type=0x3D, payload=b"x")) * 100
        for _ in range(100):
            pair.server.receive_control(data, pair.now)
        assert pair.closed("server").code == ErrorCode.LIMIT_EXCEEDED


def test_what_a_session_knows_of_itself(pair) -> None:
    assert pair.client.tracks == pair.server.tracks
    assert pair.client.session_id == pair.server.session_id
    assert pair.client.grant == pair.server.grant
    assert pair.client.plan.bitrate_bps == 40_000
    assert pair.client.peer.lookahead_ms == 150


def test_a_session_before_its_answer_knows_little(kit) -> None:
    pair = kit.Pair()
    assert pair.client.state is State.IDLE
    assert pair.client.session_id is pair.client.resume_token is pair.client.grant is None
    assert pair.client.tracks == ()
    assert not pair.client.receivers
    assert pair.client.next_event() is None
    assert pair.client.control_to_send() == b""


def test_a_call_of_minutes_on_a_bad_path_stays_sound(kit) -> None:
    pair = kit.Pair(
        SessionConfig(),
        SessionConfig(),
        to_server=kit.lossy(21, 0.05, jitter=0.06, repeat=0.02),
        to_client=kit.lossy(22, 0.05, jitter=0.06, repeat=0.02),
    ).open()
    player = kit.Player()
    pair.server.receivers[0].attach_playout(player)
    for _minute in range(4):
        pair.talk(20.0)
        pair.client.skip(400 * 40)
        pair.server.skip(400 * 40)
        pair.run(40.0)
    assert pair.client.is_open
    assert pair.server.is_open
    assert 3700 <= len(player.pts) == len(set(player.pts)) <= 4000
    assert 79_000 < max(player.pts) <= 4 * 8000 + 3 * 16000 - 8
    stats = pair.client.stats(pair.now)
    assert stats.loss_share == pytest.approx(0.05, abs=0.01)
    assert stats.rtt_ms == pytest.approx(100, abs=30)


@pytest.mark.parametrize(
    "disturb",
    [
        lambda session, now: session.receive_stream(3, b"\x21", False, now),
        lambda session, now: session.send_frame(FRAME, now),
        lambda session, now: session.send_event(b"hello", now, kind=EventKind.TEXT),
        lambda session, now: session.clear(now, outgoing=True),
        lambda session, now: session.close(now),
        lambda session, now: session.receive_datagram(encode_datagram(Datagram(number=9000, send_tick=0, frames=())), now),
    ],
    ids=["a stream to stop", "a frame", "an event", "a clear", "the end", "a keepalive"],
)
def test_nothing_but_audio_in_its_order_leaves_a_session_calm(pair, disturb) -> None:
    pair.talk(1.0, "client", "server")
    server, now = pair.server, pair.now
    timer = server.next_timer()
    assert timer is not None
    until = min(timer, now + 0.001)
    assert server.is_calm(until)
    disturb(server, now)
    assert not server.is_calm(until)
