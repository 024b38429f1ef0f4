"""What the end of a QUIC connection means."""

from __future__ import annotations

import pytest
from aioquic.quic.packet import QuicErrorCode

from voicestream.codepoints import ErrorCode
from voicestream.errors import CertificateError, ConnectError, RejectedError
from voicestream.quic.endings import IDLE_TIMEOUT, NO_COMMON_VERSION, closed_of, connect_error_of, transport_error_name
from voicestream.quic.values import QuicEnd


def end(code: int, reason: str = "", *, frame_type: int | None = 0, by_peer: bool = False, silent: bool = False) -> QuicEnd:
    return QuicEnd(code, frame_type, reason, by_peer, silent)


@pytest.mark.parametrize(
    ("how", "code", "remote", "may_resume"),
    [
        (end(0x11, "no", frame_type=None, by_peer=True), ErrorCode.UNAUTHORIZED, True, False),
        (end(ErrorCode.SUPERSEDED, "", frame_type=None, by_peer=True), ErrorCode.SUPERSEDED, True, True),
        (end(0x1234, "?", frame_type=None, by_peer=True), 0x1234, True, False),
        (end(1, IDLE_TIMEOUT, silent=True), ErrorCode.IDLE_TIMEOUT, False, True),
        (end(1, IDLE_TIMEOUT, by_peer=True), ErrorCode.INTERNAL_ERROR, True, False),
        (end(QuicErrorCode.NO_VIABLE_PATH, "", silent=True), ErrorCode.PATH_LOST, False, True),
        (end(QuicErrorCode.CONNECTION_REFUSED, "full", by_peer=True), ErrorCode.BUSY, True, False),
        (end(QuicErrorCode.NO_ERROR, "", by_peer=True), ErrorCode.NO_ERROR, True, False),
        (end(QuicErrorCode.PROTOCOL_VIOLATION, "bad", by_peer=True), ErrorCode.INTERNAL_ERROR, True, False),
        (end(QuicErrorCode.FLOW_CONTROL_ERROR, "bad"), ErrorCode.INTERNAL_ERROR, False, False),
    ],
)
def test_the_event_tells_who_ended_it_why_and_whether_a_resume_may_help(how: QuicEnd, code: int, remote: bool, may_resume: bool) -> None:
    closed = closed_of(how)
    assert (closed.code, closed.remote, closed.may_resume) == (code, remote, may_resume)


def test_errors_of_the_transport_are_named() -> None:
    assert closed_of(end(QuicErrorCode.PROTOCOL_VIOLATION, "bad", by_peer=True)).reason == "QUIC: PROTOCOL_VIOLATION: bad"
    assert transport_error_name(0x100 + 42) == "TLS alert bad_certificate"
    assert transport_error_name(0x100 + 255) == "TLS alert 255"
    assert transport_error_name(0x7777) == "0x7777"


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        (end(QuicErrorCode.CONNECTION_REFUSED, "full", by_peer=True), RejectedError, "BUSY: full"),
        (end(1, IDLE_TIMEOUT, silent=True), ConnectError, "s:1 does not answer"),
        (end(1, NO_COMMON_VERSION, silent=True), ConnectError, "s:1 does not speak QUIC version 1"),
        (end(0x100 + 120, "No common ALPN protocols", by_peer=True), ConnectError, "s:1 does not speak voicestream/1"),
        (end(0x100 + 120, "No common ALPN protocols"), ConnectError, "s:1 does not speak voicestream/1"),
        (end(0x100 + 42, "self-signed"), CertificateError, "the certificate of s:1 could not be verified: self-signed"),
        (end(0x100 + 45, "Certificate is no longer valid"), CertificateError, "could not be verified: Certificate is no longer valid"),
        (end(0x100 + 42, "yours", by_peer=True), ConnectError, "s:1 broke off the handshake with TLS alert bad_certificate: yours"),
        (end(QuicErrorCode.INVALID_TOKEN, "", by_peer=True), ConnectError, "s:1 broke off the handshake with INVALID_TOKEN"),
        (end(QuicErrorCode.PROTOCOL_VIOLATION, "odd"), ConnectError, "this end broke off the handshake with PROTOCOL_VIOLATION: odd"),
        (end(7, "later", frame_type=None, by_peer=True), ConnectError, r"s:1 closed the connection \(code 0x7\): later"),
    ],
)
def test_a_connection_that_did_not_come_about_is_explained_in_a_sentence(how: QuicEnd, kind: type[ConnectError], text: str) -> None:
    error = connect_error_of(how, "s:1")
    assert type(error) is kind
    with pytest.raises(kind, match=text):
        raise error
