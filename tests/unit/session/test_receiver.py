"""The receiving side of a track: what is delivered, once, in full, and what is not."""

from __future__ import annotations

from itertools import pairwise

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.config import SessionConfig, Track
from voicestream.errors import StateError
from voicestream.events import Finished, Progress, RemoteFinished
from voicestream.media import MediaFrame, SourceKind
from voicestream.wire import AnchorFrame, AudioFrame, CopyFrame, Finish, ProgressFrame, RetransmissionFrame, Settings, encode_message
from voicestream.wire import messages as wire


@pytest.fixture
def show(pair, kit):
    """Give an open server a datagram of these frames, as its client would send it."""
    numbers = iter(range(1000))

    def show(*frames) -> None:
        pair.server.receive_datagram(kit.datagram(*frames, number=next(numbers)), pair.now)
        pair.drain()

    return show


@pytest.fixture
def player(pair, kit):
    player = kit.Player()
    pair.server.receivers[0].attach_playout(player)
    return player


def test_a_frame_arrives_as_it_was_sent(pair, player, kit) -> None:
    pair.client.send_frame(kit.frame(7), pair.now, talkspurt_end=True)
    pair.run(0.1)
    assert player.frames == [MediaFrame(pts=0, units=8, payload=kit.frame(7), talkspurt_start=True, talkspurt_end=True)]
    assert player.kinds == [SourceKind.AUDIO]


def test_a_track_that_ends_before_it_began_has_been_played_although_nobody_listens(pair) -> None:
    pair.client.finish(pair.now)
    pair.run(0.2)
    assert pair.of("client", Finished) == [Finished(track=0, played_pts=0)]


def test_the_times_at_which_frames_were_sent_are_told(pair, player) -> None:
    pair.talk(1.0, "client")
    times = player.send_times
    steps = [b - a for a, b in pairwise(times)]
    assert steps == pytest.approx([0.02] * 49, abs=0.00026)


@pytest.mark.parametrize(("loss", "jitter", "repeat"), [(0.0, 0.1, 0.0), (0.2, 0.0, 0.0), (0.0, 0.0, 0.5), (0.1, 0.1, 0.3)])
def test_whatever_the_path_does_each_frame_arrives_once_at_most(kit, loss: float, jitter: float, repeat: float) -> None:  # VS-6.1-5
    pair = kit.Pair(to_server=kit.lossy(5, loss, jitter=jitter, repeat=repeat)).open()
    player = kit.Player()
    pair.server.receivers[0].attach_playout(player)
    sent = pair.talk(4.0, "client")
    pair.run(0.5)
    assert len(player.pts) == len(set(player.pts))
    assert set(player.pts) <= set(sent)
    if not loss:
        assert set(player.pts) == set(sent)
    there = pair.server.stats(pair.now)
    assert len(player.pts) == there.tracks[0].frames_received
    if repeat:
        assert there.datagrams_duplicate > 10


def test_the_playout_waits_for_no_repair_of_what_was_merely_overtaken(kit) -> None:
    pair = kit.Pair(to_server=lambda count, data: [0.041 if count == 30 else 0.02]).open()
    player = kit.Player()
    pair.server.receivers[0].attach_playout(player)
    pair.talk(1.0, "client")
    assert len(player.expected) == 2
    assert player.expected[0][0] > 0
    assert player.expected[1] == (0.0, False)


def test_where_frames_are_merely_overtaken_none_is_asked_for(kit) -> None:
    pair = kit.Pair(to_server=lambda count, data: [0.045 if count % 4 == 0 else 0.02]).open()
    pair.talk(1.0, "client")
    first = pair.client._tracks.recovery.counts.retransmissions_sent
    pair.talk(2.0, "client")
    assert pair.client._tracks.recovery.counts.retransmissions_sent - first <= 2
    assert pair.server.stats(pair.now).tracks[0].frames_received >= 140


def test_the_playout_waits_for_repairs_of_what_was_lost_though_it_comes_again(kit) -> None:
    pair = kit.Pair(to_server=lambda count, data: [] if count in (30, 40) else [0.02]).open()
    player = kit.Player()
    pair.server.receivers[0].attach_playout(player)
    pair.talk(1.2, "client")
    assert set(player.kinds) - {SourceKind.AUDIO}, "something brought it back"
    assert len(player.expected) == 2
    assert all(wait > 0 for wait, _ in player.expected)


def test_a_frame_that_comes_in_two_datagrams_counts_once(pair, player, show, kit) -> None:
    frame = AudioFrame(pts=8, payload=kit.frame(1))
    show(frame)
    show(frame, AudioFrame(pts=16, payload=kit.frame(2)))
    show(RetransmissionFrame(pts=8, payload=kit.frame(1)))
    assert player.pts == [8, 16]
    assert pair.server.stats(pair.now).tracks[0].frames_duplicate == 2


def test_a_retransmission_brings_what_is_missing(pair, player, show, kit) -> None:  # VS-4.7-2
    show(AudioFrame(pts=8, payload=kit.frame(1)))
    show(RetransmissionFrame(pts=0, payload=kit.frame(0), talkspurt_start=True))
    assert player.pts == [8, 0]
    assert player.kinds == [SourceKind.AUDIO, SourceKind.RETRANSMISSION]
    assert player.frames[1].talkspurt_start
    assert pair.server.stats(pair.now).tracks[0].frames_retransmitted == 1


def test_the_full_pts_follows_the_sixteen_bits_across_their_wraps(pair, player, show, kit) -> None:
    pts = range(0, 300_000, 20_000)
    for one in pts:
        show(AudioFrame(pts=one & 0xFFFF, payload=kit.frame(one)))
    assert player.pts == list(pts)


def test_an_anchor_says_how_far_a_jump_went(pair, player, show, kit) -> None:
    show(AudioFrame(pts=0, payload=kit.frame()))
    show(AnchorFrame(pts=5_000_000, ahead=True), AudioFrame(pts=5_000_008 & 0xFFFF, payload=kit.frame()))
    show(AnchorFrame(pts=16), AudioFrame(pts=5_000_016 & 0xFFFF, payload=kit.frame()))  # an anchor from long ago
    assert player.pts == [0, 5_000_008, 5_000_016]
    assert player.ahead[0] == (5_000_000, True)


@pytest.mark.parametrize("payload", [b"\x0b", b"\x0b\x00", b"\x09a", b"\x0a\xff"], ids=["no count", "no frames", "odd halves", "cut"])
def test_what_is_no_opus_packet_ends_the_session(pair, show, payload: bytes) -> None:
    show(AudioFrame(pts=0, payload=payload))
    assert pair.closed("server").code == ErrorCode.MEDIA_ERROR  # VS-6.4-1


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ([AudioFrame(track=1, pts=0, payload=b"\x08")], ErrorCode.TRACK_ERROR),
        ([RetransmissionFrame(track=2, pts=0, payload=b"\x08")], ErrorCode.TRACK_ERROR),
        ([AnchorFrame(track=3, pts=0)], ErrorCode.TRACK_ERROR),
        ([AnchorFrame(pts=1 << 60)], ErrorCode.TRACK_ERROR),
        ([AnchorFrame(pts=(1 << 60) - 1), AudioFrame(pts=0, payload=b"\x08")], ErrorCode.TRACK_ERROR),
        ([ProgressFrame(message=wire.Progress(track=2, played_pts=1))], ErrorCode.TRACK_ERROR),
    ],
)
def test_media_of_a_track_that_is_not_there_or_a_pts_that_cannot_be_ends_it_too(pair, show, frames, code: ErrorCode) -> None:
    # VS-5.2-2 VS-6.1-3
    show(*frames)
    assert pair.closed("server").code == code


def test_media_against_the_agreed_direction_end_it(kit) -> None:  # VS-5.2-2
    config = SessionConfig(grease=False, tracks=(Track(send=False),))
    pair = kit.Pair(client=config).open()
    assert list(pair.server.receivers) == []
    pair.server.receive_datagram(kit.datagram(AudioFrame(pts=0, payload=kit.frame())), pair.now)
    assert pair.closed("server").code == ErrorCode.TRACK_ERROR


def test_pcm_is_checked_by_its_size(kit) -> None:
    config = SessionConfig(grease=False, tracks=(Track(codec=2, clock_rate_hz=8000),))
    pair = kit.Pair(config, config).open()
    player = kit.Player()
    pair.server.receivers[0].attach_playout(player)
    assert pair.client.send_frame(bytes(160), pair.now) == 0
    assert pair.client.send_frame(bytes(80), pair.now) == 8
    with pytest.raises(ValueError, match="units"):
        pair.client.send_frame(bytes(81), pair.now)
    pair.run(0.1)
    assert [one.units for one in player.frames] == [8, 4]
    pair.server.receive_datagram(kit.datagram(AudioFrame(pts=12, payload=bytes(81)), number=9), pair.now)
    assert pair.closed("server").code == ErrorCode.MEDIA_ERROR


class TestUntilSomebodyListens:
    def test_what_came_before_is_kept(self, pair, kit) -> None:
        pair.talk(1.0, "client")
        pair.run(0.1)
        player = kit.Player()
        pair.server.receivers[0].attach_playout(player)
        pair.talk(0.1, "client")
        pair.run(0.1)
        assert player.pts == [8 * index for index in range(55)]

    def test_no_more_than_ten_seconds_are_kept_and_the_rest_is_counted(self, pair, kit) -> None:
        pair.talk(12.0, "client")
        pair.run(0.1)
        reader = kit.Reader()
        pair.server.receivers[0].attach_ordered(reader)
        assert len(reader.frames) == 500
        assert reader.pts[0] == 100 * 8
        assert pair.server.stats(pair.now).tracks[0].frames_unheard == 100

    def test_a_playout_and_a_reader_may_listen_side_by_side(self, pair, player, kit) -> None:
        reader = kit.Reader()
        pair.server.receivers[0].attach_ordered(reader)
        pair.talk(0.1, "client")
        pair.run(0.1)
        assert player.pts == reader.pts == [0, 8, 16, 24, 32]

    def test_one_who_comes_late_learns_of_clear_ahead_and_end(self, pair, kit) -> None:
        pair.talk(0.1, "client")
        pair.client.clear(pair.now, outgoing=True)
        for serial in range(3):
            pair.client.send_frame(kit.frame(serial), pair.now, ahead=True)
        pair.client.finish(pair.now)
        pair.run(0.1)
        player, reader = kit.Player(), kit.Reader()
        pair.server.receivers[0].attach_playout(player)
        pair.server.receivers[0].attach_ordered(reader)
        assert player.clears == [(0, 40, 1)]
        assert player.ahead == [(40, True)]
        assert player.pts == [40, 48, 56]
        assert player.finish_pts == 64
        assert reader.clears == [(0, 40, 1)]
        assert reader.finish_pts == 64


class TestPlayed:
    def test_progress_is_told_four_times_a_second_and_arrives_once(self, pair) -> None:
        pair.talk(0.1, "client")
        for step in range(100):
            pair.client.send_frame(b"\x08" + bytes(60), pair.now)
            pair.server.report_played(8 * step, pair.now)
            pair.run(0.02)
        told = pair.of("client", Progress)
        assert [one.played_pts for one in told] == sorted({one.played_pts for one in told})
        assert 7 <= len(told) <= 9
        assert pair.client.stats(pair.now).tracks[0].far_played_pts == told[-1].played_pts
        assert pair.server.stats(pair.now).tracks[0].played_pts == 792

    def test_it_arrives_though_most_datagrams_are_lost(self, kit) -> None:
        pair = kit.Pair(to_client=kit.lossy(2, 0.7)).open()
        pair.control_delay = 60.0  # the control stream is stuck
        pair.talk(0.5, "client")
        pair.server.report_played(100, pair.now)
        pair.run(2.0)
        assert [one.played_pts for one in pair.of("client", Progress)] == [100]

    def test_it_arrives_though_all_datagrams_are_lost(self, kit) -> None:  # VS-4.9-1
        pair = kit.Pair(to_client=lambda count, data: []).open()
        pair.talk(0.5, "client")
        for step in range(100):
            pair.server.report_played(2 * step, pair.now)
            pair.run(0.02)
        assert len(pair.of("client", Progress)) >= 2

    def test_repeats_cease_when_a_report_confirms_one(self, pair) -> None:
        pair.talk(0.5, "client")
        pair.server.report_played(100, pair.now)
        pair.talk(2.0, "client")
        assert 1 <= len(pair.frames("server", ProgressFrame)) <= 4

    def test_what_lies_beyond_all_that_was_sent_is_not_believed(self, pair) -> None:
        pair.talk(0.1, "client")
        pair.server.report_played(10_000, pair.now)
        pair.run(0.2)
        assert pair.of("client", Progress) == [Progress(track=0, played_pts=40)]

    def test_the_end_is_told_at_once_if_all_had_been_played(self, pair) -> None:
        pair.talk(0.1, "client")
        pair.server.report_played(40, pair.now)
        pair.client.finish(pair.now)
        pair.run(0.1)
        assert pair.of("client", Finished) == [Finished(track=0, played_pts=40)]

    @pytest.mark.parametrize("track", [1, 5])
    def test_only_a_received_track_can_be_played(self, pair, track: int) -> None:
        with pytest.raises(ValueError, match="not received"):
            pair.client.report_played(0, pair.now, track)
        with pytest.raises(ValueError, match="not received"):
            pair.client.clear(pair.now, track=track, outgoing=False)

    def test_a_negative_pts_cannot_be_played(self, pair) -> None:
        with pytest.raises(ValueError, match="negative"):
            pair.client.report_played(-1, pair.now)


class TestTheEnd:
    def test_audio_after_it_ends_the_session(self, pair, show, kit) -> None:
        pair.client.finish(pair.now)
        pair.run(0.1)
        assert pair.of("server", RemoteFinished) == [RemoteFinished(track=0, pts=0)]
        show(AudioFrame(pts=0, payload=kit.frame()))
        assert pair.closed("server").code == ErrorCode.TRACK_ERROR  # VS-8.6-3

    def test_an_end_before_audio_that_has_come_ends_the_session(self, pair, show, kit) -> None:
        show(AudioFrame(pts=800, payload=kit.frame()))
        pair.client.finish(pair.now)
        pair.run(0.1)
        assert pair.closed("server").code == ErrorCode.TRACK_ERROR

    def test_a_second_end_ends_the_session(self, pair) -> None:
        pair.server.receive_control(encode_message(Finish(pts=80)) * 2, pair.now)
        assert pair.closed("server").code == ErrorCode.UNEXPECTED_MESSAGE  # VS-8.6-4

    def test_audio_before_it_may_still_come(self, pair, player, show, kit) -> None:
        pair.server.receive_control(encode_message(Finish(pts=80)) + encode_message(Settings()), pair.now)
        show(AudioFrame(pts=72, payload=kit.frame()))
        assert player.pts == [72]
        assert not pair.server.is_closed


def test_nothing_can_be_reported_after_the_end_of_the_session(pair) -> None:
    pair.server.close(pair.now)
    with pytest.raises(StateError):
        pair.server.report_played(0, pair.now)


def test_a_low_rate_copy_goes_to_the_playout_and_does_not_pass_for_the_frame(pair, player, show, kit) -> None:
    show(AudioFrame(pts=0, payload=kit.frame(0), talkspurt_start=True))
    show(CopyFrame(pts=8, payload=kit.frame(1)[:20]), AudioFrame(pts=16, payload=kit.frame(2)))
    assert player.kinds == [SourceKind.AUDIO, SourceKind.COPY, SourceKind.AUDIO]
    show(RetransmissionFrame(pts=8, payload=kit.frame(1)))
    assert player.kinds[-1] is SourceKind.RETRANSMISSION
    stats = pair.server.stats(pair.now)
    assert stats.recovery.copies_received == 1
    assert stats.tracks[0].frames_received == 3


def test_a_copy_from_before_a_clear_is_not_played(pair, player, show, kit) -> None:
    show(AudioFrame(pts=0, payload=kit.frame(0), talkspurt_start=True))
    pair.server.clear(pair.now, outgoing=False)
    show(CopyFrame(pts=0, payload=kit.frame(0)[:20]))
    assert SourceKind.COPY not in player.kinds


def test_without_a_playout_copies_are_of_no_use(pair, show, kit) -> None:
    show(CopyFrame(pts=0, payload=kit.frame(0)[:20]))
    assert pair.server.stats(pair.now).tracks[0].frames_received == 0
