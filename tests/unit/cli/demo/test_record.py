"""Arithmetic on what the demo noted."""

from __future__ import annotations

import numpy as np
import pytest

from voicestream.call_stats import CallStats, OrderedStats, PathStats, PlayoutStats, ReceivedStats, SentStats
from voicestream.cli.demo.record import EndRecord, loss_percent, median, per_interval, share_percent, values, wire_kbps
from voicestream.cli.demo.relay import Crossing


def stats(*, concealed_ms: float = 0.0, rtt_ms: float | None = None) -> CallStats:
    return CallStats(
        duration_s=0.0,
        close_code=None,
        close_reason="",
        path=PathStats(rtt_ms=rtt_ms),
        sent=SentStats(),
        received=ReceivedStats(),
        playout=PlayoutStats(concealed_ms=concealed_ms),
        ordered=OrderedStats(),
    )


def end(*readings: tuple[float, CallStats]) -> EndRecord:
    return EndRecord(name="Client", said=np.zeros(0, np.int16), readings=list(readings))


LOG = [
    Crossing(9.9, "up", 100, True),
    Crossing(10.0, "up", 125, True),
    Crossing(10.4, "up", 125, False),
    Crossing(10.5, "up", 125, True),
    Crossing(10.6, "down", 999, True),
    Crossing(11.7, "up", 999, True),
]
"""The call began at 10.0 and had 1.6 s: three whole intervals of half a second."""


def test_packets_fall_into_whole_intervals_of_their_direction() -> None:
    bins = per_interval(LOG, "up", 10.0, 1.6, 0.5)
    assert [len(row) for row in bins] == [2, 1, 0]


def test_rates_count_what_entered_the_link_and_losses_what_did_not_leave_it() -> None:
    bins = per_interval(LOG, "up", 10.0, 1.6, 0.5)
    assert list(wire_kbps(bins, 0.5)) == [(0.25, 4.0), (0.75, 2.0), (1.25, 0.0)]
    assert list(loss_percent(bins, 0.5)) == [(0.0, 0.0), (0.5, 50.0), (1.0, 0.0), (1.5, 0.0)]


def test_a_growing_total_becomes_a_share_of_each_interval() -> None:
    record = end((5.0, stats()), (6.0, stats(concealed_ms=0.0)), (7.0, stats(concealed_ms=20.0)), (8.0, stats(concealed_ms=20.0)))
    shares = share_percent(record, 5.0, lambda s: s.playout.concealed_ms, 1.0, 3.2)
    assert list(shares) == [(0.0, 0.0), (1.0, 0.0), (2.0, 2.0), (3.0, 0.0)]
    assert [y for _, y in share_percent(end(), 5.0, lambda s: s.playout.concealed_ms, 1.0, 2.0)] == [0.0, 0.0, 0.0]


def test_a_figure_over_time_keeps_its_holes_and_its_median_leaves_them_out() -> None:
    record = end((5.0, stats()), (5.5, stats(rtt_ms=60.0)), (6.0, stats(rtt_ms=64.0)))
    points = values(record, 5.0, lambda s: s.path.rtt_ms)
    assert points == [(0.0, None), (0.5, 60.0), (1.0, 64.0)]
    assert median(points) == pytest.approx(62.0)
    assert median([]) is None


def test_what_was_heard_is_one_piece_even_if_there_was_nothing() -> None:
    record = end()
    assert len(record.heard_pcm) == 0
    record.heard += [np.ones(3, np.int16), np.zeros(2, np.int16)]
    assert record.heard_pcm.tolist() == [1, 1, 1, 0, 0]
