"""The sending side of a track: what leaves, when, and how it is accounted for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from voicestream.config import Limits, PlayoutConfig, RateConfig, SessionConfig, Track
from voicestream.core.pacer import SendQueue
from voicestream.errors import StateError
from voicestream.events import Finished, Progress, RemoteFinished
from voicestream.wire import AnchorFrame, AudioFrame, PlayoutEntry, encode_message
from voicestream.wire import messages as wire


def audio(pair, name: str = "client") -> list[AudioFrame]:
    return pair.frames(name, AudioFrame)


def test_a_frame_leaves_with_the_next_datagrams(pair, kit) -> None:
    pts = pair.client.send_frame(kit.frame(1), pair.now)
    (datagram,) = pair.client.datagrams_to_send(pair.now)
    assert pts == 0
    assert len(datagram) == len(kit.frame(1)) + 7  # VS-4.2-2: at most 8 bytes of our own
    assert pair.client.datagrams_to_send(pair.now) == []


def test_frames_follow_each_other_and_only_the_first_starts_a_talkspurt(pair) -> None:
    assert pair.talk(0.1, "client") == [0, 8, 16, 24, 32]
    assert [one.talkspurt_start for one in audio(pair)] == [True, False, False, False, False]


def test_flags_of_the_application_are_sent(pair, kit) -> None:
    pair.client.send_frame(kit.frame(), pair.now)
    pair.client.send_frame(kit.frame(), pair.now, talkspurt_end=True)
    pair.client.skip(80)
    pair.client.send_frame(kit.frame(), pair.now, talkspurt_start=True)
    pair.run(0.1)
    assert [(one.pts, one.talkspurt_start, one.talkspurt_end) for one in audio(pair)] == [
        (0, True, False),
        (8, False, True),
        (96, True, False),
    ]


def test_the_application_may_place_a_frame_but_never_use_a_pts_again(pair, kit) -> None:
    assert pair.client.send_frame(kit.frame(), pair.now, pts=400) == 400
    assert pair.client.send_frame(kit.frame(), pair.now) == 408
    for pts in (0, 408, 415, -1, 1 << 60):
        with pytest.raises(ValueError, match="pts"):
            pair.client.send_frame(kit.frame(), pair.now, pts=pts)
    assert pair.client.send_frame(kit.frame(), pair.now) == 416


@pytest.mark.parametrize("payload", [b"", b"\x0b", b"\x09a", b"\x0b\x00"], ids=["empty", "no count", "odd halves", "no frames"])
def test_what_is_no_opus_packet_is_refused(pair, payload: bytes) -> None:
    with pytest.raises(ValueError, match="frame"):
        pair.client.send_frame(payload, pair.now)
    assert pair.client.stats(pair.now).tracks[0].next_pts == 0


def test_units_are_checked_against_the_payload(pair, kit) -> None:
    pair.client.send_frame(kit.frame(units=24), pair.now, units=24)
    with pytest.raises(ValueError, match="24 units"):
        pair.client.send_frame(kit.frame(units=24), pair.now, units=8)


@pytest.mark.parametrize("peer_size", [256, 600, 1160])
def test_a_frame_must_fit_the_datagrams_of_the_far_end(kit, peer_size: int) -> None:
    pair = kit.Pair(client=SessionConfig(grease=True)).open()
    pair.client._hub.peer = replace(pair.client.peer, max_datagram_size=peer_size)
    largest = peer_size - 20
    with pytest.raises(ValueError, match=f"at most {largest} bytes"):
        pair.client.send_frame(kit.frame(size=largest + 1), pair.now)
    for _ in range(600):  # with reports, anchors and grease beside it
        pair.server.send_frame(kit.frame(), pair.now)
        pair.client.send_frame(kit.frame(size=largest), pair.now, ahead=True, talkspurt_start=True)
        datagrams = pair.client.datagrams_to_send(pair.now)
        assert max(map(len, datagrams)) <= peer_size
        for datagram in datagrams:
            pair.server.receive_datagram(datagram, pair.now)
        pair.run(0.01)
    assert not pair.server.is_closed


def test_a_track_that_is_not_sent_cannot_be_sent_on(kit) -> None:
    tracks = (Track(), Track(track_id=1, send=False))
    pair = kit.Pair(SessionConfig(grease=False, tracks=tracks), SessionConfig(grease=False, tracks=(Track(), Track(track_id=1)))).open()
    for track in (1, 2, 7):
        for verb in (
            lambda track=track: pair.client.send_frame(kit.frame(), pair.now, track=track),
            lambda track=track: pair.client.skip(8, track),
            lambda track=track: pair.client.clear(pair.now, track=track, outgoing=True),
            lambda track=track: pair.client.finish(pair.now, track),
            lambda track=track: pair.client.ahead_allowance(pair.now, track),
        ):
            with pytest.raises(ValueError, match="not sent"):
                verb()


def test_tracks_have_their_own_time(kit) -> None:
    config = SessionConfig(grease=False, tracks=(Track(), Track(track_id=3)))
    pair = kit.Pair(config, config).open()
    players = {track: kit.Player() for track in (0, 3)}
    for track, player in players.items():
        pair.server.receivers[track].attach_playout(player)
    pair.talk(0.06, "client")
    pair.talk(0.1, "client", track=3)
    assert players[0].pts == [0, 8, 16]
    assert players[3].pts == [0, 8, 16, 24, 32]
    assert {one.track for one in players[3].frames} == {3}


def test_a_frame_that_was_not_fetched_in_time_is_dropped_and_counted(pair, kit) -> None:
    for serial in range(5):
        pair.client.send_frame(kit.frame(serial), pair.now + serial * 0.1)
    late = pair.now + 0.4
    left = pair.client.datagrams_to_send(late)
    stats = pair.client.stats(late).tracks[0]
    assert stats.frames_expired == 3  # those that waited for 0.4, 0.3 and 0.2 s
    assert stats.frames_sent == 2
    assert len(left) == 2
    assert pair.logs["client"].named("send:expired") == [{"track": 0, "frames": 3, "reason": "waited beyond the deadline"}]
    assert stats.frames_overdue == 0


@pytest.mark.interpreted(reason="a method is replaced")
def test_a_frame_that_leaves_after_its_deadline_is_counted(pair, kit, monkeypatch) -> None:  # VS-9.4-5
    monkeypatch.setattr(SendQueue, "expire", lambda queue, now: 0)
    pair.client.send_frame(kit.frame(0), pair.now)
    pair.client.send_frame(kit.frame(1), pair.now + 0.1)
    pair.client.datagrams_to_send(pair.now + 0.2)
    stats = pair.client.stats(pair.now + 0.2).tracks[0]
    assert (stats.frames_sent, stats.frames_overdue) == (2, 1)


def test_after_a_drop_the_talkspurt_still_has_a_start(pair, kit) -> None:
    pair.client.send_frame(kit.frame(), pair.now)
    pair.client.send_frame(kit.frame(), pair.now + 0.2)
    pair.now += 0.2
    pair.run(0.1)
    assert [(one.pts, one.talkspurt_start) for one in audio(pair)] == [(8, True)]


def test_a_full_queue_drops_the_oldest_and_counts_it(kit) -> None:
    pair = kit.Pair(client=SessionConfig(grease=False, rate=RateConfig(queue_frames=3))).open()
    for serial in range(10):
        pair.client.send_frame(kit.frame(serial), pair.now)
    stats = pair.client.stats(pair.now).tracks[0]
    assert (stats.frames_overflowed, stats.frames_queued) == (7, 3)
    pair.run(0.1)
    assert [one.pts for one in audio(pair)] == [56, 64, 72]
    assert len(pair.logs["client"].named("send:overflow")) == 7


def test_every_frame_is_sent_or_counted(kit) -> None:  # VS-14-2
    pair = kit.Pair(client=SessionConfig(grease=False, rate=RateConfig(queue_frames=4, send_deadline_ms=50))).open()
    for step in range(200):
        pair.client.send_frame(kit.frame(), pair.now)
        if step % 3:
            pair.now += 0.02
        if step % 17 == 0:
            pair.client.clear(pair.now, outgoing=True)
        if step % 5 == 0:
            pair.now += 0.03
            pair.run(0.01)
    stats = pair.client.stats(pair.now).tracks[0]
    assert stats.frames_sent + stats.frames_expired + stats.frames_overflowed + stats.frames_cleared + stats.frames_queued == 200
    assert min(stats.frames_sent, stats.frames_expired, stats.frames_overflowed, stats.frames_cleared) > 0


class TestAnchors:
    def test_ordinary_audio_has_none(self, pair) -> None:
        pair.talk(1.0)
        assert pair.frames("client", AnchorFrame) == []

    def test_after_thirty_seconds_one_goes_along_until_it_is_reported(self, pair, kit) -> None:  # VS-4.8-2 VS-4.8-3
        player = kit.Player()
        pair.server.receivers[0].attach_playout(player)
        pair.talk(0.1, "client")
        pair.client.skip(400 * 100)
        pair.run(100.0)
        pair.talk(1.0, "client", talkspurt_start=False)
        anchors = pair.frames("client", AnchorFrame)
        assert {(one.pts, one.ahead) for one in anchors} == {(40_040, False)}
        assert 2 <= len(anchors) <= 10  # a round trip and the wait for a report, then no more
        assert player.pts[5:8] == [40_040, 40_048, 40_056]

    def test_it_is_repeated_while_the_datagrams_that_carry_it_are_lost(self, kit) -> None:  # VS-4.8-3
        gone = [True]
        pair = kit.Pair(to_server=lambda count, data: [] if gone[0] else [0.02]).open()
        player = kit.Player()
        pair.server.receivers[0].attach_playout(player)
        pair.client.skip(1_000_000)
        pair.talk(1.0, "client")
        gone[0] = False
        pair.talk(0.2, "client")
        assert player.pts[0] == 1_000_400
        assert len(pair.frames("client", AnchorFrame)) >= 50

    def test_a_prefetched_talkspurt_begins_with_one_and_so_does_the_return_to_live(self, pair, kit) -> None:
        player = kit.Player()
        pair.server.receivers[0].attach_playout(player)
        pair.talk(0.04, "client")
        for serial in range(5):
            pair.client.send_frame(kit.frame(), pair.now, ahead=True, talkspurt_start=serial == 0, talkspurt_end=serial == 4)
        pair.run(1.0)
        for serial in range(5):
            pair.client.send_frame(kit.frame(), pair.now, ahead=True, talkspurt_start=serial == 0, talkspurt_end=serial == 4)
        pair.run(1.0)
        pair.talk(0.04, "client", talkspurt_start=True)
        assert list(dict.fromkeys(player.ahead)) == [(16, True), (56, True), (96, False)]


class TestBundles:
    CONFIG = SessionConfig(grease=False, frame_ms=60, bitrate_bps=10_000)

    def bundled(self, kit):
        """A client whose far end takes so little that two frames of 60 ms share a datagram."""
        pair = kit.Pair(self.CONFIG).open()
        pair.server.update_settings(pair.now, max_rate_bps=16_000)
        pair.run(0.1)
        assert pair.client.plan.bundle == 2
        return pair

    def test_two_frames_share_a_datagram(self, kit) -> None:
        pair = self.bundled(kit)
        player = kit.Player()
        pair.server.receivers[0].attach_playout(player)
        pair.talk(1.2, "client", units=24)
        counts = [sum(isinstance(one, AudioFrame) for one in datagram.frames) for datagram in pair.sent["client"]]
        assert [count for count in counts if count] == [2] * 10
        assert player.pts == [24 * index for index in range(20)]

    def test_the_end_of_a_talkspurt_waits_for_nobody(self, kit) -> None:
        pair = self.bundled(kit)
        pair.client.send_frame(kit.frame(units=24), pair.now, talkspurt_end=True)
        assert len(pair.client.datagrams_to_send(pair.now)) == 1

    def test_a_frame_whose_company_does_not_come_leaves_alone(self, kit) -> None:
        pair = self.bundled(kit)
        pair.client.send_frame(kit.frame(units=24), pair.now)
        assert pair.client.datagrams_to_send(pair.now) == []
        assert pair.client.next_timer() == pytest.approx(pair.now + 0.07)
        pair.run(0.1)
        assert len(audio(pair)) == 1

    def test_the_last_frame_of_a_finished_track_waits_for_nobody(self, kit) -> None:
        pair = self.bundled(kit)
        pair.client.send_frame(kit.frame(units=24), pair.now)
        pair.client.finish(pair.now)
        assert len(pair.client.datagrams_to_send(pair.now)) == 1

    def test_a_bundle_has_no_more_audio_than_120_ms_and_fits(self, kit) -> None:  # VS-4.2-4
        pair = self.bundled(kit)
        for serial in range(4):
            pair.client.send_frame(kit.frame(serial, size=700, units=24), pair.now, talkspurt_end=serial == 3)
        datagrams = pair.client.datagrams_to_send(pair.now)
        assert len(datagrams) == 4  # two of them would exceed a datagram
        assert max(map(len, datagrams)) <= 1160


class TestFinish:
    def test_the_far_end_learns_the_end_and_we_learn_that_it_was_played(self, pair) -> None:
        pair.talk(0.1, "client")
        pair.client.finish(pair.now)
        pair.run(0.1)
        assert pair.of("server", RemoteFinished) == [RemoteFinished(track=0, pts=40)]
        pair.server.report_played(39, pair.now)
        pair.run(0.1)
        assert pair.of("client", Finished) == []
        pair.server.report_played(40, pair.now)
        pair.server.report_played(44, pair.now)
        pair.run(0.1)
        assert pair.of("client", Finished) == [Finished(track=0, played_pts=40)]

    def test_the_end_is_confirmed_once(self, pair) -> None:  # VS-8.6-2
        pair.client.finish(pair.now)
        for _ in range(2):
            pair.client.receive_control(encode_message(wire.Finished(played_pts=0)), pair.now)
        pair.drain()
        assert len(pair.of("client", Finished)) == 1

    def test_nothing_follows_the_end(self, pair, kit) -> None:  # VS-8.6-1
        pair.client.finish(pair.now)
        for verb in (
            lambda: pair.client.send_frame(kit.frame(), pair.now),
            lambda: pair.client.skip(8),
            lambda: pair.client.finish(pair.now),
        ):
            with pytest.raises(StateError):
                verb()

    def test_the_other_direction_goes_on(self, pair, kit) -> None:
        player = kit.Player()
        pair.client.receivers[0].attach_playout(player)
        pair.client.finish(pair.now)
        pair.talk(0.1, "server")
        pair.client.send_event(b"{}", pair.now)
        assert len(player.frames) == 5

    def test_an_end_may_overtake_the_audio_before_it(self, kit) -> None:
        pair = kit.Pair(to_server=lambda count, data: [0.2]).open()
        player = kit.Player()
        pair.server.receivers[0].attach_playout(player)
        pair.talk(0.1, "client")
        pair.client.finish(pair.now)
        pair.run(0.05)
        assert player.finish_pts == 40
        pair.run(0.3)
        assert player.pts == [0, 8, 16, 24, 32]
        assert not pair.server.is_closed

    def test_a_track_may_end_before_it_began(self, pair) -> None:
        pair.client.finish(pair.now)
        pair.run(0.1)
        pair.server.report_played(0, pair.now)
        pair.run(0.1)
        assert pair.of("client", Finished) == [Finished(track=0, played_pts=0)]

    def test_a_clear_after_the_end_leaves_the_end_where_it_is(self, pair) -> None:
        pair.talk(0.1, "client")
        pair.client.finish(pair.now)
        pair.client.clear(pair.now, outgoing=True)
        pair.run(0.1)
        pair.server.report_played(40, pair.now)
        pair.run(0.1)
        assert pair.of("client", Finished) == [Finished(track=0, played_pts=40)]


class TestAhead:
    def test_the_far_ends_lookahead_may_be_sent_at_once_and_no_more(self, pair, kit) -> None:
        sent = 0
        while pair.client.ahead_allowance(pair.now) >= 0.02 - 1e-9:
            pair.client.send_frame(kit.frame(sent), pair.now, ahead=True)
            sent += 1
        assert sent == 7

    def test_the_lookahead_is_that_of_the_far_end(self, kit) -> None:
        pair = kit.Pair(server=SessionConfig(grease=False, playout=PlayoutConfig(lookahead_ms=400))).open()
        assert pair.client.ahead_allowance(pair.now) == pytest.approx(0.4)
        assert pair.server.ahead_allowance(pair.now) == pytest.approx(0.15)

    def test_reports_of_the_playhead_give_room(self, pair, kit) -> None:
        player = kit.Player()
        pair.server.receivers[0].attach_playout(player)
        for serial in range(7):
            pair.client.send_frame(kit.frame(serial), pair.now, ahead=True)
        pair.run(0.01)
        assert pair.client.ahead_allowance(pair.now) == pytest.approx(0.02, abs=0.001)  # as if it played already
        player.heard_now = 0  # but it has not begun
        pair.run(0.07)
        assert pair.client.ahead_allowance(pair.now) < 0.09
        stats = pair.client.stats(pair.now).tracks[0]
        assert (stats.far_level_ms, stats.far_target_ms) == (30.0, 40.0)

    def test_a_playhead_beyond_what_was_sent_says_nothing(self, pair) -> None:
        pair.talk(0.1, "client")
        before = pair.client.ahead_allowance(pair.now)
        pair.client._tracks.on_playout([PlayoutEntry(playhead=5000, level_units=0, target_units=0)], pair.now, 0.04, 0.0)
        assert pair.client.ahead_allowance(pair.now) == before

    def test_a_frame_sent_ahead_may_wait_longer(self, pair, kit) -> None:
        pair.client.send_frame(kit.frame(), pair.now, ahead=True)
        assert len(pair.client.datagrams_to_send(pair.now + 1.0)) == 1


def test_limits_of_the_configuration_are_not_those_of_the_peer(kit) -> None:
    small = SessionConfig(grease=False, limits=Limits(max_event_size=2000))
    pair = kit.Pair(client=small).open()
    pair.client.send_event(bytes(5000), pair.now, kind=0)
    with pytest.raises(ValueError, match="2000"):
        pair.server.send_event(bytes(5000), pair.now, kind=0)


def test_progress_that_goes_back_or_beyond_what_was_sent_does_no_harm(pair) -> None:  # VS-8.3-3
    pair.talk(0.2, "client")
    for played in (40, 24, 40, 400, 40):
        pair.client.receive_control(encode_message(wire.Progress(track=0, played_pts=played)), pair.now)
    pair.run(0.01)
    assert [one.played_pts for one in pair.of("client", Progress)] == [40, 80]
    assert pair.client.is_open
