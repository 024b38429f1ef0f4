"""An emulated link, sans-IO: tell it when a packet of how many bytes enters, and it says when the packet arrives, if at all.

One `Link` is one direction. All times are seconds on the caller's clock, so a link serves virtual time as well as real time,
and the same profile, seed and input give the same output, always.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from voicestream.testing.loss import GilbertElliott, IndependentLoss, LossProcess, TraceLoss
from voicestream.testing.measure import Samples
from voicestream.testing.profile import LinkProfile, NetworkProfile
from voicestream.testing.rate import Bottleneck, StepServer, TraceServer

__all__ = ["Link", "LinkProfile", "LinkStats", "NetworkProfile", "own_queueing_ms"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkStats:
    """What a link has done so far.

    Attributes:
        offered: Packets that entered.
        offered_bytes: Their bytes.
        delivered: Packets that arrive (each once, however often duplicated).
        delivered_bytes: Their bytes.
        lost: Packets lost at random or by trace.
        queue_dropped: Packets for which the queue had no room.
        outage_dropped: Packets that met an outage.
        duplicated: Packets that arrive twice.
        delay_ms: Time in the link of those that arrive.
        queue_ms: Time that those behind earlier packets waited in the bottleneck before their own first bit left.
    """

    offered: int
    offered_bytes: int
    delivered: int
    delivered_bytes: int
    lost: int
    queue_dropped: int
    outage_dropped: int
    duplicated: int
    delay_ms: Samples
    queue_ms: Samples


def _loss_process(profile: LinkProfile, seed: int | str) -> LossProcess | None:
    rng = random.Random(f"{seed}/loss")
    if profile.loss_trace:
        return TraceLoss(profile.loss_trace)
    if profile.burst_loss is not None:
        return GilbertElliott(profile.burst_loss, rng)
    return IndependentLoss(profile.loss, rng) if profile.loss else None


def _bottleneck(profile: LinkProfile) -> Bottleneck | None:
    if profile.rate_trace_ms:
        server: StepServer | TraceServer = TraceServer(profile.rate_trace_ms)
    elif profile.rate_steps:
        server = StepServer(profile.rate_steps)
    else:
        return None
    return Bottleneck(server, queue_s=profile.queue_ms / 1e3, queue_bytes=profile.queue_bytes)


class Link:
    """One direction of an emulated path.

    Args:
        profile: What it does.
        seed: Of its random numbers. Each impairment draws from its own sequence, so that (for example) adding jitter to a
            profile leaves the same packets lost.
        epoch: The caller's time at which the times of the profile (steps, traces, outages) begin, in seconds.
    """

    def __init__(self, profile: LinkProfile, seed: int | str = 0, *, epoch: float = 0.0) -> None:
        self.profile = profile
        self._epoch = epoch
        self._loss = _loss_process(profile, seed)
        self._bottleneck = _bottleneck(profile)
        self._jitter = random.Random(f"{seed}/jitter")
        self._duplicate = random.Random(f"{seed}/duplicate")
        self._last_arrival = 0.0
        self._counts = {"offered": 0, "offered_bytes": 0, "lost": 0, "queue": 0, "outage": 0, "duplicated": 0, "delivered_bytes": 0}
        self._delays_ms = Samples()
        self._waits_ms = Samples()

    def send(self, now: float, size_bytes: int) -> list[float]:
        """A packet enters the link.

        Args:
            now: Seconds on the caller's clock; must not go backwards from call to call.
            size_bytes: Size of the whole packet, as the bottleneck counts it.

        Returns:
            The times at which it arrives: none if it is dropped, two if it is duplicated.
        """
        at = now - self._epoch
        counts = self._counts
        counts["offered"] += 1
        counts["offered_bytes"] += size_bytes
        if self._dropped(at):
            return []
        out = at
        if self._bottleneck is not None:
            served = self._bottleneck.offer(at, size_bytes)
            if served is None:
                counts["queue"] += 1
                return []
            out = served[0]
            self._waits_ms.add(served[1] * 1e3)
        arrival = out + self._extra_delay(at)
        if not self.profile.reorder:
            arrival = max(arrival, self._last_arrival)
        self._last_arrival = max(self._last_arrival, arrival)
        self._delays_ms.add((arrival - at) * 1e3)
        counts["delivered_bytes"] += size_bytes
        if self.profile.duplicate and self._duplicate.random() < self.profile.duplicate:
            counts["duplicated"] += 1
            return [arrival + self._epoch] * 2
        return [arrival + self._epoch]

    def _dropped(self, at: float) -> bool:
        if any(start <= at < start + length for start, length in self.profile.outages):
            self._counts["outage"] += 1
            return True
        if self._loss is not None and self._loss.lost():
            self._counts["lost"] += 1
            return True
        return False

    def _extra_delay(self, at: float) -> float:
        profile = self.profile
        extra_ms = profile.delay_ms
        if profile.jitter_ms:
            extra_ms += abs(self._jitter.gauss(0.0, profile.jitter_ms))
        if profile.delay_trace_ms:
            extra_ms += profile.delay_trace_ms[int(at * 1e3 / profile.delay_trace_step_ms) % len(profile.delay_trace_ms)]
        return extra_ms / 1e3

    def stats(self) -> LinkStats:
        """What the link has done so far. The samples in it go on growing with the link."""
        counts = self._counts
        dropped = counts["lost"] + counts["queue"] + counts["outage"]
        return LinkStats(
            offered=counts["offered"],
            offered_bytes=counts["offered_bytes"],
            delivered=counts["offered"] - dropped,
            delivered_bytes=counts["delivered_bytes"],
            lost=counts["lost"],
            queue_dropped=counts["queue"],
            outage_dropped=counts["outage"],
            duplicated=counts["duplicated"],
            delay_ms=self._delays_ms,
            queue_ms=self._waits_ms,
        )


def own_queueing_ms(
    profile: LinkProfile, packets: Sequence[tuple[float, int]], *, since: float = 0.0, until: float = math.inf
) -> Samples:
    """Queueing that a stream of packets caused to itself on a link, apart from what the link does to any traffic.

    The packets are replayed through the rate limit alone; from each one's wait is taken what a packet of 134 bytes every
    60 ms (18 kbps, the least with which speech can do) would wait at that time.

    Args:
        profile: Of the link; only its rate and queue matter.
        packets: (second, bytes) of those that entered the bottleneck, in order.
        since: Second from which samples count.
        until: Second up to which they do.

    Returns:
        A sample in milliseconds per packet that the queue did not drop.
    """
    if not packets or _bottleneck(profile) is None:
        return Samples(0.0 for at, _ in packets if since <= at <= until)
    floor_times = [index * 0.06 for index in range(int(packets[-1][0] / 0.06) + 2)]
    floor = _waits(profile, [(at, 134) for at in floor_times])
    result = Samples()
    index = 0
    for at, wait in _waits(profile, packets):
        while index + 1 < len(floor) and floor[index + 1][0] <= at:
            index += 1
        if since <= at <= until:
            result.add(max(0.0, wait - _between(floor, index, at)) * 1e3)
    return result


def _waits(profile: LinkProfile, packets: Sequence[tuple[float, int]]) -> list[tuple[float, float]]:
    bottleneck = _bottleneck(profile)
    assert bottleneck is not None
    rows = []
    for at, size_bytes in packets:
        served = bottleneck.offer(at, size_bytes)
        if served is not None:
            # A trace's opportunities come in lumps, so there the wait for one counts, on both sides of the difference.
            rows.append((at, served[0] - at if profile.rate_trace_ms else served[1]))
    return rows


def _between(rows: Sequence[tuple[float, float]], index: int, at: float) -> float:
    """Linear interpolation between rows[index] and the next, constant outside."""
    if not rows:
        return 0.0
    left = rows[index]
    if at <= left[0] or index + 1 >= len(rows):
        return left[1]
    right = rows[index + 1]
    return left[1] + (right[1] - left[1]) * (at - left[0]) / (right[0] - left[0])
