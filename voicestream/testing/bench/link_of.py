"""What a link carries: its capacity over time, and the link of a case that takes it from a file or a generator."""

from __future__ import annotations

import dataclasses
import math
import random
from bisect import bisect_left

from voicestream.testing.bench.case import Case
from voicestream.testing.profile import LinkProfile
from voicestream.testing.rate import TRACE_SLOT_BYTES
from voicestream.testing.synthetic import synthetic
from voicestream.testing.traces import cut, read_recording

__all__ = ["capacity_bps", "prepared"]


def prepared(case: Case, seed: int) -> Case:
    """The case with the link that a recording or a generator makes for this seed; as it is where it has neither.

    Raises:
        ValueError: The recording cannot be understood.
        OSError: It cannot be read.
    """
    rng = random.Random(f"{case.name}/{seed}")
    if case.recording is not None:
        made = cut(read_recording(case.recording), case.seconds, rng)
    elif case.synthetic:
        made = synthetic(case.synthetic, case.seconds, rng)
    else:
        return case
    changes = {
        name: getattr(made, name)
        for name in ("rate_kbps", "rate_trace_ms", "delay_trace_ms", "delay_trace_step_ms", "loss")
        if getattr(made, name)
    }
    return dataclasses.replace(case, b2a=dataclasses.replace(case.b2a, **changes))


def capacity_bps(profile: LinkProfile, begin: float, end: float) -> float:
    """Mean of a link over a stretch of time, in bits per second."""
    slots = profile.rate_trace_ms
    if slots:
        period = max(slots[-1], 1) / 1e3
        count = 0
        for turn in range(max(0, int(begin / period) - 1), int(end / period) + 1):
            first, last = ((edge - turn * period) * 1e3 for edge in (begin, end))
            count += bisect_left(slots, last) - bisect_left(slots, first)
        return count * TRACE_SLOT_BYTES * 8 / (end - begin)
    steps = profile.rate_steps
    if not steps:
        return math.inf
    edges = [*(start for start, _ in steps), math.inf]
    bits = sum(kbps * 1e3 * max(0.0, min(end, edges[index + 1]) - max(begin, edges[index])) for index, (_, kbps) in enumerate(steps))
    return bits / (end - begin)
