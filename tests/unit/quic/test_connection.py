"""A connection carries a session, and ends as it should."""

from __future__ import annotations

from typing import Any

from voicestream.codepoints import ErrorCode
from voicestream.events import Closed


def test_a_session_starts_only_when_the_handshake_is_complete(world: Any) -> None:
    endpoint = world.client()
    endpoint.connect(("192.0.2.1", 4433), world.now)
    session = endpoint.connection.session
    session.out_datagrams.append(b"early")
    session.out_control = b"HELLO\n"
    world.run(0.03)
    assert session.started_at is None
    assert session.out_control
    world.run(0.2)
    assert session.started_at is not None
    assert endpoint.connection.is_up
    server_side = world.server.next_connection()
    assert server_side is not None
    assert server_side.session.control == b"HELLO\n"
    assert server_side.session.datagrams == [b"early"]


def test_datagrams_control_and_events_go_both_ways(world: Any) -> None:
    endpoint, server_side = world.connect()
    for near, far in ((endpoint.connection.session, server_side.session), (server_side.session, endpoint.connection.session)):
        near.out_datagrams.append(b"\x01" * 1000)
        near.out_control = b"message\n"
        near.out_streams.append((7, b"x" * 30000, False))
        near.out_streams.append((8, b"short", True))
        world.run(0.3)
        near.out_streams.append((7, b"y", True))
        world.run(0.2)
        assert far.datagrams == [b"\x01" * 1000]
        assert far.control == b"message\n"
        assert sorted(far.streams.values()) == [b"short", b"x" * 30000 + b"y"]
        assert len(far.finished) == 2


def test_both_ends_learn_the_code_and_reason_of_a_close(world: Any) -> None:
    endpoint, server_side = world.connect()
    endpoint.connection.close(world.now, ErrorCode.GOING_AWAY, "good night")
    world.run(1.0)
    near, far = endpoint.connection.next_event(), server_side.next_event()
    assert near == Closed(code=ErrorCode.GOING_AWAY, reason="good night", remote=False, may_resume=False)
    assert far == Closed(code=ErrorCode.GOING_AWAY, reason="good night", remote=True, may_resume=True)
    assert endpoint.connection.next_event() is None
    assert endpoint.connection.is_terminated
    assert server_side.is_terminated
    assert world.server.connections == []
