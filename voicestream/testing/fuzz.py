"""Feed hostile input to sessions in every state, and to the decoders.

    python -m voicestream.testing.fuzz --inputs 200000 --seed 1

Three of five inputs are mutated from valid ones, a quarter are valid, the others are random bytes. What is promised, and checked after
every input: nothing is raised but `ProtocolError` by the decoders and nothing at all by a session's ``receive_*``; a session
closes at most once, with a registered code, and says nothing afterwards; what it holds is bounded; and a call between two other
sessions of the same process goes on as if nothing had happened.
"""

from __future__ import annotations

import argparse
import collections
import gc
import hashlib
import random
import sys
import time
import traceback
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from voicestream import wire
from voicestream.codepoints import ErrorCode
from voicestream.errors import ProtocolError
from voicestream.testing.fuzz_inputs import CHANNELS, FuzzInput, InputMaker
from voicestream.testing.fuzz_tame import TameMaker
from voicestream.testing.fuzz_victim import CLIENT_STATES, MAX_HELD_BYTES, SERVER_STATES, FuzzFailure, Pair, Victim, held_bytes

__all__ = ["FuzzReport", "fuzz", "main"]

MAX_FAILURES = 20
MAX_GROWTH_BYTES = 1 << 20
MAX_GROWTH_BLOCKS = 20_000


@dataclass(slots=True)
class FuzzReport:
    """What a run found.

    Attributes:
        inputs: Inputs given.
        origins: How many were "valid", "mutated" and "random".
        outcomes: By place ("client open", ..., "decoder datagram") how often an input left the session so.
        failures: Broken promises, each with what is needed to see it again.
        growth_bytes: Memory kept of what was allocated in a twentieth of the run, all sessions gone.
        growth_blocks: Blocks of memory that the process holds more at the end than after half of the run.
        largest_bytes: The most that one session held.
        seconds: Duration of the run.
    """

    inputs: int = 0
    origins: collections.Counter[str] = field(default_factory=collections.Counter)
    outcomes: dict[str, collections.Counter[str]] = field(default_factory=lambda: collections.defaultdict(collections.Counter))
    failures: list[str] = field(default_factory=list)
    growth_bytes: int = 0
    growth_blocks: int = 0
    largest_bytes: int = 0
    seconds: float = 0.0

    def lines(self) -> list[str]:
        """The report for people."""
        rows = [f"{self.inputs} inputs ({', '.join(f'{n} {kind}' for kind, n in sorted(self.origins.items()))}) in {self.seconds:.0f} s"]
        for place in sorted(self.outcomes):
            counts = self.outcomes[place]
            what = ", ".join(f"{name} {count}" for name, count in counts.most_common())
            rows.append(f"  {place:24} {sum(counts.values()):7}  {what}")
        growth = f"{self.growth_bytes / 1024:.0f} KiB and {self.growth_blocks} blocks"
        rows.append(f"memory: growth {growth}, largest session {self.largest_bytes / 1024:.0f} KiB")
        rows.append(f"failures: {len(self.failures)}")
        return rows + self.failures


class _Bystander:
    """A call between two other sessions. What it sends must not depend on what happens elsewhere."""

    def __init__(self, seed: int) -> None:
        self._pair = Pair(random.Random(f"{seed}/bystander"))
        self._pair.open()
        self._hash = hashlib.blake2b(digest_size=16)
        self.steps = 0

    def step(self) -> None:
        pair = self._pair
        pair.talk(0.02)
        self.steps += 1
        for channel in CHANNELS:
            for data in pair.recorded[channel]:
                self._hash.update(data)
            pair.recorded[channel].clear()
        self._hash.update(repr(pair.events).encode())
        pair.events["client"].clear()
        pair.events["server"].clear()

    def digest(self) -> str:
        return self._hash.hexdigest()


def _decode(maker: InputMaker, given: FuzzInput, rng: random.Random) -> str:
    """One input to the decoder of its channel; the name of what came of it."""
    data = given.data
    try:
        if given.channel == "datagram":
            for frame in wire.decode_datagram(data).frames:
                if isinstance(frame, wire.AudioFrame):
                    wire.opus_duration_units(frame.payload)
        elif given.channel == "control":
            parser, cut = wire.MessageParser(), rng.randrange(len(data) + 1)
            parser.feed(data[:cut])
            parser.feed(data[cut:])
            wire.decode_message(rng.randrange(20), data)
            wire.decode_parameters(data)
        else:
            events, cut = wire.EventParser(4096), rng.randrange(len(data) + 1)
            if events.feed(data[:cut], False) is None:
                events.feed(data[cut:], True)
    except ProtocolError as error:
        return ErrorCode(error.code).name
    return "accepted"


class _Run:
    def __init__(self, seed: int, report: FuzzReport) -> None:
        self.seed = seed
        self.report = report
        self._rng = random.Random(f"{seed}/fuzz")
        sample = Pair(random.Random(f"{seed}/sample"))
        sample.open()
        sample.talk(2.0)
        sample.client.send_event(b'{"hello": "there"}', sample.now)
        sample.client.clear(sample.now, outgoing=True)
        sample.exchange()
        sample.client.finish(sample.now)
        sample.exchange()
        self._maker = InputMaker(random.Random(f"{seed}/inputs"), sample.recorded)

    def decoders(self, count: int) -> None:
        """Some inputs for the decoders alone."""
        for _ in range(count):
            given = self._maker.make(self._rng.choice(CHANNELS))
            self._guard(f"decoder {given.channel}", given, lambda given=given: _decode(self._maker, given, self._rng))  # type: ignore[misc]

    def session(self, role: str, state: str, count: int) -> int:
        """Up to `count` inputs for one session; returns how many it took until it was closed."""
        victim = Victim(role, state, random.Random(self._rng.getrandbits(64)))
        place = f"{role} {state}"
        maker = self._maker
        maker.sly = self._rng.random() < 0.7
        if count > 20 and self._rng.random() < 0.1:
            maker = TameMaker(random.Random(self._rng.getrandbits(64)))
        after_close = 0
        for index in range(count):
            given = maker.make(self._rng.choice(CHANNELS))
            was_closed = victim.session.is_closed

            def feed(given: FuzzInput = given, was_closed: bool = was_closed) -> str:
                victim.feed(given)
                return "ignored" if was_closed else victim.outcome

            if not self._guard(place, given, feed):
                return index + 1
            if victim.session.is_closed:
                after_close += 1
                if after_close > self._rng.choice((0, 0, 1, 5)):
                    break
        self._weigh(victim, place)
        return index + 1

    def _weigh(self, victim: Victim, place: str) -> None:
        if self._rng.random() < 0.05:
            size = held_bytes(victim.session)
            self.report.largest_bytes = max(self.report.largest_bytes, size)
            if size > MAX_HELD_BYTES:
                self.report.failures.append(f"{place}: holds {size} bytes (seed {self.seed})")

    def _guard(self, place: str, given: FuzzInput, act: Callable[[], str]) -> bool:
        report = self.report
        report.inputs += 1
        report.origins[given.origin] += 1
        try:
            outcome = act()
        except Exception as error:
            kind = "promise broken" if isinstance(error, FuzzFailure) else "exception"
            report.outcomes[place]["FAILURE"] += 1
            where = "".join(traceback.format_exception(error)[-4:])
            report.failures.append(
                f"{place}: {kind} (seed {self.seed}, input {report.inputs}) {given.channel} fin={given.fin} {given.data.hex()}\n{where}"
            )
            return False
        report.outcomes[place][outcome] += 1
        return True


def _rounds(run: _Run, bystander: _Bystander, until: int, deadline: float | None) -> None:
    places = [("client", state) for state in CLIENT_STATES] + [("server", state) for state in SERVER_STATES]
    report = run.report
    while report.inputs < until and len(report.failures) < MAX_FAILURES:
        for role, state in places:
            wanted = 100 if state in ("open", "finishing", "going away") else 10
            taken = 0
            while taken < wanted and report.inputs < until:
                taken += run.session(role, state, min(wanted - taken, until - report.inputs))
        run.decoders(min(150, max(0, until - report.inputs)))
        bystander.step()
        if deadline is not None and time.monotonic() > deadline:
            return


def fuzz(inputs: int, seed: int, *, max_seconds: float | None = None) -> FuzzReport:
    """Give so many inputs.

    Args:
        inputs: How many.
        seed: Of all choices.
        max_seconds: End earlier when this much time has passed.
    """
    report = FuzzReport()
    began = time.monotonic()
    deadline = None if max_seconds is None else began + max_seconds
    run, bystander = _Run(seed, report), _Bystander(seed)
    _rounds(run, bystander, inputs // 2, deadline)
    gc.collect()
    blocks = sys.getallocatedblocks()
    # Tracing every allocation makes all three times as slow, so it is done for a part only; blocks are counted over the whole half.
    report.growth_bytes = _traced_growth(lambda: _rounds(run, bystander, inputs // 2 + inputs // 20, deadline))
    _rounds(run, bystander, inputs, deadline)
    gc.collect()
    report.growth_blocks = sys.getallocatedblocks() - blocks
    if report.growth_bytes > MAX_GROWTH_BYTES or report.growth_blocks > MAX_GROWTH_BLOCKS:
        report.failures.append(f"the process grew by {report.growth_bytes} bytes, {report.growth_blocks} blocks (seed {seed})")
    alone = _Bystander(seed)
    for _ in range(bystander.steps):
        alone.step()
    if alone.digest() != bystander.digest():
        report.failures.append(f"another call of the same process was disturbed (seed {seed})")
    report.seconds = time.monotonic() - began
    return report


def _traced_growth(act: Callable[[], None]) -> int:
    """Bytes that are still allocated of what `act` allocated."""
    tracemalloc.start(1)
    try:
        act()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status, 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m voicestream.testing.fuzz", description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--inputs", type=int, default=200_000, help="how many inputs (default 200000)")
    parser.add_argument("--seed", type=int, default=1, help="of all choices (default 1)")
    parser.add_argument("--max-seconds", type=float, help="end earlier after so many seconds")
    options = parser.parse_args(arguments)
    report = fuzz(options.inputs, options.seed, max_seconds=options.max_seconds)
    print("\n".join(report.lines()))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
