"""A dial that is given up at the very moment at which its handshake ends: the call goes on where it was, and ends when it is closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import voicestream
from voicestream.quic.connection import Connection
from voicestream.quic.path_keeper import Step
from voicestream.quic.vacancy import Pending


async def test_a_call_outlives_a_dial_that_is_given_up_as_it_is_answered(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that stands still for seconds, the end of a dial's time and the answer to it are found in the same turn of the loop."""

    given_up: list[Connection] = []
    heard: list[bytes | None] = []

    async def handler(call: voicestream.Call) -> None:
        async for block in call.frames(decode=False):
            heard.append(block.payload)

    async with serve(handler, drain_timeout=0) as loopback:
        call = await loopback.connect()
        keeper = call._parts.on_network_changed.__self__
        completed = Connection._handshake_completed

        def late(self: Connection, event: Any, now: float) -> None:
            if isinstance(self.session, Pending) and not given_up:
                given_up.append(self)
                keeper._do([Step.STOP_DIAL, *keeper._keeper.dial_failed(now, keeper._transport.connection)])
            completed(self, event, now)

        monkeypatch.setattr(Connection, "_handshake_completed", late)
        with keeper._link.locked():
            keeper._keeper.watch.leave(keeper._link.now())  # as when the server wants to be left
        while not given_up:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        assert len(given_up) == 1
        assert not call.closed
        await call.send_frame(b"\x08still here")
        await asyncio.wait_for(call.finish(), 5)
        await asyncio.wait_for(call.close(), 5)
        assert call.closed
    assert b"\x08still here" in heard
