"""Reports between two sessions: rhythm, cost, round trip, clocks, and reports that cannot be true."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.config import SessionConfig
from voicestream.session import ClientSession
from voicestream.session.reports import Reports
from voicestream.wire import AudioFrame, Datagram, PaddingFrame, PlayoutEntry, ReportFrame, encode_frame


def reports(pair, name: str) -> list[ReportFrame]:
    return pair.frames(name, ReportFrame)


def times(pair, name: str) -> list[float]:
    """When a side sent its reports, from the ticks of the datagrams that carried them (less than 16 s of them)."""
    ticks = [datagram.send_tick for datagram in pair.sent[name] if any(isinstance(one, ReportFrame) for one in datagram.frames)]
    return [((tick - ticks[0]) & 0xFFFF) / 4000 for tick in ticks]


@pytest.mark.parametrize("duplex", [True, False], ids=["riding on audio", "alone"])
def test_while_media_arrive_a_report_leaves_every_hundred_milliseconds(pair, duplex: bool) -> None:
    pair.talk(5.0, *(("client", "server") if duplex else ("client",)))
    gaps = [b - a for a, b in pairwise(times(pair, "server"))]
    assert max(gaps) <= 0.101  # VS-9.1-1
    assert min(gaps) >= 0.0499  # VS-9.1-2


def test_with_audio_of_our_own_no_datagram_is_spent_on_reports(pair) -> None:
    pair.talk(5.0)
    lone = [one for one in pair.sent["server"] if not any(isinstance(frame, AudioFrame) for frame in one.frames)]
    assert len(lone) <= 3


def test_each_datagram_is_covered_by_two_reports(pair) -> None:
    pair.talk(3.0, "client")
    pair.run(0.5)
    covered: dict[int, int] = {}
    for report in reports(pair, "server"):
        for number in range(report.newest - len(report.statuses), report.newest + 1):
            covered[number] = covered.get(number, 0) + 1
    # Those at the end, where speech broke off, are in the report that tells of it as well.
    assert {covered[number] for number in range(145)} == {2}
    assert min(covered[number] for number in range(150)) == 2


@pytest.mark.parametrize(("size", "units", "share"), [(100, 8, 0.05), (60, 8, 0.05), (300, 24, 0.05), (90, 24, 0.07)])
def test_reports_take_little_of_what_they_report_on(kit, size: int, units: int, share: float) -> None:
    rng = random.Random(1)
    pair = kit.Pair(to_server=lambda count, data: [0.02 + rng.random() * 0.005]).open()
    pair.server.receivers[0].attach_playout(kit.Player())
    pair.talk(12.0, size=size, units=units)
    stats = pair.server.stats(pair.now)
    received = stats.bytes_received + 58 * stats.datagrams_received
    assert stats.report_bytes_sent <= share * received  # VS-9.1-3
    lone = sum(not any(isinstance(one, AudioFrame) for one in datagram.frames) for datagram in pair.sent["server"])
    assert lone <= 3  # a packet of its own would cost more than all that it tells


def test_two_sides_that_only_report_fall_silent(pair) -> None:
    pair.talk(0.5)
    pair.run(0.5)
    before = {name: len(pair.sent[name]) for name in ("client", "server")}
    pair.run(4.0)
    assert {name: len(pair.sent[name]) for name in ("client", "server")} == before  # VS-9.1-4


@pytest.mark.parametrize(("there", "back"), [(0.02, 0.02), (0.1, 0.01), (0.005, 0.3)])
def test_both_ends_know_round_trip_and_clock_offset_within_their_bound(kit, there: float, back: float) -> None:
    pair = kit.Pair(to_server=lambda count, data: [there], to_client=lambda count, data: [back]).open()
    pair.talk(2.0)
    for name, one_way in (("client", back), ("server", there)):
        stats = pair.side(name).stats(pair.now)
        assert stats.rtt_ms == pytest.approx((there + back) * 1000, abs=1.0)
        assert stats.min_rtt_ms == pytest.approx((there + back) * 1000, abs=1.0)
        assert abs(stats.clock_offset_ms) <= stats.clock_error_ms  # both run on the same clock
        assert stats.clock_error_ms == pytest.approx((there + back) * 500, abs=1.5)
        assert abs(stats.path_delay_ms - one_way * 1000) <= stats.clock_error_ms
        assert pair.side(name).rtt == stats.rtt_ms / 1000


def test_a_side_without_media_knows_the_round_trip_from_its_keepalives(pair) -> None:
    pair.run(20.0)
    stats = pair.client.stats(pair.now)
    assert stats.keepalives_sent >= 3
    assert stats.rtt_ms == pytest.approx(40, abs=1)


def test_losses_are_told(kit) -> None:
    pair = kit.Pair(to_server=lambda count, data: [] if count % 10 == 5 else [0.02]).open()
    pair.talk(4.0)
    pair.run(0.3)
    stats = pair.client.stats(pair.now)
    assert stats.datagrams_lost == pytest.approx(stats.datagrams_sent / 10, abs=1.5)  # of the last ones nothing is known yet
    assert stats.loss_share == pytest.approx(0.1, abs=0.01)
    assert stats.tracks[0].frames_lost == pytest.approx(20, abs=2)  # what was sent again can be lost too
    assert stats.datagrams_acked + stats.datagrams_lost + stats.datagrams_unreported <= stats.datagrams_sent


def test_reordering_is_not_loss(kit) -> None:
    pair = kit.Pair(to_server=kit.lossy(9, 0.0, jitter=0.15)).open()
    pair.talk(4.0)
    pair.run(0.5)
    stats = pair.client.stats(pair.now)
    assert stats.datagrams_lost == stats.tracks[0].frames_lost == 0
    assert stats.datagrams_acked >= 200


def test_lost_reports_leave_no_hole(kit) -> None:
    # Each report is lost with probability one half; of two that cover a datagram a quarter are lost both.
    pair = kit.Pair(to_client=kit.lossy(4, 0.5)).open()
    pair.talk(8.0, "client")
    pair.run(0.3)
    stats = pair.client.stats(pair.now)
    assert stats.datagrams_acked >= 0.65 * stats.datagrams_sent
    assert stats.datagrams_lost == 0


@pytest.mark.parametrize("newest", [50, 1000, 65535])
def test_a_report_of_what_was_never_sent_ends_the_session(pair, kit, newest: int) -> None:
    pair.talk(0.2)
    pair.client.receive_datagram(kit.datagram(ReportFrame(newest=newest, arrival=0, statuses=()), number=500), pair.now)
    assert pair.closed("client").code == ErrorCode.REPORT_ERROR  # VS-9.3-1


def test_a_report_before_anything_was_sent_ends_the_session(pair, kit) -> None:
    pair.server.receive_datagram(kit.datagram(ReportFrame(newest=0, arrival=0, statuses=())), pair.now)
    assert pair.closed("server").code == ErrorCode.REPORT_ERROR


def test_an_echo_that_cannot_be_true_is_not_used(pair, kit) -> None:
    pair.talk(0.02, "client")
    lie = ReportFrame(newest=0, arrival=30_000, statuses=())
    pair.client.receive_datagram(kit.datagram(lie, number=1, tick=0), pair.now)
    assert pair.client.rtt is None
    assert not pair.client.is_closed


def test_the_state_of_the_playouts_goes_along(pair, kit) -> None:
    player = kit.Player()
    pair.server.receivers[0].attach_playout(player)
    player.heard_now, player.level_units, player.target_units = 70_000, 13.4, 16.6
    pair.talk(0.5)
    assert PlayoutEntry(playhead=70_000 & 0xFFFF, level_units=13, target_units=17) in reports(pair, "server")[-1].playout


def test_a_session_that_nobody_listens_to_tells_of_no_playout(pair) -> None:
    pair.talk(0.5)
    assert all(not one.playout for one in reports(pair, "server"))


def test_a_report_that_does_not_fit_beside_audio_waits_for_its_own_datagram(kit) -> None:
    both = Reports()
    for number in range(0, 120, 2):
        datagram = Datagram(number=number, send_tick=0, frames=(AudioFrame(pts=0, payload=b"x"),))
        assert both.arrived(datagram, 100, 10.0)
    assert both.make(10.05, 100, (), may_wait=True) is None
    made = both.make(10.05, 100, ())
    assert made is not None
    assert len(encode_frame(made[0])) == made[1] <= 100


def test_padding_and_reports_call_for_no_report_but_a_keepalive_does() -> None:
    both = Reports()
    both.arrived(Datagram(number=0, send_tick=0, frames=(PaddingFrame(size=3), ReportFrame(newest=0, arrival=0, statuses=()))), 50, 10.0)
    assert both.schedule.next_timer() is None
    both.arrived(Datagram(number=1, send_tick=0), 4, 10.0)
    assert both.schedule.next_timer() is not None


def test_round_trip_and_clock_are_unknown_before_the_first_report(kit) -> None:
    client = ClientSession(SessionConfig(), authority="h", entropy=kit.entropy(1))
    stats = client.stats(0.0)
    assert client.rtt is None
    assert stats.rtt_ms is stats.clock_offset_ms is stats.clock_error_ms is stats.path_delay_ms is None


@pytest.mark.parametrize(
    ("frame", "is_told"), [(PaddingFrame(size=3), False), (AudioFrame(pts=0, payload=b"x"), True)], ids=["padding", "audio"]
)
def test_a_queue_that_grows_under_padding_alone_is_not_told(frame: PaddingFrame | AudioFrame, is_told: bool) -> None:
    """VS-9.1-4"""
    side = Reports()
    for number in range(40):
        sent, delay = number * 0.02, 0.02 + max(0, number - 20) * 0.01
        side.arrived(Datagram(number=number, send_tick=round(sent * 4000), frames=(frame,)), 60, sent + delay)
    assert (side.schedule.next_timer() is not None) is is_told
