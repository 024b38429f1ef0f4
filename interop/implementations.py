"""Implementations under test: commands that are told by their environment what to be, and live servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["UNSUPPORTED", "Files", "Implementation", "end", "load", "serving"]

ROOT: Final = Path(__file__).resolve().parent.parent
UNSUPPORTED: Final = 127
"""Exit status of an endpoint that does not know a test case."""
READY_SECONDS: Final = 60.0
PROBE_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Files:
    """The suite's certificate.

    Attributes:
        certfile, keyfile: PEM.
        pin: SHA-256 of the certificate, hexadecimal.
    """

    certfile: Path
    keyfile: Path
    pin: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Implementation:
    """A command in two roles.

    Attributes:
        name: What the tables call it.
        command: Program and arguments; ``{python}`` is this interpreter.
        roles: What it can be.
        cwd: Where it is run.
        env: What is set beside the test case.
    """

    name: str
    command: tuple[str, ...]
    roles: tuple[str, ...] = ("client", "server")
    cwd: Path = ROOT
    env: Mapping[str, str] = field(default_factory=dict)

    async def start(self, role: str, testcase: str, *, log: Path | None = None, **variables: object) -> asyncio.subprocess.Process:
        """Run it; variables are ROLE, TESTCASE, and HOST, PORT, URI, CERT, KEY, PIN, SECONDS as given.

        Raises:
            OSError: It cannot be run.
        """
        own = {"ROLE": role, "TESTCASE": testcase, **{name.upper(): str(value) for name, value in variables.items()}}
        command = [sys.executable if part == "{python}" else part for part in self.command]
        output = open(log, "ab") if log is not None else None  # noqa: SIM115 - the process inherits it
        try:
            return await asyncio.create_subprocess_exec(
                *command, cwd=self.cwd, env={**os.environ, **self.env, **own}, stdin=asyncio.subprocess.DEVNULL,
                stdout=output or asyncio.subprocess.DEVNULL, stderr=output or asyncio.subprocess.DEVNULL,
            )  # fmt: skip
        finally:
            if output is not None:
                output.close()

    async def why_not(self, role: str) -> str | None:
        """Why it cannot be tested in a role: it has to refuse a random case with 127. None if it can."""
        if role not in self.roles:
            return f"{self.name} is no {role}"
        try:
            process = await self.start(role, f"no-such-case-{secrets.token_hex(4)}", seconds=1)
            status = await asyncio.wait_for(process.wait(), PROBE_SECONDS)
        except TimeoutError:
            await end(process)
            return f"{self.name} does not end when it is asked for a case that does not exist"
        except OSError as error:
            return f"{self.name} cannot be run: {error}"
        return None if status == UNSUPPORTED else f"{self.name} ends with {status} for a case that does not exist; {UNSUPPORTED} was due"


def load(path: Path | None = None) -> dict[str, Implementation]:
    """The implementations that a file of endpoints names.

    Raises:
        OSError, ValueError: It cannot be read.
    """
    path = path or ROOT / "interop" / "endpoints.json"
    found = {}
    for name, entry in json.loads(path.read_text(encoding="utf-8")).items():
        roles, env = tuple(entry.get("roles", ("client", "server"))), dict(entry.get("env", {}))
        found[name] = Implementation(name=name, command=tuple(entry["command"]), roles=roles, env=env)
    return found


async def end(process: Any, patience: float = 5.0) -> None:
    """End a process: politely, then not."""
    for act, seconds in ((process.terminate, patience), (process.kill, patience)):
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError, TimeoutError):  # it may have ended by itself just now
                act()
                await asyncio.wait_for(process.wait(), seconds)


def free_port() -> int:
    """A UDP port that nobody uses at present."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        return int(own.getsockname()[1])


async def serving(port: int, process: asyncio.subprocess.Process | None = None, host: str = "127.0.0.1") -> bool:
    """Wait until a server answers a QUIC packet of a version that does not exist, as RFC 9000 section 6 has it."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + READY_SECONDS
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.setblocking(False)
        own.connect((host, port))
        packet = b"\xc0\x1a\x2a\x3a\x4a\x08" + secrets.token_bytes(8) + b"\x08" + secrets.token_bytes(8)
        packet += bytes(1200 - len(packet))
        while loop.time() < deadline and (process is None or process.returncode is None):
            try:
                own.send(packet)
                await asyncio.wait_for(loop.sock_recv(own, 2048), 0.2)
                return True
            except TimeoutError:
                continue
            except OSError:
                await asyncio.sleep(0.1)  # nobody is there yet
    return False
