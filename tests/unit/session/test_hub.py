"""The queue of events, and the one place where a session ends."""

from __future__ import annotations

import pytest

from voicestream.codepoints import ErrorCode, EventKind
from voicestream.config import Limits, SessionConfig
from voicestream.core.lifecycle import Role, State
from voicestream.errors import ProtocolError, StateError
from voicestream.events import Accepted, Cleared, Closed, EventReceived, Progress
from voicestream.session.hub import EventQueue, Hub, frame_of
from voicestream.wire import Clear, ClearFrame, Close, Finish, MessageParser, Settings

END = Closed(code=0, reason="", remote=False, may_resume=False)


def event(number: int) -> EventReceived:
    return EventReceived(kind=EventKind.JSON, event_id=number, order=number, payload=b"{}", track=None, pts=None)


def contents(queue: EventQueue) -> list[object]:
    found = []
    while (one := queue.pop()) is not None:
        found.append(one)
    return found


def test_events_come_out_in_their_order() -> None:
    queue = EventQueue(10)
    for number in range(3):
        queue.put(event(number))
    assert contents(queue) == [event(0), event(1), event(2)]


def test_of_too_many_the_oldest_application_event_or_progress_goes() -> None:
    queue = EventQueue(4)
    accepted = Accepted(session_id=b"", metadata=b"")
    queue.put(accepted)
    queue.put(Progress(track=0, played_pts=1))
    for number in range(5):
        queue.put(event(number))
    assert contents(queue) == [accepted, event(2), event(3), event(4)]
    assert queue.dropped == 3


def test_when_nothing_else_can_go_the_oldest_goes_but_never_the_end() -> None:
    queue = EventQueue(2)
    for number in range(5):
        queue.put(Cleared(track=0, number=number, heard_pts=0))
    queue.put(END)
    assert contents(queue) == [Cleared(track=0, number=4, heard_pts=0), END]


def test_a_queue_of_one_keeps_the_end() -> None:
    queue = EventQueue(1)
    queue.put(event(1))
    queue.put(END)
    assert contents(queue) == [END]


def test_nothing_follows_the_end() -> None:
    queue = EventQueue(10)
    queue.put(END)
    queue.put(event(1))
    queue.put(END)
    assert contents(queue) == [END]


@pytest.fixture
def hub(kit) -> Hub:
    hub = Hub(SessionConfig(limits=Limits()), Role.CLIENT, kit.entropy(1), None)
    hub.lifecycle.state = State.OPEN
    return hub


def sent(hub: Hub) -> list[object]:
    return list(MessageParser().feed(bytes(hub.outgoing.control)))


def test_the_first_end_counts(hub: Hub) -> None:
    hub.fail(ProtocolError(ErrorCode.MEDIA_ERROR, "no Opus"), 1.0)
    hub.end(2.0, ErrorCode.NO_ERROR, "later")
    assert sent(hub) == [Close(code=ErrorCode.MEDIA_ERROR, reason="no Opus")]
    assert contents(hub.events) == [Closed(code=ErrorCode.MEDIA_ERROR, reason="no Opus", remote=False, may_resume=False)]
    assert hub.is_closed


def test_an_end_that_the_peer_made_is_not_answered(hub: Hub) -> None:
    hub.end(1.0, 7, "bye", remote=True)
    assert sent(hub) == []


def test_a_reason_is_cut_to_what_a_message_carries(hub: Hub) -> None:
    hub.end(1.0, 1, "é" * 1000)
    (close,) = sent(hub)
    assert close == Close(code=1, reason="é" * 512)


def test_a_message_that_cannot_be_written_changes_nothing(hub: Hub) -> None:
    with pytest.raises(ValueError, match="track"):
        hub.send(Finish(track=9, pts=0), 1.0)
    assert sent(hub) == []
    assert hub.is_open


def test_a_message_out_of_season_is_the_callers_mistake(hub: Hub) -> None:
    hub.end(1.0, 0, "")
    with pytest.raises(StateError):
        hub.send(Settings(), 2.0)


def test_only_three_messages_have_a_form_as_frames() -> None:
    clear = Clear(number=1, from_pts=0, to_pts=8)
    assert frame_of(clear) == ClearFrame(message=clear)
    with pytest.raises(ValueError, match="Settings"):
        frame_of(Settings())


def test_a_change_of_state_is_recorded(kit) -> None:
    recorder = kit.Recorder()
    hub = Hub(SessionConfig(), Role.SERVER, kit.entropy(1), recorder)
    hub.lifecycle.listen()
    hub.note_state(State.IDLE, 1.0)
    hub.note_state(State.WAITING, 1.0)
    assert recorder.records == [(1.0, "session:state", {"old": "idle", "new": "waiting"})]
