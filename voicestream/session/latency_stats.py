"""How late speech was, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from voicestream.core.latency import BOUNDS, Distribution, Latency

__all__ = ["BOUNDS", "DelayStats", "LatencyStats", "collect_latency"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DelayStats:
    """Delays of one kind; all None while none has been measured.

    Attributes:
        count: How many have been measured.
        latest_ms: The newest.
        mean_ms: Their mean.
        p50_ms: Half of them are not longer, within the width of a class; likewise the next two.
        p95_ms: See there.
        p99_ms: See there.
        longest_ms: The longest.
        total_ms: Their sum.
        counts: How many were in each class of `BOUNDS` (upper bounds in seconds), and above them.
    """

    count: int = 0
    latest_ms: float | None = None
    mean_ms: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    longest_ms: float | None = None
    total_ms: float = 0.0
    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencyStats:
    """How late speech was.

    Attributes:
        mouth_to_ear: From the capture of a sample at the far end to its playing here, of what is sent as it is spoken, four samples a
            second; good to the path's ``clock_error_ms``. The codec's own delay is not in it, nor what sound devices add that
            nobody has told.
        turn: From the end of this end's talkspurt to the first sample of the far end's reply here.
        answer: From the end of the far end's talkspurt to the first sample of this end's reply there. Both of these need the ends of
            talkspurts: DTX, or frames that are marked. Opus' DTX ends a talkspurt about 200 ms after the voice.
    """

    mouth_to_ear: DelayStats = field(default_factory=DelayStats)
    turn: DelayStats = field(default_factory=DelayStats)
    answer: DelayStats = field(default_factory=DelayStats)


def collect_latency(latency: Latency) -> LatencyStats:
    """The numbers up to now."""
    return LatencyStats(
        mouth_to_ear=_delays(latency.mouth_to_ear), turn=_delays(latency.turns.turns), answer=_delays(latency.answers.turns)
    )


def _delays(found: Distribution) -> DelayStats:
    count = found.count
    if not count:
        return _NONE
    return DelayStats(
        count=count,
        latest_ms=_ms(found.latest),
        mean_ms=_ms(found.total / count),
        p50_ms=_ms(found.quantile(0.5)),
        p95_ms=_ms(found.quantile(0.95)),
        p99_ms=_ms(found.quantile(0.99)),
        longest_ms=_ms(found.longest),
        total_ms=found.total * 1000,
        counts=tuple(found.counts),
    )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


_NONE = DelayStats()
