"""Traces of whole calls: complete, explained, and without anything that is nobody's business."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voicestream
from voicestream.client_dialing import Dialing
from voicestream.observe import read_trace

Serve = Callable[..., Any]

TOKEN = "token-that-nobody-may-see"
BODY = "words-of-an-event"
METADATA = b"metadata-of-the-application"
QUERY = "key=secret-of-the-query"
RATE_HZ = 16000


async def echo(call: voicestream.Call) -> None:
    events = asyncio.create_task(anext(aiter(call.events())))
    async for block in call:
        await call.send(block)
    event = await events
    await call.send_event({"said": event.data["text"]})
    assert BODY not in repr(event)


def speech(seconds: float) -> np.ndarray:
    return (8000 * np.sin(np.arange(round(seconds * RATE_HZ)) * 0.07)).astype(np.int16)


async def converse(serve: Serve, folder: Path) -> str:
    """A call with everything in it that must not be told; the session's id."""
    async with (
        serve(echo, trace=folder, sample_rate_hz=RATE_HZ, metadata=METADATA) as loopback,
        loopback.connect(f"/agent?{QUERY}", token=TOKEN, metadata=METADATA, trace=folder, sample_rate_hz=RATE_HZ) as call,
    ):
        await call.send_event({"text": BODY})
        heard = asyncio.create_task(call.record(folder / "heard.wav"))
        await call.speak(speech(0.4))
        await heard
        told = await anext(aiter(call.events()))
        assert BODY not in repr([call, told, call._parts.options, call._info, call.stats()])
        with call._parts.link.locked() as session:
            assert session.grant is not None
            folder.joinpath("resume-token").write_bytes(session.grant.resume_token)
            assert session.grant.resume_token.hex() not in repr(session.grant)
            assert repr(session.grant.resume_token) not in repr(session.grant)
        return call.session_id


async def test_both_ends_of_a_call_leave_a_trace_in_qlogs_form(serve: Serve, tmp_path: Path, check_qlog: Callable[..., None]) -> None:
    session_id = await converse(serve, tmp_path)
    for vantage in ("client", "server"):
        header, events = read_trace(tmp_path / f"{session_id}-{vantage}.sqlog")
        check_qlog(header, events)
        assert header["trace"]["vantage_point"]["type"] == vantage
        names = {event["name"].removeprefix("voicestream:") for event in events}
        assert {"session_opened", "allocator_plan", "bwe_estimate", "playout_decode", "event_sent", "session_closed"} <= names
        assert all(
            event["data"]["reason"] for event in events if event["name"].startswith(("voicestream:playout_decode", "voicestream:alloc"))
        )
        (closed,) = (event for event in events if event["name"] == "voicestream:session_closed")
        assert closed["data"]["code"] == 0
        times = [event["time"] for event in events]
        assert times == sorted(times)


async def test_nothing_secret_is_in_traces_logs_or_reprs(serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "voicestream")
    await converse(serve, tmp_path)
    secrets = [TOKEN.encode(), BODY.encode(), METADATA, QUERY.encode(), tmp_path.joinpath("resume-token").read_bytes()]
    told = [path.read_bytes() for path in tmp_path.glob("*.sqlog")] + [caplog.text.encode()]
    assert len(told) == 3
    for secret in secrets:
        for form in (secret, secret.hex().encode(), base64.b64encode(secret)[:-4], repr(secret)[2:-1].encode()):
            assert not any(form in text for text in told)


def test_what_an_application_or_the_server_trusts_us_with_is_not_in_reprs() -> None:
    from voicestream import events
    from voicestream.media import MediaFrame
    from voicestream.store import SessionRecord
    from voicestream.wire.parameters import Parameters

    connecting = voicestream.connect("voicestream://host/", token=TOKEN, metadata=METADATA, insecure=True, route_token=TOKEN.encode()[:20])
    dialing = connecting._dialing
    assert isinstance(dialing, Dialing)
    secret = TOKEN.encode()
    values = [
        connecting,
        dialing,
        dialing.redial(),
        events.HelloReceived(authority="a", path="/", token=secret, metadata=secret),
        events.ResumeReceived(session_id=bytes(16), authority="a", path="/", token=secret),
        events.Accepted(session_id=bytes(16), metadata=secret),
        events.EventReceived(kind=1, event_id=1, order=1, payload=secret, track=None, pts=None),
        MediaFrame(pts=0, units=8, payload=secret),
        Parameters(token=secret, metadata=secret, resume_token=secret, route_token=secret[:20]),
        SessionRecord(session_id=bytes(16), identity=secret, context=secret),
        voicestream.CallEvent(kind="json", data={"secret": TOKEN}),
        voicestream.CallEvent(kind="text", data=TOKEN),
        voicestream.AudioBlock(pts=0, duration_ms=20, payload=secret),
    ]
    for value in values:
        assert TOKEN[:20] not in repr(value), type(value).__name__
        assert METADATA.decode() not in repr(value), type(value).__name__
    assert "'lost'" in repr(voicestream.CallEvent(kind="lost"))


async def test_a_call_that_does_not_come_about_leaves_a_trace_at_the_client_only(serve: Serve, tmp_path: Path) -> None:
    def refuse(*_: Any) -> None:
        raise voicestream.RejectedError(voicestream.ErrorCode.FORBIDDEN, "not you")

    async with serve(echo, authenticate=refuse, trace=tmp_path) as loopback:
        with pytest.raises(voicestream.RejectedError):
            await loopback.connect(token=TOKEN, trace=tmp_path)
    (path,) = tmp_path.iterdir()
    _, events = read_trace(path)
    assert path.name.startswith("unopened-")
    assert [event["data"]["reason"] for event in events if event["name"] == "voicestream:session_failed"] == ["FORBIDDEN: not you"]
    assert TOKEN.encode() not in path.read_bytes()


async def test_a_trace_that_cannot_be_written_is_refused_before_anything_is_dialled(serve: Serve, tmp_path: Path) -> None:
    async with serve(echo) as loopback:
        with pytest.raises(OSError, match=r"there is no folder .*missing for the trace call.sqlog"):
            await loopback.connect(trace=tmp_path / "missing" / "call.sqlog")
        assert loopback.server.calls == []
    with pytest.raises(OSError, match=r"there is no folder .*missing for the traces"):
        async with serve(echo, trace=tmp_path / "missing"):
            pass
