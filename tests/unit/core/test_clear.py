"""Clear numbers at both ends, crossing, and audio that overtakes its clear."""

from __future__ import annotations

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.core.clear import MAX_LEAD_UNITS, MAX_STEP, ReceiverClears, SenderClears
from voicestream.errors import ProtocolError
from voicestream.wire.message_values import Clear


def ask(number: int, to_pts: int, from_pts: int = 0) -> Clear:
    return Clear(number=number, from_receiver=True, from_pts=from_pts, to_pts=to_pts)


def void(number: int, to_pts: int, from_pts: int = 0) -> Clear:
    return Clear(number=number, from_pts=from_pts, to_pts=to_pts)


def test_a_sender_counts_its_clears() -> None:
    clears = SenderClears(2)
    assert clears.begin(40, 200) == Clear(track=2, number=1, from_pts=40, to_pts=200)
    assert clears.begin(220, 220).number == 2


def test_a_request_is_answered_with_where_the_next_frame_starts() -> None:
    clears = SenderClears(0)
    assert clears.requested(ask(1, 100, 60), 180) == void(1, 180, 60)
    assert clears.requested(ask(1, 100, 60), 260) is None  # a repeat


def test_of_crossing_clears_the_one_that_reaches_further_wins() -> None:
    sender, receiver = SenderClears(0), ReceiverClears(0)
    own = sender.begin(0, 200)
    request = receiver.request(0, 160)
    assert own.number == request.number == 1
    assert sender.requested(request, 200) is None
    assert receiver.received(own)
    assert sender.to_pts == receiver.to_pts == 200

    further = ask(1, 240)
    assert sender.requested(further, 200) == void(1, 240)
    assert sender.to_pts == 240


def test_a_request_older_than_our_own_clear_changes_nothing() -> None:  # VS-8.1-5
    clears = SenderClears(0)
    clears.begin(0, 10)
    clears.begin(0, 20)
    assert clears.requested(ask(1, 900), 20) is None
    assert clears.number == 2


@pytest.mark.parametrize("clear", [ask(1, 101 + MAX_LEAD_UNITS), ask(MAX_STEP + 1, 50), ask(1, (1 << 62) - 1), ask((1 << 62) - 1, 0)])
def test_a_request_beyond_all_that_was_sent_is_an_error(clear: Clear) -> None:  # VS-8.1-10
    with pytest.raises(ProtocolError) as caught:
        SenderClears(0).requested(clear, 100)
    assert caught.value.code is ErrorCode.PARAMETER_ERROR


def test_a_confirmation_settles_all_clears_up_to_it_once() -> None:  # VS-8.2-1
    clears = SenderClears(0)
    for to_pts in (10, 20, 30):
        clears.begin(0, to_pts)
    assert list(clears.done(2)) == [1, 2]
    assert not clears.done(2)
    assert not clears.done(1)
    assert not clears.done(4)  # of that one we know nothing
    assert list(clears.done(3)) == [3]


def test_a_confirmation_of_very_many_settles_the_latest() -> None:
    clears = SenderClears(0)
    for to_pts in range(200):
        clears.begin(0, to_pts)
    assert list(clears.done(200)) == list(range(137, 201))


def test_a_receiver_takes_a_clear_once() -> None:  # VS-4.9-1
    clears = ReceiverClears(0)
    assert clears.received(void(1, 100))
    assert not clears.received(void(1, 100))
    assert clears.received(void(1, 140))  # the answer to a crossing reaches further
    assert not clears.received(void(1, 120))
    assert (clears.number, clears.to_pts) == (1, 140)


def test_clears_may_overtake_each_other() -> None:
    clears = ReceiverClears(0)
    assert clears.received(void(3, 300))
    assert not clears.received(void(1, 100))
    assert not clears.received(void(2, 200))
    assert (clears.number, clears.to_pts) == (3, 300)


def test_a_number_that_leads_too_far_is_an_error() -> None:  # VS-8.1-10
    with pytest.raises(ProtocolError) as caught:
        ReceiverClears(0).received(void(MAX_STEP + 1, 10))
    assert caught.value.code is ErrorCode.PARAMETER_ERROR


@pytest.mark.parametrize(("number", "pts", "stale"), [(1, 100, True), (2, 199, True), (2, 200, False), (3, 150, False), (1, 500, True)])
def test_what_a_clear_has_voided_is_stale(number: int, pts: int, stale: bool) -> None:  # VS-8.1-6
    clears = ReceiverClears(0)
    clears.received(void(2, 200))
    assert clears.is_stale(number, pts) is stale


def test_audio_on_its_way_when_the_receiver_asks_is_stale_wherever_it_lies() -> None:
    clears = ReceiverClears(0)
    clears.request(0, 100)
    assert not clears.answered
    number = clears.number_of(0, 160, 100)  # sent before the request was there
    assert clears.is_stale(number, 160)
    clears.received(void(1, 180))
    assert clears.answered
    assert not clears.is_stale(clears.number_of(1, 180, 100), 180)


def test_the_two_bits_name_the_number_nearest_to_what_the_sender_has_reached() -> None:  # VS-8.1-8
    clears = ReceiverClears(0)
    assert [clears.number_of(bits, 80, 80) for bits in range(4)] == [0, 1, 2, 3]
    clears.received(void(6, 0))
    assert [clears.number_of(n & 3, 80, 80) for n in (5, 6, 7, 8)] == [5, 6, 7, 8]


@pytest.mark.parametrize("received_end", [0, 8, 200])
def test_audio_that_two_clears_have_passed_is_not_taken_for_something_newer(received_end: int) -> None:
    clears = ReceiverClears(0)
    clears.received(void(2, 200))
    for pts in (0, 192):
        number = clears.number_of(0, pts, received_end)
        assert number == 0
        assert not clears.overtaken(number, received_end)
        assert clears.is_stale(number, pts)
    assert clears.number_of(0, 200, 200) == 4


def test_audio_that_overtakes_its_clear_does_the_clear() -> None:  # VS-8.1-7
    clears = ReceiverClears(0)
    number = clears.number_of(1, 240, 240)
    assert clears.overtaken(number, 240)
    assert (clears.number, clears.to_pts) == (1, 240)
    assert not clears.overtaken(number, 300)
    assert clears.is_stale(clears.number_of(0, 232, 248), 232)
    assert not clears.is_stale(number, 240)
    assert clears.received(void(1, 260))  # the clear itself knows better where it ends
    assert not clears.received(void(1, 260))


def test_a_third_request_without_an_answer_extends_the_second() -> None:  # VS-8.1-3
    clears = ReceiverClears(0)
    assert clears.request(0, 100).number == 1
    assert clears.request(0, 120).number == 2
    assert clears.request(0, 140) == ask(2, 140)
    clears.received(void(1, 110))
    assert clears.request(0, 150).number == 3


@pytest.mark.parametrize("clears", range(1, 12))
def test_after_any_number_of_clears_both_ends_agree(clears: int) -> None:
    sender, receiver = SenderClears(0), ReceiverClears(0)
    pts = 0
    for index in range(clears):
        pts += 80
        if index % 3 == 2:
            answer = sender.requested(receiver.request(0, pts - 16), pts)
            assert answer is not None
            receiver.received(answer)
        else:
            receiver.received(sender.begin(0, pts))
        assert receiver.number == sender.number == index + 1
        assert receiver.to_pts == sender.to_pts == pts
        assert receiver.number_of(sender.number & 3, pts, pts) == sender.number
