from __future__ import annotations

from voicestream.core.bwe.drain import DrainWatch


def watch(queues: list[float]) -> tuple[DrainWatch, float]:
    """A drain that begins at 10 s, answers after 0.2 s and is looked at every 0.1 s."""
    drain = DrainWatch()
    drain.start(10.0, queues[0], 0.2)
    now = 10.0
    for queue in queues:
        now += 0.1
        drain.update(now, queue)
    return drain, now


def test_nothing_is_judged_before_the_queue_could_answer() -> None:
    drain, _ = watch([0.05])
    assert not drain.settled(10.1)
    assert drain.settled(10.3)


def test_a_queue_that_stays_where_it_should_have_shrunk_is_not_ours() -> None:
    drain, now = watch([0.06] * 10)
    assert drain.unmoved(now, 0.06, 0.0, 0.4)
    assert drain.unmoved(now, 0.06, 0.1, 0.4), "others let it grow"
    assert not drain.unmoved(now, 0.06, -0.1, 0.4), "it shrinks"
    assert not drain.unmoved(now, 0.02, 0.0, 0.4), "it has shrunk"
    assert not drain.unmoved(now, 0.06, 0.0, 0.05), "too little less is sent to tell"


def test_the_longest_queue_counts_and_not_the_first() -> None:
    drain, now = watch([0.05, 0.1, 0.15, 0.2, 0.19, 0.18])
    assert drain.peak == 0.2
    assert not drain.unmoved(now, 0.18, 0.0, 0.5)


def test_a_queue_rests_once_it_has_not_shrunk_for_a_while() -> None:
    drain, now = watch([0.2, 0.15, 0.1, 0.05, 0.03])
    assert not drain.rests(now + 0.5, 0.0)
    assert drain.rests(now + 0.9, 0.0)
    assert not drain.rests(now + 0.9, -0.2)
