from __future__ import annotations

import pytest

from voicestream.core.bwe.pairs import PacketPairs
from voicestream.core.bwe.samples import Sample


def pair(pairs: PacketPairs, number: int, at: float, gap: float, *, apart: float = 0.0) -> bool:
    pairs.add(Sample(number, at, at, 200), at)
    return pairs.add(Sample(number + 1, at + apart, at + gap, 125), at)


def test_two_that_left_together_tell_the_rate_of_the_link() -> None:
    pairs = PacketPairs()
    for index in range(3):
        assert pair(pairs, 2 * index, index * 1.0, 0.01)
    assert pairs.capacity_bps(2.0) == pytest.approx(100e3)
    assert pairs.newest_bps(2.0) == pytest.approx(100e3)


def test_datagrams_sent_apart_or_with_one_lost_between_are_no_pair() -> None:
    pairs = PacketPairs()
    assert not pair(pairs, 0, 0.0, 0.02, apart=0.02)
    pairs.add(Sample(10, 1.0, 1.0, 200), 1.0)
    assert not pairs.add(Sample(12, 1.0, 1.01, 125), 1.0)


def test_one_disturbed_pair_does_not_count() -> None:
    pairs = PacketPairs()
    for index, gap in enumerate((0.01, 0.01, 0.03, 0.01, 0.0)):
        pair(pairs, 2 * index, index * 0.5, gap)
    assert pairs.capacity_bps(2.0) == pytest.approx(100e3)


def test_the_newest_two_see_a_faster_link_at_once_and_one_alone_does_not() -> None:
    pairs = PacketPairs()
    for index, gap in enumerate((0.04, 0.04, 0.04, 0.01)):
        pair(pairs, 2 * index, index * 0.5, gap)
    assert pairs.newest_bps(1.5) == pytest.approx(25e3)
    pair(pairs, 8, 2.0, 0.01)
    assert pairs.newest_bps(2.0) == pytest.approx(100e3)


def test_old_pairs_do_not_count_and_a_path_can_be_forgotten() -> None:
    pairs = PacketPairs()
    for index in range(4):
        pair(pairs, 2 * index, index * 0.1, 0.01)
    assert pairs.capacity_bps(5.0) is None
    assert pairs.newest_bps(5.0) is None
    assert pairs.capacity_bps(1.0) is not None
    pairs.forget()
    assert pairs.capacity_bps(1.0) is None


def test_where_datagrams_come_in_lumps_pairs_tell_nothing() -> None:
    pairs = PacketPairs()
    for number in range(60):  # three left one after the other, and came at once
        sent = 0.02 * number
        pairs.add(Sample(number, sent, 0.06 * (number // 3 + 1), 200), sent)
    assert pairs.lumps > 0.5
    assert pair(pairs, 60, 1.3, 0.0001)
    assert pair(pairs, 62, 1.4, 0.0001)
    assert pair(pairs, 64, 1.5, 0.0001)
    assert pairs.capacity_bps(1.5) is None
