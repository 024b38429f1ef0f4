"""What many calls have done together, in a form that a monitoring system takes: names, kinds and bounded labels."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from voicestream.core.latency import BOUNDS, Distribution

__all__ = ["BOUNDS", "METRICS", "Delays", "Figures", "Key", "Metric", "Values"]

Key = tuple[str, str]
"""Name of a metric and value of its label; "" for none."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: Without the prefix ``voicestream_`` and without a counter's ``_total``.
        kind: What it is.
        text: What it tells.
        label: Name of its one label beside ``role``, or "". Its values are few and known: no call, peer or address is one.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    text: str
    label: str = ""


METRICS: Final = (
    Metric("calls", "gauge", "Calls that are going on", "state"),
    Metric("calls_opened", "counter", "Calls that were taken"),
    Metric("calls_closed", "counter", "Calls that have ended, by registry code", "code"),
    Metric("calls_rejected", "counter", "Calls that were declined, by registry code", "code"),
    Metric("resumes", "counter", "Broken calls: that a client came back to, and that were given up", "outcome"),
    Metric("resumes_refused", "counter", "Attempts to resume that were refused, by registry code", "code"),
    Metric("rtt_seconds", "histogram", "Smoothed round-trip time, of each call each second"),
    Metric("path_delay_seconds", "histogram", "One-way delay from the far end, of each call each second"),
    Metric("path_delay_error_seconds", "histogram", "How far off that may be"),
    Metric("mouth_to_ear_seconds", "histogram", "From a sample's capture at the far end to its playing here"),
    Metric("turn_seconds", "histogram", "From a talkspurt's end to the first sample of the reply in the ear of who spoke", "reply_by"),
    Metric("buffer_fill_seconds", "histogram", "Audio that waits to be played, of each call each second", "end"),
    Metric("loop_lag_seconds", "histogram", "How late the event loop comes to what is due, four times a second"),
    Metric("bitrate_bps", "gauge", "Bits per second of a call, in the mean: what the codec is told, what the path carries", "what"),
    Metric("frames", "counter", "Coded frames, by what became of them", "fate"),
    Metric("datagrams", "counter", "Datagrams, by what became of them", "fate"),
    Metric("wire_bytes", "counter", "Bytes of datagrams with all headers", "direction"),
    Metric("redundancy_bytes", "counter", "Bytes sent against loss, by tool", "tool"),
    Metric("speech_seconds", "counter", "Speech given out in real time, concealment included"),
    Metric("concealed_seconds", "counter", "Of this, concealment"),
    Metric("unheard_seconds", "counter", "Of this, concealment that had faded to silence"),
    Metric("dropouts", "counter", "Concealments of 150 ms or more"),
    Metric("ordered_lost_seconds", "counter", "Speech missing in what was read in order"),
    Metric("events", "counter", "Application events, by what became of them", "fate"),
    Metric("connections", "counter", "Who came to the door: accepted, refused by a limit, sent a Retry, sent the versions", "outcome"),
    Metric("packets_dropped", "counter", "Packets for nobody, for calls that are over, beyond a connection's limit, not sent", "why"),
    Metric("store", "counter", "Batches for the session store: written, and failed; ends of sessions unwritten", "outcome"),
    Metric("store_requests", "counter", "What a session store counts of its own requests", "outcome"),
    Metric("takeovers", "counter", "Sessions of other servers: taken, and put off because the store did not answer", "outcome"),
)


@dataclass(slots=True)
class Delays:
    """A histogram: counts by class of `BOUNDS` and above, and the sum in seconds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, counts: Sequence[int], total: float) -> None:
        """Add another one."""
        self.counts = [one + other for one, other in zip(self.counts, counts, strict=True)]
        self.total += total


@dataclass(slots=True)
class Values:
    """Some numbers: counters and gauges, and histograms."""

    numbers: dict[Key, float] = field(default_factory=dict)
    delays: dict[Key, Delays] = field(default_factory=dict)

    def count(self, name: str, by: float, label: str = "") -> None:
        """Add to a counter."""
        self.numbers[name, label] = self.numbers.get((name, label), 0.0) + by

    def observe(self, name: str, counts: Sequence[int], total: float, label: str = "") -> None:
        """Add to a histogram."""
        if (name, label) not in self.delays:
            self.delays[name, label] = Delays()
        self.delays[name, label].add(counts, total)

    def add(self, other: Values) -> None:
        """Add all of another one."""
        for (name, label), number in other.numbers.items():
            self.count(name, number, label)
        for (name, label), delays in other.delays.items():
            self.observe(name, delays.counts, delays.total, label)


class Figures:
    """Counts for all calls of a server, or of some clients. From any thread.

    Args:
        role: Label of all that is counted.

    Attributes:
        role: See above.
        wanted: Somebody looks at them, so that it is worth taking samples.
    """

    def __init__(self, role: Literal["client", "server"]) -> None:
        self.role = role
        self.wanted = False
        self._lock = threading.Lock()
        self._sums = Values()
        self._samples: dict[Key, Distribution] = {}
        self._told: dict[Key, float] = {}

    def count(self, name: str, label: str = "", by: float = 1.0) -> None:
        """Something has happened."""
        with self._lock:
            self._sums.count(name, by, label)

    def observe(self, name: str, seconds: float, label: str = "") -> None:
        """A delay has been measured."""
        with self._lock:
            self._observe(name, seconds, label)

    def snapshot(self) -> Values:
        """All of it, up to now. A counter never falls, also where what it counts was taken back (a datagram that came after all)."""
        with self._lock:
            return self._settle(self._whole(()))

    def _settle(self, found: Values) -> Values:
        """No number of `found`, all of which are counters, is less than what was told of it before. The lock is held."""
        for key, number in found.numbers.items():
            self._told[key] = found.numbers[key] = max(number, self._told.get(key, 0.0))
        return found

    def _observe(self, name: str, seconds: float, label: str) -> None:
        if (name, label) not in self._samples:
            self._samples[name, label] = Distribution()
        self._samples[name, label].add(max(0.0, seconds))

    def _whole(self, live: Iterable[Values]) -> Values:
        """Sums and samples, and what goes on. The lock is held."""
        found = Values()
        found.add(self._sums)
        for values in live:
            found.add(values)
        for (name, label), samples in self._samples.items():
            found.observe(name, samples.counts, samples.total, label)
        return found
