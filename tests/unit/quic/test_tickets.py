"""Tickets, each good once."""

from __future__ import annotations

import datetime
from typing import Any

from aioquic.tls import CipherSuite, SessionTicket

from voicestream.config import Track
from voicestream.quic.configuration import ClientTls
from voicestream.quic.early import EarlyGate
from voicestream.quic.tickets import CallTickets, ServerTickets
from voicestream.wire.messages import Hello, Resume, encode_message
from voicestream.wire.parameters import Parameters

LIFETIME = 60.0
SERVER = ("192.0.2.1", 4433)
HOME, OTHER = ("home.example", 4433), ("other.example", 4433)


def ticket(name: bytes) -> SessionTicket:
    day = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return SessionTicket(
        age_add=0, cipher_suite=CipherSuite.AES_128_GCM_SHA256, not_valid_after=day, not_valid_before=day,
        resumption_secret=b"the secret", server_name="home.example", ticket=name,
    )  # fmt: skip


def test_a_ticket_is_good_once() -> None:
    # VS-11.5-3
    tickets = ServerTickets(LIFETIME)
    tickets.keep(ticket(b"one"), "connection")
    taken = tickets.take(b"one", 0.0)
    assert taken is not None
    assert taken.ticket == b"one"
    assert tickets.take(b"one", 0.0) is None
    assert tickets.take(b"never given", 0.0) is None
    tickets.ended("connection", 1.0)
    assert tickets.take(b"one", 1.0) is None, "its end brings it back"
    assert len(tickets) == 0


def test_a_ticket_lives_as_long_as_its_connection_and_a_sessions_lifetime_after_it() -> None:
    # VS-15-7
    tickets = ServerTickets(LIFETIME)
    for name in (b"one", b"two", b"three"):
        tickets.keep(ticket(name), name)
    tickets.ended(b"one", 10000.0)
    tickets.ended(b"two", 10000.0)
    assert tickets.take(b"one", 10000.0 + LIFETIME - 0.1) is not None
    assert tickets.take(b"two", 10000.0 + LIFETIME) is None
    assert tickets.take(b"three", 20000.0) is not None
    assert len(tickets) == 0


def test_the_ticket_of_a_call_that_was_closed_goes_with_its_connection(make_world: Any, certificate: Any) -> None:
    # VS-15-7
    given = ServerTickets(LIFETIME)
    world, pin = make_world(tickets=given), certificate[2]
    tls = ClientTls(server_name="voice.example", pin=pin)
    (_, closed), (cut, _) = (world.connect(tls=tls, tickets=CallTickets(), place=HOME) for _ in range(2))
    assert len(given) == 2
    closed.close(world.now)
    world.run(1.0)
    assert len(given) == 1
    cut.connection.let_go()
    while world.server.connections:
        world.run(10.0)
    assert len(given) == 1, "silence does not end a session"


def test_a_connection_has_one_ticket_the_newest() -> None:
    tickets = ServerTickets(LIFETIME)
    tickets.keep(ticket(b"old"), "connection")
    tickets.keep(ticket(b"new"), "connection")
    assert tickets.take(b"old", 0.0) is None
    assert tickets.take(b"new", 0.0) is not None
    tickets.keep(ticket(b"newer"), "connection")
    tickets.ended("connection", 0.0)
    assert tickets.take(b"newer", 1.0) is not None


def test_tickets_are_bounded_in_number_and_those_of_the_dead_go_first() -> None:
    tickets = ServerTickets(LIFETIME, most=10)
    for number in range(6):
        tickets.keep(ticket(b"dead %d" % number), number)
        tickets.ended(number, 0.0)
    for number in range(100, 108):
        tickets.keep(ticket(b"alive %d" % number), number)
    assert len(tickets) == 10
    assert [tickets.take(b"dead %d" % number, 1.0) is None for number in range(6)] == [True] * 4 + [False] * 2
    for number in range(200, 210):
        tickets.keep(ticket(b"new %d" % number), number)
    assert len(tickets) == 10
    assert tickets.take(b"alive 107", 1.0) is None
    assert tickets.take(b"new 200", 1.0) is not None
    tickets.ended(107, 2.0)
    assert len(tickets) == 9


def test_a_client_holds_the_newest_ticket_of_the_server_that_gave_it() -> None:
    tickets = CallTickets()
    assert tickets.show(HOME) is None
    tickets.keep(HOME, ticket(b"one"))
    tickets.keep(HOME, ticket(b"two"))
    assert tickets.show(OTHER) is None
    shown = tickets.show(HOME)
    assert shown is not None
    assert shown.ticket == b"two"
    assert tickets.show(HOME) is shown, "a dial that nobody has answered has used up nothing"
    tickets.keep(OTHER, ticket(b"three"))
    assert tickets.show(HOME) is None


def test_a_ticket_that_was_seen_on_one_network_is_not_shown_on_another() -> None:
    # VS-11.5-2
    tickets = CallTickets()
    tickets.keep(HOME, ticket(b"one"))
    tickets.network_changed()
    assert tickets.show(HOME) is not None, "nobody has seen it"
    tickets.network_changed()
    assert tickets.show(HOME) is None


def test_no_repr_shows_a_ticket() -> None:
    tickets, server = CallTickets(), ServerTickets(LIFETIME)
    tickets.keep(HOME, ticket(b"one"))
    server.keep(ticket(b"one"), "connection")
    assert "secret" not in repr(tickets) + repr(server) + repr(server._living)


RESUME = encode_message(Resume(parameters=Parameters(session_id=bytes(16), resume_token=b"token", generation=0)))
HELLO = encode_message(Hello(parameters=Parameters(authority="home.example", path="/", tracks=(Track(),))))


def test_of_early_data_a_resume_is_let_through_and_nothing_after_it() -> None:
    # VS-11.5-4
    gate = EarlyGate()
    assert gate.take(RESUME[:5], fin=False) == b""
    assert not gate.is_used
    assert gate.take(RESUME[5:] + RESUME, fin=False) == RESUME
    assert gate.take(b"more", fin=True) == b""
    assert gate.rest() == (RESUME + b"more", True)
    assert gate.rest() == (b"", True)


def test_of_early_data_a_hello_waits_for_the_end_of_the_handshake() -> None:
    # VS-11.5-4
    gate = EarlyGate()
    assert gate.take(HELLO + RESUME, fin=False) == b""
    assert not gate.is_used
    assert gate.rest() == (HELLO + RESUME, False)


def test_a_ticket_of_a_server_with_a_wrong_certificate_is_not_kept(make_world: Any, certificate: Any) -> None:
    # T-IMPOSTOR, VS-11.5-1: with it the next dial would take that server for the right one, without looking at a certificate.
    world = make_world()
    for right in (False, True):
        tickets = CallTickets()
        pin = certificate[2] if right else bytes(32)
        endpoint = world.client(tls=ClientTls(server_name="voice.example", pin=pin), tickets=tickets, place=HOME)
        endpoint.connect(SERVER, world.now)
        endpoint.connection.tickets.append(ticket(b"of whoever answers"))  # it may come with the server's first packets
        world.run(1.0)
        assert (endpoint.connection.connect_error is None) is right
        assert (tickets.show(HOME) is not None) is right


def test_who_shows_a_ticket_needs_no_certificate_and_gets_another_ticket(make_world: Any, certificate: Any) -> None:
    world, tickets = make_world(tickets=ServerTickets(LIFETIME)), CallTickets()
    tls = ClientTls(server_name="voice.example", pin=certificate[2])
    first = world.connect(tls=tls, tickets=tickets, place=HOME)[0].connection
    shown = tickets.show(HOME)
    second = world.connect(tls=tls, tickets=tickets, place=HOME)[0].connection
    assert first.peer_certificate is not None
    assert second.peer_certificate is None
    assert tickets.show(HOME) is not shown


def test_a_server_that_gives_no_tickets_leaves_all_as_it_was(world: Any, certificate: Any) -> None:
    tickets = CallTickets()
    for _ in range(2):
        endpoint, _ = world.connect(tickets=tickets, place=HOME)
        assert endpoint.connection.peer_certificate is not None
    assert tickets.show(HOME) is None


def test_a_client_that_wants_no_tickets_leaves_all_as_it_was(make_world: Any) -> None:
    given = ServerTickets(LIFETIME)
    world = make_world(tickets=given)
    endpoint, _ = world.connect()
    assert endpoint.connection.is_up
    assert len(given) == 0
