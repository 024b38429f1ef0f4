"""Control messages: each by hand, each rule, and the parser of the control stream."""

from __future__ import annotations

import pytest

from voicestream.codepoints import ErrorCode, MessageType
from voicestream.config import Track
from voicestream.errors import ProtocolError
from voicestream.wire.messages import (
    Accept,
    Clear,
    Cleared,
    Close,
    Confirm,
    Finish,
    Finished,
    GoingAway,
    Hello,
    Message,
    MessageParser,
    Progress,
    Reject,
    Resume,
    Resumed,
    Settings,
    UnknownMessage,
    decode_message,
    encode_message,
    message_limit,
)
from voicestream.wire.parameters import Held, Parameters

TRACK = "05 09 00 01 8000bb80 01 03 00"
SESSION = "10 10 000102030405060708090a0b0c0d0e0f"
SESSION_ID = bytes(range(16))

BY_HAND: list[tuple[str, Message]] = [
    ("01 12 01 0101 68 0201 2f" + TRACK, Hello(parameters=Parameters(authority="h", path="/", tracks=(Track(),)))),
    (
        "02 28 01" + TRACK + SESSION + "1101 74 1201 00 1302 7530",
        Accept(parameters=Parameters(tracks=(Track(),), session_id=SESSION_ID, resume_token=b"t", generation=0, lifetime_ms=0x3530)),
    ),
    ("03 01 14", Reject(code=ErrorCode.BUSY)),
    ("03 0a 7fff 20 02 6e6f 23 02 43e8", Reject(code=0x3FFF, parameters=Parameters(reason="no", retry_after_ms=1000))),
    (
        "04 1e 01" + SESSION + "1101 74 1201 03 1403 00 10 00",
        Resume(parameters=Parameters(session_id=SESSION_ID, resume_token=b"t", generation=3, held=(Held(next_pts=16),))),
    ),
    ("05 06 1101 75 1201 04", Resumed(parameters=Parameters(resume_token=b"u", generation=4))),
    ("06 01 04", Confirm(generation=4)),
    ("07 00", Settings()),
    ("07 0a 0802 4096 0a04 8000fa00", Settings(parameters=Parameters(lookahead_ms=150, max_rate_bps=64000))),
    ("08 05 00 01 00 10 20", Clear(number=1, from_pts=16, to_pts=32)),
    ("08 05 03 02 01 10 10", Clear(track=3, number=2, from_receiver=True, from_pts=16, to_pts=16)),
    ("09 03 00 01 18", Cleared(number=1, heard_pts=24)),
    ("0a 03 01 4040", Progress(track=1, played_pts=64)),
    ("0b 03 00 4064", Finish(pts=100)),
    ("0c 03 00 4064", Finished(played_pts=100)),
    ("0d 00", GoingAway()),
    ("0d 0a 22 08 0102030405060708", GoingAway(parameters=Parameters(route_token=bytes(range(1, 9))))),
    ("0e 03 00 00 00", Close(code=0)),
    ("0e 06 17 01 03 627965", Close(code=ErrorCode.HANDLER_ERROR, reason="bye", may_resume=True)),
    ("3d 02 abcd", UnknownMessage(type=0x3D, payload=b"\xab\xcd")),
    ("00 00", UnknownMessage(type=0, payload=b"")),
]


@pytest.mark.parametrize(("encoded", "message"), BY_HAND, ids=[f"{type(message).__name__}{n}" for n, (_, message) in enumerate(BY_HAND)])
def test_a_message_is_written_and_read_as_by_hand(encoded: str, message: Message) -> None:
    data = bytes.fromhex(encoded)
    assert encode_message(message) == data
    assert MessageParser().feed(data) == [message]


def test_unknown_flags_are_ignored() -> None:
    assert decode_message(MessageType.CLEAR, bytes.fromhex("00 01 3e 10 20")) == Clear(number=1, from_pts=16, to_pts=32)
    assert decode_message(MessageType.CLOSE, bytes.fromhex("00 02 00")) == Close(code=0)


@pytest.mark.parametrize("message_type", [MessageType.HELLO, MessageType.ACCEPT, MessageType.RESUME])
def test_the_parameters_of_another_version_are_not_looked_at(message_type: MessageType) -> None:
    message = decode_message(message_type, bytes.fromhex("02 ffffff"))
    assert isinstance(message, Hello | Accept | Resume)
    assert (message.version, message.parameters) == (2, Parameters())
    assert encode_message(message) == bytes([message_type, 1, 2])


M = ErrorCode.MESSAGE_ENCODING_ERROR
P = ErrorCode.PARAMETER_ERROR
BAD_PAYLOADS = [
    (MessageType.HELLO, "", M, "inside an integer"),
    (MessageType.HELLO, "01", P, "HELLO without authority, path, tracks"),
    (MessageType.HELLO, "01 0101 68 0201 2f", P, "HELLO without tracks"),
    (MessageType.HELLO, "01 0101 68" + TRACK, P, "HELLO without path"),
    (MessageType.HELLO, "01 0101", P, "announced"),
    (MessageType.ACCEPT, "01" + TRACK, P, "ACCEPT without session_id, resume_token, generation, lifetime_ms"),
    (MessageType.REJECT, "", M, "inside an integer"),
    (MessageType.REJECT, "01 20", P, "inside an integer"),
    (MessageType.RESUME, "01" + SESSION, P, "RESUME without resume_token, generation"),
    (MessageType.RESUMED, "", P, "RESUMED without resume_token, generation"),
    (MessageType.CONFIRM, "", M, "inside an integer"),
    (MessageType.CONFIRM, "0101", M, "1 bytes too many in CONFIRM"),
    (MessageType.SETTINGS, "0802 41f5", P, "lookahead_ms"),
    (MessageType.CLEAR, "04 01 00 10 20", M, "track 4"),
    (MessageType.CLEAR, "00 01 00 20 10", M, "clear from 32 to 16"),
    (MessageType.CLEAR, "00 01 00 10", M, "inside an integer"),
    (MessageType.CLEAR, "00 01 00 10 20 00", M, "too many"),
    (MessageType.CLEARED, "04 01 18", M, "track 4"),
    (MessageType.CLEARED, "00 01", M, "inside an integer"),
    (MessageType.CLEARED, "00 01 18 00", M, "too many"),
    (MessageType.PROGRESS, "04 18", M, "track 4"),
    (MessageType.PROGRESS, "00", M, "inside an integer"),
    (MessageType.PROGRESS, "00 18 00", M, "too many"),
    (MessageType.FINISH, "04 18", M, "track 4"),
    (MessageType.FINISH, "00", M, "inside an integer"),
    (MessageType.FINISH, "00 18 00", M, "too many"),
    (MessageType.FINISHED, "04 18", M, "track 4"),
    (MessageType.FINISHED, "00", M, "inside an integer"),
    (MessageType.FINISHED, "00 18 00", M, "too many"),
    (MessageType.GOING_AWAY, "22 01 00", P, "route_token"),
    (MessageType.CLOSE, "00 00", M, "inside an integer"),
    (MessageType.CLOSE, "00 00 01", M, "announced"),
    (MessageType.CLOSE, "00 00 02 c328", M, "not UTF-8"),
    (MessageType.CLOSE, "00 00 4401" + "61" * 1025, M, "reason of 1025 bytes"),
    (MessageType.CLOSE, "00 00 00 00", M, "too many"),
]


@pytest.mark.parametrize(("message_type", "payload", "code", "reason"), BAD_PAYLOADS)
def test_a_payload_that_breaks_a_rule_is_an_error(message_type: MessageType, payload: str, code: ErrorCode, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason) as caught:
        decode_message(message_type, bytes.fromhex(payload))
    assert caught.value.code == code


BAD_MESSAGES: list[Message] = [
    Hello(parameters=Parameters()),
    Hello(parameters=Parameters(authority="h", path="/", tracks=(Track(),), reason="no place for it")),
    Accept(parameters=Parameters(tracks=(Track(),))),
    Reject(code=-1),
    Resume(parameters=Parameters()),
    Resumed(parameters=Parameters(generation=1)),
    Confirm(generation=1 << 62),
    Settings(parameters=Parameters(retain_ms=1)),
    Clear(number=1, from_pts=1, to_pts=0),
    Clear(track=4, number=1, from_pts=0, to_pts=0),
    Cleared(track=-1, number=1, heard_pts=0),
    Progress(track=4, played_pts=0),
    Finish(track=4, pts=0),
    Finish(pts=-1),
    Finished(track=4, played_pts=0),
    GoingAway(parameters=Parameters(route_token=b"short")),
    Close(code=0, reason="\u00e9" * 513),
    UnknownMessage(type=MessageType.CLOSE, payload=b""),
    UnknownMessage(type=0x3D, payload=bytes(4097)),
    Hello(parameters=Parameters(authority="h", path="/" + "p" * 2040, token=bytes(2048), metadata=bytes(4096), tracks=(Track(),))),
]


@pytest.mark.parametrize("message", BAD_MESSAGES, ids=[f"{type(message).__name__}{n}" for n, message in enumerate(BAD_MESSAGES)])
def test_a_message_that_the_format_does_not_allow_is_refused(message: Message) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the reason differs by case
        encode_message(message)


def test_messages_of_the_handshake_may_be_larger() -> None:
    assert [message_limit(number) for number in (0, 1, 5, 6, 14, 0x3D)] == [4096, 8192, 8192, 4096, 4096, 4096]
    hello = Hello(parameters=Parameters(authority="h", path="/", token=bytes(2048), metadata=bytes(4096), tracks=(Track(),)))
    assert MessageParser().feed(encode_message(hello)) == [hello]


@pytest.mark.parametrize(("header", "limit"), [("01 6001", 8192), ("0e 5001", 4096), ("3d 5001", 4096)])
def test_a_message_too_large_is_refused_as_soon_as_its_length_is_seen(header: str, limit: int) -> None:
    data = bytes.fromhex(header)
    parser = MessageParser()
    assert parser.feed(data[:-1]) == []
    with pytest.raises(ProtocolError, match=f"{limit + 1} bytes") as caught:
        parser.feed(data[-1:])
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
    with pytest.raises(ProtocolError) as caught:
        decode_message(data[0], bytes(limit + 1))
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_message_of_the_largest_size_is_taken() -> None:
    message = UnknownMessage(type=0x3D, payload=bytes(4096))
    assert MessageParser().feed(encode_message(message)) == [message]


def test_the_parser_knows_whether_it_is_inside_a_message() -> None:
    parser = MessageParser()
    assert not parser.in_message
    assert parser.feed(b"\x07") == []
    assert parser.in_message
    assert parser.feed(b"\x00\x06\x01\x04\x0e") == [Settings(), Confirm(generation=4)]
    assert parser.in_message
    assert parser.feed(b"\x03\x00\x00") == []
    assert parser.in_message
    assert parser.feed(b"\x00") == [Close(code=0)]
    assert not parser.in_message
