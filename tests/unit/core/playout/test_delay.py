"""From arrival times to the delay target; all times in pts units of 2.5 ms."""

from __future__ import annotations

import pytest

from voicestream.core.playout.delay import DelayEstimator

FRAME = 8


class Feed:
    """Frames of 20 ms, one after the other; `late` is what the network adds."""

    def __init__(self, start_units: float = 0.0, ceiling_units: int = 60, send_times: bool = True) -> None:
        self.estimator = DelayEstimator(start_units, ceiling_units)
        self.pts, self.now, self.offset, self.send_times = 0, 0.0, 1000.0, send_times

    def frames(self, count: int, late: float = 0.0, *, start: bool = False, repaired: bool = False) -> float:
        early = 0.0
        for index in range(count):
            self.pts += FRAME
            sent = self.pts + self.offset
            arrival = sent + late
            self.now = max(self.now, arrival)
            early = self.estimator.observe(
                self.pts, FRAME, arrival, sent if self.send_times else None, talkspurt_start=start and index == 0, repaired=repaired
            )
            self.estimator.update(self.now)
        return early


def test_there_is_no_base_before_the_first_frame() -> None:
    assert DelayEstimator(8, 60).base is None


def test_the_start_target_holds_for_a_second_and_fades_over_the_next_two() -> None:
    feed = Feed(start_units=8)
    assert feed.estimator.spread == 8
    feed.frames(50)
    assert feed.estimator.spread == pytest.approx(8)
    feed.frames(50)
    assert 0 < feed.estimator.spread < 8
    feed.frames(51)
    assert feed.estimator.spread == 0


def test_the_target_is_never_above_the_ceiling() -> None:  # VS-16-2
    feed = Feed(ceiling_units=20)
    for _ in range(100):
        feed.frames(1)
        feed.frames(1, late=20)
    assert feed.estimator.target == 20


def test_the_base_is_that_of_the_quickest_frame_of_two_seconds() -> None:
    feed = Feed()
    feed.frames(10, late=5)
    feed.frames(1)
    feed.frames(50, late=5)
    assert feed.estimator.base == 1000
    feed.frames(60, late=5)
    assert feed.estimator.base == 1005


def test_late_frames_raise_the_spread_at_once() -> None:
    feed = Feed()
    feed.frames(200)
    feed.frames(5, late=15)
    assert feed.estimator.spread == pytest.approx(15, abs=1)


def test_the_spread_is_released_when_its_reason_has_gone() -> None:
    feed = Feed()
    for _ in range(50):
        feed.frames(9)
        feed.frames(1, late=15)
    assert feed.estimator.spread == pytest.approx(15, abs=1)
    feed.frames(420)
    assert feed.estimator.spread <= 1


def test_the_spread_for_repairs_is_released_when_no_more_come() -> None:
    feed = Feed()
    for _ in range(50):
        feed.frames(9)
        feed.frames(1, late=25, repaired=True)
    assert feed.estimator.spread == pytest.approx(25, abs=1)
    feed.frames(550)  # 11 s: the next loss may be near
    assert feed.estimator.spread == pytest.approx(25, abs=1)
    feed.frames(200)
    assert feed.estimator.spread <= 1


def test_a_lasting_change_of_the_path_in_either_direction_does_not_pass_for_jitter() -> None:
    feed = Feed()
    feed.frames(500)
    feed.frames(250, late=30)
    assert feed.estimator.base == 1030
    assert feed.estimator.spread == 0
    feed.frames(250)
    assert feed.estimator.base == 1000
    assert feed.estimator.spread == 0


def test_a_talkspurt_whose_pts_moved_against_time_gets_its_own_base() -> None:
    feed = Feed()
    feed.frames(100)
    feed.offset += 400
    feed.frames(1, start=True)
    assert feed.estimator.base == 1400
    feed.offset -= 500
    feed.frames(1, start=True)
    assert feed.estimator.base == 900


def test_a_late_first_frame_of_a_talkspurt_does_not_hide_its_lateness() -> None:
    feed = Feed()
    feed.frames(100)
    feed.offset += 400
    feed.frames(1, late=12, start=True)
    assert feed.estimator.base == 1400


def test_without_send_times_a_talkspurt_within_the_ceiling_keeps_the_base() -> None:
    feed = Feed(send_times=False)
    feed.frames(100)
    feed.frames(1, late=20, start=True)
    assert feed.estimator.base == 1000
    feed.frames(1, late=200, start=True)
    assert feed.estimator.base == 1200


def test_a_short_silence_keeps_the_base_and_a_long_one_does_not() -> None:
    feed = Feed()
    feed.frames(100)
    feed.pts += 2000
    feed.frames(1, late=7)
    assert feed.estimator.base == 1000
    feed.pts += 5000
    feed.frames(1, late=7)
    assert feed.estimator.base == 1007


def test_a_burst_is_late_at_its_start_and_early_at_its_end() -> None:
    estimator = DelayEstimator(0, 60)
    early = 0.0
    for burst in range(5):
        for index in range(6):
            end = (burst * 6 + index + 1) * FRAME
            early = estimator.observe(end, FRAME, burst * 48.0, burst * 48.0, talkspurt_start=False, repaired=False)
        estimator.update(burst * 48.0)
    assert early == 40
    assert estimator.spread == 40


def test_a_source_in_real_time_is_never_early() -> None:
    assert Feed().frames(10) == 0


def test_repaired_frames_weigh_more_and_are_remembered_longer() -> None:
    plain, repaired = Feed(), Feed()
    for _ in range(8):
        plain.frames(200)
        plain.frames(1, late=30)
        repaired.frames(200)
        repaired.frames(1, late=30, repaired=True)
    plain.frames(150)
    repaired.frames(150)
    assert plain.estimator.spread == 0
    assert repaired.estimator.spread == pytest.approx(30, abs=1)


def test_prefetched_frames_tell_of_the_network_only() -> None:
    estimator = DelayEstimator(0, 60)
    for index in range(100):
        estimator.observe_ahead(FRAME, index * 2.0 + (10.0 if index % 10 == 0 else 0.0), index * 2.0)
    estimator.update(1000)
    assert estimator.base is None
    assert estimator.spread == pytest.approx(10, abs=1)


def test_prefetched_frames_without_send_time_tell_nothing() -> None:
    estimator = DelayEstimator(0, 60)
    for index in range(100):
        estimator.observe_ahead(FRAME, index * 20.0, None)
    estimator.update(1000)
    assert estimator.spread == 0


def test_a_clock_that_jumps_starts_anew() -> None:
    feed = Feed()
    feed.frames(100)
    feed.offset += 40_000
    feed.frames(1)
    assert feed.estimator.base == 41_000
    feed.offset -= 80_000
    feed.frames(1)
    assert feed.estimator.base == -39_000


def test_the_target_is_computed_ten_times_a_second() -> None:
    estimator = DelayEstimator(0, 60)
    assert estimator.update(0.0)
    assert not estimator.update(39.0)
    assert estimator.update(40.0)
    assert estimator.update(-1e6)


def test_what_was_only_supposed_in_the_beginning_is_not_taken_exactly() -> None:
    feed = Feed(start_units=8)
    assert feed.estimator.needed == 6
    feed.frames(200)
    feed.frames(4, late=10)
    feed.frames(20)
    assert feed.estimator.needed == feed.estimator.spread == 10


def test_frames_that_came_while_the_device_stood_still_too_are_not_late() -> None:
    late, excused = Feed(), Feed()
    for feed in (late, excused):
        feed.frames(100)
        feed.frames(1, late=20)
    excused.estimator.excuse(excused.now, 18.0)
    for feed in (late, excused):
        feed.frames(20)
    assert late.estimator.spread == 20
    assert excused.estimator.spread == 2


def test_frames_that_came_before_the_device_was_due_are_not_excused() -> None:
    feed = Feed()
    feed.frames(100)
    feed.frames(1, late=20)
    feed.estimator.excuse(feed.now + 8, 8.0)
    feed.frames(20)
    assert feed.estimator.spread == 20


def test_an_excuse_makes_no_frame_quicker_than_the_quickest() -> None:
    feed = Feed()
    feed.frames(100)
    feed.frames(1, late=4)
    feed.estimator.excuse(feed.now, 60.0)
    feed.frames(300)
    assert feed.estimator.base == feed.offset
    assert feed.estimator.spread == 0


def test_neighbours_that_come_late_are_one_event() -> None:
    feed = Feed()
    feed.frames(20)
    assert feed.estimator.late_events(4.0) == 0
    for _ in range(2):
        feed.frames(3, late=10)
        feed.frames(10)
    assert feed.estimator.late_events(4.0) == 2
    assert feed.estimator.late_events(12.0) == 0
    feed.frames(110)
    assert feed.estimator.late_events(4.0) == 0


def _told(delay: DelayEstimator, count: int = 100, first: int = 0) -> None:
    for number in range(first, first + count):
        end = 8 * (number + 1)
        delay.observe(end, 8, float(end), None, talkspurt_start=number == 0, repaired=False)
        delay.update(float(end))


def test_what_is_missing_is_waited_for_as_long_as_its_answer_takes_and_forgotten_in_time() -> None:
    delay = DelayEstimator(0.0, 60)
    _told(delay)
    assert delay.spread <= 1
    delay.expect(26.0, at_once=True)
    assert delay.spread == 26.0
    assert delay.needed == 18.0, "a little less is no reason to lengthen anything"
    _told(delay, 700, first=100)
    delay.update(1e9)
    assert delay.spread <= 1


def test_what_a_path_would_need_if_something_were_lost_holds_for_some_seconds_and_then_goes() -> None:
    delay = DelayEstimator(0.0, 60)
    delay.suppose(36.0)
    assert delay.spread == delay.first_wait == 36.0
    _told(delay, 250)
    assert delay.spread == 36.0
    _told(delay, 300, first=250)
    assert delay.spread <= 1


def test_what_was_supposed_wrongly_goes_at_once() -> None:
    delay = DelayEstimator(4.0, 60)
    delay.suppose(36.0)
    _told(delay, 20)
    delay.suppose(0.0)
    assert delay.spread == 4.0
    assert delay.first_wait == 0.0


def test_no_more_is_supposed_than_the_lookahead() -> None:
    delay = DelayEstimator(0.0, 30)
    delay.suppose(36.0)
    assert delay.spread == 30.0


def test_where_nothing_is_asked_for_the_delay_grows_without_waiting_at_the_gap() -> None:
    delay = DelayEstimator(0.0, 60)
    _told(delay)
    delay.expect(50.0, at_once=False)
    assert delay.spread <= 1
    assert delay.target >= 50.0


def test_a_repair_that_comes_later_than_is_worth_waiting_for_does_not_lengthen_the_delay() -> None:
    delay = DelayEstimator(0.0, 60)
    _told(delay)
    delay.expect(26.0, at_once=True)
    for number in range(100, 120):
        end = 8 * (number + 1)
        delay.observe(end, 8, end + (55.0 if number % 4 == 0 else 0.0), None, talkspurt_start=False, repaired=number % 4 == 0)
        delay.update(end + 55.0)
    assert delay.target <= 28.0


def test_a_gap_is_waited_for_only_where_that_pays_at_once() -> None:
    by_and_by, at_once = DelayEstimator(0.0, 60), DelayEstimator(0.0, 60)
    for estimator, answered in ((by_and_by, False), (at_once, True)):
        estimator.expect(32.0, at_once=answered)
        assert estimator.target >= 32.0
    assert by_and_by.worth_waiting == 0.0
    assert at_once.worth_waiting == 32.0


def test_what_is_less_than_an_answer_takes_is_never_cheap_and_beyond_that_late_frames_and_delay_are_weighed() -> None:
    delay = DelayEstimator(0.0, 60)
    _told(delay, 200)
    delay.expect(26.0, at_once=True)
    assert delay.cost is not None
    assert delay.cost(25.0) == float("inf")
    assert delay.cost(26.0) < delay.cost(34.0) < float("inf")


def test_when_answers_are_expected_sooner_again_the_delay_follows_within_some_seconds() -> None:
    delay = DelayEstimator(0.0, 60)
    _told(delay)
    delay.expect(32.0, at_once=True)
    _told(delay, 50, first=100)
    delay.expect(22.0, at_once=True)
    _told(delay, 50, first=150)
    assert delay.spread == 32.0
    _told(delay, 60, first=200)
    assert delay.spread == 22.0


def test_what_was_expected_of_a_loss_that_was_none_is_forgotten_at_once() -> None:
    delay = DelayEstimator(0.0, 60)
    _told(delay)
    delay.expect(50.0, at_once=True)
    assert delay.spread == 50.0
    delay.expect(0.0, at_once=False)
    assert delay.spread <= 1
    assert delay.target <= 2
