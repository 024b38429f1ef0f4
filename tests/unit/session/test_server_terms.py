"""Bounds of one call that are tighter than the server's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.config import Limits, SessionConfig
from voicestream.wire import Settings, encode_message
from voicestream.wire.event_stream import EventHeader, encode_event_header
from voicestream.wire.frame_values import PaddingFrame

PLAIN = SessionConfig(grease=False)
TIGHT = Limits(max_event_size=2000, events_per_second=2, messages_per_second=2, datagrams_per_second=200)


def opened(kit, server: SessionConfig = PLAIN, **terms: object):
    pair = kit.Pair(server=server).ask()
    pair.server.accept(pair.now, **terms)
    pair.run(0.1)
    return pair


def event(order: int) -> bytes:
    return encode_event_header(EventHeader(kind=0, event_id=order, order=order, track=None, pts=None)) + b"x"


def test_the_client_learns_how_large_an_event_it_may_send(kit) -> None:
    pair = opened(kit, limits=TIGHT)
    with pytest.raises(ValueError, match="takes events of 2000 bytes"):
        pair.client.send_event(bytes(2001), pair.now, kind=0)


def test_one_that_sends_a_larger_one_all_the_same_is_out(kit) -> None:
    pair = opened(kit, limits=TIGHT)
    pair.server.receive_stream(3, event(1) + bytes(2001), True, pair.now)
    assert pair.closed("server").code == ErrorCode.EVENT_TOO_LARGE


def test_events_messages_and_datagrams_have_their_own_rates(kit) -> None:
    def flood(what: str) -> int:
        pair, count = opened(kit, limits=TIGHT), 0
        while not pair.server.is_closed:
            count += 1
            if what == "events":
                pair.server.receive_stream(count, event(count), True, pair.now)
            elif what == "messages":
                pair.server.receive_control(encode_message(Settings()), pair.now)
            else:
                pair.server.receive_datagram(kit.datagram(PaddingFrame(size=1), number=count & 0xFFFF), pair.now)
        assert pair.closed("server").code == ErrorCode.LIMIT_EXCEEDED
        return count

    assert (flood("events"), flood("messages"), flood("datagrams")) == (21, 21, 401)


def test_terms_only_ever_tighten(kit) -> None:
    pair = opened(kit, server=replace(PLAIN, limits=TIGHT), limits=Limits(max_event_size=1 << 24, messages_per_second=10000))
    assert pair.client.peer.max_event_size == 2000
    for _ in range(21):
        pair.server.receive_control(encode_message(Settings()), pair.now)
    assert pair.closed("server").code == ErrorCode.LIMIT_EXCEEDED


def test_a_bound_of_the_rate_holds_for_both_ends_whatever_the_client_asks_for(kit) -> None:  # VS-9.4-1
    pair = opened(kit, max_rate_bps=30000)
    assert pair.client.peer.max_rate_bps == 30000
    pair.client.update_settings(pair.now, max_rate_bps=10_000_000)
    pair.run(0.2)
    before = {name: side.stats(pair.now) for name, side in (("client", pair.client), ("server", pair.server))}
    pair.talk(10)
    for name, side in (("client", pair.client), ("server", pair.server)):
        stats = side.stats(pair.now)
        datagrams = stats.datagrams_sent - before[name].datagrams_sent
        assert side.target_bps <= 30000, name
        assert datagrams > 50
    pair.client.update_settings(pair.now, max_rate_bps=20000)
    pair.run(0.5)
    assert pair.server.target_bps <= 20000


def test_a_flood_of_datagrams_is_an_error_and_a_call_is_none(kit) -> None:
    """T-DATAGRAMS: a call at its liveliest sends a tenth of what ends it."""
    pair = kit.Pair().open()
    pair.talk(20, size=100, units=4)
    assert not pair.server.is_closed
    for number in range(20000):
        pair.server.receive_datagram(kit.datagram(PaddingFrame(size=1), number=number & 0xFFFF), pair.now)
    assert pair.closed("server").code == ErrorCode.LIMIT_EXCEEDED
