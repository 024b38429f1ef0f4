"""What the loopback tests share: one certificate, and servers that leave nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import voicestream
from voicestream.quic.certificates import make_certificate, write_certificate

TEST_TIMEOUT_S = 30
"""Far beyond what any of these takes; a test that hangs fails by name."""


@dataclass(frozen=True)
class Certificate:
    """A server's certificate for localhost."""

    certfile: Path
    keyfile: Path
    pin: str


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder = tmp_path_factory.mktemp("certificate")
    pem, key, pin = make_certificate(["localhost", "127.0.0.1"])
    write_certificate(pem, key, folder / "cert.pem", folder / "key.pem")
    return Certificate(folder / "cert.pem", folder / "key.pem", pin)


@dataclass(frozen=True)
class Loopback:
    """A running server and how to call it."""

    server: voicestream.Server
    certificate: Certificate

    def uri(self, path: str = "/") -> str:
        return f"voicestream://127.0.0.1:{self.server.port}{path}"

    def connect(self, path: str = "/", **options: Any) -> voicestream.connect:
        return voicestream.connect(self.uri(path), **{"pin": self.certificate.pin, **options})


Serve = Callable[..., AbstractAsyncContextManager[Loopback]]


@pytest.fixture
def serve(certificate: Certificate) -> Serve:
    """Starts a server for a handler; afterwards no task may be left."""

    @asynccontextmanager
    async def start(handler: Any, **options: Any) -> AsyncIterator[Loopback]:
        before = asyncio.all_tasks()
        paths = {"certfile": certificate.certfile, "keyfile": certificate.keyfile}
        async with asyncio.timeout(TEST_TIMEOUT_S):
            async with voicestream.serve(handler, "127.0.0.1", 0, **{**paths, "drain_timeout": 5.0, **options}) as server:
                yield Loopback(server, certificate)
            for _ in range(3):
                await asyncio.sleep(0)
        left = asyncio.all_tasks() - before
        assert not left, f"tasks left behind: {left}"

    return start
