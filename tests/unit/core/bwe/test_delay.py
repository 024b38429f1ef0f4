from __future__ import annotations

import random

import pytest

from voicestream.core.bwe.delay import STRETCH, QueueDelay
from voicestream.core.bwe.samples import Sample, WindowedMin


def feed(delay: QueueDelay, waits: list[float], *, start: int = 0, size: int = 150, capacity: float | None = None) -> None:
    for index, wait in enumerate(waits, start):
        at = index * 0.02
        delay.add(Sample(index, at, at + 5.0 + wait, size), capacity)


def test_the_least_of_a_window_is_kept_and_leaves_with_it() -> None:
    window = WindowedMin(1.0)
    assert window.value is None
    for at, value in ((0.0, 3.0), (0.5, 5.0), (0.9, 4.0)):
        window.add(at, value)
    assert window.value == 3.0
    window.add(1.2, 6.0)
    assert window.value == 4.0
    window.clear()
    assert window.value is None


def test_a_queue_that_empties_between_datagrams_does_not_stand() -> None:
    delay = QueueDelay()
    feed(delay, [0.0, 0.05, 0.03] * 20)
    assert delay.standing == pytest.approx(0.0, abs=0.001)


def test_a_standing_queue_is_measured_above_the_unknown_constant() -> None:
    delay = QueueDelay()
    feed(delay, [0.0] * 20)
    feed(delay, [0.04] * 40, start=20)
    assert delay.standing == pytest.approx(0.04, abs=0.003)
    assert delay.trend == pytest.approx(0.0, abs=0.01)


def test_jitter_alone_is_no_queue() -> None:
    delay = QueueDelay()
    rng = random.Random(1)
    found = []
    for index in range(500):
        at = index * 0.02
        delay.add(Sample(index, at, at + abs(rng.gauss(0, 0.01)), 150), None)
        found.append(delay.standing)
    assert sorted(found)[450] < 0.005
    assert 0.003 < delay.jitter < 0.02


def jittery(delay: QueueDelay, jitter: float, *, frame: float = 0.02, count: int = 500) -> list[float]:
    """Feed it datagrams that keep their order; returns the queue that it sees after each."""
    rng, last, found = random.Random(1), 0.0, []
    for index in range(count):
        last = max(last, index * frame + abs(rng.gauss(0, jitter)))
        delay.add(Sample(index, index * frame, last, 150), None)
        found.append(delay.standing)
    return sorted(found)


@pytest.mark.parametrize("jitter", [0.02, 0.03])
def test_much_jitter_that_keeps_the_order_is_no_queue_either(jitter: float) -> None:
    found = jittery(QueueDelay(), jitter)
    assert found[450] < 0.5 * jitter
    assert found[-5] < jitter


def test_jitter_of_the_path_is_told_from_what_sharing_and_a_growing_queue_make() -> None:
    restless, shared, slow, full = (QueueDelay() for _ in range(4))
    jittery(restless, 0.03)
    jittery(shared, 0.004)
    jittery(slow, 0.012, frame=0.06)
    feed(full, [0.0] * 100)
    feed(full, [0.06 * index for index in range(20)], start=100)
    assert restless.unrest > 0.008
    assert shared.unrest == slow.unrest == full.unrest == 0.0
    assert full.jitter > 0.02


def test_the_trend_is_the_growth_of_the_delay() -> None:
    delay = QueueDelay()
    feed(delay, [0.002 * index for index in range(50)])  # 2 ms every 20 ms sent
    assert delay.trend == pytest.approx(0.002 / 0.022, rel=0.05)


def test_the_time_of_a_datagrams_own_bytes_is_no_queue() -> None:
    delay = QueueDelay()
    feed(delay, [100 * 8 / 50e3] * 20, size=100, capacity=50e3)
    feed(delay, [300 * 8 / 50e3] * 20, start=20, size=300, capacity=50e3)
    assert delay.standing == pytest.approx(0.0, abs=0.002)


def test_after_rebase_what_stands_is_the_base() -> None:
    delay = QueueDelay()
    feed(delay, [0.0] * 20)
    feed(delay, [0.06] * 20, start=20)
    assert delay.standing > 0.05
    delay.rebase()
    assert delay.standing == 0.0
    feed(delay, [0.06] * 20, start=40)
    assert delay.standing == pytest.approx(0.0, abs=0.001)


def test_when_the_base_was_seen_is_remembered() -> None:
    delay = QueueDelay()
    feed(delay, [0.0] * 10)
    seen = delay.base_at
    assert seen == delay.newest_at == pytest.approx(5.18)
    feed(delay, [0.03] * 20, start=10)
    assert delay.base_at < seen + 0.2 < delay.newest_at


@pytest.mark.parametrize("seed", range(6))
def test_the_moments_of_a_standing_queue_are_those_that_a_look_at_all_would_find(seed: int) -> None:
    chance = random.Random(seed)
    queue = QueueDelay()
    known: list[tuple[float, float]] = []
    least = float("inf")
    for number in range(400):
        sent_at = number * 0.02
        delay = 0.05 + (0.03 * chance.random() if seed % 2 else 0.0) + (1.0 if number > 200 else 0.0)
        at = sent_at + delay
        queue.add(Sample(number, sent_at, at, 200), None)
        known.append((at, delay))
        near = [delay for moment, delay in known if moment >= at - 0.16 - STRETCH * queue.unrest]
        near = near if len(near) >= 3 else [delay for _, delay in known[-3:]]
        least = min(least, known[-1][1])
        noise = min(2 * queue.jitter / (len(near) + 1), 0.02)
        assert queue.standing == pytest.approx(max(0.0, min(near) - least - noise), abs=1e-9), (seed, number)
