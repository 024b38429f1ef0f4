"""Twenty calls for a long time over paths that get worse, break and come back: what grows, what is left over, what fails.

    python -m voicestream.testing.soak --seconds 1800

The server is a process of its own; the callers, each behind a relay, are in this one. Both are real: QUIC over UDP on the loopback
address. Callers call again when a call is over, so that calls begin and end all the time: some read slowly or not at all, some
handlers fail or leave early, some callers vanish. Exit status 1: memory grows, or a task, a descriptor or an object of a call
is left, or a call failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import math
import random
import sys
import tempfile
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import voicestream
from voicestream.quic.certificates import make_certificate_files
from voicestream.testing.soak_calls import Callers, handle
from voicestream.testing.soak_measure import Gauge, left_over, slope

__all__ = ["Findings", "main", "soak"]

MAX_SLOPE: Final = 1.0
"""MB an hour a call."""

JUDGED_FROM_S: Final = 240.0
"""Seconds of run from which on the slope is judged: in less, what each call takes at its beginning looks like growth."""

SETTLE_S: Final = 75.0
"""Seconds in which what ended calls hold must be given back: that a client has vanished shows after 30 s, and then it may come
back for 30 s."""


@dataclass(slots=True)
class Findings:
    """What became of one process.

    Attributes:
        name: Which.
        points: Time in seconds, RSS in MB and thousands of blocks that Python has in use, one of each a second. Nothing else of a look is
            kept: the record must not be what grows. RSS does not come down from a peak; blocks do, and tell growth from that.
        lags: How often the loop was late by so many tenths of a millisecond.
        before: The look before the first call.
        after: The look after the last one.
    """

    name: str
    points: tuple[array[float], array[float], array[float]] = field(default_factory=lambda: (array("d"), array("d"), array("d")))
    lags: Counter[int] = field(default_factory=Counter)
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

    def note(self, look: dict[str, Any]) -> None:
        """Another second has passed."""
        for column, value in zip(self.points, (look["at"], look["rss"] / 1e6, look["blocks"] / 1e3), strict=True):
            column.append(value)
        self.lags.update(round(lag * 10_000) for lag in look["lags"])

    def growth(self, calls: int, column: int = 1) -> tuple[float, float]:
        """MB (of column 2 thousands of blocks) an hour a call after the first third, and its standard error."""
        points = list(zip(self.points[0], self.points[column], strict=True))
        rise, error = slope(points[len(points) // 3 :])
        return rise * 3600 / calls, error * 3600 / calls

    def lag_p99(self) -> float:
        """Seconds that the loop was late, of 99 in 100 times at most; see `Samples.percentile`."""
        left = math.ceil(self.lags.total() * 0.99)
        for lag, times in sorted(self.lags.items()):
            left -= times
            if left <= 0:
                return lag / 10_000
        return 0.0

    def faults(self, calls: int, seconds: float) -> list[str]:
        """What is wrong."""
        found = [
            f"{self.name}: {self.after[what]} {what} after the calls, {self.before[what]} before"
            for what in ("tasks", "descriptors")
            if self.after[what] > self.before[what]
        ]
        found += [f"{self.name}: {number} {kind} left" for kind, number in sorted(self.after["left"].items())]
        rise, error = self.growth(calls)
        if seconds >= JUDGED_FROM_S and rise - 2 * error > MAX_SLOPE:
            found.append(f"{self.name}: memory grows by {rise:.2f} MB an hour a call")
        return found

    def lines(self, calls: int) -> list[str]:
        """For people."""
        rise, error = self.growth(calls)
        of_blocks, their_error = self.growth(calls, 2)
        rss, blocks = (column or [0.0] for column in self.points[1:])
        counts = ", ".join(f"{what} {self.before[what]} before, {self.after[what]} after" for what in ("tasks", "descriptors"))
        return [
            f"{self.name}: RSS {rss[0]:.1f} MB at first, {max(rss):.1f} at most, {rss[-1]:.1f} at last; "
            f"slope {rise:+.2f} ± {2 * error:.2f} MB an hour a call",
            f"  {blocks[0]:.0f} thousand blocks of Python's in use at first, {max(blocks):.0f} at most, {blocks[-1]:.0f} at last; "
            f"slope {of_blocks:+.2f} ± {2 * their_error:.2f} thousand an hour a call",
            f"  {counts}; loop lag P99 {self.lag_p99() * 1000:.1f} ms",
        ]


async def _settled(gauge: Gauge, before: dict[str, Any]) -> dict[str, Any]:
    """The look once everything is given back, or when that should have happened."""
    loop = asyncio.get_running_loop()
    until = loop.time() + SETTLE_S
    while True:
        await asyncio.sleep(0.5)
        look = gauge.look(left=left_over())
        back = look["tasks"] <= before["tasks"] and look["descriptors"] <= before["descriptors"] and not look["left"]
        if back or loop.time() > until:
            return look


async def _serve(folder: Path) -> None:
    """The other process: one line of JSON for each look on stdout; a line on stdin says that the callers have gone."""
    logging.getLogger("voicestream").setLevel(logging.CRITICAL)  # handlers fail, as they are meant to
    loop = asyncio.get_running_loop()
    gauge = Gauge()
    cert, key = folder / "cert.pem", folder / "key.pem"
    over = loop.run_in_executor(None, sys.stdin.readline)
    async with voicestream.serve(handle, "127.0.0.1", 0, certfile=cert, keyfile=key, session_lifetime_s=30) as server:
        await asyncio.sleep(0.5)
        before = gauge.look(port=server.port)
        print(json.dumps(before), flush=True)
        while not over.done():
            await asyncio.wait([over], timeout=1.0)
            print(json.dumps(gauge.look(calls=len(server.calls))), flush=True)
        print(json.dumps(await _settled(gauge, before)), flush=True)
    await gauge.close()


async def soak(seconds: float, *, calls: int = 20, seed: int = 1) -> tuple[list[str], list[str]]:
    """Run one.

    Returns:
        The report, and what is wrong.
    """
    with tempfile.TemporaryDirectory(prefix="voicestream-soak-") as name:
        _, _, pin = make_certificate_files(Path(name), ["127.0.0.1"])
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "voicestream.testing.soak", "--serve", name,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 22,
        )  # fmt: skip
        try:
            return await _soak(child, seconds, calls, seed, pin)
        finally:
            if child.returncode is None:
                child.kill()
            await child.wait()


async def _soak(child: asyncio.subprocess.Process, seconds: float, calls: int, seed: int, pin: str) -> tuple[list[str], list[str]]:
    assert child.stdin is not None
    assert child.stdout is not None
    server, clients, gauge = Findings("server"), Findings("callers"), Gauge()
    server.before = json.loads(await child.stdout.readline())
    callers = Callers(("127.0.0.1", server.before["port"]), pin, random.Random(seed), count=calls)
    clients.before = gauge.look()
    running = asyncio.create_task(callers.run(seconds))
    while not running.done():
        await asyncio.wait([running], timeout=1.0)
        clients.note(gauge.look())
        server.note(json.loads(await child.stdout.readline()))
    await running
    del running
    child.stdin.write(b"\n")
    clients.after = await _settled(gauge, clients.before)
    while "left" not in server.after:
        server.after = json.loads(await child.stdout.readline())
    child.stdin.close()
    await child.wait()
    await gauge.close()
    faults = [*server.faults(calls, seconds), *clients.faults(calls, seconds), *callers.failures]
    ended = ", ".join(f"{what} {number}" for what, number in sorted(callers.endings.items()))
    report = [f"{calls} callers for {seconds:.0f} s, seed {seed}, {callers.breaks} breaks", f"calls: {ended}"]
    report += [*server.lines(calls), *clients.lines(calls)]
    if seconds < JUDGED_FROM_S:
        report.append(f"too short to judge the slope, which takes {JUDGED_FROM_S:.0f} s and must be less than {MAX_SLOPE:g}")
    return report, faults


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m voicestream.testing.soak", description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=1800.0, help="how long (1800)")
    parser.add_argument("--calls", type=int, default=20, help="callers at a time (20)")
    parser.add_argument("--seed", type=int, default=1, help="of all choices (1)")
    parser.add_argument("--serve", type=Path, metavar="DIR", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve is not None:
        asyncio.run(_serve(options.serve))
        return 0
    logging.getLogger("voicestream").setLevel(logging.CRITICAL)
    report, faults = asyncio.run(soak(options.seconds, calls=options.calls, seed=options.seed))
    print("\n".join(report))
    print("\n".join(["FAILED:", *faults[:40]]) if faults else "nothing is left over, and no call failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
