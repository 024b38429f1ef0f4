"""Application events: an outbox that leaves audio its room, an inbox that restores the order."""

from __future__ import annotations

import random

import pytest

from voicestream.codepoints import ErrorCode, EventKind
from voicestream.core.eventing import CHUNK, MAX_HELD, MEMORY_EVENTS, MIN_RATE_BPS, EventInbox, EventOutbox
from voicestream.errors import ProtocolError, StateError
from voicestream.wire.event_stream import EventHeader, encode_event_header


def drain(outbox: EventOutbox, now: float, until: float) -> list[tuple[float, int, bytes, bool]]:
    """Everything that leaves, when its time has come, up to `until`."""
    left = []
    while True:
        left += [(now, *one) for one in outbox.take(now)]
        timer = outbox.next_timer()
        if timer is None or timer > until:
            return left
        assert timer > now
        now = timer


class TestOutbox:
    def test_a_small_event_leaves_at_once_and_whole(self) -> None:
        outbox = EventOutbox()
        key = outbox.put(b"hello", 10.0, order=1)
        assert outbox.take(10.0) == [(key, b"hello", True)]
        assert outbox.next_timer() is None
        assert outbox.waiting == 0

    def test_a_large_event_leaves_in_chunks_that_hold_nothing_up(self) -> None:
        outbox = EventOutbox()
        data = random.Random(1).randbytes(20_000)
        outbox.put(data, 10.0, order=1)
        left = drain(outbox, 10.0, 20.0)
        assert b"".join(chunk for _, _, chunk, _ in left) == data
        assert [end for *_, end in left] == [False] * (len(left) - 1) + [True]
        assert all(len(chunk) <= CHUNK for _, _, chunk, _ in left)

    def test_no_call_yields_more_than_a_chunk(self) -> None:
        outbox = EventOutbox()
        for _ in range(50):
            outbox.put(bytes(90), 10.0, order=1)
        assert sum(len(data) for _, data, _ in outbox.take(10.0)) <= CHUNK

    def test_events_keep_to_their_rate(self) -> None:
        outbox = EventOutbox()
        outbox.allowed_bps = 40_000
        outbox.put(bytes(100_000), 10.0, order=1)
        left = drain(outbox, 10.0, 15.0)
        assert 24_000 <= sum(len(chunk) for _, _, chunk, _ in left) <= 25_000 + 2 * CHUNK

    def test_events_get_what_audio_leaves(self) -> None:  # VS-7.3-3
        outbox = EventOutbox()
        outbox.allowed_bps = 80_000
        outbox.put(bytes(100_000), 10.0, order=1)
        sent = 0
        for step in range(500):
            now = 10.0 + step * 0.02
            outbox.audio(150, now)  # 60 kbps
            if step >= 250:
                sent += sum(len(data) for _, data, _ in outbox.take(now))
            else:
                outbox.take(now)
        assert sent * 8 / 5 == pytest.approx(20_000, rel=0.15)

    def test_events_get_two_kilobits_when_audio_leaves_nothing(self) -> None:  # VS-7.3-3
        outbox = EventOutbox()
        outbox.allowed_bps = 10_000
        outbox.put(bytes(10_000), 10.0, order=1)
        sent = 0
        for step in range(2000):
            now = 10.0 + step * 0.02
            outbox.audio(150, now)
            sent += sum(len(data) for _, data, _ in outbox.take(now))
        assert outbox.rate_bps() == MIN_RATE_BPS
        assert 9000 <= sent <= 10_000 + 2 * CHUNK

    def test_a_large_ordered_event_does_not_hold_up_an_unordered_one(self) -> None:
        outbox = EventOutbox()
        outbox.put(bytes(1_000_000), 10.0, order=1)
        small = outbox.put(b"now", 10.0, order=0)
        left = drain(outbox, 10.0, 10.5)
        assert any(key == small and end for _, key, _, end in left[:3])

    def test_ordered_events_leave_in_their_order(self) -> None:
        outbox = EventOutbox()
        keys = [outbox.put(bytes(700), 10.0, order=1) for _ in range(5)]
        assert [key for _, key, _, end in drain(outbox, 10.0, 20.0) if end] == keys

    def test_what_waits_is_bounded(self) -> None:
        outbox = EventOutbox(max_events=3, max_bytes=1000)
        outbox.put(bytes(5000), 10.0, order=1)  # one alone may be larger than the bound
        with pytest.raises(StateError):
            outbox.put(b"x", 10.0, order=1)
        outbox = EventOutbox(max_events=3, max_bytes=1000)
        for _ in range(3):
            outbox.put(b"x", 10.0, order=1)
        with pytest.raises(StateError):
            outbox.put(b"x", 10.0, order=0)


def event(order: int, payload: bytes = b"{}", event_id: int | None = None, kind: int = EventKind.JSON) -> bytes:
    header = EventHeader(kind=kind, event_id=order if event_id is None else event_id, order=order)
    return encode_event_header(header) + payload


def inbox(max_size: int = 4096, max_streams: int = 8) -> EventInbox:
    return EventInbox(max_size=max_size, max_streams=max_streams)


def orders(found: list[tuple[EventHeader, bytes]]) -> list[int]:
    return [header.order for header, _ in found]


class TestInbox:
    def test_events_that_come_in_order_are_delivered_at_once(self) -> None:
        box = inbox()
        assert [orders(box.feed(n, event(n), True)) for n in (1, 2, 3)] == [[1], [2], [3]]

    def test_events_that_overtake_wait_for_those_before_them(self) -> None:  # VS-7.3-2
        box = inbox()
        assert box.feed(3, event(3), True) == []
        assert box.feed(2, event(2), True) == []
        assert orders(box.feed(1, event(1), True)) == [1, 2, 3]

    def test_an_event_may_come_byte_by_byte(self) -> None:
        box = inbox()
        data = event(1, b'{"a": 1}')
        assert all(box.feed(7, data[i : i + 1], False) == [] for i in range(len(data)))
        ((header, payload),) = box.feed(7, b"", True)
        assert (header.order, payload) == (1, b'{"a": 1}')

    def test_unordered_events_do_not_wait(self) -> None:
        box = inbox()
        assert orders(box.feed(1, event(0, event_id=9), True)) == [0]

    def test_duplicates_are_dropped_and_counted(self) -> None:  # VS-7.3-2
        box = inbox()
        box.feed(1, event(1), True)
        box.feed(2, event(0, event_id=9), True)
        box.feed(3, event(3), True)
        for key, data in ((4, event(1)), (5, event(0, event_id=9)), (6, event(3))):
            assert box.feed(key, data, True) == []
        assert box.duplicates == 3

    @pytest.mark.parametrize(
        ("data", "code"),
        [
            (event(1, bytes(5000)), ErrorCode.EVENT_TOO_LARGE),
            (event(1, b"\xff\xfe", kind=EventKind.TEXT), ErrorCode.EVENT_ENCODING_ERROR),
            (event(1)[:3], ErrorCode.EVENT_ENCODING_ERROR),
        ],
    )
    def test_a_bad_event_is_an_error(self, data: bytes, code: ErrorCode) -> None:
        with pytest.raises(ProtocolError) as caught:
            inbox().feed(1, data, True)
        assert caught.value.code is code

    def test_too_many_events_under_way_are_an_error(self) -> None:
        box = inbox(max_streams=3)
        for key in range(3):
            box.feed(key, b"\x01", False)
        with pytest.raises(ProtocolError) as caught:
            box.feed(3, b"\x01", False)
        assert caught.value.code is ErrorCode.LIMIT_EXCEEDED

    def test_what_waits_for_a_missing_event_is_bounded(self) -> None:
        box = inbox(max_size=1024)
        for order in range(2, 2 + MEMORY_EVENTS):
            box.feed(order, event(order, b"x" * 1000, kind=EventKind.BYTES), True)
        with pytest.raises(ProtocolError) as caught:
            box.feed(99, event(99, b"x" * 1000, kind=EventKind.BYTES), True)
        assert caught.value.code is ErrorCode.LIMIT_EXCEEDED

    def test_the_number_of_those_that_wait_is_bounded_too(self) -> None:
        box = inbox(max_size=1 << 20)
        for order in range(2, 2 + MAX_HELD):
            box.feed(order, event(order), True)
        with pytest.raises(ProtocolError) as caught:
            box.feed(9999, event(9999), True)
        assert caught.value.code is ErrorCode.LIMIT_EXCEEDED

    def test_a_stream_of_unknown_type_is_ignored_to_its_end(self) -> None:
        box = inbox()
        assert box.feed(1, b"\x21rest", False) == []
        assert box.ignores(1)
        assert box.feed(1, event(1), True) == []
        assert orders(box.feed(2, event(1), True)) == [1]

    def test_many_streams_of_unknown_type_take_no_room(self) -> None:
        box = inbox(max_streams=2)
        for key in range(3000):
            box.feed(key, b"\x21", False)
        assert len(box._ignored) <= 1024
        assert orders(box.feed(9999, event(1), True)) == [1]

    def test_a_stream_that_is_given_up_frees_its_place(self) -> None:
        box = inbox(max_streams=1)
        box.feed(1, event(1)[:2], False)
        assert box.knows(1)
        box.reset(1)
        assert not box.knows(1)
        assert box.skipped == 1
        box.reset(77)  # of that one nothing ever came
        assert box.skipped == 1
        assert orders(box.feed(2, event(1), True)) == [1]

    def test_bytes_are_accounted_exactly(self) -> None:
        box, rng = inbox(), random.Random(5)
        order = list(range(1, 60))
        rng.shuffle(order)
        for index in range(0, len(order), 8):
            for number in order[index : index + 8]:
                data = event(number, bytes(rng.randrange(200)), kind=EventKind.BYTES)
                box.feed(number, data[:5], False)
                box.feed(number, data[5:], True)
        assert box._bytes == 0
        assert box._streams == {}
        assert box._held == {}


def test_ordered_events_leave_in_their_order_beside_unordered_ones() -> None:
    outbox = EventOutbox()
    outbox.allowed_bps = 1_000_000
    now, seen = 0.0, []
    for number in range(60):
        outbox.put(bytes(400), now, order=number + 1)
        if number % 3 == 0:
            outbox.put(bytes(2500), now, order=0)
        seen += [key for key, _, done in outbox.take(now) if done]
        now += 0.005
    while outbox.waiting:
        seen += [key for key, _, done in outbox.take(now) if done]
        now += 0.01
    # Keys are given in the order of putting: every fourth one, from the second on, is an unordered event.
    ordered = [key for key in seen if key % 4 != 1]
    assert ordered == sorted(ordered)
    assert len(seen) == 80
