"""Fuzz each decoder, and sessions, guided by the code that an input reaches.

    python -m voicestream.testing.fuzz_guided --seconds 300

With atheris (``voicestream[fuzz]``, Linux) libFuzzer guides; without it a small search does that keeps what reaches a new line, which is
slower by far. Each target gets its part of the time, two at once. What breaks a promise is kept in ``--keep``, from where the tests
take it for ever after. Exit status 1 if anything was found.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import importlib.util
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from voicestream.testing.fuzz_atheris import command
from voicestream.testing.fuzz_inputs import mutate
from voicestream.testing.fuzz_lines import LineWatch
from voicestream.testing.fuzz_targets import TARGETS, Target

__all__ = ["Outcome", "check", "kept_inputs", "main", "search"]

MAX_LENGTH: Final = 6000
"""Bytes of one input."""

SLOW_S: Final = 10
"""Seconds that one input may take."""

COUNTING: Final = 0.2
"""Part of a target's time that counting the lines which its inputs reach may take beside it; what is not replayed then is not counted."""


@dataclass(slots=True)
class Outcome:
    """What became of one target.

    Attributes:
        name: Its name.
        inputs: How many it took.
        corpus: How many of them reached something new.
        lines: Lines reached of the watched modules, and lines that there are.
        found: Inputs that broke a promise, each with what happened.
        trouble: Why it could not be fuzzed at all, or "".
        missing: Lines not reached, by module.
    """

    name: str
    inputs: int = 0
    corpus: int = 0
    lines: tuple[int, int] = (0, 0)
    found: list[tuple[bytes, str]] = field(default_factory=list)
    trouble: str = ""
    missing: dict[str, list[int]] = field(default_factory=dict)

    def line(self) -> str:
        """For people."""
        reached, total = self.lines
        return (
            f"  {self.name:11} {self.inputs:9} inputs, {self.corpus:5} kept, "
            f"{reached:5} of {total:5} lines ({reached / max(1, total):.0%}), "
            f"found {len(self.found)}{'; ' + self.trouble if self.trouble else ''}"
        )


def check(name: str, data: bytes) -> str:
    """Give one input to a target; what it broke, with the last calls before that, or ""."""
    try:
        TARGETS[name].run(data)
    except Exception as error:
        return "".join(traceback.format_exception(error)[-3:])
    return ""


def kept_inputs(folder: Path) -> list[tuple[str, Path]]:
    """Targets and files of what was found before."""
    return [(name, path) for name in sorted(TARGETS) for path in sorted((folder / name).glob("*"))]


def search(name: str, seconds: float, seed: int) -> tuple[Outcome, list[bytes]]:
    """Without atheris: mutate what has reached a new line. Returns the corpus too."""
    target, rng, outcome = TARGETS[name], random.Random(f"{seed}/{name}"), Outcome(name)
    watch, corpus = LineWatch(target.watched), target.seeds(random.Random(f"{seed}/{name}/seeds"))
    waiting = list(corpus)
    until = time.monotonic() + seconds
    while time.monotonic() < until and len(outcome.found) < 5:
        data = waiting.pop() if waiting else mutate(rng.choice(corpus), rng.choice(corpus), rng)[:MAX_LENGTH]
        outcome.inputs += 1
        try:
            if watch.run(target.run, data):
                corpus.append(data)
        except Exception:
            outcome.found.append((data, check(name, data)))
    return outcome, corpus


def _guided(name: str, seconds: float, seed: int) -> tuple[Outcome, list[bytes]]:
    """With atheris, in a process of its own: libFuzzer ends the one that it is in."""
    outcome = Outcome(name)
    with tempfile.TemporaryDirectory(prefix="voicestream-fuzz-") as place:
        corpus, broken = Path(place, "corpus"), Path(place, "broken")
        corpus.mkdir()
        broken.mkdir()
        for index, data in enumerate(TARGETS[name].seeds(random.Random(f"{seed}/{name}/seeds"))):
            Path(corpus, f"seed-{index}").write_bytes(data)
        until = time.monotonic() + seconds
        while (left := round(until - time.monotonic())) > 0 and len(outcome.found) < 5:
            arguments = [
                f"-max_total_time={left}", f"-seed={seed}", f"-max_len={MAX_LENGTH}", f"-artifact_prefix={broken}/", f"-timeout={SLOW_S}",
                "-rss_limit_mb=2000", "-print_final_stats=1", "-use_value_profile=1", str(corpus),
            ]  # fmt: skip
            done = subprocess.run([*command(name), *arguments], capture_output=True, text=True, errors="replace")
            counted = re.findall(r"number_of_executed_units: +(\d+)", done.stderr) or re.findall(r"^#(\d+)\s", done.stderr, re.MULTILINE)
            outcome.inputs += int(counted[-1]) if counted else 0
            found = [path for path in broken.iterdir() if not path.name.startswith("slow-unit")]
            for path in found:
                data = path.read_bytes()
                outcome.found.append((data, check(name, data) or f"{path.name.partition('-')[0]}: see libFuzzer\n{done.stderr[-600:]}"))
                path.unlink()
            if done.returncode and not found:
                outcome.trouble = f"ended with status {done.returncode}: {done.stderr[-300:]}"
                break
            seed += 1
        return outcome, [path.read_bytes() for path in corpus.iterdir()]


def _one(name: str, seconds: float, seed: int, guided: bool) -> Outcome:
    outcome, corpus = (_guided if guided else search)(name, seconds, seed)
    _count(outcome, TARGETS[name], corpus, max(2.0, seconds * COUNTING))
    return outcome


def _count(outcome: Outcome, target: Target, corpus: Sequence[bytes], seconds: float) -> None:
    """Lines that what was kept reaches, as much of it as can be replayed in time."""
    watch = LineWatch(target.watched)
    outcome.corpus = len(corpus)
    until = time.monotonic() + seconds
    # In no order of size: the short ones alone reach less.
    for data in random.Random(0).sample(corpus, len(corpus)):
        if time.monotonic() > until:
            break
        try:
            watch.run(target.run, data)
        except Exception:  # it is in `found`
            continue
    outcome.lines, outcome.missing = (watch.count, watch.total), watch.missing()


def _keep(outcome: Outcome, folder: Path) -> list[str]:
    lines = []
    for data, what in outcome.found:
        path = folder / outcome.name / hashlib.sha256(data).hexdigest()[:16]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        lines.append(f"{outcome.name}: kept as {path}\n{what}")
    return lines


def _parser() -> argparse.ArgumentParser:
    description = __doc__.split("\n")[0] if __doc__ else None
    parser = argparse.ArgumentParser(prog="python -m voicestream.testing.fuzz_guided", description=description)
    parser.add_argument("--seconds", type=float, default=300.0, help="in all (300)")
    parser.add_argument("--seed", type=int, help="of all choices; another one each time where none is given")
    parser.add_argument("--target", nargs="+", choices=sorted(TARGETS), default=sorted(TARGETS), help="which (all)")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"), metavar="DIR", help="where what is found goes (fuzz-found)")
    parser.add_argument("--jobs", type=int, default=2, help="targets at once (2)")
    parser.add_argument("--plain", action="store_true", help="without atheris, also where it is installed")
    parser.add_argument("--missing", action="store_true", help="also print the lines that nothing has reached")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    options = _parser().parse_args(arguments)
    seed = random.SystemRandom().randrange(1, 1 << 31) if options.seed is None else options.seed
    guided = not options.plain and importlib.util.find_spec("atheris") is not None
    how = "atheris" if guided else "a search of our own, slower than atheris (pip install 'voicestream[fuzz]')"
    print(f"guided by {how}; seed {seed}, {options.seconds:.0f} s, {options.jobs} targets at once", flush=True)
    weights = {name: TARGETS[name].weight for name in options.target}
    share = options.seconds * min(options.jobs, len(weights)) / sum(weights.values())
    failed: list[str] = []
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        # The longest first, so that none is left to run alone at the end.
        order = sorted(weights, key=weights.__getitem__, reverse=True)
        runs = [pool.submit(_one, name, max(1.0, min(options.seconds, share * weights[name])), seed, guided) for name in order]
        for run in concurrent.futures.as_completed(runs):
            outcome = run.result()
            print(outcome.line(), flush=True)
            if options.missing:
                print("\n".join(f"    {module}: {', '.join(map(str, lines))}" for module, lines in outcome.missing.items()))
            failed += _keep(outcome, options.keep)
            if outcome.trouble:
                failed.append(f"{outcome.name}: {outcome.trouble}")
    print("\n".join(["FOUND:", *failed]) if failed else "nothing found")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
