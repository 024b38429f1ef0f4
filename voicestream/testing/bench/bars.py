"""The bars of rate control that most cases share, and the links that they are set on."""

from __future__ import annotations

from typing import Final

from voicestream.testing.bench.case import Bar
from voicestream.testing.profile import LinkProfile

__all__ = ["BACK", "EQUAL", "QUEUE", "REACT", "REST", "SPENT", "START", "STEADY", "TAKE", "USE", "Steps", "concealed", "link"]

Steps = tuple[tuple[float, float], ...]

USE: Final = Bar("utilisation", ">=", 0.85)
QUEUE: Final = Bar("queue_p95_ms", "<=", 60)
TAKE: Final = Bar("take_s", "<=", 5)
REACT: Final = Bar("react_s", "<=", 2)
REST: Final = Bar("reversals", "<=", 1)
BACK: Final = Bar("back_s", "<=", 5)
START: Final = Bar("start_s", "<=", 2)
EQUAL: Final = Bar("jain", ">=", 0.95)
SPENT: Final = Bar("redundancy", "<=", 0.3)
STEADY: Final = (USE, QUEUE, REST)


def link(rate: float | Steps | None, *, delay_ms: float = 50, queue_ms: float = 300, jitter_ms: float = 0, loss: float = 0) -> LinkProfile:
    """A link with one bottleneck; 50 ms one way and a queue of 300 ms unless said otherwise."""
    return LinkProfile(delay_ms=delay_ms, rate_kbps=rate, queue_ms=queue_ms, jitter_ms=jitter_ms, loss=loss)


def concealed(share: float) -> Bar:
    """At most this share made up."""
    return Bar("concealed", "<=", share)
