"""Recorded capacities and delays of real links, read from the files in which such things are published.

* mahimahi (``NAME.up``, ``NAME.down``): one line for each 1500 bytes that could pass, its millisecond;
* throughput logs (JSON): a list of ``{"duration_ms": ..., "bandwidth_kbps": ...}``;
* delays of one stream (CSV with a head): a time column (``send_s`` or ``arrival_s``) and ``delay_ms`` or ``rel_delay_ms``;
* a dish's log (CSV without a head, a row each 100 ms): rates, delays and loss fractions up and down.

A file is cut: a call of two minutes takes place somewhere in it, where the seed says.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from voicestream.testing.profile import LinkProfile

__all__ = ["Recording", "cut", "find_recordings", "read_recording"]

Kind = Literal["slots", "steps", "delays"]

STEP_MS: Final = 100.0
"""Grid on which recorded delays are put."""

SLOT_BITS: Final = 12000
ALIVE_BPS: Final = 32e3
"""A second with less carries no speech to speak of."""

BUSY_BPS: Final = 200e3
"""A second with more asks nothing of rate control."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A file.

    Attributes:
        name: Short, made of the file's.
        kind: "slots" and "steps" are capacities.
        path: Where it lies.
    """

    name: str
    kind: Kind
    path: Path


def find_recordings(folder: Path) -> list[Recording]:
    """What there is in a folder and below it, in order of the names; other files are passed over."""
    found = []
    for path in sorted(folder.rglob("*")):
        kind = _kind(path) if path.is_file() else None
        if kind is not None:
            found.append(Recording(name=_name(path, kind), kind=kind, path=path))
    return sorted(found, key=lambda one: one.name)


def _kind(path: Path) -> Kind | None:
    if re.search(r"\.(up|down)(\.|$)", path.name):
        return "slots"
    if path.suffix == ".json":
        with path.open(encoding="utf-8") as file:
            return "steps" if "bandwidth_kbps" in file.read(400) else None
    if path.suffix == ".csv":
        with path.open(encoding="utf-8") as file:
            head = file.readline().strip().split(",")
        return "delays" if "delay_ms" in head or "rel_delay_ms" in head or len(head) == 7 else None
    return None


def _name(path: Path, kind: Kind) -> str:
    """``hsdpa_norway/report.2010-09-22_0857CEST.json``: ``hsdpa-2010-09-22_0857``."""
    stem = re.sub(r"^report[._]|CES?T$", "", path.stem if kind != "slots" else path.name.replace(".first240s", ""))
    return stem if kind == "slots" else f"{path.parent.name.split('_')[0]}-{stem}"


def read_recording(recording: Recording) -> LinkProfile:
    """All of a file as a link that does nothing else.

    Raises:
        ValueError: The file is not what its name says.
        OSError: It cannot be read.
    """
    if recording.kind == "slots":
        return LinkProfile(rate_trace_ms=tuple(int(word) for word in recording.path.read_text(encoding="utf-8").split()))
    if recording.kind == "steps":
        rows = json.loads(recording.path.read_text(encoding="utf-8"))
        ends = itertools.accumulate(row["duration_ms"] / 1e3 for row in rows)
        starts = [0.0, *ends]
        return LinkProfile(rate_kbps=tuple((starts[index], float(row["bandwidth_kbps"])) for index, row in enumerate(rows)))
    with recording.path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    if any("delay" in cell for cell in lines[0]):
        return _stream_delays(lines)
    return LinkProfile(
        delay_trace_ms=tuple(float(row[2]) for row in lines), delay_trace_step_ms=STEP_MS,
        loss=sum(float(row[4]) for row in lines) / len(lines),
    )  # fmt: skip


def _stream_delays(lines: Sequence[Sequence[str]]) -> LinkProfile:
    """The delays of a stream's packets on a grid, from the least one on; what stands between two packets is the earlier one's."""
    head = lines[0]
    columns = (("send_s", "arrival_s"), ("delay_ms", "rel_delay_ms"))
    at, delay = (next(head.index(name) for name in names if name in head) for names in columns)
    rows = sorted((float(row[at]), float(row[delay])) for row in lines[1:] if row[at] and row[delay])
    least = min(value for _, value in rows)
    grid, index = [], 0
    for step in range(int(rows[-1][0] * 1e3 / STEP_MS) + 1):
        while index + 1 < len(rows) and rows[index + 1][0] * 1e3 <= step * STEP_MS:
            index += 1
        grid.append(rows[index][1] - least)
    return LinkProfile(delay_trace_ms=tuple(grid), delay_trace_step_ms=STEP_MS)


def cut(whole: LinkProfile, seconds: float, rng: random.Random) -> LinkProfile:
    """A piece of a recording: drawn among those in which a call can begin, half of the seconds carry speech and some are scarce.

    Where there is no such piece, among all of them. A recording that is shorter begins again.
    """
    if whole.delay_trace_ms:
        length = round(seconds * 1e3 / whole.delay_trace_step_ms)
        first = rng.randrange(max(1, len(whole.delay_trace_ms) - length + 1))
        return dataclasses.replace(whole, delay_trace_ms=whole.delay_trace_ms[first : first + length])
    rates = _by_second(whole)
    length = int(seconds)
    firsts = range(max(1, len(rates) - length + 1))
    good = [first for first in firsts if _worth_a_call(rates[first : first + length])]
    first = rng.choice(good or firsts)
    if whole.rate_trace_ms:
        slots = [slot - first * 1000 for slot in whole.rate_trace_ms if first * 1000 <= slot < (first + length) * 1000]
        return dataclasses.replace(whole, rate_trace_ms=tuple(slots) or (0,))
    steps = [(max(0.0, at - first), kbps) for at, kbps in whole.rate_steps if at < first + length]
    return dataclasses.replace(whole, rate_kbps=tuple(dict(steps).items()))


def _worth_a_call(rates: Sequence[float]) -> bool:
    return (
        min(rates[:4]) >= ALIVE_BPS
        and sum(rate >= ALIVE_BPS for rate in rates) >= len(rates) / 2
        and sum(rate < BUSY_BPS for rate in rates) >= len(rates) / 20
    )


def _by_second(whole: LinkProfile) -> list[float]:
    if whole.rate_trace_ms:
        counts = [0.0] * (max(whole.rate_trace_ms) // 1000 + 1)
        for slot in whole.rate_trace_ms:
            counts[slot // 1000] += SLOT_BITS
        return counts
    steps = whole.rate_steps
    rates, index = [], 0
    for second in range(int(steps[-1][0]) + 1):
        while index + 1 < len(steps) and steps[index + 1][0] <= second:
            index += 1
        rates.append(steps[index][1] * 1e3)
    return rates
