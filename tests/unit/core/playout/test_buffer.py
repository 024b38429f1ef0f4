"""Frames by pts."""

from __future__ import annotations

from voicestream.core.playout.buffer import Entry, FrameBuffer
from voicestream.media import MediaFrame, SourceKind


def entry(pts: int, units: int = 8, *, number: int = 0, arrival: float = 0.0) -> Entry:
    return Entry(MediaFrame(pts=pts, units=units, payload=b"speech", clear_number=number), SourceKind.AUDIO, arrival, None)


def filled(*pts: int) -> FrameBuffer:
    buffer = FrameBuffer(10)
    for each in pts:
        buffer.insert(entry(each))
    return buffer


def held(buffer: FrameBuffer) -> list[int]:
    return [buffer.pop_first().pts for _ in range(len(buffer))]


def test_frames_come_out_by_pts() -> None:
    buffer = filled(16, 0, 8)
    assert buffer.coded_units == 24
    first, last, missing = buffer.first(), buffer.last(), buffer.get(24)
    assert first is not None
    assert last is not None
    assert (first.pts, last.pts, last.end, missing) == (0, 16, 24, None)
    assert held(buffer) == [0, 8, 16]
    assert buffer.coded_units == 0
    assert buffer.first() is None
    assert buffer.last() is None


def test_a_frame_more_than_allowed_makes_it_overfull() -> None:
    buffer = filled(*range(0, 80, 8))
    assert not buffer.overfull
    buffer.insert(entry(80))
    assert buffer.overfull


def test_a_replaced_frame_keeps_its_place() -> None:
    buffer = filled(0, 8)
    buffer.replace(entry(0, 4))
    assert buffer.coded_units == 12
    assert held(buffer) == [0, 8]


def test_every_frame_with_audio_in_the_range_is_removed() -> None:
    buffer = filled(0, 8, 16, 24)
    assert buffer.remove(12, 24) == 2
    assert buffer.coded_units == 16
    assert held(buffer) == [0, 24]


def test_a_long_frame_that_reaches_into_the_range_is_removed_whatever_lies_between() -> None:
    buffer = FrameBuffer(10)
    buffer.insert(entry(0, 48))
    buffer.insert(entry(4, 4))
    assert buffer.remove(40, 100) == 1
    assert held(buffer) == [4]


def test_everything_from_a_pts_on_is_removed() -> None:
    buffer = filled(0, 8, 16)
    assert buffer.remove_from(8) == 2
    assert held(buffer) == [0]


def test_frames_of_an_older_clear_are_removed_and_the_next_ones_are_not() -> None:
    buffer = FrameBuffer(10)
    for pts, number in ((0, 0), (8, 0), (16, 1), (24, 2), (32, 3)):
        buffer.insert(entry(pts, number=number))
    assert buffer.remove_stale(1, 8) == 2
    assert held(buffer) == [0, 16, 24]


def test_the_earliest_arrival_is_told() -> None:
    buffer = FrameBuffer(10)
    buffer.insert(entry(0, arrival=2.0))
    buffer.insert(entry(8, arrival=1.0))
    assert buffer.earliest_arrival() == 1.0
