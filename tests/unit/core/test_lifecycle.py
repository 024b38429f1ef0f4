"""The tables of legal messages."""

from __future__ import annotations

import pytest

from voicestream.codepoints import ErrorCode, MessageType
from voicestream.core.lifecycle import RECEIVED, SENT, Lifecycle, Role, State
from voicestream.errors import ProtocolError, StateError


def test_a_client_calls_is_accepted_and_closes() -> None:
    life = Lifecycle(Role.CLIENT)
    life.sent(MessageType.HELLO)
    assert life.state is State.CALLING
    life.received(MessageType.ACCEPT)
    assert life.state is State.OPEN
    life.sent(MessageType.CLOSE)
    assert life.state is State.CLOSED


def test_a_server_waits_decides_and_accepts() -> None:
    life = Lifecycle(Role.SERVER)
    life.listen()
    life.received(MessageType.HELLO)
    assert life.state is State.DECIDING
    life.sent(MessageType.ACCEPT)
    assert life.state is State.OPEN


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("message_type", list(MessageType))
def test_a_message_of_the_peer_is_in_the_table_or_unexpected(role: Role, state: State, message_type: MessageType) -> None:  # VS-5.5-1
    life = Lifecycle(role)
    life.state = state
    after = RECEIVED[role].get(state, {}).get(message_type)
    if after is None:
        with pytest.raises(ProtocolError) as caught:
            life.received(message_type)
        assert caught.value.code is ErrorCode.UNEXPECTED_MESSAGE
        assert life.state is state
    else:
        life.received(message_type)
        assert life.state is after


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("message_type", list(MessageType))
def test_a_message_of_ours_is_in_the_table_or_refused(role: Role, state: State, message_type: MessageType) -> None:
    life = Lifecycle(role)
    life.state = state
    after = SENT[role].get(state, {}).get(message_type)
    assert life.may_send(message_type) is (after is not None)
    if after is None:
        with pytest.raises(StateError):
            life.sent(message_type)
        assert life.state is state
    else:
        life.sent(message_type)
        assert life.state is after


def test_what_one_role_may_send_the_other_may_receive() -> None:
    seen_by = {State.CALLING: State.WAITING, State.DECIDING: State.CALLING, State.OPEN: State.OPEN}
    other = {Role.CLIENT: Role.SERVER, Role.SERVER: Role.CLIENT}
    for role, table in SENT.items():
        for state in table:
            if state not in seen_by:
                continue
            for message_type in table[state]:
                peer_state = seen_by[state]
                if role is Role.CLIENT and state is State.CALLING:
                    peer_state = State.DECIDING  # HELLO came before it on the same stream
                assert message_type in RECEIVED[other[role]][peer_state], (role, state, message_type)


def test_nothing_leaves_the_closed_state() -> None:
    for table in (*RECEIVED.values(), *SENT.values()):
        assert table[State.CLOSED] == {}


def test_only_an_idle_server_can_wait_for_a_call() -> None:
    with pytest.raises(StateError):
        Lifecycle(Role.CLIENT).listen()
    life = Lifecycle(Role.SERVER)
    life.listen()
    with pytest.raises(StateError):
        life.listen()


def test_a_client_that_lost_its_connection_resumes_and_confirms() -> None:
    life = Lifecycle(Role.CLIENT)
    life.state = State.OPEN
    assert life.detach()
    life.sent(MessageType.RESUME)
    assert life.detach(), "the new connection may break as well"
    life.sent(MessageType.RESUME)
    life.received(MessageType.RESUMED)
    assert not life.may_send(MessageType.CLEAR), "CONFIRM comes first"  # VS-11.3-6
    life.sent(MessageType.CONFIRM)
    assert life.state is State.OPEN


def test_a_server_that_lost_its_connection_waits_for_the_confirmation() -> None:
    life = Lifecycle(Role.SERVER)
    life.state = State.OPEN
    assert life.detach()
    life.sent(MessageType.RESUMED)
    life.sent(MessageType.CLEAR)
    assert life.state is State.CONFIRMING
    with pytest.raises(ProtocolError):
        life.received(MessageType.CLEAR)  # VS-11.3-6
    life.received(MessageType.CONFIRM)
    assert life.state is State.OPEN


@pytest.mark.parametrize("state", [State.IDLE, State.WAITING, State.CALLING, State.DECIDING, State.DETACHED, State.CLOSED])
def test_only_an_open_session_outlives_its_connection(state: State) -> None:
    life = Lifecycle(Role.SERVER)
    life.state = state
    assert not life.detach()
    assert life.state is state
