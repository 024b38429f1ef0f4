"""The called side: HELLO and RESUME, accept and reject."""

from __future__ import annotations

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.config import Limits, SessionConfig, Track
from voicestream.core.lifecycle import State
from voicestream.core.resume import ResumeToken, TokenSealer
from voicestream.errors import StateError
from voicestream.events import Closed, HelloReceived, ResumeReceived
from voicestream.session import ServerSession
from voicestream.wire import (
    Accept,
    AudioFrame,
    Clear,
    Close,
    Confirm,
    Finish,
    Hello,
    Parameters,
    Reject,
    Resume,
    Settings,
    UnknownMessage,
)


def hello(version: int = 1, **changes: object) -> Hello:
    values: dict[str, object] = {"authority": "h", "path": "/x", "token": b"t", "metadata": b"m", "tracks": (Track(),)}
    return Hello(version=version, parameters=Parameters(**(values | changes)))


def resume(version: int = 1) -> Resume:
    return Resume(version=version, parameters=Parameters(session_id=bytes(16), resume_token=b"t", generation=0))


@pytest.fixture
def hand(kit):
    """A client played by hand, before whom a server waits."""
    return make(kit)


def make(kit, config: SessionConfig | None = None):
    server = ServerSession(config or SessionConfig(grease=False), sealer=TokenSealer(kit.KEY), entropy=kit.entropy(2))
    hand = kit.Hand(server)
    server.start(hand.now)
    return hand


def test_hello_is_put_before_the_application(hand) -> None:
    hand.say(hello())
    assert hand.of(HelloReceived) == [HelloReceived(authority="h", path="/x", token=b"t", metadata=b"m")]
    assert hand.session.state is State.DECIDING


def test_accept_gives_a_session_and_a_token_that_only_the_server_can_read(hand, kit) -> None:
    hand.say(hello())
    hand.session.accept(hand.now, metadata=b"welcome", identity=b"alice", expires_at=999)
    hand.look()
    (accept,) = hand.received
    assert isinstance(accept, Accept)
    given = accept.parameters
    assert given.session_id == hand.session.session_id
    assert given.session_id is not None
    assert len(given.session_id) == 16
    assert given.generation == 0
    assert given.lifetime_ms == 300_000
    assert given.metadata == b"welcome"
    assert given.tracks == (Track(),)
    assert given.resume_token is not None
    assert TokenSealer(kit.KEY).open(given.resume_token) == ResumeToken(
        session_id=given.session_id, generation=0, identity=b"alice", expires_at=999
    )
    assert hand.session.is_open


def test_without_a_shared_clock_a_token_expires_by_that_of_the_session(hand, kit) -> None:
    hand.say(hello())
    hand.session.accept(hand.now)
    assert hand.session.resume_token is not None
    assert TokenSealer(kit.KEY).open(hand.session.resume_token).expires_at == hand.now + 300


def test_the_tracks_of_the_answer_are_seen_from_the_server(kit) -> None:
    hand = make(kit, SessionConfig(grease=False, tracks=(Track(), Track(track_id=1, send=False))))
    hand.say(hello(tracks=(Track(send=False), Track(track_id=1), Track(track_id=3))))
    hand.session.accept(hand.now)
    hand.look()
    assert hand.received[0].parameters.tracks == (Track(receive=False), Track(track_id=1, send=False))
    assert list(hand.session.receivers) == [1]


def test_reject_tells_why_and_where_else(hand) -> None:
    hand.say(hello())
    hand.session.reject(hand.now, ErrorCode.REDIRECT, "moved", uri="voicestream://b/", route_token=b"12345678", retry_after=0.25)
    closed = hand.closed()
    assert closed == Closed(code=ErrorCode.REDIRECT, reason="moved", remote=False, may_resume=False)
    expected = Parameters(reason="moved", uri="voicestream://b/", route_token=b"12345678", retry_after_ms=250)
    assert hand.received == [Reject(code=ErrorCode.REDIRECT, parameters=expected)]


@pytest.mark.parametrize("message", [hello(version=2), resume(version=77)])
def test_another_version_is_rejected_without_a_look_at_the_rest(hand, message) -> None:
    hand.say(message)
    assert [type(one) for one in hand.received] == [Reject]
    assert hand.received[0].code == ErrorCode.VERSION_UNSUPPORTED  # VS-3.1-2
    assert hand.closed().code == ErrorCode.VERSION_UNSUPPORTED
    assert hand.of(HelloReceived) == []


def test_a_session_to_resume_is_the_owners_business(hand) -> None:
    hand.say(resume())
    assert hand.received == []
    assert [one.session_id for one in hand.of(ResumeReceived)] == [bytes(16)]
    hand.session.reject(hand.now, ErrorCode.SESSION_UNKNOWN)
    assert hand.closed().code == ErrorCode.SESSION_UNKNOWN


@pytest.mark.parametrize(
    "tracks",
    [
        (Track(codec=2, clock_rate_hz=8000),),
        (Track(clock_rate_hz=16000),),
        (Track(track_id=3),),
    ],
    ids=["codec", "clock rate", "none in common"],
)
def test_tracks_that_mean_something_else_are_rejected(hand, tracks: tuple[Track, ...]) -> None:
    hand.say(hello(tracks=tracks))
    assert [type(one) for one in hand.received] == [Reject]
    assert hand.closed().code == ErrorCode.TRACK_ERROR


@pytest.mark.parametrize(
    "message",
    [
        Settings(parameters=Parameters(lookahead_ms=100)),
        Clear(number=1, from_pts=0, to_pts=8),
        Finish(pts=8),
        Confirm(generation=0),
        Close(code=0),
        Accept(parameters=Parameters(session_id=bytes(16), resume_token=b"t", generation=0, lifetime_ms=1, tracks=(Track(),))),
        Reject(code=1),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_first_message_other_than_hello_is_unexpected(hand, message) -> None:  # VS-5.1-1
    hand.say(message)
    assert hand.closed().code == ErrorCode.UNEXPECTED_MESSAGE


@pytest.mark.parametrize("accepted", [False, True])
def test_a_second_hello_is_unexpected(hand, accepted: bool) -> None:
    hand.say(hello())
    if accepted:
        hand.session.accept(hand.now)
    hand.say(hello())
    assert hand.closed().code == ErrorCode.UNEXPECTED_MESSAGE


def test_a_client_may_hang_up_while_the_server_decides(hand) -> None:
    hand.say(hello(), Close(code=0, reason="never mind"))
    assert hand.closed() == Closed(code=0, reason="never mind", remote=True, may_resume=False)
    with pytest.raises(StateError):
        hand.session.accept(hand.now)


@pytest.mark.parametrize("asked", [False, True])
def test_a_datagram_before_accept_is_an_error(hand, kit, asked: bool) -> None:
    if asked:
        hand.say(hello())
    hand.show(AudioFrame(pts=0, payload=kit.frame()))
    assert hand.closed().code == ErrorCode.AUDIO_BEFORE_ACCEPT  # VS-5.5-3


def test_a_client_that_never_asks_is_given_up(hand) -> None:  # VS-11.1-1
    hand.session.handle_timer(hand.now + Limits().handshake_timeout)
    assert hand.closed().code == ErrorCode.HANDSHAKE_TIMEOUT


def test_an_application_that_never_answers_is_given_up(hand) -> None:  # VS-11.1-1
    hand.say(hello())
    hand.session.handle_timer(hand.now + Limits().handshake_timeout)
    assert hand.closed().code == ErrorCode.HANDSHAKE_TIMEOUT
    assert hand.received[-1].code == ErrorCode.HANDSHAKE_TIMEOUT


def test_there_is_nothing_to_accept_or_reject_before_hello_or_after_the_answer(hand) -> None:
    for answer in (lambda: hand.session.accept(hand.now), lambda: hand.session.reject(hand.now, ErrorCode.BUSY)):
        with pytest.raises(StateError):
            answer()
    hand.say(hello())
    hand.session.accept(hand.now)
    for answer in (lambda: hand.session.accept(hand.now), lambda: hand.session.reject(hand.now, ErrorCode.BUSY)):
        with pytest.raises(StateError):
            answer()
    assert hand.session.is_open


@pytest.mark.parametrize("options", [{"metadata": bytes(4097)}, {"identity": bytes(257)}, {"expires_at": -1}])
def test_an_answer_that_does_not_fit_is_refused_and_can_be_given_again(hand, options: dict[str, object]) -> None:
    hand.say(hello())
    with pytest.raises(ValueError, match=r"."):
        hand.session.accept(hand.now, **options)
    hand.session.accept(hand.now)
    assert hand.session.is_open


def test_a_rejection_that_does_not_fit_is_refused_and_can_be_given_again(hand) -> None:
    hand.say(hello())
    with pytest.raises(ValueError, match="route_token"):
        hand.session.reject(hand.now, ErrorCode.REDIRECT, route_token=b"short")
    hand.session.reject(hand.now, ErrorCode.REDIRECT)
    assert hand.closed().code == ErrorCode.REDIRECT


def test_a_server_starts_once(hand) -> None:
    with pytest.raises(StateError):
        hand.session.start(hand.now)


def test_what_comes_before_start_is_ignored(kit) -> None:
    server = ServerSession(SessionConfig(), sealer=TokenSealer(kit.KEY), entropy=kit.entropy(2))
    hand = kit.Hand(server)
    hand.say(hello())
    hand.show(AudioFrame(pts=0, payload=kit.frame()))
    assert hand.events == []
    assert server.next_timer() is None
    server.handle_timer(1e9)
    assert server.state is State.IDLE


def test_two_sessions_have_two_ids(kit) -> None:  # VS-11.3-1
    ids = set()
    for seed in range(20):
        server = ServerSession(SessionConfig(grease=False), sealer=TokenSealer(kit.KEY), entropy=kit.entropy(seed))
        hand = kit.Hand(server)
        server.start(hand.now)
        hand.say(hello())
        server.accept(hand.now)
        ids.add(server.session_id)
    assert len(ids) == 20


def test_the_answer_is_greased_when_asked_for(kit) -> None:
    hand = make(kit, SessionConfig(grease=True))
    hand.say(hello())
    hand.session.accept(hand.now)
    hand.look()
    accept, grease = hand.received
    assert len(accept.parameters.unknown) == 1
    assert isinstance(grease, UnknownMessage)


def test_reserved_messages_and_parameters_of_the_client_are_skipped(hand) -> None:
    hand.say(UnknownMessage(type=0x3D, payload=b"xyz"), hello(unknown=((0x5C, b"?"),)), UnknownMessage(type=0x7B, payload=b""))
    assert len(hand.of(HelloReceived)) == 1
    assert hand.session.stats(hand.now).messages_unknown == 2
