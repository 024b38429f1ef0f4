"""What the executor's calls tell of its device; times in pts units of 2.5 ms."""

from __future__ import annotations

from voicestream.core.playout.ticks import DeviceTicks, Tick


def test_the_first_call_counts_as_a_standstill() -> None:
    assert DeviceTicks().call(5.0, 0.0) == Tick(0.0, True)


def test_calls_at_one_instant_are_one_tick() -> None:
    ticks = DeviceTicks()
    ticks.call(0.0, 0.0)
    ticks.made(4)
    assert ticks.call(0.0, 4.0) is None
    ticks.made(4)
    assert ticks.call(8.0, 0.0) == Tick(8.0, False)


def test_a_device_that_stood_still_is_noticed() -> None:
    ticks = DeviceTicks()
    ticks.call(0.0, 0.0)
    ticks.made(8)
    assert ticks.call(88.0, 0.0) == Tick(8.0, False)
    ticks.made(8)
    assert ticks.call(180.0, 0.0) == Tick(8.0, True)


def test_large_blocks_are_no_standstill() -> None:
    ticks = DeviceTicks()
    ticks.call(0.0, 0.0)
    ticks.made(400)
    assert ticks.call(400.0, 0.0) == Tick(400.0, False)


def test_the_need_is_what_lacks_of_a_block() -> None:
    ticks = DeviceTicks()
    ticks.call(0.0, 0.0)
    assert ticks.need == 4
    ticks.made(8)
    ticks.call(8.0, 0.0)
    assert ticks.need == 8
    ticks.made(5)
    assert ticks.need == 3
    ticks.made(2.8)
    assert ticks.need == 1
    ticks.made(3)
    assert ticks.need == 4


def test_what_is_left_after_a_block_is_known() -> None:
    ticks = DeviceTicks()
    ticks.call(0.0, 0.0)
    ticks.made(8)
    ticks.call(8.0, 0.0)
    assert ticks.left == 0
    ticks.made(10)
    assert ticks.left == 2


def test_a_late_block_is_told_by_the_clock_of_the_promptest() -> None:
    ticks = DeviceTicks()
    ticks.call(0.0, 0.0)
    late = []
    for now in (8.0, 16.0, 30.0, 32.0, 40.0):
        ticks.made(8)
        tick = ticks.call(now, 0.0)
        assert tick is not None
        late.append(tick.late)
    assert late == [0.0, 0.0, 6.0, 0.0, 0.0]
