"""Datagrams: what goes together, what is skipped, what breaks them, and the keepalive."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from voicestream.codepoints import ErrorCode, is_grease
from voicestream.config import SessionConfig, Track
from voicestream.media import SourceKind
from voicestream.wire import (
    AudioFrame,
    CopyFrame,
    MissingFrame,
    PaddingFrame,
    ProbeFrame,
    RepairFrame,
    ReportFrame,
    RetransmissionFrame,
    UnknownFrame,
    decode_datagram,
)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x00\x00",
        bytes(1201),
        bytes.fromhex("00000000 01"),
        bytes.fromhex("00000000 88 0000"),
        bytes.fromhex("00000000 98 0000 05 08"),
        bytes.fromhex("00000000 01 05 0000 0000 01"),
        bytes.fromhex("00000000 2c 00"),
        bytes.fromhex("00000000 10 08 00 0000 01 01 00 00"),
        bytes.fromhex("00000000") + bytes.fromhex("3d00") * 65,
        bytes.fromhex("00000000 20 04 01 00 08 04"),
    ],
    ids=[
        "nothing",
        "cut header",
        "too long",
        "type without length",
        "audio without payload",
        "audio beyond its datagram",
        "report without its status",
        "missing without range",
        "repair with step 0",
        "too many frames",
        "clear that ends before it begins",
    ],
)
def test_a_datagram_that_cannot_be_read_ends_the_session(pair, data: bytes) -> None:
    pair.server.receive_datagram(data, pair.now)
    closed = pair.closed("server")
    assert closed.code == ErrorCode.FRAME_ENCODING_ERROR
    assert not closed.remote
    pair.run(0.1)
    assert pair.closed("client").code == ErrorCode.FRAME_ENCODING_ERROR


def test_nothing_of_a_datagram_is_acted_on_when_its_end_cannot_be_read(pair) -> None:
    """VS-13.1-4: "MUST NOT act on any part of a datagram or message that is malformed"."""
    whole = bytes.fromhex("00000000 98 0000 03 480102")
    pair.server.receive_datagram(whole + bytes.fromhex("1d 03 00"), pair.now)  # an anchor that ends too early
    assert pair.closed("server").code == ErrorCode.FRAME_ENCODING_ERROR
    assert pair.server.stats(pair.now).tracks[0].frames_received == 0


def test_random_datagrams_end_the_session_or_do_nothing(kit) -> None:
    rng = random.Random(11)
    ended = set()
    for _ in range(300):
        pair = kit.Pair().open()
        for _ in range(20):
            pair.server.receive_datagram(rng.randbytes(4) + rng.randbytes(rng.randrange(40)), pair.now)
            pair.drain()
        if pair.server.is_closed:
            ended.add(pair.closed("server").code)
    assert ended <= {
        ErrorCode.FRAME_ENCODING_ERROR,
        ErrorCode.MEDIA_ERROR,
        ErrorCode.TRACK_ERROR,
        ErrorCode.REPORT_ERROR,
        ErrorCode.PARAMETER_ERROR,
    }
    assert ErrorCode.FRAME_ENCODING_ERROR in ended


def test_frames_of_unknown_type_are_skipped_and_what_is_beside_them_is_taken(pair, kit) -> None:  # VS-12.1-3
    player = kit.Player()
    pair.server.receivers[0].attach_playout(player)
    frames = (UnknownFrame(type=0x3D, payload=b"xyz"), PaddingFrame(size=4), AudioFrame(pts=0, payload=kit.frame()))
    pair.server.receive_datagram(kit.datagram(*frames), pair.now)
    assert player.pts == [0]  # VS-4.11-1
    assert pair.server.stats(pair.now).frames_unknown == 1


def test_frames_that_this_version_makes_no_use_of_are_counted(pair, kit) -> None:
    pair.server.receive_datagram(kit.datagram(ProbeFrame(cluster=1, size=5)), pair.now)
    assert not pair.server.is_closed
    assert pair.server.stats(pair.now).frames_unused == 1


@pytest.mark.parametrize(
    "frame",
    [
        RepairFrame(track=0, key=1, newest_pts=16, runs=((1, 8),), symbol=bytes(20)),
        CopyFrame(pts=8, payload=b"\x08" + bytes(9)),
        MissingFrame(track=0, ranges=((0, 8),)),
    ],
    ids=["repair", "copy", "question"],
)
def test_frames_against_loss_that_come_out_of_the_blue_do_no_harm(pair, kit, frame) -> None:
    pair.server.receive_datagram(kit.datagram(frame), pair.now)
    pair.talk(0.1)
    assert pair.server.is_open


def test_the_kind_of_a_frame_is_told(pair, kit) -> None:
    player = kit.Player()
    pair.server.receivers[0].attach_playout(player)
    frames = (RetransmissionFrame(pts=8, payload=kit.frame()), AudioFrame(pts=16, payload=kit.frame()))
    pair.server.receive_datagram(kit.datagram(*frames), pair.now)
    assert player.kinds == [SourceKind.RETRANSMISSION, SourceKind.AUDIO]


def test_a_datagram_that_comes_twice_is_taken_once(pair, kit) -> None:  # VS-9.2-2
    player = kit.Player()
    pair.server.receivers[0].attach_playout(player)
    data = kit.datagram(AudioFrame(pts=0, payload=kit.frame()))
    for _ in range(3):
        pair.server.receive_datagram(data, pair.now)
    assert player.pts == [0]
    stats = pair.server.stats(pair.now)
    assert (stats.datagrams_received, stats.datagrams_duplicate) == (3, 2)


def test_numbers_count_the_datagrams_from_zero_and_ticks_follow_the_clock(pair) -> None:
    pair.talk(1.0)
    sent = pair.sent["client"]
    assert [one.number for one in sent] == list(range(len(sent)))  # VS-4.1-1
    steps = {(b.send_tick - a.send_tick) & 0xFFFF for a, b in pairwise(sent)}
    assert steps <= set(range(82))


def test_several_tracks_leave_in_the_same_call(kit) -> None:
    config = SessionConfig(grease=False, tracks=(Track(), Track(track_id=1)))
    pair = kit.Pair(config, config).open()
    for track in (0, 1):
        pair.client.send_frame(kit.frame(track), pair.now, track=track)
    datagrams = [decode_datagram(one) for one in pair.client.datagrams_to_send(pair.now)]
    assert [one.frames[-1].track for one in datagrams] == [0, 1]


def test_a_silent_client_sends_a_keepalive_every_five_seconds(pair) -> None:
    pair.run(21.0)
    empty = [one for one in pair.sent["client"] if not one.frames]
    assert len(empty) == 4  # VS-8.7-1
    assert pair.client.stats(pair.now).keepalives_sent == 4


def test_a_server_sends_none(pair) -> None:
    pair.run(21.0)
    assert all(one.frames for one in pair.sent["server"])


def test_a_talking_client_sends_none(pair) -> None:
    pair.talk(12.0, "client")
    assert pair.client.stats(pair.now).keepalives_sent == 0


def test_a_listening_client_keeps_the_path_with_its_reports(pair) -> None:
    pair.talk(12.0, "server")
    assert pair.client.stats(pair.now).keepalives_sent == 0


def test_grease_is_sent_now_and_then_and_harms_nobody(kit) -> None:  # VS-12.1-2
    pair = kit.Pair(SessionConfig(grease=True), SessionConfig(grease=True), seed=5).open()
    player = kit.Player()
    pair.server.receivers[0].attach_playout(player)
    pair.talk(60.0)
    greased = pair.frames("client", UnknownFrame)
    assert 3 <= len(greased) <= 40
    assert all(is_grease(one.type) for one in greased)
    assert len(player.frames) == pytest.approx(3000, abs=2)
    stats = pair.server.stats(pair.now)
    assert stats.frames_unknown == pytest.approx(len(greased), abs=1)
    assert stats.messages_unknown == 1


def test_grease_comes_from_the_entropy_alone(kit) -> None:
    def sent(seed: int) -> list[UnknownFrame]:
        pair = kit.Pair(SessionConfig(grease=True), SessionConfig(grease=True), seed=seed).open()
        pair.talk(15.0, "client")
        return pair.frames("client", UnknownFrame)

    assert sent(3) == sent(3)
    assert sent(3) != sent(4)


def test_without_grease_nothing_unknown_is_sent(pair) -> None:
    pair.talk(20.0)
    assert pair.frames("client", UnknownFrame) == []
    assert pair.server.stats(pair.now).messages_unknown == 0


def test_a_lone_report_and_repeats_share_a_datagram(pair) -> None:
    pair.talk(0.4, "client")
    pair.server.report_played(100, pair.now)
    pair.run(0.3)
    (carrier,) = [one for one in pair.sent["server"] if len(one.frames) > 1][:1]
    assert isinstance(carrier.frames[0], ReportFrame)


def test_all_datagrams_keep_to_the_limit_of_a_far_end_that_takes_little(kit) -> None:
    pair = kit.Pair(to_server=kit.lossy(1, 0.3, jitter=0.2)).open()
    pair.server._hub.peer = replace(pair.server.peer, max_datagram_size=256)
    for _ in range(10):
        pair.fates["server"] = lambda count, data: []
        pair.talk(1.0, "client")
        pair.fates["server"] = None
        pair.talk(0.2, "client")
        pair.server.clear(pair.now, outgoing=False)
        for datagram in pair.server.datagrams_to_send(pair.now):
            assert len(datagram) <= 256
    sizes = pair.server.stats(pair.now)
    assert sizes.bytes_sent <= 256 * sizes.datagrams_sent
