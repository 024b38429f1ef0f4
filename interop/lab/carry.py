"""Carries IP packets between the two hosts, as a profile says, and runs a command on each.

    python -m interop.lab.carry --profile interop/lab/profiles/loss5-40.json --a 'server command' --b 'client command' --log link.csv

Command A starts first, B when A has had --head-start seconds; the laboratory closes when B ends (A is then terminated) or
after --timeout. The exit status is B's. See that it works:

    python -m interop.lab.carry --profile '{"both": {"delay_ms": 50}}' --a 'sleep 60' --b 'ping -c 3 10.77.0.1'

The log has a row a packet: seconds since the first packet, direction (a2b or b2a), bytes of the IP packet, verdict (ok, loss, queue
or outage) and the delay in the link in milliseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import heapq
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from interop.lab.hosts import Hosts, why_not
from interop.lab.nat import Nat
from voicestream.testing.link import Link
from voicestream.testing.profile import NetworkProfile

__all__ = ["COLUMNS", "Carrier", "run"]

COLUMNS = ("s", "direction", "bytes", "verdict", "delay_ms")
BATCH = 64
"""Packets read from one host before the other has its turn."""

IDLE_S = 0.05
NAMES = ("a2b", "b2a")


class Carrier:
    """The link: reads what each host sends and writes it to the other when its time has come.

    Args:
        tuns: Devices of A and B.
        profile: What happens to packets.
        seed: Of all that is random in it.
        log: A CSV file to write, or None.
    """

    def __init__(self, tuns: list[int], profile: NetworkProfile, seed: int, log: TextIO | None) -> None:
        self._tuns = tuns
        self._links = [Link(link, f"{seed}{name}") for link, name in ((profile.a2b, "a2b"), (profile.b2a, "b2a"))]
        self._nat = Nat(profile.rebind)
        self._log = csv.writer(log) if log is not None else None
        self._under_way: list[tuple[float, int, int, bytes]] = []
        self._dropped = [(0, 0, 0), (0, 0, 0)]
        self._count = 0
        self._start: float | None = None
        if self._log is not None:
            self._log.writerow(COLUMNS)

    def carry(self, stop: Callable[[], bool]) -> None:
        """Carry until `stop` says so."""
        with selectors.DefaultSelector() as selector:
            for side, tun in enumerate(self._tuns):
                selector.register(tun, selectors.EVENT_READ, side)
            while not stop():
                wait = max(0.0, min(IDLE_S, self._under_way[0][0] - self._now())) if self._under_way else IDLE_S
                for key, _ in selector.select(wait):
                    self._take(key.data)
                self._deliver()

    def _now(self) -> float:
        """Seconds since the first packet."""
        if self._start is None:
            self._start = time.monotonic()
        return time.monotonic() - self._start

    def _take(self, side: int) -> None:
        for _ in range(BATCH):
            try:
                packet = os.read(self._tuns[side], 65536)
            except BlockingIOError:
                return
            if packet[0] >> 4 != 4:  # IPv6 neighbours' talk is no traffic
                continue
            now = self._now()
            if side == 1:
                packet = self._nat.outward(now, packet)
            arrivals = self._links[side].send(now, len(packet))
            if self._log is not None:
                delay = f"{(arrivals[0] - now) * 1e3:.2f}" if arrivals else ""
                self._log.writerow((f"{now:.4f}", NAMES[side], len(packet), "ok" if arrivals else self._why(side), delay))
            for at in arrivals:
                self._count += 1
                heapq.heappush(self._under_way, (at, self._count, 1 - side, packet))

    def _why(self, side: int) -> str:
        """By what the link has just dropped a packet."""
        stats, before = self._links[side].stats(), self._dropped[side]
        self._dropped[side] = now = (stats.lost, stats.queue_dropped, stats.outage_dropped)
        return next(name for name, old, new in zip(("loss", "queue", "outage"), before, now, strict=True) if new > old)

    def _deliver(self) -> None:
        while self._under_way and self._under_way[0][0] <= self._now():
            at, _, side, packet = heapq.heappop(self._under_way)
            out = self._nat.inward(at, packet) if side == 1 else packet
            if out is not None:
                with contextlib.suppress(OSError):  # the host is gone, or its queue is full: that packet is lost
                    os.write(self._tuns[side], out)


def run(
    profile: NetworkProfile, a: str, b: str, *, seed: int = 1, head_start: float = 2.0, timeout: float = 300.0, log: str | None = None
) -> int:
    """Run both commands with the link between them.

    Returns:
        Exit status of B; 124 when the time was up, 125 when A ended before B began.
    """
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(log, "w", newline="")) if log else None
        hosts = stack.enter_context(Hosts())
        first, second = hosts.run(0, a), None
        began = time.monotonic()

        def stop() -> bool:
            nonlocal second
            age = time.monotonic() - began
            if second is None:
                if first.poll() is not None:
                    return True
                if age >= head_start:
                    second = hosts.run(1, b)
                return False
            return second.poll() is not None or age > timeout

        Carrier(hosts.tuns, profile, seed, file).carry(stop)
        if second is None:
            print(f"laboratory: command A ended early with {first.returncode}", file=sys.stderr)
            return 125
        status = second.poll()
        if status is None:
            print("laboratory: the time is up", file=sys.stderr)
        return 124 if status is None else status


def main() -> Any:
    """The command line."""
    parser = argparse.ArgumentParser(prog="interop.lab.carry", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", required=True, help="JSON file, or the JSON itself; see voicestream.testing.NetworkProfile.from_json")
    parser.add_argument("--a", required=True, help="shell command on host A")
    parser.add_argument("--b", required=True, help="shell command on host B")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--head-start", type=float, default=2.0, help="seconds")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds")
    parser.add_argument("--log", help="CSV to write, a row a packet")
    options = parser.parse_args()
    reason = why_not()
    if reason is not None:
        print(f"laboratory: {reason}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that namespaces and commands are cleaned up
    profile = NetworkProfile.from_json(options.profile)
    return run(
        profile, options.a, options.b, seed=options.seed, head_start=options.head_start, timeout=options.timeout, log=options.log
    )


if __name__ == "__main__":
    sys.exit(main())
