"""Application events: objects to payloads and back, and the bounded queue."""

from __future__ import annotations

import asyncio

import pytest

from voicestream.call_events import CallEvent, EventInbox, decode_event, encode_event
from voicestream.call_state import Ending
from voicestream.codepoints import ErrorCode, EventKind
from voicestream.errors import CallClosedError
from voicestream.events import Closed, EventReceived


def received(payload: bytes, kind: EventKind | int = EventKind.JSON, *, event_id: int = 1, pts: int | None = None) -> EventReceived:
    return EventReceived(kind=kind, event_id=event_id, order=1, payload=payload, track=None if pts is None else 0, pts=pts)


@pytest.mark.parametrize(
    ("data", "kind", "payload"),
    [
        ({"a": [1, "ü", None]}, EventKind.JSON, '{"a":[1,"ü",null]}'.encode()),
        ([], EventKind.JSON, b"[]"),
        ("grüße", EventKind.TEXT, "grüße".encode()),
        ("", EventKind.TEXT, b""),
        (b"\x00\xff", EventKind.BYTES, b"\x00\xff"),
        (bytearray(b"ab"), EventKind.BYTES, b"ab"),
        (memoryview(b"ab"), EventKind.BYTES, b"ab"),
    ],
)
def test_an_object_keeps_its_type_across_the_wire(data: object, kind: EventKind, payload: bytes) -> None:
    assert encode_event(data) == (kind, payload)
    back = decode_event(received(payload, kind)).data
    assert back == (bytes(data) if isinstance(data, bytearray | memoryview) else data)


@pytest.mark.parametrize("data", [None, 1, 1.5, object(), {1, 2}])
def test_other_types_are_refused(data: object) -> None:
    with pytest.raises(TypeError, match="must be dict, list, str or bytes"):
        encode_event(data)


def test_what_json_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode_event({"x": float("nan")})
    with pytest.raises(TypeError):
        encode_event({"x": object()})


@pytest.mark.parametrize("payload", [b"{", b"", b"\xff", b"NaN", b'{"a":Infinity}', b"[" * 100_000, '{"a":1}'.encode("utf-16")])
def test_what_is_not_json_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_event(received(payload))


def test_an_aligned_event_tells_its_place_in_seconds() -> None:
    assert decode_event(received(b"x", EventKind.TEXT, pts=800)).at == 2.0
    assert decode_event(received(b"x", EventKind.TEXT)).at is None


def test_an_unknown_kind_is_given_as_bytes_with_its_number() -> None:  # VS-7.2-3
    unknown = decode_event(received(b"x", 77))
    assert unknown == CallEvent(kind="bytes", data=b"x", event_id=1, order=1, wire_kind=77)
    assert repr(unknown) == "CallEvent(kind='bytes', event_id=1, order=1, wire_kind=77)"
    known = decode_event(received(b"x", EventKind.BYTES))
    assert (known.kind, known.wire_kind) == ("bytes", 0)
    assert repr(known) == "CallEvent(kind='bytes', event_id=1, order=1)"
    assert repr(CallEvent(kind="lost")) == "CallEvent(kind='lost')"


async def test_events_come_in_order_and_the_good_end_after_the_last() -> None:
    ending = Ending()
    inbox = EventInbox(ending, max_events=10, max_event_size=1024)
    for number in range(3):
        inbox.put(CallEvent(kind="text", data=str(number)))
    ending.set(Closed(code=ErrorCode.NO_ERROR, reason="", remote=True, may_resume=False))
    inbox.wake()
    got = [await inbox.get() for _ in range(3)]
    assert [event.data for event in got if event] == ["0", "1", "2"]
    assert await inbox.get() is None


async def test_a_bad_end_is_raised_after_the_last_event() -> None:
    ending = Ending()
    inbox = EventInbox(ending, max_events=10, max_event_size=1024)
    waiter = asyncio.create_task(inbox.get())
    await asyncio.sleep(0)
    ending.set(Closed(code=ErrorCode.HANDLER_ERROR, reason="", remote=True, may_resume=False))
    inbox.wake()
    with pytest.raises(CallClosedError):
        await waiter


def test_unfetched_events_are_bounded_in_number_oldest_dropped() -> None:
    inbox = EventInbox(Ending(), max_events=3, max_event_size=1024)
    for number in range(5):
        inbox.put(CallEvent(kind="text", data=str(number)), 1)
    assert (inbox.received, inbox.dropped, len(inbox)) == (5, 2, 3)


def test_unfetched_events_are_bounded_in_bytes() -> None:
    inbox = EventInbox(Ending(), max_events=1000, max_event_size=1 << 22)
    for _ in range(5):
        inbox.put(CallEvent(kind="bytes"), 3 << 20)
    assert len(inbox) == 2
    assert inbox.dropped == 3


def test_an_undecodable_event_is_reported_and_not_kept() -> None:
    inbox = EventInbox(Ending(), max_events=3, max_event_size=1024)
    reasons: list[str] = []
    inbox.receive(received(b"{", event_id=7), reasons.append)
    assert len(inbox) == 0
    assert reasons[0].startswith("event 7: ")
