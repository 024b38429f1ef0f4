"""One QUIC connection and the session on it, without sockets and without a clock.

The owner feeds `receive_datagram` and `handle_timer`; after each of these, and after any verb of the session, it sends what
`datagrams_to_send` gives, fetches the events, and reads `next_timer` again. Nothing the far end sends raises.

Closing: the session's CLOSE goes first, as control data that is repeated until it is acknowledged, and CONNECTION_CLOSE with the same
code and reason follows when it is, or after three probe timeouts. So the far end learns the code and whether the session may be
resumed even where one of two packets is lost (specification section 13.2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from aioquic.quic import events
from aioquic.tls import SessionTicket

from voicestream.codepoints import ErrorCode
from voicestream.errors import ConnectError, StateError
from voicestream.events import Closed, Event
from voicestream.quic.certificates import pin_mismatch
from voicestream.quic.compat import VoiceQuic
from voicestream.quic.connection_values import ConnectionView, Goodbye
from voicestream.quic.early import EarlyGate
from voicestream.quic.endings import closed_of, connect_error_of, handshake_fault, no_answer
from voicestream.quic.streams import CONTROL_STREAM, SessionPort, StreamTable
from voicestream.quic.vacancy import Hearing, Pending, Vacant
from voicestream.quic.values import Address

__all__ = ["Connection"]

MAX_LINGER: Final = 1.0
"""Seconds that CLOSE is given to be acknowledged, at most."""

BLOCKED_POLL: Final = 0.02
"""Seconds between two looks at a session whose events the peer does not take."""

SUPPOSES: Final = 100
"""Datagrams with which the session is told of the least round trip that QUIC has measured; by then it has its own."""


class Connection(ConnectionView):
    """A QUIC connection with its session; `ClientEndpoint` and `ServerEndpoint` make them.

    Attributes:
        session: The session. `start` is called once the handshake is complete and, on a client, the certificate has been checked; on a
            server as soon as a request to resume has come in early data.
        connect_error: Why a client's connection did not come about; None while it may, and ever after it did.
        goodbye: What a late packet is answered with, once the connection is over.
        hearing: How long the far end has owed an answer.
        keeps_session: When the path is lost, the session is told so and lives on, instead of ending with the connection.
        tickets: On a client, the newest ticket that has come, whoever the server is.
        on_ticket: Called with it when the server is the right one.
    """

    def __init__(self, quic: VoiceQuic, session: SessionPort, *, server: str, pin: bytes | None = None, handshake_timeout: float) -> None:
        """Args:
        quic: Of either role.
        session: Of the same role, not started.
        server: What messages call the server.
        pin: SHA-256 that the server's certificate must have; None if TLS checks the certificate, or nobody.
        handshake_timeout: Seconds from the first packet to the handshake's completion.
        """
        self.session = session
        self.connect_error: ConnectError | None = None
        self.goodbye: Goodbye | None = None
        self.hearing = Hearing()
        self.keeps_session = False
        self.on_ticket: Callable[[SessionTicket], None] | None = None
        self.tickets: deque[SessionTicket] = deque(maxlen=1)
        self._gate = EarlyGate()
        self._quic = quic
        self._streams = StreamTable(quic, session)
        self._server = server
        self._pin = pin
        self._timeout = handshake_timeout
        self._deadline: float | None = None
        self._is_up = False
        self._supposes = SUPPOSES
        self._is_over = False
        self._linger_until: float | None = None
        self._closed: Closed | None = None
        self._waiting: deque[Event] = deque()
        self._resend: list[tuple[bytes, Address]] = []
        self._built: list[tuple[bytes, Address]] = []
        self._id_news: list[tuple[bytes, bool]] = []
        self._ignored = 0
        self._pumped_at = 0.0

    # What the network and the clock bring.

    def connect(self, addr: Address, now: float) -> None:
        """On a client: begin the handshake; `datagrams_to_send` gives its first flight.

        Args:
            addr: The server's address, exactly as its packets will be reported to come from.
            now: Monotonic seconds.

        Raises:
            StateError: Called before, or on a server.
        """
        if self._deadline is not None:
            raise StateError("the connection has begun already")
        self._deadline = now + self._timeout
        self._quic.connect(addr, now)
        if isinstance(self.session, Pending):
            request = self.session.ask(now) if self._quic.may_speak_early else b""
            self.session.asked.done = bool(request) and self._quic.offer_stream_data(CONTROL_STREAM, request)

    def receive_datagram(self, data: bytes, addr: Address, now: float) -> None:
        """Take one UDP payload."""
        if self._deadline is None:
            self._deadline = now + self._timeout
        if not self._quic.is_open or self._quic.close_is_due:
            self._ignored += 1
            if self.goodbye is not None:
                self._resend = self.goodbye.answer()
            return
        self._quic.receive(data, addr, now)
        if self.hearing.heard(now, self._quic.newest_acked, self.peer_address):
            self.session.path_changed(now)
        self._dispatch(now)

    def handle_timer(self, now: float) -> None:
        """Do what is due."""
        self._quic.fire(now)
        if not self._is_up and not self._is_over and self._deadline is not None and now >= self._deadline:
            self._fail(now, no_answer(self._server, self._timeout), ErrorCode.HANDSHAKE_TIMEOUT, "the handshake took too long")
        if self.is_ready and not self._is_over:
            timer = self.session.next_timer()
            if timer is not None and now >= timer:
                self.session.handle_timer(now)
        self._dispatch(now)

    def next_timer(self) -> float | None:
        """When `handle_timer` wants to be called, in seconds of the owner's clock; None for never."""
        first = self._quic.timer()
        if self._is_over:
            return first
        for time in (self._session_timer() if self.is_ready else None, None if self._is_up else self._deadline, self._linger_until):
            if time is not None and (first is None or time < first):
                first = time
        return first

    def _session_timer(self) -> float | None:
        timer = self.session.next_timer()
        if timer is not None and self._streams.is_blocked:
            # Events that are due but cannot leave would have the timer fire for ever.
            timer = max(timer, self._pumped_at + BLOCKED_POLL)
        return timer

    # What leaves.

    def pump(self, now: float) -> None:
        """Carry what the session has to send into QUIC; `datagrams_to_send` does it by itself."""
        if not self.is_ready or self._is_over or not self._quic.is_open:
            return
        self._pumped_at = now
        self._streams.push(now)
        self._quic.congestion.grant(self.session.target_bps)
        for index, datagram in enumerate(self.session.datagrams_to_send(now)):
            if index:
                # A packet each: what leaves together measures the path, and what repairs another must not be lost with it.
                self._built += self._quic.packets_to_send(now)
            self._quic.offer_datagram(datagram)
        if self.session.is_closed:
            self._wind_up(now)

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, Address]]:
        """UDP payloads that leave now, each with the address it goes to. They must be sent, or count as lost."""
        packets, self._resend = self._resend, []
        if not self._quic.is_open:
            return packets
        self.pump(now)
        closing, lone_acks = self._quic.close_is_due, self._quic.lone_acks
        packets, self._built = [*self._built, *self._quic.packets_to_send(now)], []
        if len(packets) > self._quic.lone_acks - lone_acks:
            self.hearing.sent(now)
        if closing and not self._quic.close_is_due:
            self.goodbye = Goodbye(packets, now + self.drain_time)
        self._dispatch(now)
        return packets

    def _wind_up(self, now: float) -> None:
        """The session is closed: see that its CLOSE arrives, then close QUIC."""
        if self._linger_until is None:
            # No new event can come, so fetching them all here keeps no more than the session would.
            self._fetch_rest()
            self._linger_until = now + min(3 * self._quic.probe_timeout, MAX_LINGER)
            self._streams.end_control()
        closed = self._closed
        if closed is None or closed.remote or self._streams.control_is_taken or now >= self._linger_until:
            if closed is None or closed.remote:
                self._quic.close_with(ErrorCode.NO_ERROR, "")  # VS-13.2-1: the far end has said why
            else:
                self._quic.close_with(closed.code, closed.reason)
            self._is_over = True

    # The application's side.

    def next_event(self) -> Event | None:
        """The session's next event. `Closed` comes once, also when it was the connection that failed."""
        if self._linger_until is None and not self._is_over:
            return self._fetch()
        return self._waiting.popleft() if self._waiting else None

    def _fetch(self) -> Event | None:
        event = self.session.next_event()
        if isinstance(event, Closed):
            self._closed = event
        return event

    def _fetch_rest(self) -> None:
        while (event := self._fetch()) is not None:
            self._waiting.append(event)

    def close(self, now: float, code: int = ErrorCode.NO_ERROR, reason: str = "", *, may_resume: bool = False) -> None:
        """Close the session, or give up the handshake; `may_resume` tells that it is kept. Nothing if it is over already."""
        if self._is_over:
            return
        if not self.is_ready:
            self._fail(now, None, code, reason)
        elif not self.session.is_closed:
            self.session.close(now, code, reason, may_resume)

    def abort(self, now: float, code: int = ErrorCode.NO_ERROR, reason: str = "") -> None:
        """Close without waiting for CLOSE to be acknowledged: the next `datagrams_to_send` says goodbye."""
        self.close(now, code, reason)
        if self.is_ready and not self._is_over:
            self.pump(now)
            self._linger_until = now

    def break_off(self, now: float, code: int, reason: str) -> None:
        """End both after a fault of ours: nothing more is asked of the session."""
        self._is_over = True
        self._closed = Closed(code=code, reason=reason, remote=False, may_resume=False)
        self._waiting.append(self._closed)
        self._quic.close_with(code, reason)
        self.session.transport_closed(now, code, reason, remote=False)

    # A session that changes its connection.

    def adopt(self, session: SessionPort) -> None:
        """Carry this session from now on, which has asked for its resumption or agreed to it."""
        self.session = session
        self._streams = StreamTable(self._quic, session)

    def release(self, code: int, reason: str) -> None:
        """Let the session go, which is told by its owner, and close."""
        self.abandon()
        self._quic.close_with(code, reason)

    def abandon(self) -> None:
        """Let the session go without a word: were the far end told, it would end the session with the connection."""
        self.session.let_go()  # one that has never begun is nobody else's
        self.adopt(Vacant())
        self._is_over = True

    def let_go(self) -> None:
        """Its socket is closed, or it is over and everybody knows: neither sends nor receives, and keeps nothing alive."""
        self._quic.let_go()
        self.session.let_go()

    def moved(self, now: float) -> None:
        """This side has changed its network: use another of the peer's connection ids from now on, and ask for an answer at once.

        A side with nothing to say would not be found otherwise. What was measured belongs to the network that was left.
        """
        self._quic.change_connection_id()
        self.hearing.moved(now, self._quic.next_number)
        self.session.path_changed(now)
        if self._is_up:
            self.probe()

    def probe(self) -> None:
        """Have the next `datagrams_to_send` ask the far end for an answer."""
        self._quic.send_ping(0)

    def take_id_news(self) -> list[tuple[bytes, bool]]:
        """Connection ids of this side that became valid (True) or were retired by the peer (False) since the last call."""
        news, self._id_news = self._id_news, []
        return news

    # QUIC's events.

    def _dispatch(self, now: float) -> None:
        for event in self._quic.drain_events():
            if isinstance(event, events.DatagramFrameReceived):
                if self._takes_data():
                    if self._supposes:
                        # The handshake's large packets take long on a slow path; those after it tell more.
                        self._supposes -= 1
                        self.session.suppose_rtt(self._quic.least_rtt)
                    self.session.receive_datagram(event.data, now)
            elif isinstance(event, events.StreamDataReceived):
                if event.stream_id == CONTROL_STREAM and self._quic.hears_early and not (self._is_up or self._is_over):
                    self._take_early(event, now)
                elif self._takes_data():
                    self._stream_data(event, now)
            elif isinstance(event, events.StreamReset | events.StopSendingReceived):
                if self._takes_data():
                    self._stream_given_up(event, now)
            elif isinstance(event, events.HandshakeCompleted):
                self._handshake_completed(event, now)
            elif isinstance(event, events.ConnectionIdIssued):
                self._id_news.append((event.connection_id, True))
            elif isinstance(event, events.ConnectionIdRetired):
                self._id_news.append((event.connection_id, False))
        if self.tickets and self._is_up and self.on_ticket is not None:
            self.on_ticket(self.tickets.pop())  # VS-11.5-1
        self._notice_end(now)

    def _takes_data(self) -> bool:
        if self._is_up and not self._is_over and not self.session.is_closed:
            return True
        self._ignored += 1
        return False

    def _take_early(self, event: events.StreamDataReceived, now: float) -> None:
        """Early data of a client whose handshake is not complete (VS-11.3-9): its first message counts if that is RESUME."""
        request = self._gate.take(event.data, event.end_stream)
        if request:
            self.session.start(now)
            self.session.receive_control(request, now)

    def _stream_data(self, event: events.StreamDataReceived, now: float) -> None:
        if event.stream_id == CONTROL_STREAM:
            self.session.receive_control(event.data, now, event.end_stream)
        elif self._streams.is_control(event.stream_id):
            self.session.close(now, ErrorCode.CONTROL_STREAM_ERROR, "a second bidirectional stream")  # VS-3.3-1
        else:
            self.session.receive_stream(event.stream_id, event.data, event.end_stream, now)

    def _stream_given_up(self, event: events.StreamReset | events.StopSendingReceived, now: float) -> None:
        if self._streams.is_control(event.stream_id):
            self.session.close(now, ErrorCode.CONTROL_STREAM_ERROR, "the control stream was reset or stopped")  # VS-5.1-5
        elif isinstance(event, events.StreamReset):
            self.session.reset_stream(event.stream_id, now)

    def _handshake_completed(self, event: events.HandshakeCompleted, now: float) -> None:
        # A server that knows the secret behind a ticket is the one that gave it, and had the right certificate then.
        mismatch = None if event.session_resumed else pin_mismatch(self._server, self._quic.peer_certificate, self._pin)
        fault = handshake_fault(self._server, event.alpn_protocol, self._quic.peer_datagram_frame, mismatch)
        if fault is not None:
            self._fail(now, fault.error, fault.code, fault.reason, transport=fault.transport)
        elif not self._is_over:
            self._is_up = True
            if isinstance(self.session, Pending):
                self._quic.say_again(now)
                self.adopt(self.session.take_up(now))
                return
            if not self._gate.is_used:
                self.session.start(now, self._quic.rtt)
            data, fin = self._gate.rest()
            if data or fin:
                self.session.receive_control(data, now, fin)

    def _fail(self, now: float, error: ConnectError | None, code: int, reason: str, *, transport: bool = False) -> None:
        """Give up before the session began."""
        self.connect_error = error
        self._is_over = True
        if self._keeps(now):
            self.abandon()
        else:
            shown = ErrorCode.INTERNAL_ERROR if transport else code
            self._waiting.append(Closed(code=shown, reason=reason, remote=False, may_resume=False))
        self._quic.close_with(code, reason, transport=transport)

    def _keeps(self, now: float) -> bool:
        """Whether the session goes on without this connection, and knows it."""
        return self.keeps_session and (self.session.has_left or self.session.path_lost(now))

    def _notice_end(self, now: float) -> None:
        """See whether QUIC has ended by itself: by the peer's word, by an error, or in silence."""
        end = self._quic.end
        if end is None or self._is_over:
            return
        self._is_over, closed = True, closed_of(end)
        # Before the handshake's end nobody knows whose word that was.
        if (closed.may_resume or not self._is_up or self.session.has_left) and self._keeps(now):
            self.abandon()
            return
        if not self._is_up:
            # The session has not begun, and may yet on another connection.
            self.connect_error = connect_error_of(end, self._server)
            self._waiting.append(closed)
            return
        if self._linger_until is not None:
            return
        self._fetch_rest()
        if self._closed is None:
            self.session.transport_closed(now, closed.code, closed.reason, remote=closed.remote)
            while self.session.next_event() is not None:
                pass  # the session cannot know whether a resume may help; ours says so
            self._closed = closed
            self._waiting.append(closed)
