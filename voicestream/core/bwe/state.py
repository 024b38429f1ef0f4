"""What the estimator is doing."""

from __future__ import annotations

import enum

__all__ = ["State"]


class State(enum.Enum):
    """What the estimator is doing: looking for room, holding its share, emptying a queue, or finding something out."""

    RAMP = "ramp"
    CRUISE = "cruise"
    DRAIN = "drain"
    REFRESH = "refresh"
    TEST = "test"
    STARVED = "starved"
