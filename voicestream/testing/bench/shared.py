"""A rate limit that several flows share, each with delay, jitter and losses of its own."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Protocol

from voicestream.testing.link import Link
from voicestream.testing.profile import LinkProfile
from voicestream.testing.rate import Bottleneck, StepServer, TraceServer

__all__ = ["Carried", "Leg", "Limit", "Open", "Policer", "shared_limit"]


@dataclass(frozen=True, slots=True)
class Carried:
    """A packet that entered the shared limit.

    Attributes:
        at: When, in seconds of the case.
        size: Its bytes on IP level.
        left_at: When its last bit left; None if it was dropped there.
        wait: Seconds that it waited behind others.
        drop: It was lost behind the limit, at random.
    """

    at: float
    size: int
    left_at: float | None
    wait: float
    drop: bool


class Limit(Protocol):
    """Something that packets of all flows pass in the order of their coming."""

    def offer(self, now: float, size_bytes: int) -> tuple[float, float] | None:
        """(when the last bit leaves, seconds waited), or None for a drop."""


class Open:
    """No limit at all."""

    def offer(self, now: float, size_bytes: int) -> tuple[float, float] | None:
        """It passes at once."""
        return now, 0.0


class Policer:
    """A token bucket without a queue: it drops what exceeds the rate and delays nothing.

    Args:
        steps: (second, kilobits per second) pairs.
        bucket: Bytes that may come at once.
    """

    __slots__ = ("_at", "_bucket", "_steps", "_tokens")

    def __init__(self, steps: tuple[tuple[float, float], ...], bucket: int) -> None:
        self._steps = steps
        self._bucket = bucket
        self._tokens = float(bucket)
        self._at = 0.0

    def offer(self, now: float, size_bytes: int) -> tuple[float, float] | None:
        """It passes at once or not at all."""
        rate = next((kbps for start, kbps in reversed(self._steps) if start <= now), self._steps[0][1])
        self._tokens = min(self._bucket, self._tokens + (now - self._at) * rate * 125)
        self._at = now
        if self._tokens < size_bytes:
            return None
        self._tokens -= size_bytes
        return now, 0.0


def shared_limit(profile: LinkProfile, policer_bytes: int | None) -> Limit:
    """The limit of a link."""
    if policer_bytes is not None and profile.rate_steps:
        return Policer(profile.rate_steps, policer_bytes)
    if profile.rate_trace_ms:
        server: StepServer | TraceServer = TraceServer(profile.rate_trace_ms)
    elif profile.rate_steps:
        server = StepServer(profile.rate_steps)
    else:
        return Open()
    return Bottleneck(server, queue_s=profile.queue_ms / 1e3, queue_bytes=profile.queue_bytes)


class Leg(Link):
    """One flow's way through a shared limit; takes the place of a `Link`.

    Args:
        limit: The shared one.
        profile: Of the link.
        seed: Of the flow's own random numbers.
        epoch: Time of the world at which the case begins.
        delay_ms: The flow's own one-way delay; None for the link's.

    Attributes:
        carried: Every packet so far.
    """

    def __init__(self, limit: Limit, profile: LinkProfile, seed: str, *, epoch: float, delay_ms: float | None) -> None:
        own = profile.delay_ms if delay_ms is None else delay_ms
        super().__init__(dataclasses.replace(profile, rate_kbps=None, rate_trace_ms=(), delay_ms=own), seed, epoch=epoch)
        self._limit = limit
        self._began = epoch
        self.carried: list[Carried] = []

    def send(self, now: float, size_bytes: int) -> list[float]:
        """A packet enters; see `Link.send`."""
        at = now - self._began
        served = self._limit.offer(at, size_bytes)
        if served is None:
            self.carried.append(Carried(at, size_bytes, None, 0.0, False))
            return []
        arrivals = super().send(self._began + served[0], size_bytes)
        self.carried.append(Carried(at, size_bytes, served[0], served[1], not arrivals))
        return arrivals
