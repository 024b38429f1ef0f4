"""Application events between two sessions."""

from __future__ import annotations

import random

import pytest

from voicestream.codepoints import ErrorCode, EventKind
from voicestream.config import Limits, SessionConfig
from voicestream.errors import StateError
from voicestream.events import EventReceived
from voicestream.wire import EventHeader, encode_event_header


def wire_event(order: int = 1, payload: bytes = b"{}", kind: int = EventKind.JSON, event_id: int = 1) -> bytes:
    return encode_event_header(EventHeader(kind=kind, event_id=event_id, order=order)) + payload


def test_an_event_arrives_as_it_was_sent(pair) -> None:
    number = pair.client.send_event(b'{"turn": 1}', pair.now, track=0, pts=400)
    pair.run(0.1)
    expected = EventReceived(kind=EventKind.JSON, event_id=number, order=1, payload=b'{"turn": 1}', track=0, pts=400)
    assert pair.of("server", EventReceived) == [expected]


def test_events_go_both_ways_and_keep_their_order_and_kind(pair) -> None:
    for index in range(5):
        pair.client.send_event(b"c%d" % index, pair.now, kind=EventKind.TEXT)
        pair.server.send_event(b"\xff%d" % index, pair.now, kind=EventKind.BYTES)
    pair.run(0.5)
    assert [one.payload for one in pair.of("server", EventReceived)] == [b"c%d" % index for index in range(5)]
    assert [one.payload for one in pair.of("client", EventReceived)] == [b"\xff%d" % index for index in range(5)]
    assert {one.kind for one in pair.of("client", EventReceived)} == {EventKind.BYTES}


def test_an_unordered_event_has_order_zero(pair) -> None:  # VS-7.1-1
    pair.client.send_event(b"{}", pair.now, ordered=False)
    pair.client.send_event(b"{}", pair.now)
    pair.run(0.1)
    assert sorted((one.order, one.event_id) for one in pair.of("server", EventReceived)) == [(0, 1), (1, 2)]


def test_an_empty_event_arrives(pair) -> None:
    pair.client.send_event(b"", pair.now, kind=EventKind.BYTES)
    pair.run(0.1)
    assert [one.payload for one in pair.of("server", EventReceived)] == [b""]


def test_a_large_event_arrives_whole_and_holds_up_neither_audio_nor_control(pair, kit) -> None:
    player = kit.Player()
    pair.server.receivers[0].attach_playout(player)
    payload = random.Random(1).randbytes(100_000)
    pair.client.send_event(payload, pair.now, kind=EventKind.BYTES)
    pair.talk(0.5, "client")
    assert len(player.frames) >= 24
    assert pair.of("server", EventReceived) == []
    assert pair.client.stats(pair.now).events_waiting == 1
    pair.client.clear(pair.now, outgoing=True)
    pair.run(0.03)
    assert player.clears
    pair.run(4.0)
    assert [one.payload for one in pair.of("server", EventReceived)] == [payload]
    assert pair.client.stats(pair.now).events_waiting == 0


def test_no_call_yields_more_than_a_thousand_bytes(pair) -> None:
    pair.client.send_event(bytes(50_000), pair.now, kind=EventKind.BYTES)
    for step in range(200):
        chunks = pair.client.streams_to_send(pair.now + step * 0.01)
        assert sum(len(data) for _, data, _ in chunks) <= 1000


def test_events_keep_within_what_the_far_end_wants_to_receive(kit) -> None:
    pair = kit.Pair().open()
    pair.server.update_settings(pair.now, max_rate_bps=40_000)
    pair.run(0.1)
    pair.client.send_event(bytes(100_000), pair.now, kind=EventKind.BYTES)
    sent = 0
    for _ in range(1000):
        sent += sum(len(data) for _, data, _ in pair.client.streams_to_send(pair.now))
        pair.now += 0.01
    assert 45_000 <= sent <= 53_000


@pytest.mark.parametrize(
    ("payload", "options", "match"),
    [
        (bytes((1 << 20) + 1), {"kind": EventKind.BYTES}, "takes events"),
        (b"\xff", {"kind": EventKind.TEXT}, "UTF-8"),
        (b"\xff", {"kind": EventKind.JSON}, "UTF-8"),
        (b"{}", {"track": 0}, "both"),
        (b"{}", {"pts": 0}, "both"),
        (b"{}", {"track": 4, "pts": 0}, "track"),
        (b"{}", {"kind": -1}, "62"),
        (b"{}", {"track": 0, "pts": -1}, "62"),
    ],
)
def test_an_event_that_cannot_be_sent_is_refused_and_takes_no_number(pair, payload: bytes, options, match: str) -> None:
    # VS-7.1-3 VS-7.3-1
    with pytest.raises(ValueError, match=match):
        pair.client.send_event(payload, pair.now, **options)
    assert pair.client.send_event(b"{}", pair.now) == 1
    pair.run(0.1)
    assert [one.order for one in pair.of("server", EventReceived)] == [1]


def test_too_many_waiting_events_are_refused(pair) -> None:
    for _ in range(1000):
        pair.client.send_event(bytes(1000), pair.now, kind=EventKind.BYTES)
    with pytest.raises(StateError, match="wait"):
        pair.client.send_event(b"{}", pair.now)
    assert pair.client.stats(pair.now).events_waiting == 1000


def test_an_unknown_kind_is_delivered_with_its_number(pair) -> None:
    pair.client.send_event(b"\xff", pair.now, kind=99)
    pair.run(0.1)
    assert [(one.kind, one.payload) for one in pair.of("server", EventReceived)] == [(99, b"\xff")]  # VS-7.2-3


@pytest.mark.parametrize(
    ("data", "fin", "code"),
    [
        (wire_event(payload=bytes((1 << 20) + 1)), False, ErrorCode.EVENT_TOO_LARGE),
        (wire_event(payload=b"\xff", kind=EventKind.TEXT), True, ErrorCode.EVENT_ENCODING_ERROR),
        (wire_event(payload=b"\xff", kind=EventKind.JSON), True, ErrorCode.EVENT_ENCODING_ERROR),
        (wire_event()[:3], True, ErrorCode.EVENT_ENCODING_ERROR),
        (b"\x01\x02\x01\x00\x01\x04\x00", False, ErrorCode.EVENT_ENCODING_ERROR),
    ],
    ids=["too large", "text", "JSON", "cut in its header", "track"],
)
def test_a_bad_event_ends_the_session(pair, data: bytes, fin: bool, code: ErrorCode) -> None:
    pair.server.receive_stream(3, data, fin, pair.now)
    assert pair.closed("server").code == code


@pytest.mark.parametrize("data", [b"", b"\x40"], ids=["nothing", "half a type"])
def test_a_stream_that_ends_before_its_type_is_known_is_ignored(pair, data: bytes) -> None:
    pair.server.receive_stream(3, data, True, pair.now)
    pair.drain()
    assert not pair.server.is_closed  # VS-3.3-4


def test_a_stream_of_unknown_type_is_stopped_once_and_ignored(pair) -> None:
    pair.server.receive_stream(7, b"\x3d\x01", False, pair.now)
    pair.server.receive_stream(7, b"more", False, pair.now)
    pair.server.receive_stream(7, b"", True, pair.now)
    pair.server.receive_stream(11, b"\x3d", True, pair.now)  # already at its end: nothing to stop
    pair.drain()
    assert pair.stopped["server"] == [(7, ErrorCode.NO_ERROR)]  # VS-3.3-3
    assert not pair.server.is_closed


def test_events_that_overtake_each_other_are_put_in_order(pair) -> None:
    for order in (3, 1, 2, 2, 5):
        pair.server.receive_stream(order * 4 + 2 + order % 2 * 100, wire_event(order, event_id=order), True, pair.now)
    pair.drain()
    assert [one.order for one in pair.of("server", EventReceived)] == [1, 2, 3]


def test_duplicates_are_counted(pair) -> None:
    for key in (2, 6, 10):
        pair.server.receive_stream(key, wire_event(), True, pair.now)
    pair.drain()
    assert len(pair.of("server", EventReceived)) == 1
    assert pair.server.stats(pair.now).events_duplicate == 2


def test_a_stream_that_is_reset_is_an_event_that_was_given_up(pair) -> None:
    pair.server.receive_stream(2, wire_event(order=0)[:-1], False, pair.now)
    pair.server.reset_stream(2, pair.now)
    pair.server.receive_stream(6, wire_event(), True, pair.now)
    pair.drain()
    assert len(pair.of("server", EventReceived)) == 1  # VS-7.1-5


def test_too_many_events_are_an_error(kit) -> None:
    pair = kit.Pair(server=SessionConfig(grease=False, limits=Limits(events_per_second=5))).open()
    for order in range(1, 51):
        pair.server.receive_stream(order, wire_event(order), True, pair.now)
    assert not pair.server.is_closed
    pair.server.receive_stream(99, wire_event(51), True, pair.now)
    assert pair.closed("server").code == ErrorCode.LIMIT_EXCEEDED


def test_too_many_events_under_way_are_an_error(kit) -> None:
    pair = kit.Pair(server=SessionConfig(grease=False, limits=Limits(max_event_streams=4))).open()
    for key in range(4):
        pair.server.receive_stream(key, b"\x01", False, pair.now)
    assert not pair.server.is_closed
    pair.server.receive_stream(4, b"\x01", False, pair.now)
    assert pair.closed("server").code == ErrorCode.LIMIT_EXCEEDED


def test_events_that_nobody_fetches_are_bounded_and_counted(kit) -> None:
    pair = kit.Pair(server=SessionConfig(grease=False, limits=Limits(undelivered_events=10))).open()
    for order in range(1, 31):
        pair.server.receive_stream(order, wire_event(order), True, pair.now)
    assert pair.server.stats(pair.now).events_dropped == 20
    pair.drain()
    assert [one.order for one in pair.of("server", EventReceived)] == list(range(21, 31))


def test_events_of_a_server_that_overtake_its_answer_come_after_it(kit) -> None:
    pair = kit.Pair().ask()
    pair.server.accept(pair.now)
    pair.server.send_event(b"{}", pair.now)
    chunks = pair.server.streams_to_send(pair.now)
    for key, data, fin in chunks:
        pair.client.receive_stream(key, data, fin, pair.now)
    pair.run(0.1)
    assert [type(one).__name__ for one in pair.events["client"]] == ["Accepted", "EventReceived"]


def test_what_was_sent_and_received_is_counted(pair) -> None:
    for _ in range(3):
        pair.client.send_event(b'"12345678"', pair.now)
    pair.run(0.2)
    mine, theirs = pair.client.stats(pair.now), pair.server.stats(pair.now)
    assert (mine.events_sent, mine.event_bytes_sent) == (3, 30)
    assert (theirs.events_received, theirs.event_bytes_received) == (3, 30)
