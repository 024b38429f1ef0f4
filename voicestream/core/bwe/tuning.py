"""The numbers of the estimator, each with its meaning."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ADD_BPS",
    "BEGUN",
    "CAREFUL",
    "CAREFUL_BPS",
    "CLEAR",
    "DAMPING",
    "FINDING",
    "HOLD",
    "LEAST_QUEUE",
    "LEAST_SHARE",
    "LEAST_SPEECH",
    "MOST_QUEUE",
    "MOST_RESTARTS",
    "OVERDUE",
    "PAIR_USE",
    "POLICED_USE",
    "QUEUED_BITS",
    "RAMP_FAST",
    "RAMP_SLOW",
    "REFRESH",
    "RISES",
    "RIVAL_USE",
    "STEP",
    "STEP_NOISE",
    "UNDO_INTERVAL",
]

QUEUED_BITS: Final = 900.0
"""What each flow keeps in the bottleneck's queue when it has to share: about one datagram."""

LEAST_QUEUE: Final = 0.008
MOST_QUEUE: Final = 0.05
"""Bounds of the queue aimed at while cruising, in seconds."""

PAIR_USE: Final = 0.93
"""Part of the bottleneck's rate that is used when there is nobody else."""

ADD_BPS: Final = 2500.0
"""Bits per second each second that a cruising flow gains while it sees no queue."""

DAMPING: Final = 1.5
RAMP_FAST: Final = 1.0
RAMP_SLOW: Final = 0.4
"""Growth a second, as a share, with and without a pair that shows that there is room."""

LEAST_SHARE: Final = 0.2
"""No less of the rate is taken for our share at once: reports that got lost leave gaps."""

MOST_RESTARTS: Final = 2
"""How often in one drain less may arrive than thought; beyond that it is others who take what we leave."""

POLICED_USE: Final = 0.95
"""Part of what a policer lets through that is used."""

CAREFUL: Final = 0.12
"""Growth a second where only the lack of a queue, or the time that has passed, speaks for more."""

CAREFUL_BPS: Final = 4000.0
"""Bits per second each second that are not too much even then."""

RIVAL_USE: Final = 0.4
"""Part of the link that is taken beside flows that fill its queue."""

HOLD: Final = 15.0
"""Seconds for which the rate stays below what a policer has let through, before more is tried."""

REFRESH: Final = 25.0
"""Seconds without sight of an empty queue after which it is drained, lest it be taken for the path's own delay."""

BEGUN: Final = 0.025
"""Seconds by which the delay has grown, beyond jitter, when a queue is said to begin."""

RISES: Final = 2
"""Datagrams in a row that must each have come later."""

UNDO_INTERVAL: Final = 2.0
"""Seconds from one decrease that was undone to the next: others may have made room for us."""

FINDING: Final = 0.6
"""Seconds from the first sign of a queue in which our share of the link is still being found out."""

OVERDUE: Final = 0.045
"""Seconds beyond jitter for which what should have arrived has not, when it is said to be overdue."""

CLEAR: Final = 0.08
"""Seconds that the newest datagrams may have waited on a path of which the lack of the next one tells something."""

LEAST_SPEECH: Final = 1.7
"""What the least speech takes, in parts of the least estimate."""

STEP: Final = 0.02
"""Seconds by which one datagram must come later than the one before, when that is a reason for care until the next ones are known."""

STEP_NOISE: Final = 8.0
"""How many times the usual jitter it must be, beyond that."""
