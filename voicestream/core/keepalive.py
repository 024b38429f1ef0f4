"""When an otherwise silent side must send something, so that address translators keep the path (specification section 8.7)."""

from __future__ import annotations

from typing import Final

__all__ = ["KEEPALIVE_INTERVAL", "Keepalive"]

KEEPALIVE_INTERVAL: Final = 5.0  # VS-8.7-1
"""Seconds. UDP mappings of home routers last 30 s as a rule, but some only 10 s: half of that."""


class Keepalive:
    """Watches how long nothing has been sent.

    Args:
        interval: Seconds of silence after which a keepalive is due; None for a side that sends none.
    """

    __slots__ = ("_interval", "_last_sent")

    def __init__(self, interval: float | None = KEEPALIVE_INTERVAL) -> None:
        self._interval = interval
        self._last_sent: float | None = None

    def sent(self, now: float) -> None:
        """A datagram left, of whatever kind. The first call starts the watch."""
        self._last_sent = now

    def due(self, now: float) -> bool:
        """Whether a keepalive should leave now."""
        deadline = self.next_timer()
        return deadline is not None and now >= deadline

    def next_timer(self) -> float | None:
        """When the next keepalive is due, or None."""
        if self._interval is None or self._last_sent is None:
            return None
        return self._last_sent + self._interval
