"""The choice among the tools: no more than needed, and what is expected of them."""

from __future__ import annotations

import pytest

from voicestream.core.recovery.choice import ENOUGH, Choice, LossMemory, Tools, choose

ALL = Tools(share=0.1, most=0.3)


def at(loss: float, rtt: float, burst: float = 1.0, tools: Tools = ALL) -> Choice:
    return choose(tools, loss=loss, burst=burst, rtt=rtt, lookahead=0.15, frame_ms=20, bitrate_bps=32000)


def test_without_loss_the_ordinary_share_goes_to_repairs() -> None:
    choice = at(0.0, 0.04)
    assert (choice.share, choice.copy_bps, choice.concealed) == (0.1, 0, 0.0)
    assert 4 <= choice.repair_interval <= 8


@pytest.mark.parametrize(("loss", "rtt"), [(0.01, 0.02), (0.05, 0.04), (0.03, 0.06)])
def test_where_retransmissions_come_in_time_the_ordinary_share_does(loss: float, rtt: float) -> None:
    choice = at(loss, rtt)
    assert choice.share == 0.1
    assert choice.retransmit
    assert choice.concealed <= ENOUGH


def test_a_longer_way_and_more_loss_cost_more() -> None:
    shares = [at(loss, 0.2).share for loss in (0.005, 0.03, 0.06, 0.1)]
    assert shares == sorted(shares)
    assert shares[-1] > 0.1
    assert at(0.05, 0.2).share >= at(0.05, 0.04).share


def test_nothing_goes_beyond_what_is_allowed() -> None:
    for loss in (0.01, 0.1, 0.3):
        for burst in (1.0, 3.0, 8.0):
            for rtt in (0.02, 0.2):
                assert at(loss, rtt, burst).share <= 0.3
                assert at(loss, rtt, burst, Tools(share=0.1, most=0.1)).share == 0.1
                assert at(loss, rtt, burst, Tools(share=0.0, most=0.0)).share == 0.0


def test_a_copy_follows_when_the_burst_is_over_and_before_it_is_too_late() -> None:
    choice = at(0.05, 0.2, 3.0)
    assert choice.copy_bps
    assert 3 < choice.copy_offset_frames <= 7
    assert not at(0.05, 0.2, 3.0, Tools(share=0.1, most=0.3, copies=False)).copy_bps


def test_loss_is_remembered_and_forgotten_slowly() -> None:
    memory = LossMemory()
    memory.update(0.0, 0.0, 1.0)
    memory.update(0.1, 0.06, 3.0)
    assert memory.share < 0.01  # the first loss is not yet a habit
    memory.update(20.0, 0.06, 3.0)
    memory.update(25.0, 0.0, 1.0)
    assert 0.03 < memory.share < 0.06
    assert 2.0 < memory.burst < 3.0
    memory.update(120.0, 0.0, 1.0)
    assert memory.share < 0.001
    memory.update(125.0, 0.1, 1.0)
    assert 0.06 < memory.share < 0.1


def test_over_a_longer_way_repairs_follow_so_soon_that_one_lost_frame_need_not_wait_for_a_retransmission() -> None:
    choice = at(0.03, 0.1)
    assert choice.retransmit
    assert choice.repair_interval <= 4
    assert at(0.03, 0.04).repair_interval > 4


INBAND = Tools(share=0.1, most=0.1, inband=True)


def test_where_the_share_is_too_small_for_repairs_the_codec_makes_in_band_copies_of_the_louder_frames() -> None:
    for loss in (0.05, 0.1):
        choice = at(loss, 0.2, tools=INBAND)
        assert choice.inband
        assert choice.most_bps == 30000
        assert 0.4 <= choice.inband_part < 0.8
        assert (choice.share, choice.repair_interval) == (0.1, 0)
        assert choice.concealed < at(loss, 0.2, tools=Tools(share=0.1, most=0.1)).concealed


@pytest.mark.parametrize(
    ("loss", "rtt", "burst", "tools"),
    [
        (0.02, 0.2, 1.0, INBAND),  # repairs do, and the speech stays as it is
        (0.05, 0.04, 1.0, INBAND),  # what is asked for comes
        (0.05, 0.2, 1.0, Tools(share=0.1, most=0.3, inband=True)),  # there is room for more repairs
        (0.05, 0.2, 1.0, Tools(share=0.05, most=0.05, inband=True)),  # too little for copies, too
        (0.05, 0.2, 5.0, INBAND),  # the frame after a lost one is lost as well
    ],
)
def test_elsewhere_it_makes_none(loss: float, rtt: float, burst: float, tools: Tools) -> None:
    assert not at(loss, rtt, burst, tools).inband


def test_in_band_copies_that_are_made_stay_when_the_loss_falls_a_little() -> None:
    before = Tools(share=0.1, most=0.1, inband=True, inband_before=True)
    losses = [number / 200 for number in range(1, 20)]
    begins = next(loss for loss in losses if at(loss, 0.2, tools=INBAND).inband)
    stays = next(loss for loss in losses if at(loss, 0.2, tools=before).inband)
    assert 0.005 < stays < begins <= 0.05


def test_where_answers_take_all_of_the_budget_frames_are_smaller() -> None:
    assert at(0.2, 0.02).most_bps == 40000
    assert not at(0.1, 0.02).most_bps
    assert not at(0.2, 0.3).most_bps, "no answers come"
