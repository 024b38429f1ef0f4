"""What is owed after a break: pace, share of the path, losses."""

from __future__ import annotations

import pytest

from voicestream.core.recovery.catchup import CatchUp
from voicestream.media import MediaFrame


def owed(count: int, size: int = 60) -> list[MediaFrame]:
    return [MediaFrame(pts=8 * index, units=8, payload=bytes(size)) for index in range(count)]


def drain(catch_up: CatchUp, seconds: float, capacity_bps: float, *, start: float = 10.0, overhead: int = 62) -> list[MediaFrame]:
    """All that leaves within some time, looked at every 5 ms."""
    left = []
    for step in range(round(seconds * 200) + 1):
        catch_up.refill(start + step / 200, capacity_bps)
        while catch_up.peek(overhead) is not None:
            left.append(catch_up.pop(overhead))
    return left


def test_the_oldest_leaves_first_and_all_leave_once() -> None:
    catch_up = CatchUp()
    catch_up.begin(owed(50), 10.0)
    assert [frame.pts for frame in drain(catch_up, 0.6, 1e6)] == [8 * index for index in range(50)]
    assert len(catch_up) == 0
    assert catch_up.next_timer(62) == pytest.approx(10.8, abs=0.05)
    for index in range(50):
        catch_up.acked(8 * index)
    assert catch_up.next_timer(62) is None


def test_what_no_report_tells_of_is_sent_again() -> None:
    catch_up = CatchUp()
    catch_up.begin(owed(5), 10.0)
    assert len(drain(catch_up, 0.5, 1e6)) == 5
    catch_up.acked(8)
    catch_up.refill(11.0, 1e6, rtt=0.4)  # on so long a path the report may still be on its way
    assert len(catch_up) == 0
    timer = catch_up.next_timer(62)
    assert timer == pytest.approx(11.2, abs=0.05)
    catch_up.refill(timer + 0.2, 1e6, rtt=0.4)
    assert [catch_up.pop(0).pts for _ in range(len(catch_up))] == [0, 16, 24, 32]


def test_what_is_due_or_under_way_is_not_doubled_when_it_is_asked_for() -> None:
    catch_up = CatchUp()
    catch_up.begin(owed(3), 10.0)
    catch_up.refill(10.1, 1e6)
    assert catch_up.pop(0).pts == 0
    catch_up.add(owed(4), 10.1)
    assert len(catch_up) == 3
    assert catch_up.is_busy


def test_no_more_than_four_seconds_of_media_leave_in_a_second() -> None:
    # VS-11.3-10
    catch_up = CatchUp()
    catch_up.begin(owed(2000), 10.0)
    media = sum(frame.units for frame in drain(catch_up, 2.0, 1e9)) / 400
    assert 7.5 <= media <= 8.4


@pytest.mark.parametrize("capacity_bps", [32_000, 100_000])
def test_no_more_than_half_of_the_path_is_used(capacity_bps: int) -> None:
    # VS-11.3-10
    catch_up = CatchUp()
    catch_up.begin(owed(2000), 10.0)
    used = sum(len(frame.payload) + 62 for frame in drain(catch_up, 4.0, capacity_bps)) * 8
    assert 0.45 * capacity_bps * 4 <= used <= 0.5 * capacity_bps * 4 + 1500 * 8


def test_what_is_lost_on_the_way_is_due_again_and_what_arrived_is_not() -> None:
    catch_up = CatchUp()
    catch_up.begin(owed(3), 10.0)
    assert len(drain(catch_up, 0.5, 1e6)) == 3
    catch_up.acked(0)
    for pts in (0, 8, 8, 999):
        catch_up.lost(pts)
    assert [frame.pts for frame in drain(catch_up, 0.2, 1e6, start=10.55)] == [8]
    assert catch_up.sent == 4


def test_the_timer_says_when_the_next_one_may_leave() -> None:
    catch_up = CatchUp()
    assert catch_up.next_timer(62) is None
    catch_up.begin(owed(2), 10.0)
    catch_up.refill(10.0, 40_000)
    assert catch_up.peek(62) is None
    timer = catch_up.next_timer(62)
    assert timer is not None
    catch_up.refill(timer + 1e-6, 40_000)
    assert catch_up.peek(62) is not None


def test_a_clear_voids_what_is_owed() -> None:
    catch_up = CatchUp()
    catch_up.begin(owed(3), 10.0)
    drain(catch_up, 0.02, 1e6)
    catch_up.clear()
    catch_up.lost(0)
    assert len(catch_up) == 0
