"""The numbers of the estimator, each with its meaning."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BEGUN",
    "CAREFUL",
    "CAREFUL_BPS",
    "CLEAR",
    "CLEAR_RAMP",
    "CLEAR_UNREST",
    "DAMPING",
    "DRAIN_USE",
    "FINDING",
    "FREE",
    "GENTLE",
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
    "REOPEN",
    "REOPENED",
    "REOPEN_BPS",
    "REOPEN_USE",
    "RISES",
    "RIVAL_USE",
    "SHARED",
    "STEP",
    "STEP_NOISE",
    "UNDO_INTERVAL",
    "UNREST_DRAIN",
    "UNREST_QUEUE",
    "UNREST_RATE",
    "UNREST_TREND",
]

QUEUED_BITS: Final = 900.0
"""What each flow keeps in the bottleneck's queue when it has to share: about one datagram."""

LEAST_QUEUE: Final = 0.008
MOST_QUEUE: Final = 0.05
"""Bounds of the queue aimed at while cruising, in seconds."""

UNREST_QUEUE: Final = 2.0
"""The least of it where the path has jitter of its own, in parts of that."""

CLEAR_RAMP: Final = 0.6
CLEAR_UNREST: Final = 0.8
"""Part of it up to which the rate ramps up, and the same where the path has jitter of its own."""

UNREST_TREND: Final = 1.5
"""Growth of the delay that such jitter looks like, in seconds a second for each second of it."""

UNREST_RATE: Final = 20.0
"""Seconds by which arrivals are looked at for longer to tell a rate, for each second of such jitter."""

UNREST_DRAIN: Final = 10.0
"""Seconds for which a queue is given more time to answer, for each second of such jitter."""

PAIR_USE: Final = 0.93
"""Part of the bottleneck's rate that is used when there is nobody else."""

GENTLE: Final = 0.96
"""Part of what arrives that is sent when there was no more to be had, and the queue is small."""

DRAIN_USE: Final = 0.88
"""The same while a small queue is drained: so little below what follows that nothing is turned for it."""

DAMPING: Final = 1.0
"""Part of the rate that is taken away each second, for each second a second by which the delay grows."""

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

RIVAL_USE: Final = 0.45
"""Part of the link that is taken beside flows that fill its queue."""

HOLD: Final = 15.0
"""Seconds for which the rate stays below what a policer has let through, before more is tried."""

REFRESH: Final = 25.0
"""Seconds without sight of an empty queue after which it is drained, lest it be taken for the path's own delay."""

BEGUN: Final = 0.025
"""Seconds by which the delay has grown, beyond jitter, when a queue is said to begin."""

SHARED: Final = 2.0
"""The same where a queue is aimed at: so many times that one more."""

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

REOPEN: Final = 2.1
"""The least rate with which speech goes on after a pause, in parts of the least estimate: its floor with what else is sent."""

REOPEN_USE: Final = 0.4
REOPEN_BPS: Final = 40000.0
"""What it goes on with where pairs tell of more: part of what they tell, and the most."""

REOPENED: Final = 0.8
"""Seconds for which a pair tells that the path is free again."""

FREE: Final = 0.06
"""Seconds that the newest datagram may have waited then."""
