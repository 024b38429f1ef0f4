"""Section 7: application events."""

from __future__ import annotations

import asyncio
from typing import Any

from interop.cases.tools import alive, failed, number, passed, refusals, refused, takes
from interop.model import Outcome, Unsupported, Verdict, case
from interop.peers.meeting import Met
from voicestream.codepoints import ErrorCode, EventKind
from voicestream.wire import Accept, Hello

E, K = ErrorCode, EventKind

refusals(
    ("event-header-cut", "VS-7.1-2", "an event stream that ends inside its header", lambda p: p.stream(b"\x01\x00\x01")),
    ("event-track-4", "VS-7.1-2", "an event aligned with track 4", lambda p: p.stream(b"\x01\x00\x01\x00\x01\x04\x00payload")),
    ("text-not-text", "VS-7.2-1", "a TEXT event that is no UTF-8", lambda p: p.event(b"\xff\xfe", kind=K.TEXT)),
    ("json-not-text", "VS-7.2-1", "a JSON event that is no UTF-8", lambda p: p.event(b'"\xff"', kind=K.JSON)),
    ("json-not-json", "VS-7.2-2", "a JSON event that cannot be parsed", lambda p: p.event(b'{"a":', kind=K.JSON)),
    code=E.EVENT_ENCODING_ERROR,
)
takes(
    ("event-kind-unknown", "VS-7.2-3 VS-12.1-3", "an event of an unknown kind", lambda p: p.event(b"\xff\x00", kind=0x3D)),
    (
        "event-reset",
        "VS-7.1-5",
        "an event that is reset inside its payload",
        lambda p: p.reset(p.stream(b"\x01\x00\x09\x00\x00half", fin=False)),
    ),
    ("event-flags-unknown", "VS-1.3-4", "an event with unknown flags", lambda p: p.stream(b"\x01\x00\x07\x00\x3epayload")),
    ("event-empty", "VS-7.1-2", "an event without payload", lambda p: p.event(b"", event_id=5)),
)


@case("VS-7.1-4", title="an event larger than MAX_EVENT_SIZE, its end not sent: EVENT_TOO_LARGE")
async def event_too_large(peer: Met) -> Outcome:
    sent = peer.hello
    limit = sent.parameters.max_event_size if isinstance(sent, Hello | Accept) else None
    size = 1 << 20 if limit is None else limit
    if size > 1 << 22:
        raise Unsupported(f"it takes events of {size} bytes")
    own = peer.stream(b"\x01\x00\x01\x00\x00" + bytes(size + 1), fin=False)
    outcome = await refused(peer, E.EVENT_TOO_LARGE, timeout=12.0)
    if peer.end is None and not peer.all_left(own):
        return Outcome(behaviour=Verdict.NON_STRICT, words="its flow control keeps the event below the limit, and it waits for ever")
    return outcome


def _payloads(peer: Met) -> list[bytes]:
    return [one.value[1] for one in peer.log if one.kind == "event" and not one.sent]


async def _echoes(peer: Met, count: int, timeout: float = 4.0) -> list[Any]:
    """Events that the far end's application has sent back.

    Raises:
        Unsupported: It sends none back.
    """
    await peer.until(lambda: True if len(_payloads(peer)) >= count else None, timeout)
    found = [one.value for one in peer.log if one.kind == "event" and not one.sent]
    if not found and peer.end is None:
        raise Unsupported("its application sends no event back")
    return found


@case("VS-7.3-2", title="ordered events that come as 3, 1, 2, and 2 once more: are delivered as 1, 2, 3")
async def order_of_events(peer: Met) -> Outcome:
    for order in (3, 1, 2, 2):
        peer.event(b'"%d"' % order, kind=K.JSON, event_id=order, order=order)
        await asyncio.sleep(0.05)
    found = await _echoes(peer, 3)
    await asyncio.sleep(0.3)
    if peer.end is not None:
        return failed(str(peer.end))
    found = await _echoes(peer, 3)
    # The application sends back what it is given, as ordered events: their order is that of delivery.
    said = [payload.strip(b'"') for header, payload in sorted(found, key=lambda one: one[0].order)]
    return passed() if said == [b"1", b"2", b"3"] else failed(f"delivered: {said}")


@case("VS-7.3-1", "VS-7.1-1", title="events of the far end: numbered 1, 2, 3, with ids of their own")
async def events_are_numbered(peer: Met) -> Outcome:
    for order in (1, 2, 3):
        peer.event(b'"%d"' % order, kind=K.JSON, event_id=order, order=order)
    headers = [header for header, _ in await _echoes(peer, 3)]
    orders = sorted(header.order for header in headers if header.order)
    if len({header.event_id for header in headers}) < len(headers):
        return failed("an id came twice")
    if orders != list(range(1, len(orders) + 1)):
        return failed(f"orders {orders}")
    return passed(f"{len(headers)} events")


@case("VS-7.1-3", "VS-5.4-3", title="an event of the far end when MAX_EVENT_SIZE is 16: none is larger", opened=False)
async def event_limit_is_kept(peer: Met) -> Outcome:
    if not await peer.open(max_event_size=16):
        return failed("no ACCEPT")
    peer.event(b'"%s"' % (b"x" * 100), kind=K.JSON, order=1)
    peer.event(b'"small"', kind=K.JSON, event_id=2, order=2)
    await asyncio.sleep(0.6)
    large = [len(payload) for payload in _payloads(peer) if len(payload) > 16]
    if large:
        return failed(f"an event of {large[0]} bytes")
    return await alive(peer)


@case("VS-14-1", title="70 events that are not ended: LIMIT_EXCEEDED, or bounded otherwise")
async def events_under_way(peer: Met) -> Outcome:
    for event in range(70):
        peer.stream(b"\x01\x00" + number(event + 1) + b"\x00\x00half", fin=False)
    end = await peer.ended(1.0)
    if end is None:
        return await alive(peer)
    return await refused(peer, E.LIMIT_EXCEEDED)
