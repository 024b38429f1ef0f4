"""The numbers of a session."""

from __future__ import annotations

import dataclasses

import pytest

from voicestream.config import SessionConfig, Track
from voicestream.session import SessionStats, TrackStats


def test_they_are_frozen_and_their_names_tell_the_units(pair) -> None:
    stats = pair.client.stats(pair.now)
    with pytest.raises(dataclasses.FrozenInstanceError):
        stats.rtt_ms = 1.0  # type: ignore[misc]
    for kind in (SessionStats, TrackStats):
        for field in dataclasses.fields(kind):
            if "float" in str(field.type):
                assert field.name.endswith(("_ms", "_share", "_bps", "_datagrams")), field.name


def test_what_one_side_sends_the_other_receives(pair) -> None:
    pair.talk(2.0)
    pair.run(0.5)
    mine, theirs = pair.client.stats(pair.now), pair.server.stats(pair.now)
    assert mine.datagrams_sent == theirs.datagrams_received
    assert mine.bytes_sent == theirs.bytes_received
    assert mine.messages_sent == theirs.messages_received
    assert mine.reports_sent == theirs.reports_received
    one, other = mine.tracks[0], theirs.tracks[0]
    assert one.frames_sent == other.frames_received == 100
    assert one.payload_bytes_sent == other.payload_bytes_received == 6000
    assert one.next_pts == other.received_pts == 800


def test_every_track_is_told_with_the_directions_it_has(kit) -> None:
    tracks = (Track(), Track(track_id=1, send=False), Track(track_id=2, receive=False))
    mirrored = (Track(), Track(track_id=1), Track(track_id=2))
    pair = kit.Pair(SessionConfig(grease=False, tracks=tracks), SessionConfig(grease=False, tracks=mirrored)).open()
    pair.client.send_frame(kit.frame(), pair.now, track=2)
    pair.server.send_frame(kit.frame(), pair.now, track=1)
    pair.run(0.1)
    stats = pair.client.stats(pair.now)
    assert [one.track for one in stats.tracks] == [0, 1, 2]
    assert (stats.tracks[1].frames_received, stats.tracks[1].frames_sent) == (1, 0)
    assert (stats.tracks[2].frames_received, stats.tracks[2].frames_sent) == (0, 1)


def test_they_can_be_taken_at_any_time(kit) -> None:
    pair = kit.Pair()
    assert pair.client.stats(0.0).state == "idle"
    pair.open()
    pair.client.close(pair.now)
    assert pair.client.stats(pair.now).state == "closed"
