"""The far end's clock as seen from here: round-trip time, offset and its error bound (specification section 9.3).

Ticks on the wire count 250 microseconds modulo 2^16 from an arbitrary origin, so an offset is known modulo 16.384 s; differences of
times are what matters.
"""

from __future__ import annotations

import math
from typing import Final

from voicestream.wire.sequence import TICKS_PER_SECOND, tick_delta, ticks

__all__ = ["DRIFT", "MAX_HOLD", "RemoteClock", "SendTimes"]

DRIFT: Final = 500e-6
"""How far two clocks may drift apart, in seconds a second."""

MAX_HOLD: Final = 8.0
"""Seconds that an echo may have been held; a longer hold could have wrapped around and is not used."""

_QUANTUM: Final = 1.0 / TICKS_PER_SECOND
_WRAP: Final = 0x10000
_RTT_GAIN: Final = 1 / 8


class RemoteClock:
    """Estimates from echoes: the far end tells when a datagram of ours arrived there and when it told so, both on its clock.

    Attributes:
        rtt: Smoothed round-trip time in seconds, the far end's hold taken off. Before the first echo what was supposed, or None.
        latest_rtt: The newest sample, in seconds.
        min_rtt: The smallest sample, in seconds.
    """

    __slots__ = ("_best_at", "_error", "_offset_ticks", "latest_rtt", "min_rtt", "rtt")

    def __init__(self) -> None:
        self.rtt: float | None = None
        self.latest_rtt: float | None = None
        self.min_rtt: float | None = None
        self._offset_ticks = 0.0
        self._error = math.inf
        self._best_at = 0.0

    def suppose(self, rtt: float | None) -> None:
        """Something to go by until the first echo: what the transport has measured, in seconds."""
        if self.latest_rtt is None and rtt is not None and 0 < rtt <= MAX_HOLD:
            self.rtt = rtt

    def echo(self, sent_at: float, arrival_tick: int, reply_tick: int, now: float) -> float | None:
        """Take one echo.

        Args:
            sent_at: When our datagram left, on our clock.
            arrival_tick: When it arrived, on the far end's clock.
            reply_tick: When the far end sent the report, on its clock.
            now: When the report arrived, on our clock.

        Returns:
            The round-trip time in seconds, or None when the values cannot be true.
        """
        hold = ((reply_tick - arrival_tick) & 0xFFFF) * _QUANTUM
        sample = now - sent_at - hold
        # VS-9.3-2, VS-6.3-2
        if hold > MAX_HOLD or not -2 * _QUANTUM <= sample <= MAX_HOLD:
            return None
        sample = max(sample, 0.0)
        first = self.latest_rtt is None  # what was supposed before it says no more
        self.latest_rtt = sample
        self.min_rtt = sample if self.min_rtt is None else min(self.min_rtt, sample)
        self.rtt = sample if self.rtt is None or first else self.rtt + _RTT_GAIN * (sample - self.rtt)
        error = sample / 2 + 2 * _QUANTUM
        if error <= self.error(now):
            reverse = tick_delta(reply_tick, ticks(now))  # offset less the one-way delay toward us
            self._offset_ticks = reverse + sample / 2 * TICKS_PER_SECOND
            self._error = error
            self._best_at = now
        return sample

    def offset(self) -> float | None:
        """Far clock minus ours in seconds, -8.192 to 8.192 (modulo 16.384); None before the first echo."""
        if math.isinf(self._error):
            return None
        return _centred(self._offset_ticks) / TICKS_PER_SECOND

    def error(self, now: float) -> float:
        """Bound of the error of `offset`, in seconds: half of the best round trip, and the drift since; infinite at first."""
        return self._error + DRIFT * max(0.0, now - self._best_at) if not math.isinf(self._error) else math.inf

    def path_delay(self, send_tick: int, now: float) -> float | None:
        """One-way delay in seconds of a datagram that the far end sent at `send_tick` and that came `now`; good to `error`."""
        if math.isinf(self._error):
            return None
        return _centred((ticks(now) - send_tick) + self._offset_ticks) / TICKS_PER_SECOND


def _centred(value: float) -> float:
    """`value` modulo 2^16, in -2^15 to 2^15."""
    return (value + _WRAP / 2) % _WRAP - _WRAP / 2


class SendTimes:
    """Makes the far end's 16-bit send ticks continuous, across silences longer than they span."""

    __slots__ = ("_at", "_ticks")

    def __init__(self) -> None:
        self._ticks: int | None = None
        self._at = 0.0

    def seconds(self, tick: int, now: float) -> float:
        """Seconds on the far end's clock (arbitrary origin) of a datagram sent at `tick` that arrived `now`.

        Right as long as delays vary by less than 8 s.
        """
        if self._ticks is None:
            self._ticks, self._at = tick, now
            return tick * _QUANTUM
        expected = self._ticks + round((now - self._at) * TICKS_PER_SECOND)
        full = expected + tick_delta(tick, expected & 0xFFFF)
        if full > self._ticks:
            self._ticks, self._at = full, now
        return full * _QUANTUM
