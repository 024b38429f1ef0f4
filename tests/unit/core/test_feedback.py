"""Reports: that two of them cover each arrival, what the sender learns, and what they cost."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.core.feedback import KEPT_BEHIND, LOSS_THRESHOLD, MAX_SENT, ArrivalLog, SentLog
from voicestream.core.report_schedule import ReportSchedule
from voicestream.errors import ProtocolError
from voicestream.wire.datagram import Datagram
from voicestream.wire.frame_values import ReportFrame
from voicestream.wire.frames import encode_frame
from voicestream.wire.sequence import ticks


def datagram(number: int, sent_at: float) -> Datagram:
    return Datagram(number=number & 0xFFFF, send_tick=ticks(sent_at))


def arrive(log: ArrivalLog, number: int, sent_at: float, delay: float) -> None:
    log.arrived(datagram(number, sent_at), sent_at + delay)


class TestArrivalLog:
    def test_there_is_no_report_of_nothing(self) -> None:
        with pytest.raises(IndexError):
            ArrivalLog().report()

    def test_a_report_tells_what_came_and_what_did_not(self) -> None:
        log = ArrivalLog()
        for number in (0, 1, 3, 4):
            arrive(log, number, 10 + number * 0.02, 0.05)
        report = log.report()
        assert report.newest == 4
        assert report.arrival == ticks(10.13)
        assert [status is not None for status in report.statuses] == [True, False, True, True]

    def test_delays_are_told_as_differences(self) -> None:
        log = ArrivalLog()
        for number, delay in enumerate((0.050, 0.055, 0.040)):
            arrive(log, number, 10 + number * 0.02, delay)
        assert log.report().statuses == pytest.approx((60, -20), abs=1)  # 15 ms more than the newest, then 5 ms less than that

    def test_each_datagram_is_covered_by_two_reports(self) -> None:  # VS-9.2-1
        log = ArrivalLog()
        covered: dict[int, int] = {}
        for number in range(60):
            arrive(log, number, 10 + number * 0.02, 0.05)
            if number % 5 == 4:
                report = log.report()
                for told in range(report.newest - len(report.statuses), report.newest + 1):
                    covered[told] = covered.get(told, 0) + 1
        assert all(covered[number] == 2 for number in range(55))

    def test_one_that_comes_late_is_covered_by_the_next_two_reports(self) -> None:
        log = ArrivalLog()
        for number in (0, 2, 3, 4):
            arrive(log, number, 10.0, 0.05)
        log.report()
        arrive(log, 5, 10.1, 0.05)
        log.report()
        arrive(log, 1, 10.0, 0.3)
        for newest in (6, 7):
            arrive(log, newest, 10.2, 0.05)
            report = log.report()
            assert report.statuses[report.newest - 2] is not None

    def test_a_lean_report_covers_only_news(self) -> None:
        log = ArrivalLog()
        for number in range(4):
            arrive(log, number, 10.0, 0.05)
        log.report()
        arrive(log, 4, 10.1, 0.05)
        arrive(log, 5, 10.1, 0.05)
        assert log.pending() == 5
        assert len(log.report(twice=False).statuses) == 1

    def test_repetitions_are_recognised(self) -> None:  # VS-9.2-2
        log = ArrivalLog()
        assert log.arrived(datagram(0, 10.0), 10.05) is not None
        assert log.arrived(datagram(0, 10.0), 10.06) is None
        arrive(log, 400, 10.1, 0.05)
        assert log.arrived(datagram(3, 10.0), 10.2) is None  # too old to tell
        assert log.duplicates == 2

    def test_the_order_of_arrival_is_told(self) -> None:
        log = ArrivalLog()
        first = log.arrived(datagram(5, 10.0), 10.05)
        second = log.arrived(datagram(4, 10.0), 10.06)
        assert first is not None
        assert not first.reordered
        assert second is not None
        assert second.reordered
        assert log.newest == 5

    def test_numbers_go_on_when_their_sixteen_bits_wrap(self) -> None:
        log = ArrivalLog()
        for number in range(0, 200000, 200):
            found = log.arrived(datagram(number, 10.0), 10.05)
            assert found is not None
            assert found.number == number

    def test_the_first_report_of_a_late_start_is_short(self) -> None:
        log = ArrivalLog()
        arrive(log, 30000, 10.0, 0.05)
        assert len(log.report().statuses) == 16

    def test_a_report_never_has_more_statuses_than_its_format_carries_or_the_room_takes(self) -> None:
        log = ArrivalLog()
        arrive(log, 0, 10.0, 0.05)
        log.report()
        arrive(log, 5000, 10.1, 0.05)
        arrive(log, 5250, 10.1, 0.05)
        assert log.pending() == 255
        assert len(log.report(room=20).statuses) == 20

    def test_memory_is_bounded(self) -> None:
        log = ArrivalLog()
        for number in range(5000):
            if number % 3:
                arrive(log, number, 10 + number * 0.02, 0.05)
        assert len(log._delays) <= 256


class TestReportSchedule:
    def arrived(self, schedule: ReportSchedule, now: float, eliciting: bool = True, size: int = 160) -> None:
        schedule.arrived(size, now, eliciting=eliciting)

    def test_nothing_is_due_before_something_came(self) -> None:
        schedule = ReportSchedule()
        assert schedule.next_timer() is None
        assert not schedule.rides(10.0)

    def test_reports_alone_call_for_no_report(self) -> None:
        schedule = ReportSchedule()
        self.arrived(schedule, 10.0, eliciting=False)
        assert schedule.next_timer() is None
        assert not schedule.rides(10.0)

    def test_the_first_report_leaves_within_twenty_milliseconds(self) -> None:
        schedule = ReportSchedule()
        self.arrived(schedule, 10.0)
        assert schedule.rides(10.0)
        assert schedule.next_timer() == pytest.approx(10.02)

    def test_while_media_arrive_a_report_leaves_every_hundred_milliseconds_at_least(self) -> None:
        schedule = ReportSchedule()
        left = []
        now = 10.0
        for step in range(5000):
            now = 10.0 + step * 0.001
            if step % 20 == 0:
                self.arrived(schedule, now)
            if schedule.due_alone(now):
                schedule.left(30, now, with_playout=True)
                left.append(now)
        assert max(b - a for a, b in pairwise(left)) <= 0.1011

    def test_a_report_rides_every_fifty_milliseconds_while_its_share_lasts(self) -> None:
        schedule = ReportSchedule()
        for _ in range(30):
            self.arrived(schedule, 10.0)
        schedule.left(20, 10.0, with_playout=True)
        self.arrived(schedule, 10.02)
        assert not schedule.rides(10.049)
        assert schedule.rides(10.05)

    def test_beyond_its_share_a_report_rides_later_and_tells_the_playout_seldom(self) -> None:
        schedule = ReportSchedule()
        self.arrived(schedule, 10.0)
        schedule.left(100, 10.0, with_playout=True)
        self.arrived(schedule, 10.02)
        assert not schedule.rich
        for step in range(6):
            schedule.chance(10.0 + step * 0.01)
        assert not schedule.rides(10.06)
        assert schedule.rides(10.08)
        told = []
        for _ in range(8):
            told.append(schedule.playout_due)
            schedule.left(100, 10.1, with_playout=told[-1])
        assert told.count(True) == 2
        assert not schedule.twice

    def test_beyond_its_share_it_still_rides_when_the_next_chance_would_come_too_late(self) -> None:
        schedule = ReportSchedule()
        self.arrived(schedule, 10.0)
        schedule.chance(10.0)
        schedule.left(100, 10.0, with_playout=True)
        self.arrived(schedule, 10.05)
        schedule.chance(10.06)
        assert schedule.rides(10.06)

    @pytest.mark.parametrize(("gap", "patience"), [(0.02, 0.025), (0.06, 0.065), (0.12, 0.1), (0.3, 0.02)])
    def test_it_waits_for_a_datagram_to_ride_on_as_long_as_these_leave_regularly(self, gap: float, patience: float) -> None:
        schedule = ReportSchedule()
        for step in range(3):
            schedule.chance(10.0 + step * gap)
        now = 10.0 + 2 * gap + 0.01
        self.arrived(schedule, now)
        assert schedule.next_timer() == pytest.approx(now + patience)
        later = ReportSchedule()
        later.chance(1.0)
        later.chance(1.0 + gap)
        self.arrived(later, 2.0)  # our talkspurt is over
        assert later.next_timer() == pytest.approx(2.02)

    def test_when_media_cease_one_more_report_covers_the_last_of_them_again(self) -> None:
        schedule = ReportSchedule()
        self.arrived(schedule, 10.0)
        schedule.left(20, 10.02, with_playout=False)
        assert schedule.next_timer() == pytest.approx(10.14)
        schedule.left(20, 10.14, with_playout=False)
        assert schedule.next_timer() is None

    def test_a_keepalive_is_answered_at_once_and_only_once(self) -> None:
        schedule = ReportSchedule()
        for now in (10.0, 15.0):
            schedule.arrived(62, now, eliciting=True, keepalive=True)
            assert schedule.due_alone(now)
            assert schedule.next_timer() == now
            schedule.left(12, now, with_playout=False)
            assert schedule.next_timer() is None
        schedule.arrived(165, 16.0, eliciting=True)
        assert not schedule.due_alone(16.0)
        assert schedule.next_timer() == pytest.approx(16.02)

    @pytest.mark.parametrize(
        ("payload", "interval", "jitter"), [(100, 0.02, 0.002), (60, 0.02, 0.002), (100, 0.02, 0.03), (50, 0.01, 0.002)]
    )
    def test_reports_take_five_percent_of_what_they_report_on(self, payload: int, interval: float, jitter: float) -> None:
        schedule, log, rng = ReportSchedule(), ArrivalLog(), random.Random(3)
        wire = reports = 0
        arrivals = sorted((number * interval + 0.05 + rng.random() * jitter, number) for number in range(round(30 / interval)))
        for now, number in arrivals:
            log.arrived(datagram(number, number * interval), now)
            wire += payload + 7 + 58
            schedule.arrived(payload + 7 + 58, now, eliciting=True)
            if schedule.rides(now) or schedule.due_alone(now):  # as if this side sent audio, too
                with_playout = schedule.playout_due
                size = len(encode_frame(log.report(twice=schedule.twice))) + 6 * with_playout
                schedule.left(size, now, with_playout=with_playout)
                reports += size
        assert reports <= 0.05 * wire


class TestSentLog:
    def send(self, log: SentLog, count: int, start: float = 10.0) -> None:
        for index in range(count):
            log.sent(100, start + index * 0.02, media=((0, 8 * index),))

    def report(self, newest: int, *statuses: int | None, arrival: int = 0) -> ReportFrame:
        return ReportFrame(newest=newest & 0xFFFF, arrival=arrival, statuses=statuses)

    def test_what_arrived_is_told_once(self) -> None:
        log = SentLog()
        self.send(log, 4)
        told = log.reported(self.report(2, 0, 0))
        assert [one.number for one in told.acked] == [0, 1, 2]
        assert told.newest is not None
        assert told.newest.number == 2
        again = log.reported(self.report(2, 0, 0))
        assert again.acked == []
        assert again.newest is None
        assert log.acked == 3

    def test_delays_follow_from_the_differences(self) -> None:
        log, there = SentLog(), ArrivalLog()
        delays = [0.050, 0.080, 0.031, 0.044, 0.120]
        for index, delay in enumerate(delays):
            log.sent(100, 10 + index * 0.02)
            if index != 2:
                arrive(there, index, 10 + index * 0.02, delay)
        told = log.reported(there.report())
        found = {one.number: one.delay_ticks for one in told.acked}
        for number in (0, 1, 3):
            assert found[number] - found[4] == pytest.approx((delays[number] - delays[4]) * 4000, abs=1)

    def test_delays_stay_continuous_though_clocks_differ_by_more_than_ticks_span(self) -> None:
        log, there = SentLog(), ArrivalLog()
        seen = []
        for index in range(3000):
            now = 10 + index * 0.02
            entry = log.sent(100, now)
            there.arrived(datagram(index, now), now + 0.05 + index * 0.004)  # the delay grows to 12 s
            log.reported(there.report())
            seen.append(entry.delay_ticks)
        assert max(abs(b - a - 16) for a, b in pairwise(seen)) <= 2

    def test_one_that_three_later_ones_overtook_is_lost(self) -> None:
        log = SentLog()
        self.send(log, 10)
        told = log.reported(self.report(5, None, None, None, None, 0))
        assert [one.number for one in told.lost] == [1, 5 - LOSS_THRESHOLD]
        assert [one.media for one in told.lost] == [((0, 8),), ((0, 16),)]
        assert log.lost == 2

    def test_one_that_arrives_after_all_is_no_longer_lost(self) -> None:
        log = SentLog()
        self.send(log, 10)
        log.reported(self.report(5, 0, 0, 0, None, 0))
        assert log.lost == 1
        told = log.reported(self.report(6, 0, 0, 0, 0, 0))
        assert [one.number for one in told.acked] == [1, 6]
        assert [one.number for one in told.found] == [1]
        assert log.lost == 0
        assert log.acked == 7

    @pytest.mark.parametrize("newest", [10, 11, 1000, 40000, 65535])
    def test_a_report_of_what_was_never_sent_is_an_error(self, newest: int) -> None:
        log = SentLog()
        self.send(log, 10)
        with pytest.raises(ProtocolError) as caught:
            log.reported(self.report(newest))
        assert caught.value.code is ErrorCode.REPORT_ERROR

    def test_a_report_before_anything_was_sent_is_an_error(self) -> None:
        with pytest.raises(ProtocolError) as caught:
            SentLog().reported(self.report(0))
        assert caught.value.code is ErrorCode.REPORT_ERROR

    def test_a_status_of_something_before_the_first_is_an_error_if_it_says_received(self) -> None:
        log = SentLog()
        self.send(log, 2)
        log.reported(self.report(1, 0, None, None))
        with pytest.raises(ProtocolError) as caught:
            log.reported(self.report(1, 0, 0))
        assert caught.value.code is ErrorCode.REPORT_ERROR

    def test_numbers_go_on_when_their_sixteen_bits_wrap(self) -> None:
        log = SentLog()
        self.send(log, 65536 + 5)
        told = log.reported(self.report(2, 0, 0, 0))
        assert [one.number for one in told.acked] == [65535, 65536, 65537, 65538]

    def test_memory_is_bounded_and_what_is_forgotten_unreported_is_counted(self) -> None:
        log = SentLog()
        self.send(log, 10)
        log.reported(self.report(3, 0, 0, None))
        self.send(log, MAX_SENT)
        assert len(log) == MAX_SENT
        assert log.unreported == 10 - 3 - 1  # three acknowledged, one lost
        assert log.get(0) is None
        assert log.reported(self.report(4, 0, 0)).acked == []

    def test_what_was_reported_is_remembered_only_as_far_as_reports_reach(self) -> None:
        log = SentLog()
        self.send(log, 1000)
        log.reported(self.report(999, *[0] * 255))
        assert len(log) == KEPT_BEHIND + 1
        assert log.get(999 - KEPT_BEHIND) is not None
        assert log.unreported == 999 - KEPT_BEHIND
        assert log.reported(self.report(998, *[0] * 255)).acked[0].number == 998 - 255

    def test_what_a_datagram_carried_comes_back_with_it(self) -> None:
        log = SentLog()
        log.sent(100, 10.0, media=((1, 40),), tokens=((("clear", 1), 7),))
        (entry,) = log.reported(self.report(0)).acked
        assert entry.media == ((1, 40),)
        assert entry.tokens == ((("clear", 1), 7),)
