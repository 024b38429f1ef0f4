"""What `authenticate` may say, on real sockets."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

import voicestream
from voicestream import Admission, ErrorCode, Limits


async def sit(call: voicestream.Call) -> None:
    await call.wait_closed()


async def test_terms_of_an_admission_hold_for_that_call_alone(serve: Any) -> None:
    def authenticate(authority: str, path: str, token: bytes, metadata: bytes, address: Any) -> Admission | None:
        if token != b"guest":
            return None
        return Admission(metadata="hello guest", limits=Limits(max_event_size=1024, events_per_second=1), max_rate_bps=32000)

    async with (
        serve(sit, authenticate=authenticate, metadata="hello") as loopback,
        loopback.connect(token="member") as member,
        loopback.connect(token="guest") as guest,
    ):
        assert (member.metadata, guest.metadata) == (b"hello", b"hello guest")
        await member.send_event("x" * 5000)
        with pytest.raises(ValueError, match="1024 bytes"):
            await guest.send_event("x" * 5000)
        for number in range(20):
            await member.send_event({"number": number})
            await guest.send_event({"number": number})
        await guest.wait_closed()
        assert guest.close_code == ErrorCode.LIMIT_EXCEEDED
        assert not member.closed


async def test_a_call_may_have_an_end_that_is_set_in_advance(serve: Any) -> None:
    ended = asyncio.Event()

    async def handler(call: voicestream.Call) -> None:
        try:
            await call.wait_closed()
        finally:
            ended.set()

    async with serve(handler, authenticate=lambda *values: Admission(max_duration_s=0.2)) as loopback:
        async with loopback.connect() as call:
            await call.wait_closed()
            assert call.close_code == ErrorCode.LIMIT_EXCEEDED
        await ended.wait()
        while loopback.server.calls:
            await asyncio.sleep(0.01)


async def test_a_call_that_ends_before_its_time_leaves_no_timer(serve: Any) -> None:
    async with serve(sit, authenticate=lambda *values: Admission(max_duration_s=3600)) as loopback:
        async with loopback.connect():
            (reception,) = loopback.server._calls._receptions
        while loopback.server._calls._receptions:
            await asyncio.sleep(0.01)
        assert reception._over_at.cancelled()


async def test_a_client_is_sent_elsewhere(serve: Any) -> None:
    there = voicestream.RejectedError(
        ErrorCode.REDIRECT, "closer to you", uri="voicestream://two.example/", route_token=b"12345678", retry_after=0.25
    )
    async with serve(sit, authenticate=lambda *values: there) as loopback:
        with pytest.raises(voicestream.RejectedError, match="REDIRECT: closer to you") as caught:
            await loopback.connect()
    assert (caught.value.uri, caught.value.route_token, caught.value.retry_after) == ("voicestream://two.example/", b"12345678", 0.25)


@pytest.mark.parametrize("refusal", [("x" * 2000, {}), ("no", {"route_token": b"short"}), ("no", {"uri": "voicestream://" + "x" * 3000})])
async def test_a_refusal_that_does_not_fit_the_protocol_is_one_all_the_same(serve: Any, refusal: Any) -> None:
    reason, options = refusal
    no = voicestream.RejectedError(ErrorCode.FORBIDDEN, reason, **options)
    async with serve(sit, authenticate=lambda *values: no) as loopback:
        with pytest.raises(voicestream.RejectedError, match="INTERNAL_ERROR"):
            await loopback.connect()


async def test_a_check_that_hangs_is_given_up_before_the_client_gives_up(serve: Any) -> None:
    async def authenticate(*values: Any) -> None:
        await asyncio.Event().wait()

    async with serve(sit, authenticate=authenticate, limits=Limits(authenticate_timeout=0.1)) as loopback:
        with pytest.raises(voicestream.RejectedError, match="in time"):
            await loopback.connect()


async def test_under_load_a_client_proves_its_address_and_notices_nothing(serve: Any) -> None:
    async with serve(sit, limits=Limits(retry_above=0)) as loopback, loopback.connect() as call:
        assert loopback.server._calls._transport.endpoint.stats.retried == 1
        assert not call.closed


async def test_no_secret_of_a_call_is_in_any_log_trace_or_repr(serve: Any, tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    # VS-15-2 VS-15.2-2
    """T-LEAK: everything that both ends write or show of a call that works, and of one that fails, is searched for its secrets."""
    secrets = {"token": "tok3n-zebra", "metadata": "m3ta-zebra", "event": "ev3nt-zebra", "context": "c0ntext-zebra", "query": "qu3ry-zebra"}
    shown: list[str] = []
    got = asyncio.Event()

    async def handler(call: voicestream.Call) -> None:
        call.context = secrets["context"].encode()
        async for event in call.events():
            if event.kind == "json":
                shown.append(repr(event))
                got.set()
        shown.append(repr(call))

    def authenticate(authority: str, path: str, token: bytes, metadata: bytes, address: Any) -> Admission:
        if path.startswith("/wrong"):
            raise KeyError(token)
        return Admission(metadata=secrets["metadata"], identity=token)

    caplog.set_level(logging.DEBUG)
    (tmp_path / "s").mkdir()
    async with serve(handler, authenticate=authenticate, trace=tmp_path / "s") as loopback:
        options = {"token": secrets["token"], "metadata": secrets["metadata"], "trace": tmp_path / "client.sqlog"}
        async with loopback.connect("/right?key=" + secrets["query"], **options) as call:
            await call.send(b"\0\0" * 4800)
            await call.send_event({"say": secrets["event"]})
            await got.wait()
            (reception,) = loopback.server._calls._receptions
            for link in (call._parts.link, reception.link):
                with link.locked() as session:
                    tokens = session.grant.resume_token
                    shown += [repr(session.grant), repr(session._hub.config), repr(session)]
            given = loopback.server._calls._transport.endpoint._tickets
            ticket = next(iter(given._living.values())).ticket
            shown += [repr(given), repr(given._living), repr(call._parts.link._owner), repr(call._parts.attendant)]
            shown += [repr(one) for one in (call, call.stats(), reception, reception.record, loopback.server, loopback.connect(**options))]
        with pytest.raises(voicestream.RejectedError) as refused:
            await loopback.connect("/wrong", token=secrets["token"], metadata=secrets["metadata"])
        shown += [str(refused.value), repr(refused.value)]
    written = "".join(path.read_text() for path in [*tmp_path.glob("*.sqlog"), *(tmp_path / "s").glob("*")])
    assert "session_opened" in written
    assert len(caplog.records) > 3
    places = {"log": caplog.text, "traces": written, "reprs": "\n".join(shown)}
    for place, text in places.items():
        for name, secret in secrets.items():
            assert secret not in text, f"the {name} is in the {place}"
            assert secret.encode().hex() not in text, f"the {name} is in the {place}, in hexadecimal"
        for form in (repr(ticket.resumption_secret)[2:-1], ticket.resumption_secret.hex()):
            assert form not in text, f"a ticket's secret is in the {place}"
        for form in (repr(tokens)[2:-1], tokens.hex(), json.dumps(list(tokens))):
            assert form not in text, f"a resume token is in the {place}"
