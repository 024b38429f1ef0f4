"""The calling side: HELLO, what the server may answer, and what overtakes the answer."""

from __future__ import annotations

import pytest

from voicestream.codepoints import VERSION, ErrorCode, is_grease
from voicestream.config import Limits, SessionConfig, Track
from voicestream.core.lifecycle import State
from voicestream.errors import StateError
from voicestream.events import Accepted, Closed, EventReceived, Rejected
from voicestream.session import ClientSession
from voicestream.wire import (
    Accept,
    AudioFrame,
    Clear,
    Close,
    Confirm,
    Hello,
    Parameters,
    Progress,
    Reject,
    Resumed,
    UnknownMessage,
    encode_event_header,
)
from voicestream.wire.event_stream import EventHeader

PLAIN = SessionConfig(grease=False)


def answer(version: int = VERSION, **changes: object) -> Accept:
    values: dict[str, object] = {
        "session_id": bytes(range(16)),
        "resume_token": b"token",
        "generation": 0,
        "lifetime_ms": 300_000,
        "tracks": (Track(),),
    }
    return Accept(version=version, parameters=Parameters(**(values | changes)))


@pytest.fixture
def hand(kit):
    """A server played by hand, before whom a client has called."""
    client = ClientSession(PLAIN, authority="example.org:4433", path="/agent", token=b"secret", entropy=kit.entropy(3))
    hand = kit.Hand(client)
    client.start(hand.now)
    hand.look()
    return hand


def test_hello_tells_who_calls_what_and_how(kit) -> None:
    config = SessionConfig(grease=False, metadata=b"meta", tracks=(Track(), Track(track_id=2, codec=3, clock_rate_hz=8000)))
    client = ClientSession(config, authority="example.org", path="/agent", token=b"secret", entropy=kit.entropy(1))
    hand = kit.Hand(client)
    client.start(hand.now)
    hand.look()
    (hello,) = hand.received
    assert isinstance(hello, Hello)
    assert hello.version == VERSION
    assert hello.parameters == Parameters(
        authority="example.org",
        path="/agent",
        token=b"secret",
        metadata=b"meta",
        tracks=config.tracks,
        max_datagram_size=1160,
        max_event_size=1 << 20,
        lookahead_ms=150,
        retain_ms=30_000,
    )


def test_an_accepted_client_is_open_and_knows_what_it_was_given(hand) -> None:
    hand.say(answer(metadata=b"welcome", max_event_size=5000, lookahead_ms=80, max_datagram_size=600))
    assert hand.of(Accepted) == [Accepted(session_id=bytes(range(16)), metadata=b"welcome")]
    session = hand.session
    assert session.is_open
    assert session.session_id == bytes(range(16))
    assert session.resume_token == b"token"
    assert session.grant is not None
    assert session.grant.lifetime == 300.0
    assert session.peer.max_event_size == 5000
    assert session.peer.lookahead_ms == 80
    assert session.peer.max_datagram_size == 600
    assert session.tracks == (Track(),)
    assert list(session.receivers) == [0]


def test_limits_that_the_server_does_not_name_have_defaults(hand) -> None:
    hand.say(answer())
    assert hand.session.peer.max_datagram_size == 1160
    assert hand.session.peer.max_event_size == 1 << 20
    assert hand.session.peer.lookahead_ms == 150


def test_a_server_that_takes_larger_datagrams_gets_none(hand) -> None:
    hand.say(answer(max_datagram_size=65536))
    assert hand.session.peer.max_datagram_size == 1160  # VS-3.2-2


def test_a_rejected_client_learns_why_and_where_else(hand) -> None:
    parameters = Parameters(reason="full", uri="voicestream://b/", route_token=b"12345678", retry_after_ms=1500)
    hand.say(Reject(code=ErrorCode.BUSY, parameters=parameters))
    assert hand.of(Rejected) == [
        Rejected(code=ErrorCode.BUSY, reason="full", uri="voicestream://b/", route_token=b"12345678", retry_after=1.5)
    ]
    assert hand.closed() == Closed(code=ErrorCode.BUSY, reason="full", remote=True, may_resume=False)
    assert not any(isinstance(message, Close) for message in hand.received)  # VS-13.2-1


def test_a_code_that_this_version_does_not_know_is_handed_on(hand) -> None:
    hand.say(Reject(code=0x3D00))
    assert hand.closed().code == 0x3D00  # VS-13.1-2


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (answer(version=2), ErrorCode.VERSION_UNSUPPORTED),
        (Resumed(parameters=Parameters(resume_token=b"t", generation=1)), ErrorCode.UNEXPECTED_MESSAGE),
        (Hello(parameters=Parameters(authority="a", path="/", tracks=(Track(),))), ErrorCode.UNEXPECTED_MESSAGE),
        (Progress(played_pts=1), ErrorCode.UNEXPECTED_MESSAGE),
        (Clear(number=1, from_pts=0, to_pts=1), ErrorCode.UNEXPECTED_MESSAGE),
        (Confirm(generation=0), ErrorCode.UNEXPECTED_MESSAGE),
        (answer(tracks=(Track(track_id=1),)), ErrorCode.TRACK_ERROR),
        (answer(tracks=(Track(clock_rate_hz=16000),)), ErrorCode.TRACK_ERROR),
        (answer(tracks=(Track(codec=2),)), ErrorCode.TRACK_ERROR),
    ],
)
def test_a_wrong_answer_ends_the_call_with_the_right_code(hand, message, code: ErrorCode) -> None:
    hand.say(message)
    closed = hand.closed()
    assert closed.code == code
    assert not closed.remote
    assert hand.received[-1] == Close(code=code, reason=closed.reason)


def test_a_second_accept_is_unexpected(hand) -> None:
    hand.say(answer())
    hand.say(answer())
    assert hand.closed().code == ErrorCode.UNEXPECTED_MESSAGE


def test_resumed_at_an_open_client_is_unexpected(hand) -> None:
    hand.say(answer())
    hand.say(Resumed(parameters=Parameters(resume_token=b"t", generation=1)))
    assert hand.closed().code == ErrorCode.UNEXPECTED_MESSAGE


def test_a_server_may_close_instead_of_answering(hand) -> None:
    hand.say(Close(code=ErrorCode.HANDLER_ERROR, reason="oops", may_resume=False))
    assert hand.closed() == Closed(code=ErrorCode.HANDLER_ERROR, reason="oops", remote=True, may_resume=False)


def test_a_server_that_does_not_answer_is_given_up(hand) -> None:  # VS-11.1-1
    session, timeout = hand.session, Limits().handshake_timeout
    assert session.next_timer() == hand.now + timeout
    session.handle_timer(hand.now + timeout - 0.01)
    assert not session.is_closed
    session.handle_timer(hand.now + timeout)
    assert hand.closed().code == ErrorCode.HANDSHAKE_TIMEOUT
    assert session.next_timer() is None


def test_an_accepted_client_has_no_handshake_to_wait_for(hand) -> None:
    hand.say(answer())
    hand.session.handle_timer(hand.now + 100)
    assert not hand.session.is_closed


def test_nothing_can_be_sent_before_accept(hand, kit) -> None:
    session = hand.session
    for verb in (
        lambda: session.send_frame(kit.frame(), hand.now),
        lambda: session.skip(8),
        lambda: session.send_event(b"{}", hand.now),
        lambda: session.clear(hand.now, outgoing=True),
        lambda: session.finish(hand.now),
        lambda: session.report_played(0, hand.now),
        lambda: session.going_away(hand.now),
        lambda: session.update_settings(hand.now, lookahead_ms=100),
        lambda: session.ahead_allowance(hand.now),
    ):
        with pytest.raises(StateError):
            verb()
    assert session.datagrams_to_send(hand.now) == []
    assert session.streams_to_send(hand.now) == []


def test_audio_that_overtakes_accept_is_kept(hand, kit) -> None:  # VS-5.5-4
    for serial in range(3):
        hand.show(AudioFrame(pts=8 * serial, payload=kit.frame(serial), talkspurt_start=serial == 0))
    hand.say(answer())
    player = kit.Player()
    hand.session.receivers[0].attach_playout(player)
    assert player.pts == [0, 8, 16]
    assert hand.session.stats(hand.now).datagrams_received == 3


def test_of_too_much_early_audio_the_oldest_goes(kit) -> None:
    config = SessionConfig(grease=False, limits=Limits(early_datagrams=4))
    client = ClientSession(config, authority="h", entropy=kit.entropy(1))
    hand = kit.Hand(client)
    client.start(hand.now)
    for serial in range(10):
        hand.show(AudioFrame(pts=8 * serial, payload=kit.frame(serial)))
    hand.say(answer())
    player = kit.Player()
    client.receivers[0].attach_playout(player)
    assert player.pts == [48, 56, 64, 72]
    assert client.stats(hand.now).early_datagrams_dropped == 6


def test_an_event_that_overtakes_accept_is_kept(hand) -> None:
    data = encode_event_header(EventHeader(kind=2, event_id=1, order=1)) + b"{}"
    hand.session.receive_stream(3, data[:4], False, hand.now)
    hand.session.receive_stream(3, data[4:], True, hand.now)
    assert hand.of(EventReceived) == []
    hand.say(answer())
    assert [type(event) for event in hand.events] == [Accepted, EventReceived]


def test_early_events_are_bounded(hand) -> None:
    for key in range(70):
        hand.session.receive_stream(key, bytes(1000), False, hand.now)
    assert hand.closed().code == ErrorCode.LIMIT_EXCEEDED


def test_bad_early_audio_ends_the_call_when_its_time_has_come(hand) -> None:
    hand.session.receive_datagram(b"\x00", hand.now)
    assert not hand.session.is_closed
    hand.say(answer())
    assert hand.closed().code == ErrorCode.FRAME_ENCODING_ERROR


def test_a_client_cannot_start_twice(hand) -> None:
    with pytest.raises(StateError):
        hand.session.start(hand.now)


@pytest.mark.parametrize("options", [{"authority": "a" * 256}, {"path": "agent"}, {"path": "/" + "a" * 2048}, {"token": bytes(2049)}])
def test_what_does_not_fit_hello_is_refused_at_once(kit, options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        ClientSession(PLAIN, **({"authority": "h"} | options), entropy=kit.entropy(1))


def test_a_client_may_be_closed_before_it_started_and_says_nothing(kit) -> None:
    client = ClientSession(PLAIN, authority="h", entropy=kit.entropy(1))
    hand = kit.Hand(client)
    client.close(hand.now, ErrorCode.NO_ERROR)
    assert hand.closed().code == ErrorCode.NO_ERROR
    assert hand.received == []


def test_a_client_that_hangs_up_while_calling_says_so(hand) -> None:
    hand.session.close(hand.now, ErrorCode.NO_ERROR, "changed my mind")
    hand.look()
    assert hand.received[-1] == Close(code=ErrorCode.NO_ERROR, reason="changed my mind")


def test_the_handshake_is_greased_when_asked_for(kit) -> None:
    client = ClientSession(SessionConfig(grease=True), authority="h", entropy=kit.entropy(1))
    hand = kit.Hand(client)
    client.start(hand.now)
    hand.look()
    hello, grease = hand.received
    assert isinstance(hello, Hello)
    assert all(is_grease(parameter) for parameter, _ in hello.parameters.unknown)
    assert len(hello.parameters.unknown) == 1
    assert isinstance(grease, UnknownMessage)
    assert is_grease(grease.type)
    assert client.state is State.CALLING
