"""Whether a call is taken."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.errors import RejectedError
from voicestream.events import HelloReceived
from voicestream.server_admission import admit

HELLO = HelloReceived(authority="example.org", path="/agent", token=b"secret", metadata=b"hi")
ADDRESS = ("192.0.2.1", 4711)


async def ask(authenticate: Any, timeout: float = 5) -> bytes | RejectedError:
    return await admit(authenticate, HELLO, ADDRESS, metadata=b"welcome", timeout=timeout)


async def test_without_a_check_every_call_is_taken() -> None:
    assert await ask(None) == b"welcome"


async def test_the_check_gets_everything_that_is_known() -> None:
    seen: list[Any] = []
    assert await ask(lambda *values: seen.append(values)) == b"welcome"
    assert seen == [("example.org", "/agent", b"secret", b"hi", ADDRESS)]


async def test_a_check_may_wait() -> None:
    async def check(*values: Any) -> bytes:
        await asyncio.sleep(0)
        return b"for you"

    assert await ask(check) == b"for you"


async def test_text_is_metadata_too() -> None:
    assert await ask(lambda *values: "grüße") == "grüße".encode()


async def test_a_check_declines_by_returning_or_raising() -> None:
    no = RejectedError(ErrorCode.UNAUTHORIZED, "no such token")

    def refuse(*values: Any) -> None:
        raise no

    assert await ask(lambda *values: no) is no
    assert await ask(refuse) is no


@pytest.mark.parametrize("result", [42, b"x" * 4097])
async def test_a_useless_answer_declines_and_is_logged(result: object, caplog: pytest.LogCaptureFixture) -> None:
    verdict = await ask(lambda *values: result)
    assert isinstance(verdict, RejectedError)
    assert verdict.code == ErrorCode.INTERNAL_ERROR
    assert len(caplog.records) == 1


async def test_a_failing_check_declines_and_tells_the_client_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*values: Any) -> None:
        raise KeyError("database password")

    with caplog.at_level(logging.ERROR, "voicestream.server"):
        verdict = await ask(fail)
    assert isinstance(verdict, RejectedError)
    assert "password" not in str(verdict)
    assert "secret" not in caplog.text
    assert len(caplog.records) == 1


async def test_a_check_that_takes_too_long_declines() -> None:
    async def hang(*values: Any) -> None:
        await asyncio.Event().wait()

    verdict = await ask(hang, timeout=0.01)
    assert isinstance(verdict, RejectedError)


async def test_a_cancelled_check_is_cancelled() -> None:
    async def hang(*values: Any) -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(ask(hang))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
