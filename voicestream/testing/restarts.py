"""Servers that share sessions through Redis, restarted, killed, or bereft of Redis under live calls.

``python -m voicestream.testing.restarts`` prints what was lost.

Servers are processes of their own. Every call says numbered frames all the time; the servers write down which ones they hear.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import voicestream
from voicestream.quic.certificates import make_certificate_files
from voicestream.store import RedisStore
from voicestream.testing.redis_server import RedisServer, has_redis

__all__ = ["CASES", "Outcome", "run_case"]

CASES: Final = ("drain", "kill", "redis")
"""A rolling restart of both servers; the death of one; a Redis that stops, freezes and comes back empty."""

FRAME_S: Final = 0.02
FRAME_UNITS: Final = 8
READY_WITHIN: Final = 30.0
FINISH_WITHIN: Final = 30.0


def words(number: int) -> bytes:
    """A CELT packet of 20 ms with a number in it."""
    return b"\xf8" + number.to_bytes(4, "big") + bytes(40)


def number_of(payload: bytes) -> int:
    """The number in it."""
    return int.from_bytes(payload[1:5], "big")


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What became of the calls of one case.

    Attributes:
        case: Its name.
        calls: Calls made.
        said: Frames that the clients said.
        unsent: Of those, frames that waited in their client too long to be sent: the machine was too busy.
        lost: Frames besides that no server heard.
        again: Frames that two servers heard: said after the last word of the first one to the store.
        twice: Frames that one server heard twice.
        ended: Calls that ended, or whose last words came to nobody.
        moved: Calls that were resumed.
        events: What the calls were told of their paths, counted.
        silence_s: The longest time without a frame from a server, of each call.
        drains_s: How long each server that was asked to leave took.
    """

    case: str
    calls: int
    said: int = 0
    unsent: int = 0
    lost: int = 0
    again: int = 0
    twice: int = 0
    ended: int = 0
    moved: int = 0
    events: Counter[str] = field(default_factory=Counter)
    silence_s: list[float] = field(default_factory=list)
    drains_s: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        silence = sorted(self.silence_s)
        middle, worst = (silence[len(silence) // 2], silence[-1]) if silence else (0.0, 0.0)
        drains = ", ".join(f"{one:.1f}" for one in self.drains_s)
        return (
            f"{self.case}: {self.calls} calls, {self.moved} moved, {self.ended} ended; {self.said} frames said, {self.unsent} of them "
            f"never sent, {self.lost} lost, "
            f"{self.again} heard at both servers, {self.twice} twice at one; longest silence from a server: median {middle:.2f} s, "
            f"most {worst:.2f} s" + (f"; servers left in {drains} s" if drains else "") + f"; told: {dict(self.events)}"
        )


class _Server:
    """A server in a process of its own."""

    def __init__(self, folder: Path, name: str, url: str, key: bytes, port: int, next_port: int) -> None:
        self.port = port
        self.log = folder / f"{name}.txt"
        self._words = [
            "serve", "--port", str(port), "--next", str(next_port), "--store", url, "--key", key.hex(), "--folder", str(folder),
            "--log", str(self.log),
        ]  # fmt: skip
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, on the same port each time."""
        urgency = _urgency()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "voicestream.testing.restarts", *self._words, stdout=asyncio.subprocess.PIPE,
            preexec_fn=None if urgency is None else _be_modest,
        )  # fmt: skip
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), READY_WITHIN)
        if line != b"ready\n":
            raise RuntimeError(f"the server did not start: {line!r}")
        if urgency is not None:
            os.sched_setscheduler(self._process.pid, *urgency)

    async def stop(self, number: signal.Signals) -> None:
        """Send a signal and wait until it is gone."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.send_signal(number)
            await asyncio.wait_for(process.wait(), READY_WITHIN)


class _Client:
    """One call: says numbers, and notes when it hears something."""

    def __init__(self, ports: tuple[int, int], pin: str) -> None:
        uris = [f"voicestream://127.0.0.1:{port}/" for port in ports]
        self._connect = voicestream.connect(uris[0], pin=pin, resume_at=uris[1:], open_timeout=20)
        self.session_id = ""
        self.said = 0
        self.unsent = 0
        self.silence_s = 0.0
        self.events: list[str] = []
        self.ended = False

    async def run(self, opened: asyncio.Event, stop: asyncio.Event) -> None:
        """Talk until told to stop."""
        async with self._connect as call:
            self.session_id = call.session_id
            tasks = [asyncio.create_task(self._hear(call)), asyncio.create_task(self._watch(call))]
            opened.set()
            try:
                await self._talk(call, stop)
                await call.finish(FINISH_WITHIN)
            except (voicestream.CallClosed, TimeoutError):
                self.ended = True
            sent = call.stats().sent
            self.unsent = sent.frames_expired + sent.frames_overflowed
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _talk(self, call: voicestream.Call, stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while not stop.is_set():
            await call.send_frame(words(self.said), talkspurt_start=self.said == 0)
            self.said += 1
            due += FRAME_S
            await asyncio.sleep(max(0.0, due - loop.time()))

    async def _hear(self, call: voicestream.Call) -> None:
        loop = asyncio.get_running_loop()
        before: float | None = None
        async for block in call.frames(decode=False):
            if not block.gap:
                now = loop.time()
                self.silence_s = self.silence_s if before is None else max(self.silence_s, now - before)
                before = now

    async def _watch(self, call: voicestream.Call) -> None:
        async for event in call.events():
            self.events.append(event.kind)


async def run_case(case: str, calls: int, *, talk_s: float = 4.0) -> Outcome:
    """Run one case.

    Args:
        case: One of `CASES`.
        calls: Calls at once.
        talk_s: Seconds of talk before what happens, and after it.
    """
    with tempfile.TemporaryDirectory(prefix="voicestream-") as name:
        folder = Path(name)
        _, _, pin = make_certificate_files(folder, ["127.0.0.1"])
        async with RedisServer() as redis:
            key, ports = os.urandom(32), _free_ports()
            servers = [
                _Server(folder, "one", redis.url, key, ports[0], ports[1]),
                _Server(folder, "two", redis.url, key, ports[1], ports[0]),
            ]
            try:
                for server in servers:
                    await server.start()
                return await _run(case, servers, redis, [_Client(ports, pin) for _ in range(calls)], talk_s)
            finally:
                for server in servers:
                    await server.stop(signal.SIGKILL)


async def _run(case: str, servers: list[_Server], redis: RedisServer, clients: list[_Client], talk_s: float) -> Outcome:
    stop = asyncio.Event()
    outcome = Outcome(case=case, calls=len(clients))
    async with asyncio.TaskGroup() as group:
        for client in clients:
            opened = asyncio.Event()
            group.create_task(client.run(opened, stop))
            await opened.wait()
        await asyncio.sleep(talk_s)
        await _happen(case, servers, redis, outcome)
        await asyncio.sleep(talk_s)
        stop.set()
    heard = [_read(server.log) for server in servers]
    for client in clients:
        one, other = (Counter(log.get(client.session_id, [])) for log in heard)
        outcome.said += client.said
        outcome.unsent += client.unsent
        outcome.lost += max(0, len(set(range(client.said)) - set(one) - set(other)) - client.unsent)
        outcome.again += len(set(one) & set(other)) if case == "kill" else 0
        outcome.twice += sum(count - 1 for count in one.values()) + sum(count - 1 for count in other.values()) if case != "drain" else 0
        outcome.ended += client.ended
        outcome.moved += "resumed" in client.events
        outcome.events.update(client.events)
        outcome.silence_s.append(client.silence_s)
    return outcome


async def _happen(case: str, servers: list[_Server], redis: RedisServer, outcome: Outcome) -> None:
    loop = asyncio.get_running_loop()
    if case == "kill":
        await servers[0].stop(signal.SIGKILL)
    elif case == "drain":
        for server in servers:
            began = loop.time()
            await server.stop(signal.SIGTERM)
            outcome.drains_s.append(loop.time() - began)
            await server.start()
            await asyncio.sleep(2.0)
    else:
        redis.freeze()
        await asyncio.sleep(2.0)
        redis.thaw()
        await asyncio.sleep(1.0)
        await redis.stop()
        await asyncio.sleep(2.0)
        await redis.start()


def _urgency() -> tuple[int, os.sched_param] | None:
    """The real-time priority of this process, if it has one.

    A server that starts is less urgent than those that serve. At the same real-time priority its start takes a processor for a tenth of a
    second at a time, as no ordinary process can.
    """
    if not hasattr(os, "sched_getscheduler") or (policy := os.sched_getscheduler(0)) == os.SCHED_OTHER:
        return None
    return policy, os.sched_getparam(0)


def _be_modest() -> None:
    policy = os.sched_getscheduler(0)
    os.sched_setscheduler(0, policy, os.sched_param(os.sched_get_priority_min(policy)))


def _read(log: Path) -> dict[str, list[int]]:
    heard: dict[str, list[int]] = {}
    for line in log.read_text().splitlines() if log.exists() else ():
        session_id, number = line.split()
        heard.setdefault(session_id, []).append(int(number))
    return heard


def _free_ports() -> tuple[int, int]:
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


async def _serve(options: argparse.Namespace) -> None:
    with options.log.open("ab", buffering=0) as log:

        async def handler(call: voicestream.Call) -> None:
            async def talk() -> None:
                number = 0
                while True:
                    await call.send_frame(words(number), talkspurt_start=number == 0)
                    number += 1
                    await asyncio.sleep(FRAME_S)

            talking = asyncio.create_task(talk())
            try:
                async for block in call.frames(decode=False):
                    if block.payload is not None:
                        log.write(b"%s %d\n" % (call.session_id.encode(), number_of(block.payload)))
                        call.processed_through = (block.pts + FRAME_UNITS) / 400
            finally:
                talking.cancel()

        async with voicestream.serve(
            handler, "127.0.0.1", options.port,
            certfile=options.folder / "cert.pem", keyfile=options.folder / "key.pem",
            store=RedisStore(options.store), resume_keys=[bytes.fromhex(options.key)], next_uri=f"voicestream://127.0.0.1:{options.next}/",
        ) as server:  # fmt: skip
            print("ready", flush=True)
            await server.serve_forever()


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m voicestream.testing.restarts", description=__doc__)
    parser.add_argument("role", nargs="?", choices=["run", "serve"], default="run", help=argparse.SUPPRESS)
    parser.add_argument("--calls", type=int, default=20, help="calls at once (20)")
    parser.add_argument("--case", choices=CASES, action="append", help="only this one")
    for name in ("port", "next"):
        parser.add_argument(f"--{name}", type=int, help=argparse.SUPPRESS)
    for name in ("store", "key"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    for name in ("folder", "log"):
        parser.add_argument(f"--{name}", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "serve":
        asyncio.run(_serve(options))
        return 0
    if not has_redis():
        print("there is no redis-server, or no redis-py", file=sys.stderr)
        return 2
    failed = False
    for case in options.case or CASES:
        outcome = asyncio.run(run_case(case, options.calls))
        print(outcome, flush=True)
        failed |= bool(outcome.lost or outcome.twice or outcome.ended)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
