"""The control stream: what breaks it, what bounds it."""

from __future__ import annotations

import pytest

from voicestream.codepoints import ErrorCode, MessageType
from voicestream.config import Limits, SessionConfig
from voicestream.events import Closed, GoingAway, RemoteFinished
from voicestream.wire import (
    Cleared,
    Close,
    Finish,
    MessageParser,
    Parameters,
    Progress,
    Settings,
    UnknownMessage,
    encode_message,
    encode_varint,
)
from voicestream.wire import messages as wire


def raw(message_type: int, payload: bytes, size: int | None = None) -> bytes:
    return encode_varint(message_type) + encode_varint(len(payload) if size is None else size) + payload


def fate(pair, data: bytes, fin: bool = False) -> Closed:
    """What becomes of an open server that gets these bytes on the control stream."""
    pair.server.receive_control(data, pair.now, fin)
    return pair.closed("server")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (raw(MessageType.FINISH, b"\x00"), ErrorCode.MESSAGE_ENCODING_ERROR),
        (raw(MessageType.FINISH, b"\x00\x08\x00"), ErrorCode.MESSAGE_ENCODING_ERROR),
        (raw(MessageType.FINISH, b"\x04\x08"), ErrorCode.MESSAGE_ENCODING_ERROR),
        (raw(MessageType.CLEAR, b"\x00\x01\x00\x08\x04"), ErrorCode.MESSAGE_ENCODING_ERROR),
        (raw(MessageType.CLOSE, b"\x00\x00\x01\xff"), ErrorCode.MESSAGE_ENCODING_ERROR),
        (raw(MessageType.SETTINGS, b"\x08\x02\x43\xff"), ErrorCode.PARAMETER_ERROR),
        (raw(MessageType.SETTINGS, b"\x08\x01"), ErrorCode.PARAMETER_ERROR),
        (raw(MessageType.SETTINGS, b"\x08\x01\x10\x08\x01\x10"), ErrorCode.PARAMETER_ERROR),
        (raw(MessageType.SETTINGS, b"", 4097), ErrorCode.MESSAGE_TOO_LARGE),
        (raw(0x3D, b"", 4097), ErrorCode.MESSAGE_TOO_LARGE),
        (raw(MessageType.HELLO, b"", 8193), ErrorCode.MESSAGE_TOO_LARGE),
        (raw(MessageType.ACCEPT, b"\x02"), ErrorCode.UNEXPECTED_MESSAGE),
        (raw(MessageType.REJECT, b"\x01"), ErrorCode.UNEXPECTED_MESSAGE),
        (raw(MessageType.RESUME, b"\x02"), ErrorCode.UNEXPECTED_MESSAGE),
        (raw(MessageType.CONFIRM, b"\x00"), ErrorCode.UNEXPECTED_MESSAGE),
    ],
)
def test_a_bad_message_ends_the_session_with_the_right_code(pair, data: bytes, code: ErrorCode) -> None:  # VS-13.1-3
    closed = fate(pair, data)
    assert closed.code == code
    assert not closed.remote
    assert not closed.may_resume  # VS-13.2-4
    pair.run(0.1)
    told = pair.closed("client")
    assert (told.code, told.reason, told.remote) == (code, closed.reason, True)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (Finish(track=1, pts=0), ErrorCode.TRACK_ERROR),
        (wire.Finished(track=1, played_pts=0), ErrorCode.TRACK_ERROR),
        (Progress(track=2, played_pts=0), ErrorCode.TRACK_ERROR),
        (Cleared(track=3, number=1, heard_pts=0), ErrorCode.TRACK_ERROR),
        (wire.Finished(played_pts=0), ErrorCode.UNEXPECTED_MESSAGE),
    ],
)
def test_a_message_about_something_that_is_not_there_ends_it_too(pair, message, code: ErrorCode) -> None:  # VS-5.2-2
    assert fate(pair, encode_message(message)).code == code


def test_a_message_may_come_byte_by_byte(pair) -> None:
    for value in encode_message(Finish(pts=0)):
        pair.server.receive_control(bytes([value]), pair.now)
    pair.drain()
    assert pair.of("server", RemoteFinished) == [RemoteFinished(track=0, pts=0)]


def test_what_follows_a_close_is_not_looked_at(pair) -> None:
    data = encode_message(Close(code=0, reason="bye")) + encode_message(Finish(track=3, pts=0))
    assert fate(pair, data).reason == "bye"
    pair.server.receive_control(b"\xff" * 100, pair.now, fin=True)
    assert pair.closed("server").reason == "bye"


@pytest.mark.parametrize("rest", [b"", encode_message(Finish(pts=0))[:2]], ids=["between messages", "inside one"])
def test_a_stream_that_ends_without_close_is_an_error(pair, rest: bytes) -> None:
    assert fate(pair, rest, fin=True).code == ErrorCode.CONTROL_STREAM_ERROR  # VS-5.1-5


def test_a_stream_may_end_with_close(pair) -> None:
    closed = fate(pair, encode_message(Close(code=ErrorCode.HANDLER_ERROR, reason="x", may_resume=True)), fin=True)
    assert closed == Closed(code=ErrorCode.HANDLER_ERROR, reason="x", remote=True, may_resume=True)
    assert pair.server.control_to_send() == b""


def test_unknown_messages_are_skipped_and_counted(pair) -> None:
    before = pair.server.stats(pair.now).messages_unknown
    pair.server.receive_control(encode_message(UnknownMessage(type=0x3D, payload=bytes(4096))), pair.now)
    assert not pair.server.is_closed
    assert pair.server.stats(pair.now).messages_unknown == before + 1


def test_too_many_messages_are_an_error(kit) -> None:
    config = SessionConfig(grease=False, limits=Limits(messages_per_second=5))
    pair = kit.Pair(server=config).open()
    message = encode_message(Settings())
    for _ in range(49):  # HELLO was the fiftieth
        pair.server.receive_control(message, pair.now)
    assert not pair.server.is_closed
    pair.server.receive_control(message, pair.now)
    assert pair.closed("server").code == ErrorCode.LIMIT_EXCEEDED


def test_settings_change_what_is_sent_from_then_on(pair) -> None:  # VS-5.4-3
    assert pair.client.ahead_allowance(pair.now) == pytest.approx(0.15)
    pair.server.update_settings(pair.now, lookahead_ms=60, max_rate_bps=30_000)
    pair.run(0.1)
    assert pair.client.peer.lookahead_ms == 60
    assert pair.client.ahead_allowance(pair.now) == pytest.approx(0.06)
    assert pair.client.plan.bitrate_bps < 30_000


@pytest.mark.parametrize("options", [{"lookahead_ms": 501}, {"max_rate_bps": -1}])
def test_settings_out_of_their_range_are_refused(pair, options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"."):
        pair.client.update_settings(pair.now, **options)
    assert not pair.client.is_closed


def test_going_away_is_told_with_where_to_go(pair) -> None:
    pair.server.going_away(pair.now, reason="update", uri="voicestream://b/", route_token=b"12345678", retry_after=2.0)
    pair.run(0.1)
    expected = GoingAway(reason="update", uri="voicestream://b/", route_token=b"12345678", retry_after=2.0)
    assert pair.of("client", GoingAway) == [expected]
    pair.talk(0.1)
    assert pair.client.is_open


def test_going_away_may_say_nothing(pair) -> None:
    pair.server.receive_control(encode_message(wire.GoingAway(parameters=Parameters())), pair.now)
    pair.drain()
    assert pair.of("server", GoingAway) == [GoingAway(reason="", uri=None, route_token=None, retry_after=None)]


def test_all_that_a_whole_call_says_can_be_parsed(pair) -> None:
    parser, messages = MessageParser(), []
    pair.talk(0.2, "client")
    for step in range(30):
        pair.server.report_played(8 * step, pair.now)
        messages += parser.feed(pair.server.control_to_send())
        pair.now += 0.1
    pair.server.receive_control(encode_message(Finish(pts=240)), pair.now)
    pair.server.report_played(240, pair.now)
    messages += parser.feed(pair.server.control_to_send())
    assert {type(message) for message in messages} == {Progress, wire.Finished}
    assert not parser.in_message


def test_what_was_played_is_news_to_the_far_end_now_and_then_only(pair) -> None:
    pair.talk(0.5, "client")
    news = []
    for step in range(1, 41):
        pair.now += 0.02
        news.append(pair.server.report_played(step, pair.now))
    assert 3 <= sum(news) <= 4  # every 250 ms
    assert set(news) == {True, False}
