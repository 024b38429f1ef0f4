"""Tracks and limits that the two sides settle."""

from __future__ import annotations

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.config import SessionConfig, Track
from voicestream.errors import ProtocolError
from voicestream.session.negotiation import PeerLimits, agree, check_answer, elsewhere, limit_parameters, peer_limits
from voicestream.wire import Parameters

BOTH, OUT, IN = {}, {"receive": False}, {"send": False}


@pytest.mark.parametrize(
    ("mine", "theirs", "agreed"),
    [(BOTH, BOTH, BOTH), (BOTH, OUT, IN), (BOTH, IN, OUT), (OUT, IN, OUT), (IN, BOTH, IN), (OUT, OUT, None), (IN, IN, None)],
)
def test_a_track_flows_where_one_side_sends_and_the_other_receives(mine, theirs, agreed) -> None:
    own, offered = (Track(), Track(track_id=1, **mine)), (Track(), Track(track_id=1, **theirs))
    found = {track.track_id: track for track in agree(own, offered)}
    assert found.get(1) == (None if agreed is None else Track(track_id=1, **agreed))


@pytest.mark.parametrize(
    "other",
    [Track(codec=4), Track(clock_rate_hz=16000), Track(frame_units=4)],
    ids=["codec", "rate", "length"],
)
def test_a_track_that_means_two_things_is_an_error(other: Track) -> None:
    mine = Track(frame_units=8)
    for check in (agree, check_answer):
        with pytest.raises(ProtocolError) as caught:
            check((mine,), (other,))
        assert caught.value.code is ErrorCode.TRACK_ERROR


@pytest.mark.parametrize("check", [agree, check_answer])
def test_channels_are_each_sides_own_business_where_the_packet_tells_them(check) -> None:
    # VS-6.4-2
    assert check((Track(),), (Track(channels=2),)) == (Track(),)
    assert check((Track(channels=2),), (Track(),)) == (Track(channels=2),)
    with pytest.raises(ProtocolError) as caught:
        check((Track(codec=4),), (Track(codec=4, channels=2),))
    assert caught.value.code is ErrorCode.TRACK_ERROR


def test_a_server_that_leaves_the_frame_length_open_repeats_what_was_offered() -> None:
    assert agree((Track(),), (Track(frame_units=8),)) == (Track(frame_units=8),)
    assert agree((Track(frame_units=8),), (Track(frame_units=8),)) == (Track(frame_units=8),)


@pytest.mark.parametrize(
    ("check", "mine", "theirs"),
    [(agree, 8, 0), (check_answer, 0, 8), (check_answer, 8, 0), (check_answer, 8, 4)],
    ids=lambda part: getattr(part, "__name__", str(part)),
)
def test_a_frame_length_that_the_client_did_not_offer_is_an_error(check, mine: int, theirs: int) -> None:
    # VS-5.2.2-2
    with pytest.raises(ProtocolError) as caught:
        check((Track(frame_units=mine),), (Track(frame_units=theirs),))
    assert caught.value.code is ErrorCode.TRACK_ERROR


def test_no_common_track_is_an_error() -> None:
    with pytest.raises(ProtocolError) as caught:
        agree((Track(),), (Track(track_id=1),))
    assert caught.value.code is ErrorCode.TRACK_ERROR


def test_an_answer_may_take_fewer_tracks_and_directions() -> None:
    offered = (Track(), Track(track_id=1), Track(track_id=2))
    answered = (Track(track_id=1, send=False), Track())
    assert check_answer(offered, answered) == (Track(track_id=1, receive=False), Track())


@pytest.mark.parametrize("answered", [(Track(track_id=3),), (Track(track_id=1),), (Track(track_id=1, receive=False),)])
def test_an_answer_may_not_take_more(answered: tuple[Track, ...]) -> None:  # VS-5.2.2-2
    with pytest.raises(ProtocolError) as caught:
        check_answer((Track(), Track(track_id=1, receive=False)), answered)
    assert caught.value.code is ErrorCode.TRACK_ERROR


def test_limits_change_only_where_they_are_named() -> None:
    before = PeerLimits(max_event_size=77, lookahead_ms=33)
    after = peer_limits(Parameters(lookahead_ms=0, max_rate_bps=20_000), before)
    assert after == PeerLimits(max_event_size=77, lookahead_ms=0, max_rate_bps=20_000)


def test_our_limits_are_those_of_the_configuration() -> None:
    found = limit_parameters(SessionConfig(retain_s=2.5))
    assert (found.max_datagram_size, found.lookahead_ms, found.retain_ms) == (1160, 150, 2500)


def test_where_else_to_call() -> None:
    assert elsewhere("", None, None, None) == Parameters()
    assert elsewhere("x", "u", b"12345678", 0.0005).retry_after_ms == 0
