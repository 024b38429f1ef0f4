"""Servers over real sockets on the loopback interface: taking, declining, failing, leaving."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voicestream
from voicestream.codepoints import CodecId, ErrorCode
from voicestream.config import Track

Serve = Callable[..., Any]

BLOCK = np.zeros(960, np.int16)


async def sit(call: voicestream.Call) -> None:
    """A handler that does nothing until the client leaves."""
    await call.wait_closed()


async def leave(call: voicestream.Call) -> None:
    """A handler that has nothing to say."""


def closing_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records if record.name == "voicestream"]
    return [line for line in lines if "role=server" in line]


# Taking calls


async def test_both_ends_learn_of_each_other(serve: Serve) -> None:
    seen: list[Any] = []

    async def handler(call: voicestream.Call) -> None:
        seen.append((call.path, call.authority, call.metadata, call.remote_address[0], call.session_id))
        await call.wait_closed()

    async with serve(handler, metadata="welcome") as loopback:
        async with loopback.connect("/agent?lang=de", metadata=b"hello") as call:
            pass
        assert call.metadata == b"welcome"
        assert call.remote_address == ("127.0.0.1", loopback.server.port)
        assert seen == [("/agent?lang=de", f"127.0.0.1:{loopback.server.port}", b"hello", "127.0.0.1", call.session_id)]
        assert len(call.session_id) == 32
        assert repr(call) == f"<Call {call.session_id[:8]} /agent closed>"


async def test_a_call_may_be_awaited_and_closed_by_hand(serve: Serve) -> None:
    async with serve(sit) as loopback:
        call = await loopback.connect()
        assert not call.closed
        assert [other.session_id for other in loopback.server.calls] == [call.session_id]
        await call.close()
        assert call.closed


async def test_a_server_may_be_awaited_and_closed_by_hand(certificate: Any) -> None:
    server = await voicestream.serve(sit, "127.0.0.1", 0, certfile=certificate.certfile, keyfile=str(certificate.keyfile))
    assert server.addresses == [("127.0.0.1", server.port)]
    forever = asyncio.create_task(server.serve_forever())
    await server.close()
    await server.close()
    await forever


async def test_cancelling_serve_forever_closes_the_server(certificate: Any) -> None:
    server = await voicestream.serve(sit, "127.0.0.1", 0, certfile=certificate.certfile, keyfile=certificate.keyfile)
    forever = asyncio.create_task(server.serve_forever())
    await asyncio.sleep(0)
    forever.cancel()
    with pytest.raises(asyncio.CancelledError):
        await forever
    again = await voicestream.serve(sit, "127.0.0.1", server.port, certfile=certificate.certfile, keyfile=certificate.keyfile)
    await again.close()


async def test_every_address_is_ipv4_too(certificate: Any) -> None:
    async with voicestream.serve(sit, "::", 0, certfile=certificate.certfile, keyfile=certificate.keyfile) as server:
        for host in ("127.0.0.1", "localhost"):
            async with voicestream.connect(f"voicestream://{host}:{server.port}/", pin=certificate.pin) as call:
                assert call.authority == f"{host}:{server.port}"


async def test_the_certificate_can_be_trusted_as_a_file_by_name(serve: Serve) -> None:
    async with serve(sit) as loopback:
        uri = f"voicestream://localhost:{loopback.server.port}/"
        async with voicestream.connect(uri, cafile=loopback.certificate.certfile):
            pass
        with pytest.raises(voicestream.CertificateError):
            await voicestream.connect(loopback.uri(), cafile=loopback.certificate.certfile, server_name="example.org")


async def test_a_handler_that_returns_ends_the_call_well_and_what_it_said_is_played(serve: Serve) -> None:
    async def handler(call: voicestream.Call) -> None:
        await call.send(np.full(9600, 9000, np.int16), ahead=True)

    async with serve(handler) as loopback, loopback.connect() as call:
        blocks = [block async for block in call]
        await call.wait_closed()
        assert call.close_code == ErrorCode.NO_ERROR
        assert call.stats().playout.frames_played >= 10
        assert blocks


async def test_a_client_that_does_not_listen_cannot_keep_a_finished_handler(serve: Serve) -> None:
    async def handler(call: voicestream.Call) -> None:
        await call.send(BLOCK)

    async with serve(handler, finish_timeout=0.05) as loopback, loopback.connect() as call:
        await call.wait_closed()
        assert call.close_code == ErrorCode.NO_ERROR


async def test_a_handler_sees_that_the_client_has_left(serve: Serve) -> None:
    seen: list[str] = []
    started, done = asyncio.Event(), asyncio.Event()

    async def iterate(call: voicestream.Call) -> None:
        async for _ in call:
            pass
        seen.append("blocks")

    async def read_events(call: voicestream.Call) -> None:
        async for _ in call.events():
            pass
        seen.append("events")

    async def send(call: voicestream.Call) -> None:
        try:
            while True:
                await call.send(np.zeros(48000, np.int16), ahead=True)
        except voicestream.CallClosedOK:
            seen.append("send")

    async def handler(call: voicestream.Call) -> None:
        started.set()
        await asyncio.gather(iterate(call), read_events(call), send(call))
        done.set()

    async with serve(handler) as loopback:
        async with loopback.connect():
            await started.wait()
        await done.wait()
    assert sorted(seen) == ["blocks", "events", "send"]


async def test_one_line_is_logged_when_a_call_opens_and_one_when_it_closes(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "voicestream")
    async with serve(sit) as loopback, loopback.connect("/agent?key=secret", token="secret") as call:
        await call.send(np.zeros(4800, np.int16))
        while call.stats().sent.frames < 5:
            await asyncio.sleep(0.001)
        await call.close(reason="bye")
    opened, closed = closing_lines(caplog)
    assert opened.startswith(f"call_opened session={call.session_id} role=server peer=127.0.0.1:")
    assert " path=/agent sample_rate_hz=48000 " in opened
    assert closed.startswith(f"call_closed session={call.session_id} role=server code=NO_ERROR by=far_end reason=bye duration_s=")
    assert " frames_received=5 " in closed
    names = ["frames_sent", "frames_sent_lost", "mended_by_retransmission", "mended_by_repair", "bytes_sent", "bytes_received", "resumes"]
    assert set(names) <= {part.partition("=")[0] for part in closed.split()}
    assert "secret" not in caplog.text


# Declining


async def test_a_refusal_arrives_with_all_that_was_said(serve: Serve) -> None:
    called: list[Any] = []

    async def authenticate(*values: Any) -> None:
        called.append(values)
        raise voicestream.RejectedError(
            ErrorCode.UNAUTHORIZED, "no such token", uri="voicestream://other.example/", route_token=b"12345678", retry_after=1.5
        )

    async with serve(sit, authenticate=authenticate) as loopback:
        with pytest.raises(voicestream.RejectedError, match="UNAUTHORIZED: no such token") as caught:
            await loopback.connect("/x", token="wrong", metadata=b"m")
        assert loopback.server.calls == []
    error = caught.value
    assert (error.code, error.uri, error.route_token) == (ErrorCode.UNAUTHORIZED, "voicestream://other.example/", b"12345678")
    assert error.retry_after == pytest.approx(1.5)
    ((authority, path, token, metadata, address),) = called
    assert (authority, path, token, metadata) == (f"127.0.0.1:{loopback.server.port}", "/x", b"wrong", b"m")
    assert address[0] == "127.0.0.1"


async def test_a_check_can_greet_each_client_in_its_own_way(serve: Serve) -> None:
    def greet(authority: str, path: str, token: bytes, metadata: bytes, address: Any) -> bytes:
        return b"hello " + token

    async with serve(sit, authenticate=greet, metadata="unused") as loopback, loopback.connect(token="Ada") as call:
        assert call.metadata == b"hello Ada"


async def test_a_client_that_gives_up_while_it_is_checked_leaves_nothing_behind(serve: Serve) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def authenticate(*values: Any) -> None:
        asked.set()
        await answer.wait()

    ran: list[Any] = []

    async def handler(call: voicestream.Call) -> None:
        ran.append(call)

    async with serve(handler, authenticate=authenticate) as loopback:
        dialling = asyncio.ensure_future(_open(loopback.connect()))
        await asked.wait()
        dialling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dialling
        await asyncio.sleep(0.05)  # its goodbye arrives
        answer.set()
        async with loopback.connect() as call:
            await call.wait_closed()
    assert len(ran) == 1


async def _open(connecting: Any) -> Any:
    return await connecting


async def test_a_server_that_takes_too_long_is_given_up(serve: Serve) -> None:
    async def authenticate(*values: Any) -> None:
        await asyncio.Event().wait()

    async with serve(sit, authenticate=authenticate, drain_timeout=0) as loopback:
        with pytest.raises(voicestream.ConnectError, match=r"did not take the call within 0.2 s"):
            await loopback.connect(open_timeout=0.2)


async def test_ends_without_a_common_track_part_with_the_reason(serve: Serve) -> None:
    async with serve(sit, tracks=[Track(codec=CodecId.PCMU, clock_rate_hz=8000)]) as loopback:
        with pytest.raises(voicestream.RejectedError, match="TRACK_ERROR"):
            await loopback.connect()


async def test_a_server_that_closes_instead_of_answering_is_quoted(serve: Serve) -> None:
    async def authenticate(*values: Any) -> None:
        (reception,) = loopback.server._calls._receptions
        reception._link.close(ErrorCode.BUSY, "not today")

    async with serve(sit, authenticate=authenticate) as loopback:
        with pytest.raises(voicestream.ConnectError, match="closed the connection before it took the call: BUSY: not today"):
            await loopback.connect()


async def test_a_full_server_says_so(serve: Serve) -> None:
    async with serve(sit, limits=voicestream.Limits(max_sessions=1)) as loopback, loopback.connect():
        with pytest.raises(voicestream.RejectedError, match="BUSY"):
            await loopback.connect()


# No call at all


async def test_another_certificate_than_the_pinned_one_is_named_and_nothing_is_sent(serve: Serve) -> None:
    called: list[Any] = []
    async with serve(sit, authenticate=lambda *values: called.append(values)) as loopback:
        with pytest.raises(voicestream.CertificateError, match="another certificate than the pinned one"):
            await loopback.connect(pin="ab" * 32)
        with pytest.raises(voicestream.CertificateError):
            await voicestream.connect(loopback.uri())
    assert called == []


async def test_trusting_anybody_warns(serve: Serve) -> None:
    async with serve(sit) as loopback:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            async with voicestream.connect(loopback.uri(), insecure=True):
                pass
    assert [warning.category for warning in caught] == [voicestream.InsecureWarning]


async def test_where_nobody_listens_the_call_is_refused() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(voicestream.ConnectError, match=f"connection refused: nothing listens at 127.0.0.1:{port}"):
        await voicestream.connect(f"voicestream://127.0.0.1:{port}/", pin="ab" * 32)


async def test_silence_is_given_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        with pytest.raises(voicestream.ConnectError, match=r"does not answer within 0\.\d+ s"):
            await voicestream.connect(f"voicestream://127.0.0.1:{mute.getsockname()[1]}/", pin="ab" * 32, open_timeout=0.2)


async def test_an_unknown_host_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*values: Any, **options: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    with pytest.raises(voicestream.ConnectError, match="no-such-host is not a known host"):
        await voicestream.connect("voicestream://no-such-host/")


async def test_a_server_of_another_protocol_is_named(certificate: Any) -> None:
    from aioquic.asyncio import serve as serve_quic
    from aioquic.quic.configuration import QuicConfiguration

    configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
    configuration.load_cert_chain(certificate.certfile, certificate.keyfile)
    other = await serve_quic("127.0.0.1", 0, configuration=configuration)
    port = other._transport.get_extra_info("sockname")[1]
    try:
        with pytest.raises(voicestream.ConnectError, match="does not speak voicestream/1"):
            await voicestream.connect(f"voicestream://127.0.0.1:{port}/", pin=certificate.pin)
    finally:
        other.close()


async def test_bad_arguments_fail_where_they_are_given() -> None:
    for options, says in (
        ({"pin": "xyz"}, "pin|SHA-256|fingerprint|hexadecimal"),
        ({"pin": "ab" * 32, "insecure": True}, "one of cafile, pin and insecure"),
        ({"open_timeout": 0}, "open_timeout"),
        ({"token": b"x" * 2049}, "token"),
        ({"sample_rate_hz": 1}, "sample_rate_hz"),
    ):
        with pytest.raises(ValueError, match=says):
            voicestream.connect("voicestream://localhost/", **options)
    with pytest.raises(TypeError, match="handler"):
        voicestream.serve("handler", certfile="c", keyfile="k")  # type: ignore[arg-type]


async def test_a_taken_port_is_one_sentence(serve: Serve) -> None:
    async with serve(sit) as loopback:
        paths = {"certfile": loopback.certificate.certfile, "keyfile": loopback.certificate.keyfile}
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1 port {loopback.server.port}: address already in use") as caught:
            await voicestream.serve(sit, "127.0.0.1", loopback.server.port, **paths)
        assert caught.value.errno == errno.EADDRINUSE


async def test_a_missing_key_is_named(certificate: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.pem"):
        await voicestream.serve(sit, "127.0.0.1", 0, certfile=certificate.certfile, keyfile=tmp_path / "missing.pem")


# Failing


async def test_a_failing_handler_ends_its_call_only_and_is_logged_once(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(call: voicestream.Call) -> None:
        if call.path == "/bad":
            raise KeyError("inner detail")
        await call.wait_closed()

    async with serve(handler) as loopback, loopback.connect("/good") as good:
        async with loopback.connect("/bad") as bad:
            with pytest.raises(voicestream.CallClosedError, match="HANDLER_ERROR") as caught:
                async for _ in bad:
                    pass
            with pytest.raises(voicestream.CallClosedError):
                await anext(bad.events())
        assert caught.value.remote
        assert "inner detail" not in str(caught.value)
        assert not good.closed
        await good.send_event({"still": "here"})
    failures = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(failures) == 1
    assert failures[0].name == "voicestream.server"
    assert failures[0].exc_info is not None


async def test_a_handler_whose_own_work_was_cancelled_has_failed(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(call: voicestream.Call) -> None:
        inner = asyncio.get_running_loop().create_future()
        inner.cancel()
        await inner

    async with serve(handler) as loopback, loopback.connect() as call:
        await call.wait_closed()
        assert call.close_code == ErrorCode.HANDLER_ERROR
    assert any("handler failed" in record.getMessage() for record in caplog.records)


# Leaving


async def test_a_closing_server_lets_calls_end_and_takes_no_new_ones(serve: Serve) -> None:
    finished: list[str] = []

    async def handler(call: voicestream.Call) -> None:
        async for event in call.events():
            if event.kind == "text":
                finished.append(event.data)
                return

    async with serve(handler) as loopback, loopback.connect() as call:
        closing = asyncio.create_task(loopback.server.close())
        event = await anext(call.events())
        assert event.kind == "going_away"
        assert event.data == {"reason": "the server is shutting down", "uri": None, "retry_after": None}
        with pytest.raises(voicestream.RejectedError, match="GOING_AWAY"):
            await loopback.connect()
        assert not call.closed
        await call.send_event("my last words")
        await closing
        await call.wait_closed()
        assert call.close_code == ErrorCode.NO_ERROR
        with pytest.raises(voicestream.ConnectError):
            await loopback.connect(open_timeout=0.5)
    assert finished == ["my last words"]


async def test_who_does_not_end_in_time_is_closed(serve: Serve) -> None:
    cleaned: list[bool] = []

    async def handler(call: voicestream.Call) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    async with serve(handler) as loopback, loopback.connect() as call:
        await loopback.server.close(drain_timeout=0.05)
        await call.wait_closed()
        assert call.close_code == ErrorCode.GOING_AWAY
        with pytest.raises(voicestream.CallClosedOK):
            await call.send(BLOCK)
        assert [block async for block in call] == []
    assert cleaned == [True]


async def test_a_second_wish_to_leave_is_granted_at_once(serve: Serve) -> None:
    async def handler(call: voicestream.Call) -> None:
        await asyncio.Event().wait()

    async with serve(handler) as loopback, loopback.connect() as call:
        closing = asyncio.create_task(loopback.server.close(drain_timeout=25))
        await anext(call.events())
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await call.wait_closed()


async def test_a_server_that_vanishes_is_noticed(serve: Serve) -> None:
    limits = voicestream.Limits(idle_timeout=1.0)
    async with serve(sit, drain_timeout=0) as loopback:
        call = await loopback.connect(limits=limits, resume=False)
        transport = call._parts.link._owner
        transport._port.close()
        await call.wait_closed()
        assert call.close_code == ErrorCode.IDLE_TIMEOUT
        with pytest.raises(voicestream.CallClosedError, match="IDLE_TIMEOUT"):
            async for _ in call:
                pass
        await call.close()
