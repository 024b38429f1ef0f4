"""Clear (barge-in) between two sessions: from either end, crossing, overtaken, repeated and confirmed."""

from __future__ import annotations

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.core.played import CLEARED_GRACE
from voicestream.errors import StateError
from voicestream.events import Cleared, ClearRequested, RemoteCleared
from voicestream.wire import AudioFrame, Clear, ClearedFrame, ClearFrame, decode_datagram, encode_message
from voicestream.wire import Cleared as ClearedMessage


@pytest.fixture
def player(pair, kit):
    player = kit.Player()
    pair.server.receivers[0].attach_playout(player)
    return player


def gone(count: int, data: bytes) -> list[float]:
    return []


def without_clear(count: int, data: bytes) -> list[float]:
    return [] if any(isinstance(one, ClearFrame) for one in decode_datagram(data).frames) else [0.02]


class TestFromTheSender:
    def test_the_far_end_forgets_and_tells_what_was_heard(self, pair, player) -> None:
        pair.talk(1.0, "client")
        pair.server.report_played(300, pair.now)
        pair.run(0.1)
        assert pair.client.clear(pair.now, outgoing=True) == 1
        pair.run(0.05)
        assert player.clears == [(300, 400, 1)]
        assert pair.of("server", RemoteCleared) == [RemoteCleared(track=0, number=1, to_pts=400)]
        pair.server.report_played(330, pair.now)
        pair.run(0.1)
        assert pair.of("client", Cleared) == [Cleared(track=0, number=1, heard_pts=330)]

    def test_the_next_frame_starts_where_the_clear_ends(self, pair, player) -> None:
        pair.talk(0.1, "client")
        pair.client.clear(pair.now, outgoing=True)
        pair.talk(0.1, "client")
        new = [one for one in player.frames if one.pts >= 40]
        assert new[0].pts == 40
        assert new[0].talkspurt_start  # VS-6.5-2
        assert {one.clear_number for one in new} == {1}
        assert not new[1].talkspurt_start

    def test_what_waited_to_leave_is_dropped_and_counted(self, pair, player, kit) -> None:
        for serial in range(3):
            pair.client.send_frame(kit.frame(serial), pair.now)
        pair.client.clear(pair.now, outgoing=True)
        pair.run(0.1)
        assert player.frames == []
        stats = pair.client.stats(pair.now).tracks[0]
        assert (stats.frames_cleared, stats.frames_sent, stats.clears_sent) == (3, 0, 1)
        assert pair.server.stats(pair.now).tracks[0].clears_received == 1

    def test_without_the_players_word_the_best_estimate_is_told(self, pair, player) -> None:
        pair.talk(0.5, "client")
        player.heard = 170
        pair.client.clear(pair.now, outgoing=True)
        pair.run(CLEARED_GRACE)
        assert pair.of("client", Cleared) == []
        pair.run(0.1)
        assert pair.of("client", Cleared) == [Cleared(track=0, number=1, heard_pts=170)]

    def test_where_nobody_plays_it_is_what_was_reported(self, pair) -> None:
        pair.talk(0.5, "client")
        pair.server.report_played(80, pair.now)
        pair.client.clear(pair.now, outgoing=True)
        pair.run(0.3)
        assert pair.of("client", Cleared) == [Cleared(track=0, number=1, heard_pts=80)]

    def test_a_player_that_is_beyond_the_end_of_all_audio_does_no_harm(self, pair, player) -> None:
        pair.talk(0.1, "client")
        pair.server.report_played(44, pair.now)  # concealment made four units more
        pair.client.clear(pair.now, outgoing=True)
        pair.run(0.3)
        assert player.clears == [(40, 40, 1)]
        assert pair.of("client", Cleared) == [Cleared(track=0, number=1, heard_pts=40)]

    def test_what_is_said_to_have_been_heard_beyond_the_clear_counts_as_its_end(self, pair) -> None:  # VS-8.2-4
        pair.talk(0.1, "client")
        pair.client.clear(pair.now, outgoing=True)
        pair.client.send_frame(b"\xf8\xff\xfe", pair.now)  # what follows was sent, and is not what the clear is about
        pair.client.receive_control(encode_message(ClearedMessage(track=0, number=1, heard_pts=44)), pair.now)
        pair.run(0.01)
        assert pair.of("client", Cleared) == [Cleared(track=0, number=1, heard_pts=40)]
        assert pair.client.is_open

    def test_every_clear_is_confirmed(self, pair, player) -> None:  # VS-8.2-1
        pair.talk(0.2, "client")
        numbers = [pair.client.clear(pair.now, outgoing=True) for _ in range(5)]
        pair.run(0.5)
        assert numbers == [1, 2, 3, 4, 5]
        assert [one.number for one in pair.of("client", Cleared)] == numbers

    def test_audio_that_was_on_its_way_is_stale(self, kit) -> None:
        # The audio takes 200 ms, the clear on the control stream 20.
        pair = kit.Pair(to_server=lambda count, data: [0.2]).open()
        player = kit.Player()
        pair.server.receivers[0].attach_playout(player)
        pair.talk(0.1, "client")
        pair.client.clear(pair.now, outgoing=True)
        pair.talk(0.1, "client")
        pair.run(0.4)
        assert player.pts == [40, 48, 56, 64, 72]
        stats = pair.server.stats(pair.now).tracks[0]
        assert stats.frames_stale == 5
        assert len(pair.logs["server"].named("receive:stale")) == 5

    def test_audio_may_overtake_the_clear(self, kit) -> None:
        pair = kit.Pair().open()
        pair.control_delay = 1.0
        player = kit.Player()
        pair.server.receivers[0].attach_playout(player)
        pair.fates["server"] = without_clear  # no CLEAR frame gets through either
        pair.talk(0.1, "client")
        pair.run(0.1)
        player.heard = 16
        pair.client.clear(pair.now, outgoing=True)
        pair.run(0.02)
        pair.client.send_frame(kit.frame(), pair.now)
        pair.run(0.02)
        assert player.clears == [(0, 40, 1)]
        assert player.pts[-1] == 40
        pair.run(2.0)
        assert player.clears == [(0, 40, 1)]  # the message told nothing new
        assert pair.of("client", Cleared) == [Cleared(track=0, number=1, heard_pts=16)]
        assert pair.of("server", RemoteCleared) == [RemoteCleared(track=0, number=1, to_pts=40)]

    @pytest.mark.parametrize("seed", range(8))
    def test_under_loss_and_reordering_only_valid_audio_is_delivered_and_all_of_it_that_came(self, kit, seed: int) -> None:
        fate = kit.lossy(seed, 0.15, jitter=0.15, repeat=0.1)
        pair = kit.Pair(to_server=fate, to_client=kit.lossy(seed + 50, 0.15, jitter=0.15), control_delay=0.08, seed=seed).open()
        player = kit.Player()
        pair.server.receivers[0].attach_playout(player)
        bounds = [0]
        for turn in range(9):
            pair.talk(0.3, "client")
            if turn % 3 == 2:
                pair.server.clear(pair.now, outgoing=False)
                pair.run(0.2)
            else:
                pair.client.clear(pair.now, outgoing=True)
            bounds.append(pair.client.stats(pair.now).tracks[0].next_pts)
        pair.run(1.0)
        assert len(player.pts) == len(set(player.pts))
        done = 0
        for clear, to_pts, number in player.clears:
            assert number > done or to_pts >= 0
            assert clear <= to_pts
            done = max(done, number)
        assert done == pair.client.stats(pair.now).tracks[0].clears_sent == 9
        assert [one.number for one in pair.of("client", Cleared)][-1] == 9
        for one in player.frames:
            turn = max(index for index, bound in enumerate(bounds) if bound <= one.pts)
            assert one.clear_number == turn, f"seed {seed}"


class TestFromTheReceiver:
    def test_the_far_end_stops_and_what_it_sent_is_forgotten(self, pair, player) -> None:
        pair.delay = 0.03
        pair.talk(0.5, "client")
        pair.server.report_played(120, pair.now)
        assert pair.server.clear(pair.now, outgoing=False) == 1
        assert player.clears == [(120, 192, 1)]  # at once: the last frame is still on its way
        pair.server.report_played(124, pair.now)
        pair.run(0.1)
        assert pair.of("client", ClearRequested) == [ClearRequested(track=0, number=1, to_pts=200)]
        assert pair.of("client", Cleared) == [Cleared(track=0, number=1, heard_pts=124)]
        assert player.clears[-1][1:] == (200, 1)  # the answer told the true end
        assert pair.of("server", RemoteCleared) == []  # it was our own wish

    def test_what_is_still_on_its_way_is_not_played(self, pair, player) -> None:
        pair.delay = 0.06
        pair.talk(0.2, "client")
        known = len(player.frames)
        pair.server.clear(pair.now, outgoing=False)
        pair.talk(0.2, "client")
        heard = player.frames[known:]
        assert {one.clear_number for one in heard} == {1}
        assert heard[0].talkspurt_start
        assert pair.server.stats(pair.now).tracks[0].frames_stale > 0

    def test_a_request_whose_every_datagram_is_lost_goes_by_the_control_stream(self, kit) -> None:  # VS-4.9-1
        pair = kit.Pair(to_client=gone).open()
        pair.talk(0.2, "client")
        pair.server.clear(pair.now, outgoing=False)
        pair.run(0.1)
        assert len(pair.of("client", ClearRequested)) == 1

    def test_a_request_goes_by_datagram_when_the_control_stream_is_held_up(self, pair, player) -> None:  # VS-4.9-1
        pair.control_delay = 5.0
        pair.talk(0.2, "client")
        pair.server.clear(pair.now, outgoing=False)
        pair.run(0.3)
        assert len(pair.of("client", ClearRequested)) == 1
        assert len(pair.of("client", Cleared)) == 1
        pair.run(10.0)
        assert len(pair.of("client", ClearRequested)) == 1
        assert len(pair.of("client", Cleared)) == 1

    def test_a_request_said_again_voids_nothing_of_what_was_said_since(self, pair, player) -> None:
        pair.talk(0.2, "client")
        pair.server.clear(pair.now, outgoing=False)
        pair.talk(0.1, "client")
        kept = pair.client._tracks.recovery.outgoing[0].retained
        before = [one.pts for one in kept.within(0, 1 << 40)]
        assert before
        assert min(before) >= 80
        again = Clear(number=1, from_receiver=True, from_pts=0, to_pts=80)
        pair.client.receive_control(encode_message(again), pair.now)  # VS-8.4-3
        assert [one.pts for one in kept.within(0, 1 << 40)] == before

    def test_three_wishes_in_a_row_are_two_clears(self, pair, player) -> None:
        pair.talk(0.2, "client")
        assert [pair.server.clear(pair.now, outgoing=False) for _ in range(3)] == [1, 2, 2]
        pair.run(0.2)
        assert [one.number for one in pair.of("client", ClearRequested)] == [1, 2]
        assert pair.server.clear(pair.now, outgoing=False) == 3


class TestCrossing:
    def test_two_clears_at_once_are_one(self, pair, player) -> None:
        pair.talk(0.5, "client")
        assert pair.client.clear(pair.now, outgoing=True) == 1
        assert pair.server.clear(pair.now, outgoing=False) == 1
        pair.talk(0.1, "client")
        pair.run(0.3)
        assert pair.of("client", ClearRequested) == []
        assert pair.of("client", Cleared) == [Cleared(track=0, number=1, heard_pts=0)]
        assert player.clears[-1][1:] == (200, 1)
        assert [one.pts for one in player.frames if one.clear_number == 1] == [200, 208, 216, 224, 232]

    def test_a_request_that_reaches_further_than_our_clear_wins(self, pair, kit) -> None:
        pair.talk(0.1, "client")
        pair.client.clear(pair.now, outgoing=True)
        further = Clear(number=1, from_receiver=True, from_pts=0, to_pts=64)
        pair.client.receive_control(encode_message(further), pair.now)
        pair.drain()
        assert pair.of("client", ClearRequested) == [ClearRequested(track=0, number=1, to_pts=64)]
        assert pair.client.send_frame(kit.frame(), pair.now) == 64

    def test_a_request_that_is_older_than_our_clear_is_ignored(self, pair) -> None:
        pair.talk(0.1, "client")
        pair.client.clear(pair.now, outgoing=True)
        pair.client.clear(pair.now, outgoing=True)
        old = Clear(number=1, from_receiver=True, from_pts=0, to_pts=400)
        pair.client.receive_control(encode_message(old), pair.now)
        pair.drain()
        assert pair.of("client", ClearRequested) == []


class TestRepeats:
    def test_clear_and_cleared_are_repeated_until_a_report_confirms_one(self, pair, player) -> None:  # VS-8.4-1
        pair.talk(0.2, "client")
        pair.client.clear(pair.now, outgoing=True)
        pair.run(2.0)
        assert 1 <= len(pair.frames("client", ClearFrame)) <= 5
        assert 1 <= len(pair.frames("server", ClearedFrame)) <= 3

    def test_they_go_on_while_they_are_lost_and_cease_after_five_seconds(self, kit) -> None:  # VS-8.4-1
        pair = kit.Pair(to_server=gone).open()
        pair.control_delay = 100.0
        pair.talk(0.1, "client")
        pair.client.clear(pair.now, outgoing=True)
        pair.run(4.9)
        before = len(pair.frames("client", ClearFrame))
        assert before == pytest.approx(53, abs=2)
        pair.run(5.0)
        assert len(pair.frames("client", ClearFrame)) <= before + 2

    def test_one_of_them_suffices(self, kit) -> None:
        pair = kit.Pair(to_server=kit.lossy(3, 0.8), to_client=kit.lossy(4, 0.8)).open()
        pair.control_delay = 1000.0
        pair.talk(0.2, "client")
        pair.client.clear(pair.now, outgoing=True)
        pair.run(5.0)
        assert [one.number for one in pair.of("client", Cleared)] == [1]

    def test_a_clear_precedes_the_audio_in_its_datagram(self, pair, kit) -> None:
        pair.talk(0.2, "client")
        pair.client.clear(pair.now, outgoing=True)
        pair.client.send_frame(kit.frame(), pair.now)
        pair.run(0.1)
        (datagram,) = [one for one in pair.sent["client"] if any(isinstance(frame, ClearFrame) for frame in one.frames)][:1]
        kinds = [type(frame) for frame in datagram.frames]
        assert kinds.index(ClearFrame) < kinds.index(AudioFrame)


class TestBadClears:
    @pytest.mark.parametrize(
        ("message", "code"),
        [
            (Clear(track=1, number=1, from_pts=0, to_pts=0), ErrorCode.TRACK_ERROR),
            (Clear(track=1, number=1, from_receiver=True, from_pts=0, to_pts=0), ErrorCode.TRACK_ERROR),
            (Clear(number=2000, from_pts=0, to_pts=0), ErrorCode.PARAMETER_ERROR),
            (Clear(number=2000, from_receiver=True, from_pts=0, to_pts=0), ErrorCode.PARAMETER_ERROR),
            (Clear(number=1, from_receiver=True, from_pts=0, to_pts=4001), ErrorCode.PARAMETER_ERROR),
            (Clear(number=1, from_pts=0, to_pts=1 << 60), ErrorCode.TRACK_ERROR),
            (Clear(number=1, from_receiver=True, from_pts=0, to_pts=(1 << 62) - 1), ErrorCode.PARAMETER_ERROR),
        ],
    )
    @pytest.mark.parametrize("way", ["message", "frame"])
    def test_a_clear_that_cannot_be_meant_ends_the_session(self, pair, kit, message: Clear, code: ErrorCode, way: str) -> None:
        if way == "message":
            pair.server.receive_control(encode_message(message), pair.now)
        else:
            pair.server.receive_datagram(kit.datagram(ClearFrame(message=message)), pair.now)
        assert pair.closed("server").code == code

    def test_a_confirmation_of_a_clear_that_never_was_says_nothing(self, pair) -> None:
        pair.server.receive_control(encode_message(ClearedMessage(number=7, heard_pts=8)), pair.now)
        pair.run(0.1)
        assert pair.of("server", Cleared) == []
        assert not pair.server.is_closed

    def test_more_than_what_was_sent_cannot_have_been_heard(self, pair) -> None:
        pair.talk(0.1, "client")
        pair.client.clear(pair.now, outgoing=True)
        pair.client.receive_control(encode_message(ClearedMessage(number=1, heard_pts=1 << 61)), pair.now)
        pair.drain()
        assert pair.of("client", Cleared) == [Cleared(track=0, number=1, heard_pts=40)]

    def test_a_closed_session_cannot_be_cleared(self, pair) -> None:
        pair.client.close(pair.now)
        for outgoing in (True, False):
            with pytest.raises(StateError):
                pair.client.clear(pair.now, outgoing=outgoing)


def test_hundreds_of_clears_in_a_row_leave_both_ends_agreed(pair, player) -> None:
    for turn in range(300):
        pair.talk(0.02, "client")
        if turn % 2:
            pair.client.clear(pair.now, outgoing=True)
        else:
            pair.server.clear(pair.now, outgoing=False)
            pair.run(0.05)
    pair.talk(0.1, "client")
    pair.run(0.3)
    mine, theirs = pair.client.stats(pair.now).tracks[0], pair.server.stats(pair.now).tracks[0]
    assert mine.clears_sent == theirs.clears_received == 300
    assert player.pts[-5:] == [mine.next_pts - 8 * back for back in (5, 4, 3, 2, 1)]
