"""How much speech a link could have carried in time, had its sender known all that was to come."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from voicestream.core.allocator import headers_bps
from voicestream.testing.profile import LinkProfile
from voicestream.testing.rate import StepServer, TraceServer

__all__ = ["STREAMS", "WITHIN_MS", "Stream", "least_unheard", "limits"]

WITHIN_MS: Final = (150, 250, 350)
"""Milliseconds from capture to arrival that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One way to send speech.

    Attributes:
        wire_bps: Bits per second on the wire.
        packet_ms: Speech in one packet.
    """

    wire_bps: float
    packet_ms: int

    @property
    def packet_bytes(self) -> int:
        """Bytes of one packet."""
        return round(self.wire_bps * self.packet_ms / 8000)


STREAMS: Final = (
    Stream(wire_bps=8000 + headers_bps(60, 2), packet_ms=120),
    Stream(wire_bps=24e3, packet_ms=60),
    Stream(wire_bps=40e3, packet_ms=20),
)
"""The least that a call sends (13 kbps), and two better ones."""


def least_unheard(profile: LinkProfile, stream: Stream, within_ms: float, *, begin: float, end: float) -> float:
    """Share of the speech that cannot arrive in time, whoever sends it in this way.

    All packets are as long and may wait as long, so that to send just those which will come in time loses the fewest. Random losses and
    jitter are left out.

    Args:
        profile: The link.
        stream: How the speech is sent.
        within_ms: From a packet's first sample to its arrival.
        begin: Second at which the speech begins.
        end: Second at which it ends.
    """
    server = _server(profile)
    packet_s, size = stream.packet_ms / 1e3, stream.packet_bytes
    count = max(1, int((end - begin) / packet_s))
    free_at = last_at = 0.0
    missed = 0
    for index in range(count):
        said = begin + index * packet_s
        ready = said + packet_s
        tried = copy.copy(server)
        out = ready if tried is None else tried.departure(max(ready, free_at), size)
        arrival = None if out is None else max(last_at, out + profile.delay_ms / 1e3 + _swell(profile, ready))
        if out is None or arrival is None or arrival > said + within_ms / 1e3:
            missed += 1
            continue
        server, free_at, last_at = tried, out, arrival
    return missed / count


def limits(profile: LinkProfile, *, begin: float, end: float, streams: Sequence[Stream] = STREAMS) -> dict[str, float]:
    """``limit_150``, ``limit_250`` and ``limit_350``: the least share unheard within so many milliseconds, in the best of the ways."""
    return {
        f"limit_{within}": min(least_unheard(profile, stream, within, begin=begin, end=end) for stream in streams) for within in WITHIN_MS
    }


def _server(profile: LinkProfile) -> StepServer | TraceServer | None:
    if profile.rate_trace_ms:
        return TraceServer(profile.rate_trace_ms)
    return StepServer(profile.rate_steps) if profile.rate_steps else None


def _swell(profile: LinkProfile, at: float) -> float:
    """Seconds that a recorded delay adds then."""
    trace = profile.delay_trace_ms
    return trace[int(at * 1e3 / profile.delay_trace_step_ms) % len(trace)] / 1e3 if trace else 0.0
