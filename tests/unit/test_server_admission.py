"""Whether a call is taken."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.config import Limits
from voicestream.errors import RejectedError
from voicestream.events import HelloReceived
from voicestream.server_admission import Admission, admit

HELLO = HelloReceived(authority="example.org", path="/agent", token=b"secret", metadata=b"hi")
ADDRESS = ("192.0.2.1", 4711)


async def terms(authenticate: Any, timeout: float = 5) -> Admission | RejectedError:
    return await admit(authenticate, HELLO, ADDRESS, metadata=b"welcome", timeout=timeout)


async def ask(authenticate: Any, timeout: float = 5) -> Any:
    """The metadata of the answer, or the refusal."""
    verdict = await terms(authenticate, timeout)
    return verdict if isinstance(verdict, RejectedError) else verdict.metadata


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


# Terms


async def test_a_check_may_set_terms_and_leave_the_greeting_to_the_server() -> None:
    given = Admission(identity="Ada", limits=Limits(max_event_size=2048), max_rate_bps=40000, max_duration_s=60)
    assert await terms(lambda *values: given) == Admission(
        metadata=b"welcome", identity="Ada", limits=Limits(max_event_size=2048), max_rate_bps=40000, max_duration_s=60
    )
    assert await ask(lambda *values: Admission(metadata="hello")) == "hello"


async def test_who_resumes_is_known_by_the_token_or_by_the_name_that_the_check_gave() -> None:
    other = HelloReceived(authority="example.org", path="/agent", token=b"renewed", metadata=b"")
    plain, named = Admission(), Admission(identity="Ada")
    assert plain.identity_of(HELLO) != plain.identity_of(other)
    assert named.identity_of(HELLO) == named.identity_of(other)
    assert named.identity_of(HELLO) != Admission(identity=b"Bob").identity_of(HELLO)
    assert len({len(one.identity_of(HELLO)) for one in (plain, named)}) == 1


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"metadata": b"x" * 4097}, "metadata"),
        ({"identity": 7}, "identity"),
        ({"max_rate_bps": 11999}, "max_rate_bps"),
        ({"max_duration_s": 0}, "max_duration_s"),
        ({"max_duration_s": float("nan")}, "max_duration_s"),
    ],
)
def test_terms_out_of_their_range_are_the_callers_mistake(options: dict[str, Any], name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        Admission(**options)


async def test_terms_show_neither_greeting_nor_name() -> None:
    assert "secret" not in repr(Admission(metadata=b"secret", identity="secret"))


# Secrets and failures


@pytest.mark.parametrize("wraps", [False, True])
async def test_the_words_of_a_failing_check_are_kept_out_of_the_log(wraps: bool, caplog: pytest.LogCaptureFixture) -> None:
    """T-LEAK: a look-up that fails quotes its key."""

    def look_up(authority: str, path: str, token: bytes, metadata: bytes, address: Any) -> None:
        try:
            {}[token]
        except KeyError as error:
            if wraps:
                raise ValueError(f"unknown: {token!r}, {metadata!r}") from error
            raise

    with caplog.at_level(logging.DEBUG):
        verdict = await ask(look_up)
    assert isinstance(verdict, RejectedError)
    assert "secret" not in caplog.text
    assert "secret" not in str(verdict)
    assert "look_up" in caplog.text
    assert ("ValueError" if wraps else "KeyError") in caplog.text


async def test_a_check_that_awaits_something_cancelled_declines_and_is_not_cancelled_itself() -> None:
    async def check(*values: Any) -> None:
        raise asyncio.CancelledError

    verdict = await ask(check)
    assert isinstance(verdict, RejectedError)
    assert verdict.code == ErrorCode.INTERNAL_ERROR


async def test_a_timeout_of_the_checks_own_is_a_failure_like_any_other(caplog: pytest.LogCaptureFixture) -> None:
    def check(*values: Any) -> None:
        raise TimeoutError("database")

    assert isinstance(await ask(check), RejectedError)
    assert "TimeoutError" in caplog.text
    assert "longer than" not in caplog.text
