"""Waiting inside a call, and its end."""

from __future__ import annotations

import asyncio

import pytest

from voicestream.call_state import Ending, Signal, closed_error
from voicestream.codepoints import ErrorCode
from voicestream.errors import CallClosedError, CallClosedOK
from voicestream.events import Closed


def closed(code: int, *, remote: bool = True) -> Closed:
    return Closed(code=code, reason="because", remote=remote, may_resume=False)


async def test_a_signal_wakes_all_who_wait_now_and_nobody_later() -> None:
    signal = Signal()
    waiters = [asyncio.create_task(signal.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert signal.awaited
    signal.notify()
    await asyncio.gather(*waiters)
    assert not signal.awaited
    late = asyncio.create_task(signal.wait())
    await asyncio.sleep(0)
    assert not late.done()
    signal.notify()
    await late


async def test_a_wait_ends_at_its_timeout() -> None:
    signal = Signal()
    await signal.wait(0.001)
    assert not signal.awaited


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    signal = Signal()
    waiter = asyncio.create_task(signal.wait(60))
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert not signal.awaited
    signal.notify()


@pytest.mark.parametrize("code", [ErrorCode.NO_ERROR, ErrorCode.GOING_AWAY])
def test_an_intended_end_is_ok(code: ErrorCode) -> None:
    error = closed_error(closed(code))
    assert isinstance(error, CallClosedOK)
    assert (error.code, error.reason, error.remote) == (code, "because", True)


@pytest.mark.parametrize("code", [ErrorCode.INTERNAL_ERROR, ErrorCode.HANDLER_ERROR, ErrorCode.IDLE_TIMEOUT, 0x4242])
def test_any_other_end_is_an_error(code: int) -> None:
    assert isinstance(closed_error(closed(code)), CallClosedError)


async def test_the_first_end_counts() -> None:
    ending = Ending()
    ending.check()
    waiter = asyncio.create_task(ending.wait())
    await asyncio.sleep(0)
    ending.set(closed(ErrorCode.HANDLER_ERROR))
    ending.set(closed(ErrorCode.NO_ERROR))
    await waiter
    await ending.wait()
    assert ending.closed
    with pytest.raises(CallClosedError, match="HANDLER_ERROR"):
        ending.check()
    with pytest.raises(CallClosedError):
        ending.check_error()


def test_a_good_end_ends_iteration_without_an_error() -> None:
    ending = Ending()
    ending.set(closed(ErrorCode.NO_ERROR))
    ending.check_error()
    with pytest.raises(CallClosedOK):
        ending.check()
