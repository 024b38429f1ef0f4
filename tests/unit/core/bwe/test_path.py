from __future__ import annotations

import pytest

from voicestream.core.bwe.path import PathView
from voicestream.core.bwe.samples import Sample


def test_what_is_sent_is_a_rate_and_waits_for_its_report() -> None:
    path = PathView()
    assert path.starved_at(0.1) is None
    for step in range(200):
        path.sent(10 + step * 0.02, 125)
    assert path.sent_bps == pytest.approx(50e3, rel=0.05)
    assert path.first_at == 10.0
    assert path.starved_at(0.1) == pytest.approx(10.6)
    assert path.sent_bps_at(13.98 + 0.5) == pytest.approx(path.sent_bps / 2)
    assert path.sent_bps_at(20.0) == 0.0


def test_a_report_of_the_newest_ends_the_wait_and_one_of_an_older_one_begins_it_anew() -> None:
    path = PathView()
    path.sent(10.0, 125)
    path.sent(10.1, 125)
    path.told(10.2, [Sample(0, 10.0, 13.0, 125)], [])
    assert path.waiting_since == 10.2
    path.told(10.3, [Sample(1, 10.1, 13.1, 125)], [])
    assert path.waiting_since is None


def test_what_the_far_end_does_not_report_is_not_waited_for() -> None:
    path = PathView()
    path.sent(10.0, 80, eliciting=False)
    assert path.starved_at(0.1) is None
    assert path.sent_bps == 640


def test_with_jitter_more_pairs_are_needed_to_be_sure() -> None:
    for jitter, expected in ((0.0, True), (0.01, False)):
        path = PathView()
        for index in range(3):
            at = 10 + 0.5 * index
            path.told(at, [Sample(2 * index, at, at, 200), Sample(2 * index + 1, at, at + 0.01, 125)], [])
        path.delay.jitter = jitter
        assert (path.surely_fast(11.0, clear=True) is not None) is expected


def test_losses_count_only_beyond_the_background() -> None:
    path = PathView()
    path.told(1.0, [Sample(number, 0.0, 0.1 * number, 100) for number in range(16)], (16, 17, 18, 19))
    assert path.losing(1.1, 0.0)
    assert not path.losing(1.1, 0.1)
    assert not path.losing(2.0, 0.0)


def test_another_path_forgets_pairs_and_queue() -> None:
    path = PathView()
    for index in range(3):
        path.told(10.0, [Sample(2 * index, 10.0, 10.0, 200), Sample(2 * index + 1, 10.0, 10.01, 125)], [])
    assert path.fast(10.0) == pytest.approx(100e3)
    path.changed(11.0)
    assert path.fast(11.0) is None
    assert path.first_at == 11.0


def test_on_a_link_that_has_become_faster_the_base_is_taken_anew() -> None:
    """On the slow link 200 bytes take 64 ms of 25 kbps; without a new base the fast link would seem to be that much less empty."""
    path = PathView()
    number, standing = 0, []
    for step in range(12):
        bps = 25e3 if step < 6 else 200e3
        at = 10 + 0.4 * step
        path.told(at + 0.1, [Sample(number, at, at + 1 + 1600 / bps, 200), Sample(number + 1, at, at + 1 + 2600 / bps, 125)], [])
        number += 2
        standing.append(path.delay.standing)
    assert standing[-1] < 0.005


def test_what_a_queue_drops_is_no_loss_of_the_path() -> None:
    path = PathView()
    for step in range(20):
        path.told(1 + 0.02 * step, [Sample(step, 1 + 0.02 * step, 1 + 0.02 * step, 125)], [])
    for step in range(20, 60):
        at = 1 + 0.02 * step
        path.told(at, [Sample(2 * step, at, at + 0.3, 125)], [2 * step - 1] if step > 25 else [])
    assert path.losses.share > 0.2
    assert path.own_losses.share == 0.0


def test_news_that_comes_late_is_not_fresh_and_a_queue_makes_none_of_it_late() -> None:
    path = PathView()
    for number in range(20):
        at = 10 + 0.05 * number
        path.sent(at, 125)
        path.told(at + 0.1, [Sample(number, at, at + 3.0, 125)], [])
    assert path.is_fresh
    path.sent(11.0, 125)
    path.told(11.5, [Sample(20, 11.0, 14.4, 125)], [])
    assert path.is_fresh  # it has waited for 0.4 s, and is told at once
    path.sent(11.6, 125)
    path.told(12.4, [Sample(21, 11.6, 15.0, 125)], [])
    assert not path.is_fresh
    path.changed(12.5)
    assert path.is_fresh
