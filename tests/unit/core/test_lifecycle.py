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
def test_a_message_of_the_peer_is_in_the_table_or_unexpected(role: Role, state: State, message_type: MessageType) -> None:
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
