"""Sessions that outlive their connection: breaks at any time, what flows again, and who may take a session up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.config import SessionConfig
from voicestream.core.lifecycle import State
from voicestream.core.playout import Gap, OrderedReader, Playout
from voicestream.core.resume import ResumeToken, TokenSealer
from voicestream.errors import ProtocolError, StateError
from voicestream.events import Cleared, Closed, EventReceived, Finished, PathLost, Resumed, ResumeReceived
from voicestream.session import ClientSession, ServerSession
from voicestream.wire.frame_values import AnchorFrame, AudioFrame, MissingFrame, RetransmissionFrame

from .conftest import KEY, Pair, entropy, frame

PLAIN = SessionConfig(grease=False)


class BreakingPair(Pair):
    """A call whose connection can be cut and replaced."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.fresh: ServerSession | None = None
        self.connected = True
        self.refused: list[ErrorCode] = []
        self.identity = b""

    def cut(self, *, both: bool = False) -> None:
        """From now on nothing arrives; the client notices at once, the server if `both`."""
        self._flying.clear()
        self.connected = False
        self.fresh = None
        assert self.client.path_lost(self.now)
        if both:
            assert self.server.path_lost(self.now)

    def dial(self, *, replay_ms: int = 0) -> None:
        """A new connection, on which the client asks for the session."""
        self.connected = True
        self._flying.clear()
        self.fresh = ServerSession(PLAIN, sealer=TokenSealer(KEY), entropy=entropy(99))
        self.fresh.start(self.now)
        self.client.resume_on_new_connection(self.now, replay_ms=replay_ms)

    def resume(self, *, replay_ms: int = 0) -> None:
        self.dial(replay_ms=replay_ms)
        self.run(6 * self.delay)
        assert self.client.state is State.OPEN

    def _fly(self, delay: float, to: str, kind: str, data: Any) -> None:
        # Until the server has been asked to take over, what it sends goes to the dead connection.
        if self.connected and not (to == "client" and self.fresh is not None):
            super()._fly(delay, to, kind, data)

    def drain(self) -> None:
        super().drain()
        if self.fresh is not None:
            answer = self.fresh.control_to_send()
            if answer:
                Pair._fly(self, self.control_delay, "client", "control", answer)

    def _deliver(self) -> None:
        if self.fresh is None:
            super()._deliver()
            return
        while self._flying and self._flying[0][0] <= self.now and self.fresh is not None:
            _, _, to, kind, data = self._flying.pop(0)
            if to == "client":
                self.client.receive_control(data, self.now)
                continue
            assert kind == "control"
            self.fresh.receive_control(data, self.now)
            for event in iter(self.fresh.next_event, None):
                if isinstance(event, ResumeReceived):
                    self._answer(event)

    def _answer(self, event: ResumeReceived) -> None:
        assert event.token == b"secret"
        assert event.path == "/agent"
        assert self.fresh is not None
        fresh = self.fresh
        try:
            self.server.take_over(fresh, self.now, identity=self.identity)
            self.fresh = None
        except ProtocolError as error:
            self.refused.append(error.code)
            fresh.reject(self.now, error.code, error.reason)


def read(pair: BreakingPair, name: str) -> tuple[OrderedReader, list[int], list[Gap], list[int]]:
    """An ordered reader on one side, and the pts, gaps and replayed pts that it will have given."""
    reader = OrderedReader(150, 3000)
    pair.side(name).receivers[0].attach_ordered(reader)
    return reader, [], [], []


def take(pair: BreakingPair, into: tuple[OrderedReader, list[int], list[Gap], list[int]]) -> None:
    reader, pts, gaps, again = into
    while (item := reader.next(pair.now)) is not None:
        if isinstance(item, Gap):
            gaps.append(item)
        elif item.replayed:
            again.append(item.pts)
        else:
            pts.append(item.pts)


def say(pair: BreakingPair, seconds: float, *readers: tuple[OrderedReader, list[int], list[Gap], list[int]]) -> None:
    for _ in range(round(seconds * 50)):
        for side in (pair.client, pair.server):
            side.send_frame(frame(), pair.now)
        pair.run(0.02)
        for reader in readers:
            take(pair, reader)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("seconds", [0.1, 1.0, 5.0])
def test_everything_said_in_a_break_is_read_after_it_once_and_in_order(seconds: float, both: bool) -> None:
    # VS-11.3-11
    pair = BreakingPair()
    pair.open()
    readers = [read(pair, name) for name in ("client", "server")]
    say(pair, 1.0, *readers)
    session_id = pair.client.session_id
    pair.cut(both=both)
    say(pair, seconds, *readers)
    pair.resume()
    say(pair, seconds + 3, *readers)
    pair.run(1.0)
    for one in readers:
        take(pair, one)
        _, pts, gaps, again = one
        assert pts == list(range(0, len(pts) * 8, 8))
        assert len(pts) == round((1.0 + seconds + seconds + 3) * 50)
        assert gaps == again == []
    assert pair.client.session_id == session_id == pair.server.session_id
    assert pair.of("client", PathLost) == [PathLost()]
    assert pair.of("client", Resumed) == [Resumed(generation=1)]
    assert pair.server.state is State.OPEN


def test_the_past_takes_no_more_than_its_pace_and_the_present_goes_on() -> None:
    # VS-11.3-10
    pair = BreakingPair()
    pair.open()
    reader = read(pair, "server")
    say(pair, 1.0, reader)
    pair.cut()
    say(pair, 8.0, reader)
    pair.resume()
    start, before = pair.now, len(pair.sent["client"])
    say(pair, 1.0, reader)
    sent = [one for datagram in pair.sent["client"][before:] for one in datagram.frames]
    again = sum(isinstance(one, RetransmissionFrame) for one in sent) * 0.02
    live = sum(isinstance(one, AudioFrame) for one in sent) * 0.02
    assert 0.9 <= live <= 1.1
    assert 2.0 <= again <= 4.5, f"{again} s of media in {pair.now - start} s"


def test_what_lies_far_back_goes_with_an_anchor_of_the_present_until_that_has_arrived() -> None:
    # VS-11.3-12
    pair = BreakingPair()
    pair.open()
    reader = read(pair, "server")
    pair.client.skip(100_000)  # beyond what sixteen bits name
    say(pair, 1.0, reader)
    pair.cut()
    say(pair, 3.0, reader)
    pair.resume()
    before = len(pair.sent["client"])
    say(pair, 1.0, reader)
    again = [one.frames for one in pair.sent["client"][before - 3 :] if any(isinstance(frame, RetransmissionFrame) for frame in one.frames)]
    anchored = [frames for frames in again if any(isinstance(frame, AnchorFrame) for frame in frames)]
    assert 0 < len(anchored) < len(again)
    assert again[: len(anchored)] == anchored
    assert all(frame.pts > 100_000 for frames in anchored for frame in frames if isinstance(frame, AnchorFrame))


@pytest.mark.interpreted(reason="a method of one object is replaced")
def test_a_live_playout_takes_nothing_old_and_goes_on_with_the_present() -> None:
    # VS-11.3-11
    pair = BreakingPair()
    pair.open()
    playout = Playout(PLAIN.playout)
    pair.server.receivers[0].attach_playout(playout)
    inserted: list[int] = []
    original = playout.insert
    playout.insert = lambda one, now, **kw: (inserted.append(one.pts), original(one, now, **kw))[1]  # type: ignore[method-assign,func-returns-value]
    say(pair, 1.0)
    pair.cut()
    say(pair, 4.0)
    pair.resume()
    say(pair, 1.0)
    missed = [pts for pts in range(400, 2000, 8) if pts not in inserted]
    assert len(missed) >= 185, "more than the lookahead of the break was inserted"
    assert [pts for pts in range(2016, 2300, 8) if pts not in inserted] == []
    assert len(inserted) == len(set(inserted))


# VS-11.3-9
def test_the_answer_may_get_lost_and_the_same_token_is_good_again_with_the_same_next_one() -> None:
    # VS-11.3-5
    pair = BreakingPair()
    pair.open()
    say(pair, 0.5)
    first = pair.client.resume_token
    pair.cut()
    pair.dial()
    pair.run(pair.delay * 1.5)
    assert pair.server.state is State.CONFIRMING
    next_token = pair.server.resume_token
    pair.cut()
    assert pair.client.resume_token == first
    pair.resume()
    assert pair.client.resume_token == pair.server.resume_token == next_token
    assert pair.client.grant is not None
    assert pair.client.grant.generation == 1
    pair.run(1.0)
    assert pair.server.state is State.OPEN


def test_a_session_is_resumed_again_and_again() -> None:
    pair = BreakingPair()
    pair.open()
    reader = read(pair, "server")
    for generation in range(1, 6):
        say(pair, 0.3, reader)
        pair.cut(both=generation % 2 == 0)
        say(pair, 0.7, reader)
        pair.resume()
        assert pair.of("client", Resumed)[-1].generation == generation
    say(pair, 3.0, reader)
    assert reader[1] == list(range(0, len(reader[1]) * 8, 8))
    assert reader[2] == []


def tampered(pair: BreakingPair, **changes: Any) -> None:
    grant = pair.client.grant
    assert grant is not None
    pair.client._grant = replace(grant, **changes)


def token(generation: int, session_id: bytes, key: bytes = KEY, identity: bytes = b"") -> bytes:
    what = ResumeToken(session_id=session_id, generation=generation, identity=identity, expires_at=1 << 40)
    return TokenSealer(key).seal(what, entropy(5))


@pytest.mark.parametrize("how", ["forged", "other key", "other session", "other generation", "other identity"])
def test_a_token_that_is_not_the_sessions_own_opens_nothing(how: str) -> None:
    # VS-11.3-4
    pair = BreakingPair()
    pair.open()
    session_id = pair.client.session_id
    assert session_id is not None
    pair.cut()
    tokens = {
        "forged": bytes(80),
        "other key": token(0, session_id, bytes(32)),
        "other session": token(0, bytes(16)),
        "other generation": token(3, session_id),
        "other identity": token(0, session_id, identity=b"bert"),
    }
    tampered(pair, resume_token=tokens[how], generation=3 if how == "other generation" else 0)
    pair.dial()
    pair.run(0.2)
    assert pair.refused == [ErrorCode.TOKEN_INVALID]
    assert pair.closed("client").code == ErrorCode.TOKEN_INVALID
    assert pair.server.state is State.OPEN, "the attempt does the session no harm"


def test_an_older_token_is_used_up_once_the_newer_one_was_confirmed() -> None:
    pair = BreakingPair()
    pair.open()
    old = pair.client.resume_token
    pair.cut()
    pair.resume()
    pair.run(0.2)
    pair.cut()
    tampered(pair, resume_token=old, generation=0)
    pair.dial()
    pair.run(0.2)
    assert pair.refused == [ErrorCode.TOKEN_USED]


def test_another_identity_is_refused_with_a_good_token() -> None:
    pair = BreakingPair()
    pair.open()
    pair.identity = b"somebody else"
    pair.cut()
    pair.dial()
    pair.run(0.2)
    assert pair.refused == [ErrorCode.TOKEN_INVALID]


def test_a_confirmation_of_another_generation_ends_the_session() -> None:
    # VS-11.3-7
    pair = BreakingPair()
    pair.open()
    pair.cut()
    pair.dial()
    pair.run(pair.delay * 1.5)
    pair.server.receive_control(bytes([6, 1, 5]), pair.now)
    assert pair.closed("server").code == ErrorCode.TOKEN_INVALID


def test_ordered_events_arrive_once_and_in_order_across_breaks_and_unordered_ones_once() -> None:  # VS-7.3-1 VS-7.3-2 VS-7.1-1
    pair = BreakingPair()
    pair.open()
    sent = 0
    for _ in range(3):
        for _ in range(20):
            for side in (pair.client, pair.server):
                side.send_event(b"%d" % sent, pair.now, kind=1, ordered=True)
                side.send_event(b"%d" % sent, pair.now, kind=1, ordered=False)
            sent += 1
            pair.run(0.01)
        pair.cut()
        pair.client.send_event(b"%d" % sent, pair.now, kind=1, ordered=True)
        pair.server.send_event(b"%d" % sent, pair.now, kind=1, ordered=True)
        sent += 1
        pair.run(0.5)
        pair.resume()
    pair.run(3.0)
    for name in ("client", "server"):
        events = pair.of(name, EventReceived)
        assert [int(one.payload) for one in events if one.order] == list(range(sent))
        unordered = [int(one.payload) for one in events if not one.order]
        assert len(unordered) == len(set(unordered)) == 60


def test_events_that_overtake_the_answer_to_a_resume_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = BreakingPair()
    pair.open()
    pair.cut()
    for number in range(3):
        pair.server.send_event(b"%d" % number, pair.now, kind=1, ordered=number != 1)
    pair.dial()
    held: list[bytes] = []
    monkeypatch.setattr(ClientSession, "receive_control", lambda _self, data, _now, _fin=False: held.append(data))
    pair.run(0.1)
    assert pair.client.state is State.RESUMING
    assert pair.of("client", EventReceived) == []
    monkeypatch.undo()
    for data in held:
        pair.client.receive_control(data, pair.now)
    pair.run(0.1)
    assert sorted(one.payload for one in pair.of("client", EventReceived)) == [b"0", b"1", b"2"]


def test_an_event_that_is_kept_no_more_ends_the_session_instead_of_stalling_it() -> None:
    pair = BreakingPair()
    pair.open()
    pair.run(0.1)
    pair.connected = False
    for number in range(1200):
        pair.server.send_event(b"%d" % number, pair.now, kind=1)
        pair.run(0.005)
    pair.cut()
    pair.dial()
    pair.run(0.3)
    assert pair.closed("client").code == ErrorCode.SESSION_UNKNOWN


def test_a_clear_and_a_finish_said_in_a_break_hold_after_it() -> None:
    # VS-8.6-4
    pair = BreakingPair()
    pair.open()
    reader = read(pair, "server")
    say(pair, 0.5, reader)
    pair.cut()
    pair.client.send_frame(frame(), pair.now)
    number = pair.client.clear(pair.now, outgoing=True)
    first = pair.client.send_frame(frame(7), pair.now)
    pair.client.finish(pair.now)
    pair.resume()
    for _ in range(100):
        pair.run(0.02)
        take(pair, reader)
        pair.server.report_played(reader[0].next_pts, pair.now)
    assert reader[1][-1] == first
    assert reader[0].finished
    assert [one.number for one in pair.of("client", Cleared)] == [number]
    assert len(pair.of("client", Finished)) == 1
    assert not pair.of("server", Closed)
    pair.cut()
    pair.resume()
    pair.run(1.0)
    assert len(pair.of("client", Finished)) == 1
    assert not pair.of("server", Closed)


@pytest.mark.parametrize("outgoing", [True, False])
def test_media_that_a_clear_has_voided_is_neither_asked_for_nor_sent_after_a_break_nor_waited_for(outgoing: bool) -> None:
    # VS-8.1-2, VS-11.3-11
    pair = BreakingPair()
    pair.open()
    reader = read(pair, "server")
    say(pair, 0.5, reader)
    pair.cut()
    say(pair, 1.0, reader)
    before = len(pair.sent["client"])
    if outgoing:
        pair.client.clear(pair.now, outgoing=True)
    else:
        pair.server.clear(pair.now, outgoing=False)
    said_before = pair.client.send_frame(frame(), pair.now)
    pair.resume()
    pair.run(0.1)
    first = pair.client.send_frame(frame(7), pair.now)
    say(pair, 0.6, reader)
    void_to = pair.server.receivers[0].clears.to_pts
    assert void_to > 400, "the clear has arrived"
    assert reader[2] == []
    assert next(pts for pts in reader[1] if pts >= 200) == (said_before if outgoing else first)
    assert reader[1][-1] > first + 160, "nothing was held back"
    asked = [one for datagram in pair.sent["server"] for one in datagram.frames if isinstance(one, MissingFrame)]
    assert asked == []
    again = [one.pts for datagram in pair.sent["client"][before:] for one in datagram.frames if isinstance(one, RetransmissionFrame)]
    if outgoing:
        assert [pts for pts in again if pts < void_to] == []


def test_where_a_requested_clear_ends_is_said_again_after_a_break_that_has_swallowed_the_answer() -> None:
    # VS-8.1-4, VS-11.3-13
    pair = BreakingPair()
    pair.open()
    reader = read(pair, "server")
    say(pair, 0.5, reader)
    pair.fates["server"] = lambda count, datagram: []  # the client's packets are lost
    for _ in range(20):
        pair.client.send_frame(frame(), pair.now)
        pair.run(0.02)
    pair.server.clear(pair.now, outgoing=False)
    pair.server.report_played(pair.server.receivers[0].media.end_pts, pair.now)
    pair.control_delay = 9.0
    pair.run(0.2)
    pair.control_delay = pair.delay
    pair.cut()
    pair.fates["server"] = None
    pair.resume()
    say(pair, 0.5, reader)
    assert pair.server.receivers[0].clears.to_pts == pair.client._tracks.senders[0].clears.to_pts
    assert reader[2] == []


def test_what_is_held_reaches_to_the_end_of_a_clear() -> None:
    pair = BreakingPair()
    pair.open()
    say(pair, 0.5)
    pair.client.skip(80)
    pair.client.clear(pair.now, outgoing=True)
    pair.run(0.1)
    receiver = pair.server.receivers[0]
    assert receiver.clears.to_pts == 280
    assert receiver.held(pair.now).next_pts == 280


def test_settings_changed_in_a_break_are_said_again_at_the_resume() -> None:
    # VS-11.3-13
    pair = BreakingPair()
    pair.open()
    pair.server.update_settings(pair.now, max_rate_bps=50_000)
    pair._flying.clear()  # said, but lost with the connection
    pair.cut()
    pair.client.update_settings(pair.now, lookahead_ms=300)
    pair.client.update_settings(pair.now, max_rate_bps=24_000)
    pair.client.update_settings(pair.now, max_rate_bps=32_000)
    pair.resume()
    pair.run(0.1)
    assert (pair.server.peer.lookahead_ms, pair.server.peer.max_rate_bps) == (300, 32_000)
    assert pair.client.peer.max_rate_bps == 50_000
    assert pair.client.is_open
    assert pair.server.is_open


def test_what_is_kept_no_more_is_not_waited_for_long_after_a_resume() -> None:
    pair = BreakingPair()
    pair.open()
    reader = read(pair, "server")
    say(pair, 1.0, reader)
    pair.cut()
    say(pair, 40.0, reader)
    pair.resume()
    read_before = len(reader[1])
    say(pair, 2.4, reader)
    assert len(reader[2]) == 1, "the oldest five seconds are gone"
    assert len(reader[1]) > read_before + 10


def test_a_finish_whose_confirmation_got_lost_is_said_again_and_confirmed_again() -> None:
    pair = BreakingPair()
    pair.open()
    reader = read(pair, "server")
    say(pair, 0.2, reader)
    pair.client.finish(pair.now)
    pair.run(0.1)
    take(pair, reader)
    pair._flying.clear()
    pair.connected = False
    pair.server.report_played(reader[0].next_pts, pair.now)
    pair.run(0.1)
    pair.cut()
    pair.resume()
    pair.run(0.3)
    assert len(pair.of("client", Finished)) == 1


def test_the_last_seconds_before_the_break_come_again_marked_as_replayed() -> None:
    pair = BreakingPair()
    pair.open()
    reader = read(pair, "client")
    say(pair, 4.0, reader)
    pair.cut()
    had = len(reader[1])
    say(pair, 1.0, reader)
    pair.resume(replay_ms=2000)
    say(pair, 3.0, reader)
    _, pts, gaps, again = reader
    assert again == list(range(8 * had - 800, 8 * had, 8))
    assert pts == list(range(0, 8 * len(pts), 8))
    assert gaps == []


def test_verbs_work_without_a_connection_and_the_lifetime_ends_the_session() -> None:
    config = replace(PLAIN, session_lifetime_s=30.0)
    pair = BreakingPair(client=config, server=config)
    pair.open()
    with pytest.raises(StateError):
        pair.client.resume_on_new_connection(pair.now)
    pair.cut(both=True)
    assert pair.client.is_detached
    assert not pair.client.is_open
    pair.client.send_frame(frame(), pair.now)
    pair.client.send_event(b"{}", pair.now)
    pair.run(29.9)
    assert not pair.client.is_closed
    pair.run(0.2)
    for name in ("client", "server"):
        assert pair.closed(name).code == ErrorCode.PATH_LOST


def test_a_session_that_is_not_open_cannot_be_kept() -> None:
    pair = BreakingPair()
    assert not pair.client.path_lost(pair.now)
    pair.ask()
    assert not pair.client.path_lost(pair.now)
    assert not pair.server.path_lost(pair.now)


def test_what_is_lost_of_the_past_is_sent_once_more() -> None:
    pair = BreakingPair(to_server=lambda count, data: [] if count % 7 == 3 else [0.02])
    pair.open()
    reader = read(pair, "server")
    say(pair, 1.0, reader)
    pair.cut()
    say(pair, 3.0, reader)
    pair.resume()
    say(pair, 4.0, reader)
    pair.run(1.0)
    take(pair, reader)
    of_the_break = [pts for pts in reader[1] if 416 <= pts < 1600]
    assert of_the_break == list(range(416, 1600, 8))


class Weather:
    """A path that is dead each way while one says so."""

    def __init__(self) -> None:
        self.dead: set[str] = set()

    def fate(self, to: str) -> Any:
        return lambda count, data: [] if to in self.dead else [0.02]

    def pair(self) -> BreakingPair:
        pair = BreakingPair(to_server=self.fate("server"), to_client=self.fate("client"))
        pair.open()
        return pair


def talking(seconds: float) -> tuple[Weather, BreakingPair, Any]:
    """The client has talked for so long, and the server reads it in order."""
    weather = Weather()
    pair = weather.pair()
    reader = read(pair, "server")
    say(pair, seconds, reader)
    return weather, pair, reader


@pytest.mark.parametrize("silent_s", [0.0, 0.3, 1.0])
def test_a_frame_lost_just_before_a_break_comes_after_it(silent_s: float) -> None:
    # The end of the talkspurt has come, so that nothing more is to be expected of a path that lives either.
    weather, pair, reader = talking(0.5)
    weather.dead.add("server")
    say(pair, 0.02, reader)
    weather.dead.clear()
    pair.client.send_frame(frame(), pair.now, talkspurt_end=True)
    pair.run(0.021)
    weather.dead |= {"server", "client"}
    pair.run(silent_s)
    take(pair, reader)
    pair.cut(both=True)
    pair.run(3.0)
    take(pair, reader)
    weather.dead.clear()
    pair.resume()
    pair.run(1.0)
    take(pair, reader)
    assert reader[1] == list(range(0, 27 * 8, 8))
    assert reader[2] == []


def test_a_frame_lost_just_before_a_break_comes_after_it_on_a_connection_that_outlives_it_and_the_end_is_told_soon() -> None:
    weather, pair, reader = talking(0.5)
    weather.dead.add("server")
    say(pair, 0.02, reader)
    weather.dead.clear()
    say(pair, 0.02, reader)
    weather.dead |= {"server", "client"}
    say(pair, 1.5, reader)
    weather.dead.clear()
    say(pair, 0.5, reader)
    pair.client.finish(pair.now)
    for _ in range(50):
        pair.run(0.02)
        take(pair, reader)
        pair.server.report_played(reader[0].next_pts, pair.now)
    pair.run(0.1)
    assert reader[2] == []
    assert reader[1] == list(range(0, 127 * 8, 8))
    assert len(pair.of("client", Finished)) == 1


def test_what_is_lost_of_the_past_together_with_the_report_of_that_is_sent_once_more() -> None:
    weather, pair, reader = talking(1.0)
    pair.cut()
    say(pair, 6.0, reader)
    pair.resume()
    say(pair, 0.4, reader)
    for dead in ({"server"}, {"client"}):
        weather.dead |= dead
        say(pair, 0.1 if dead == {"server"} else 0.36, reader)
        weather.dead.clear()
    say(pair, 6.0, reader)
    of_the_break = [pts for pts in reader[1] if pts < 2800]
    assert of_the_break == list(range(0, 2800, 8))


@pytest.mark.parametrize("seconds", [0.3, 0.7, 3.0])
def test_what_is_lost_while_only_the_questions_are_swallowed_comes_when_they_pass_again(seconds: float) -> None:
    # The path is dead towards the client: what it says arrives, but for one frame that nobody can ask for.
    weather, pair, reader = talking(0.5)
    weather.dead.add("client")
    say(pair, 0.04, reader)
    weather.dead.add("server")
    say(pair, 0.02, reader)
    weather.dead.remove("server")
    say(pair, seconds, reader)
    weather.dead.clear()
    say(pair, 1.0, reader)
    pair.run(0.5)
    take(pair, reader)
    assert reader[2] == []
    assert reader[1] == list(range(0, 8 * (28 + round((seconds + 1.0) * 50)), 8))


def test_a_reader_is_not_held_up_by_losses_that_the_far_end_does_not_mend() -> None:
    # It has no redundancy, and reports come all the time: that is no break.
    config = replace(PLAIN, rate=replace(PLAIN.rate, redundancy_share=0.0))
    pair = BreakingPair(client=config, server=config, delay=0.06, to_server=lambda count, data: [] if count % 50 == 20 else [0.06])
    pair.open()
    reader = read(pair, "server")
    say(pair, 4.0, reader)
    assert len(reader[2]) >= 2
    assert reader[0].next_pts > 1600 - 160
