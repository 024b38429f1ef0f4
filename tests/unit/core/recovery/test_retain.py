"""Sent media is found again, and bounded."""

from __future__ import annotations

from voicestream.core.recovery.retain import MAX_BYTES_PER_SECOND, RETURN_TIME, RetainedMedia
from voicestream.media import MediaFrame


def media(pts: int, size: int = 10, units: int = 8) -> MediaFrame:
    return MediaFrame(pts=pts, units=units, payload=bytes(size))


def test_every_frame_that_holds_anything_of_a_range_is_found_oldest_first() -> None:
    retained = RetainedMedia(30)
    for pts in (0, 8, 16, 40, 48):
        retained.add(media(pts), 1.0)
    assert [frame.pts for frame in retained.within(12, 5)] == [8, 16]
    assert [frame.pts for frame in retained.within(24, 16)] == []
    assert [frame.pts for frame in retained.within(0, 100)] == [0, 8, 16, 40, 48]


def test_what_is_older_than_its_time_goes() -> None:  # VS-15.2-1
    retained = RetainedMedia(2)
    for i in range(600):
        retained.add(media(8 * i), i * 0.0625)
    kept = round((2 + RETURN_TIME) / 0.0625)
    assert [frame.pts for frame in retained.within(0, 600 * 8)] == [8 * i for i in range(599 - kept, 600)]


def test_the_time_for_noticing_a_paths_return_takes_no_memory_beyond_the_bound() -> None:
    retained = RetainedMedia(30)
    for i in range(5000):
        retained.add(media(8 * i, 160), i * 0.02)  # 64 kbps
    assert 30 * MAX_BYTES_PER_SECOND - 200 <= retained.payload_bytes <= 30 * MAX_BYTES_PER_SECOND
    retained.clear()
    for i in range(5000):
        retained.add(media(8 * i, 60), i * 0.02)
    assert len(retained) == round((30 + RETURN_TIME) * 50) + 1


def test_bytes_and_frames_are_bounded() -> None:
    retained = RetainedMedia(2)
    for i in range(5000):
        retained.add(media(8 * i, 400), 1.0)
    assert retained.payload_bytes <= 2 * MAX_BYTES_PER_SECOND
    retained.clear()
    assert (len(retained), retained.payload_bytes) == (0, 0)
    for i in range(5000):
        retained.add(media(8 * i, 1), 1.0)
    assert len(retained) == 200


def test_several_ranges_are_looked_for_in_one_pass_and_give_each_frame_once() -> None:
    retained = RetainedMedia(30)
    for pts in (0, 8, 16, 40, 48, 56):
        retained.add(media(pts), 1.0)
    some = [(12, 5), (40, 1)], [(40, 1), (12, 2), (13, 9), (12, 5)], [(17, 20), (9, 1), (45, 3)], [(0, 1000), (0, 1000)]
    for ranges in (*some, [], [(64, 8)]):
        found, looked = retained.among(ranges)
        assert [frame.pts for frame in found] == sorted({frame.pts for one in ranges for frame in retained.within(*one)})
        assert looked <= 6


def test_what_is_near_the_end_is_found_without_a_look_at_the_rest() -> None:
    retained = RetainedMedia(30)
    for n in range(1000):
        retained.add(media(8 * n), 1.0)
    found, looked = retained.among([(8 * 990, 8), (8 * 995, 16)])
    assert [frame.pts for frame in found] == [8 * 990, 8 * 995, 8 * 996]
    assert looked == 10
