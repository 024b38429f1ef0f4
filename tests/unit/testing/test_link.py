from __future__ import annotations

import itertools

import pytest

from voicestream.testing.link import Link, own_queueing_ms
from voicestream.testing.loss import BurstLoss
from voicestream.testing.profile import LinkProfile


def send_steadily(link: Link, count: int, *, gap: float = 0.02, size_bytes: int = 100) -> list[list[float]]:
    return [link.send(index * gap, size_bytes) for index in range(count)]


def test_a_perfect_link_delivers_at_once() -> None:
    assert send_steadily(Link(LinkProfile()), 3) == [[0.0], [0.02], [0.04]]


def test_the_delay_is_added_exactly() -> None:
    assert Link(LinkProfile(delay_ms=40)).send(1.0, 100) == [pytest.approx(1.04, abs=1e-12)]


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    profile = LinkProfile(delay_ms=20, jitter_ms=10, loss=0.1, duplicate=0.05)
    first, again, other = (send_steadily(Link(profile, seed), 500) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_jitter_leaves_the_same_packets_lost() -> None:
    plain = send_steadily(Link(LinkProfile(loss=0.2), 5), 500)
    jittery = send_steadily(Link(LinkProfile(loss=0.2, jitter_ms=30), 5), 500)
    assert [not times for times in plain] == [not times for times in jittery]


def test_independent_losses_have_the_wanted_share() -> None:
    link = Link(LinkProfile(loss=0.1), 3)
    arrivals = send_steadily(link, 20000)
    lost = sum(not times for times in arrivals)
    assert lost == link.stats().lost
    assert 0.09 < lost / 20000 < 0.11
    pairs = sum(not a and not b for a, b in itertools.pairwise(arrivals))
    assert pairs / lost == pytest.approx(0.1, abs=0.03)


def test_burst_losses_have_the_wanted_share_and_length() -> None:
    arrivals = send_steadily(Link(LinkProfile(burst_loss=BurstLoss(loss=0.1, burst=3)), 4), 60000)
    fates = [not times for times in arrivals]
    bursts = sum(lost and not before for before, lost in zip([False, *fates], fates, strict=False))
    assert 0.09 < sum(fates) / len(fates) < 0.11
    assert sum(fates) / bursts == pytest.approx(3, rel=0.08)


def test_a_loss_trace_is_followed_and_looped() -> None:
    arrivals = send_steadily(Link(LinkProfile(loss_trace=(0, 1, 1))), 7)
    assert [not times for times in arrivals] == [False, True, True, False, True, True, False]


def test_a_delay_trace_is_followed_by_time_and_looped() -> None:
    link = Link(LinkProfile(delay_ms=10, delay_trace_ms=(0, 50, 5), delay_trace_step_ms=100, reorder=True))
    delays = [link.send(at, 100)[0] - at for at in (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)]
    assert delays == pytest.approx([0.010, 0.010, 0.060, 0.015, 0.010, 0.060])


def test_packets_keep_their_order_under_jitter_unless_reordering_is_asked_for() -> None:
    for reorder in (False, True):
        link = Link(LinkProfile(jitter_ms=40, reorder=reorder), 6)
        arrivals = [times[0] for times in send_steadily(link, 300, gap=0.01)]
        assert (arrivals != sorted(arrivals)) == reorder


def test_jitter_has_the_wanted_spread() -> None:
    link = Link(LinkProfile(jitter_ms=10, reorder=True), 7)
    send_steadily(link, 20000)
    assert link.stats().delay_ms.mean == pytest.approx(10 * 0.798, rel=0.03)  # mean of |N(0, 1)|


def test_duplicates_arrive_twice_in_the_wanted_share() -> None:
    link = Link(LinkProfile(duplicate=0.2), 8)
    twice = sum(len(times) == 2 for times in send_steadily(link, 5000))
    assert twice == link.stats().duplicated
    assert twice / 5000 == pytest.approx(0.2, abs=0.02)


def test_the_rate_is_exact() -> None:
    link = Link(LinkProfile(rate_kbps=80, queue_ms=10000))
    arrivals = [link.send(0.0, 100)[0] for _ in range(50)]
    assert arrivals == pytest.approx([0.01 * (index + 1) for index in range(50)])


def test_a_packet_in_service_when_the_rate_changes_is_served_at_both_rates() -> None:
    link = Link(LinkProfile(rate_kbps=((0, 8), (0.05, 80))))
    assert link.send(0.0, 100) == [pytest.approx(0.05 + (800 - 400) / 80000)]


def test_a_stalled_link_keeps_packets_until_the_rate_returns() -> None:
    link = Link(LinkProfile(rate_kbps=((0, 0), (2, 80)), queue_ms=5000))
    assert link.send(0.5, 100) == [pytest.approx(2.01)]


def test_a_link_that_stalls_for_ever_drops() -> None:
    link = Link(LinkProfile(rate_kbps=((0, 80), (1, 0))))
    assert link.send(1.0, 100) == []
    assert link.stats().queue_dropped == 1


def test_the_queue_is_bounded_in_time() -> None:
    link = Link(LinkProfile(rate_kbps=80, queue_ms=100))
    kept = [link.send(0.0, 100) for _ in range(30)]
    assert sum(bool(times) for times in kept) == 10
    assert link.stats().queue_dropped == 20
    assert link.send(0.055, 100) == [pytest.approx(0.11)]


def test_the_queue_is_bounded_in_bytes() -> None:
    link = Link(LinkProfile(rate_kbps=80, queue_bytes=350))
    assert [bool(link.send(0.0, 100)) for _ in range(5)] == [True, True, True, False, False]
    assert link.send(0.01, 100)  # the first has left


def test_queueing_counts_the_wait_behind_others_only() -> None:
    link = Link(LinkProfile(delay_ms=30, rate_kbps=80))
    for _ in range(3):
        link.send(0.0, 100)
    assert list(link.stats().queue_ms) == pytest.approx([0, 10, 20])
    assert list(link.stats().delay_ms) == pytest.approx([40, 50, 60])


def test_a_rate_trace_delivers_at_its_opportunities_and_loops() -> None:
    link = Link(LinkProfile(rate_trace_ms=(10, 20, 50), queue_ms=10000))
    arrivals = [link.send(0.0, 1500)[0] for _ in range(5)]
    assert arrivals == pytest.approx([0.010, 0.020, 0.050, 0.060, 0.070])


def test_small_packets_share_an_opportunity_and_large_ones_take_several() -> None:
    link = Link(LinkProfile(rate_trace_ms=(10, 20, 50), queue_ms=10000))
    assert [link.send(0.0, size)[0] for size in (700, 700, 200)] == pytest.approx([0.010, 0.010, 0.020])


def test_an_unused_opportunity_is_lost() -> None:
    link = Link(LinkProfile(rate_trace_ms=(10, 20, 50)))
    assert link.send(0.015, 100) == [pytest.approx(0.020)]
    assert link.send(0.030, 100) == [pytest.approx(0.050)]


def test_the_queue_of_a_rate_trace_is_bounded() -> None:
    link = Link(LinkProfile(rate_trace_ms=(100,), queue_ms=250))
    assert sum(bool(link.send(0.0, 1500)) for _ in range(10)) == 3
    small = Link(LinkProfile(rate_trace_ms=(100,), queue_bytes=3000))
    assert sum(bool(small.send(0.0, 1500)) for _ in range(10)) == 2


def test_nothing_passes_in_an_outage() -> None:
    link = Link(LinkProfile(outages=((1, 3),)))
    assert [bool(link.send(at, 100)) for at in (0.99, 1.0, 3.99, 4.0)] == [True, False, False, True]
    assert link.stats().outage_dropped == 2


def test_the_times_of_a_profile_count_from_the_epoch() -> None:
    link = Link(LinkProfile(delay_ms=10, outages=((1, 1),)), epoch=500.0)
    assert link.send(500.5, 100) == [pytest.approx(500.51)]
    assert link.send(501.5, 100) == []


def test_every_packet_is_accounted_for() -> None:
    link = Link(LinkProfile(rate_kbps=40, queue_ms=50, loss=0.1, duplicate=0.1, outages=((2, 1),)), 9)
    arrivals = send_steadily(link, 1000, gap=0.01)
    stats = link.stats()
    assert stats.offered == 1000
    assert stats.offered_bytes == 100000
    assert stats.delivered + stats.lost + stats.queue_dropped + stats.outage_dropped == 1000
    assert stats.delivered == sum(bool(times) for times in arrivals)
    assert stats.delivered_bytes == stats.delivered * 100
    assert min(stats.lost, stats.queue_dropped, stats.outage_dropped, stats.duplicated) > 0


def test_a_thin_stream_causes_no_queueing_of_its_own() -> None:
    samples = own_queueing_ms(LinkProfile(rate_kbps=20), [(index * 0.06, 134) for index in range(200)])
    assert samples.maximum == 0


def test_a_fat_stream_is_charged_with_its_queue() -> None:
    samples = own_queueing_ms(LinkProfile(rate_kbps=40, queue_ms=200), [(index * 0.02, 134) for index in range(200)])
    assert samples.percentile(95) > 150


def test_waiting_for_a_rate_traces_opportunity_is_not_charged_to_the_stream() -> None:
    packets = [(index * 0.06, 134) for index in range(200)]
    assert own_queueing_ms(LinkProfile(rate_trace_ms=(400,), queue_ms=1000), packets).maximum < 1


def test_no_rate_limit_means_no_queueing() -> None:
    assert list(own_queueing_ms(LinkProfile(delay_ms=50), [(0.0, 1000), (0.0, 1000)])) == [0, 0]
