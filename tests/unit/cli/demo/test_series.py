"""Arithmetic on what the demo noted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from voicestream.cli.charts import Band
from voicestream.cli.demo.record import Beat, DemoRecord, EndRecord
from voicestream.cli.demo.relay import Crossing
from voicestream.cli.demo.series import (
    concealed_bands,
    growth,
    loss_percent,
    median,
    mended_percent,
    mouth_to_ear,
    per_interval,
    runs,
    stairs,
    unheard_percent,
    values,
    wire_kbps,
)

LOG = [
    Crossing(9.9, "up", 100, True),
    Crossing(10.0, "up", 125, True),
    Crossing(10.4, "up", 125, False),
    Crossing(10.5, "up", 125, True),
    Crossing(10.6, "down", 999, True),
    Crossing(11.7, "up", 999, True),
]
"""The call began at 10.0 and had 1.6 s: three whole intervals of half a second."""


def end(*beats: Beat, **more: object) -> EndRecord:
    return EndRecord(name="Client", said=np.zeros(0, np.int16), heard_at=10.0, beats=list(beats), **more)  # type: ignore[arg-type]


def test_packets_fall_into_whole_intervals_of_their_direction() -> None:
    bins = per_interval(LOG, "up", 10.0, 1.6, 0.5)
    assert [len(row) for row in bins] == [2, 1, 0]


def test_rates_count_what_entered_the_link_and_losses_what_did_not_leave_it() -> None:
    bins = per_interval(LOG, "up", 10.0, 1.6, 0.5)
    assert wire_kbps(bins, 0.5) == [(0.25, 4.0), (0.75, 2.0), (1.25, 0.0)]
    assert loss_percent(bins, 0.5) == [(0.0, 0.0), (0.5, 50.0), (1.0, 0.0), (1.5, 0.0)]


def test_a_figure_that_stays_is_drawn_as_stairs_and_as_stretches() -> None:
    shown = end(Beat(64000, 20, 0, 0), Beat(64000, 20, 0, 0), Beat(8000, 60, 0, 0))
    points = stairs(shown, 10.0, lambda beat: beat.bitrate_bps)
    assert [(round(at, 6), value) for at, value in points] == [(0.0, 64000), (0.04, 64000), (0.04, 8000), (0.06, 8000)]
    assert runs(shown, 10.0, lambda beat: beat.frame_ms) == [(0.0, pytest.approx(0.04), 20), (pytest.approx(0.04), pytest.approx(0.06), 60)]
    assert stairs(end(), 10.0, lambda beat: beat.bitrate_bps) == []
    assert runs(end(), 10.0, lambda beat: beat.frame_ms) == []


def test_a_running_total_grows_between_edges_and_never_shrinks(record: DemoRecord) -> None:
    total = growth(record.server, [record.began + second for second in (0, 1, 2.5, 99)], lambda stats: stats.duration_s)
    assert total == pytest.approx([1.0, 1.5, 19.5])
    assert growth(record.server, [0.0, 1.0], lambda stats: -stats.duration_s) == [0.0]
    assert growth(end(), [0.0, 1.0, 2.0], lambda stats: 1.0) == [0.0, 0.0]


def test_frames_brought_back_become_a_share_of_the_audio(record: DemoRecord) -> None:
    """Three frames of 20 ms a second are 6 %."""
    points = mended_percent(record.server, record.began, 22.0, 1.0, lambda stats: stats.recovery.retransmissions_received)
    assert points[0] == (0.0, 0.0)
    assert [y for _, y in points[2:-1]] == pytest.approx([6.0] * 20)


def test_what_is_not_heard_is_a_share_of_each_interval(record: DemoRecord, kit) -> None:
    points = dict(unheard_percent(record.client, record.began, 22.0, 1.0))
    assert points[12.0] == pytest.approx(0.0)
    assert points[13.0] == pytest.approx(90.0, abs=3.0)  # from 12.1 s on
    assert points[14.0] == points[15.0] == pytest.approx(100.0)
    assert points[17.0] == 0.0
    times = [at for at, _ in record.client.readings]
    record.client.readings = [(at, kit.stats(at - record.began, concealed_ms=30.0 * (at - record.began))) for at in times]
    assert dict(unheard_percent(record.client, record.began, 22.0, 1.0))[5.0] == pytest.approx(3.0)


def test_stretches_that_touch_are_one(record: DemoRecord, kit) -> None:
    (hole,) = concealed_bands(record.client, record.began)
    assert (hole.start, hole.end) == (pytest.approx(12.1, abs=0.05), pytest.approx(15.2, abs=0.05))
    beats = record.client.beats
    record.client.beats = beats[:100] + [replace(beat, concealed_ms=20.0 * n) for n, beat in enumerate(beats[100:103])] + [
        replace(beat, concealed_ms=40.0) for beat in beats[103:]
    ]
    first, _ = concealed_bands(record.client, record.began)
    assert first == Band(start=pytest.approx(2.02), end=pytest.approx(2.06))


def test_mouth_to_ear_is_measured_from_the_sound_and_not_within_a_break(record: DemoRecord) -> None:
    points = mouth_to_ear(record, record.client, record.server)
    measured = [(at, delay) for at, delay in points if delay is not None]
    assert len(measured) > 15
    assert all(delay == pytest.approx(90.0, abs=0.2) for _, delay in measured)
    assert not [at for at, _ in measured if 11.6 < at < 15.0]
    assert None in [delay for _, delay in points]  # the curve is interrupted there


def test_a_figure_over_time_keeps_its_holes_and_its_median_leaves_them_out(kit) -> None:
    readings = [(10.0, kit.stats(0)), (10.5, kit.stats(1)), (10.6, kit.stats(9)), (11.0, kit.stats(3))]
    points = values(end(readings=readings), 10.0, lambda stats: stats.duration_s or None)
    assert points == [(0.0, None), (0.5, 1), (1.0, 3)]  # what comes sooner than the step is left out
    assert median(points) == 2.0
    assert median([]) is None


def test_what_was_heard_is_one_piece_even_if_there_was_nothing() -> None:
    shown = end()
    assert len(shown.heard_pcm) == 0
    shown.heard += [np.ones(3, np.int16), np.zeros(2, np.int16)]
    assert shown.heard_pcm.tolist() == [1, 1, 1, 0, 0]
