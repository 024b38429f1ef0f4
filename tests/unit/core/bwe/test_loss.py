from __future__ import annotations

import random

import pytest

from voicestream.core.bwe.loss import LossLog


def test_nothing_lost_is_a_share_of_nothing() -> None:
    log = LossLog()
    log.told(0.0, 100, ())
    assert (log.pattern.share, log.pattern.mean_burst) == (0.0, 1.0)
    assert log.recent(0.0, 1.0) == (100, 0)


def test_share_and_burst_are_those_of_the_losses() -> None:
    log, rng, number = LossLog(), random.Random(3), 0
    for step in range(400):
        burst = 3 if rng.random() < 0.25 else 0
        log.told(step * 0.1, 7, tuple(range(number + 7, number + 7 + burst)))
        number += 7 + burst
    assert log.pattern.share == pytest.approx(0.1, abs=0.06)
    assert log.pattern.mean_burst == pytest.approx(3.0, abs=0.3)


def test_single_losses_are_bursts_of_one() -> None:
    log = LossLog()
    for index in range(50):
        log.told(index * 0.1, 4, (index * 10,))
    assert log.pattern.mean_burst == pytest.approx(1.0)


def test_only_the_recent_ones_are_counted() -> None:
    log = LossLog()
    log.told(0.0, 5, (1, 2))
    log.told(1.0, 3, (9,))
    assert log.recent(1.2, 0.5) == (4, 1)
    assert log.recent(1.2, 5.0) == (11, 3)
