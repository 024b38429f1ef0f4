"""Ctrl-C and SIGTERM at a server as the README has it: it ends well, and no traceback is shown."""

from __future__ import annotations

import asyncio
import signal
import sys
import textwrap
from typing import Any

import pytest

PATIENCE_S = 40
SERVER = """
    import asyncio, signal, sys, voicestream

    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the test runner's parent has done

    async def handler(call):
        await call.wait_closed()

    async def main():
        async with voicestream.serve(handler, "127.0.0.1", 0, certfile=sys.argv[1], keyfile=sys.argv[2]) as server:
            print(server.port, flush=True)
            await server.serve_forever()
        print("closed", flush=True)

    asyncio.run(main())
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the loop of Windows takes no signal handlers")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_readmes_server_well(number: signal.Signals, certificate: Any) -> None:
    pipe = asyncio.subprocess.PIPE
    words = [sys.executable, "-c", textwrap.dedent(SERVER), str(certificate.certfile), str(certificate.keyfile)]
    process = await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=pipe)
    try:
        assert process.stdout is not None
        await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)
        # The port is told just before serve_forever begins.
        await asyncio.sleep(0.2)
        process.send_signal(number)
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    finally:
        if process.returncode is None:
            process.kill()
    assert (process.returncode, out, err) == (0, b"closed\n", b"")


async def test_what_the_application_handles_itself_is_left_to_it() -> None:
    from voicestream.server_signals import stop_signals

    loop = asyncio.get_running_loop()
    mine: list[int] = []
    loop.add_signal_handler(signal.SIGTERM, mine.append, 1)
    try:
        with stop_signals() as stop:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(0.05)
            assert not stop.is_set()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
    assert mine == [1]


async def test_handlers_are_given_back() -> None:
    from voicestream.server_signals import stop_signals

    before = signal.getsignal(signal.SIGTERM)
    with stop_signals() as stop:
        signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(stop.wait(), 5)
    assert signal.getsignal(signal.SIGTERM) == before
