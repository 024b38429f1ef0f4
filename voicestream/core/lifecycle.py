"""Which control message is legal when: literal transition tables (specification section 5.5).

Everything that decides whether a message may be sent or received stands in `RECEIVED` and `SENT`; the diagrams of the specification
are drawn from them. This module does not know what a message means.
"""

from __future__ import annotations

import enum
from typing import Final

from voicestream.codepoints import ErrorCode, MessageType
from voicestream.errors import ProtocolError, StateError

__all__ = ["OUTLIVE_CONNECTION", "RECEIVED", "SENT", "Lifecycle", "Role", "State"]


class Role(enum.Enum):
    """The side of the session that this end is."""

    CLIENT = "client"
    SERVER = "server"


class State(enum.Enum):
    """Where a session stands."""

    IDLE = "idle"
    """Not started."""
    WAITING = "waiting"
    """Server: no message has come."""
    CALLING = "calling"
    """Client: HELLO is out, no answer has come."""
    DECIDING = "deciding"
    """Server: HELLO has come, the application has not answered."""
    OPEN = "open"
    """Media and events flow."""
    DETACHED = "detached"
    """The connection is gone, the session is kept. Verbs work; what they would send goes out when the session is resumed."""
    RESUMING = "resuming"
    """Client: RESUME is out on a new connection, no answer has come. Verbs work as while DETACHED."""
    CONFIRMING = "confirming"
    """RESUMED has gone or come, CONFIRM has not. Media and events flow."""
    CLOSED = "closed"
    """Over; nothing leaves this state."""


_T = MessageType
Transitions = dict[State, dict[MessageType, State]]

_WHILE_OPEN: Final[dict[MessageType, State]] = {
    _T.SETTINGS: State.OPEN,
    _T.CLEAR: State.OPEN,
    _T.CLEARED: State.OPEN,
    _T.PROGRESS: State.OPEN,
    _T.FINISH: State.OPEN,
    _T.FINISHED: State.OPEN,
    _T.GOING_AWAY: State.OPEN,
    _T.CLOSE: State.CLOSED,
}

_WHILE_CONFIRMING: Final[dict[MessageType, State]] = {
    message: State.CONFIRMING if state is State.OPEN else state for message, state in _WHILE_OPEN.items()
}

RECEIVED: Final[dict[Role, Transitions]] = {
    Role.CLIENT: {
        State.IDLE: {},
        State.CALLING: {_T.ACCEPT: State.OPEN, _T.REJECT: State.CLOSED, _T.CLOSE: State.CLOSED},
        State.OPEN: _WHILE_OPEN,
        State.DETACHED: {},
        State.RESUMING: {_T.RESUMED: State.CONFIRMING, _T.REJECT: State.DETACHED, _T.CLOSE: State.CLOSED},
        State.CONFIRMING: {},
        State.CLOSED: {},
    },
    Role.SERVER: {
        State.IDLE: {},
        State.WAITING: {_T.HELLO: State.DECIDING, _T.RESUME: State.DECIDING},  # VS-5.1-1
        State.DECIDING: {_T.CLOSE: State.CLOSED},
        State.OPEN: _WHILE_OPEN,
        State.DETACHED: {},
        State.CONFIRMING: {_T.CONFIRM: State.OPEN},  # VS-11.3-6
        State.CLOSED: {},
    },
}
"""State after a message of the peer, by role, state and type. What is not here is UNEXPECTED_MESSAGE. VS-5.5-1"""

SENT: Final[dict[Role, Transitions]] = {
    Role.CLIENT: {
        State.IDLE: {_T.HELLO: State.CALLING},
        State.CALLING: {_T.CLOSE: State.CLOSED},
        State.OPEN: _WHILE_OPEN,
        State.DETACHED: {_T.RESUME: State.RESUMING},
        State.RESUMING: {_T.CLOSE: State.CLOSED},
        State.CONFIRMING: {_T.CONFIRM: State.OPEN},
        State.CLOSED: {},
    },
    Role.SERVER: {
        State.IDLE: {},
        State.WAITING: {_T.CLOSE: State.CLOSED},
        State.DECIDING: {_T.ACCEPT: State.OPEN, _T.REJECT: State.CLOSED, _T.CLOSE: State.CLOSED},
        State.OPEN: _WHILE_OPEN,
        State.DETACHED: {_T.RESUMED: State.CONFIRMING},
        State.CONFIRMING: _WHILE_CONFIRMING,
        State.CLOSED: {},
    },
}
"""State after a message of this end, likewise. What is not here is a `StateError`. VS-5.5-2"""

OUTLIVE_CONNECTION: Final = (State.OPEN, State.RESUMING, State.CONFIRMING)
"""States that a session has before it is DETACHED by the loss of its connection; any other one ends with it."""


class Lifecycle:
    """The state of one session.

    Attributes:
        role: Which tables apply.
        state: Changes only here.
    """

    __slots__ = ("role", "state")

    def __init__(self, role: Role) -> None:
        self.role = role
        self.state = State.IDLE

    def listen(self) -> None:
        """A server starts: from now on it waits for the first message.

        Raises:
            StateError: Not idle, or not a server.
        """
        if self.role is not Role.SERVER or self.state is not State.IDLE:
            raise StateError(f"a {self.role.value} session that is {self.state.value} cannot wait for a call")
        self.state = State.WAITING

    def restore(self) -> None:
        """A session of another server goes on here, as soon as a connection has been resumed.

        Raises:
            StateError: Not idle, or not a server.
        """
        if self.role is not Role.SERVER or self.state is not State.IDLE:
            raise StateError(f"a {self.role.value} session that is {self.state.value} cannot be restored")
        self.state = State.DETACHED

    def reopen(self) -> None:
        """A server has closed the session, and said that it may be resumed elsewhere; `detach` follows."""
        self.state = State.OPEN

    def detach(self) -> bool:
        """The connection under an open session is gone. False when there is no session that could outlive it."""
        if self.state not in OUTLIVE_CONNECTION:
            return False
        self.state = State.DETACHED
        return True

    def received(self, message_type: MessageType) -> None:
        """The peer sent a message of this type.

        Raises:
            ProtocolError: UNEXPECTED_MESSAGE.
        """
        after = RECEIVED[self.role].get(self.state, {}).get(message_type)
        if after is None:
            raise ProtocolError(ErrorCode.UNEXPECTED_MESSAGE, f"{message_type.name} while {self.state.value}")
        self.state = after

    def sent(self, message_type: MessageType) -> None:
        """This end is about to send a message of this type.

        Raises:
            StateError: It may not, now.
        """
        after = SENT[self.role].get(self.state, {}).get(message_type)
        if after is None:
            raise StateError(f"a {self.role.value} session that is {self.state.value} cannot send {message_type.name}")
        self.state = after

    def may_send(self, message_type: MessageType) -> bool:
        """Whether `sent` would accept this type."""
        return message_type in SENT[self.role].get(self.state, {})

    def close(self) -> None:
        """The session is over, whatever the reason."""
        self.state = State.CLOSED
