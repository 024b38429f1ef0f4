"""What the end of a QUIC connection means: for the call that was on it, and for the one that did not come about."""

from __future__ import annotations

from typing import Final, NamedTuple

from aioquic.quic.packet import QuicErrorCode
from aioquic.tls import AlertDescription

from voicestream.codepoints import ALPN, ErrorCode
from voicestream.errors import CertificateError, ConnectError, RejectedError
from voicestream.events import Closed
from voicestream.quic.values import QuicEnd

__all__ = ["IDLE_TIMEOUT", "NO_COMMON_VERSION", "Fault", "closed_of", "connect_error_of", "handshake_fault", "no_answer"]

MIN_DATAGRAM_FRAME: Final = 1200
"""Bytes of a DATAGRAM frame that both sides must take."""

IDLE_TIMEOUT: Final = "Idle timeout"
NO_COMMON_VERSION: Final = "Could not find a common protocol version"
"""Words by which aioquic tells these two ends from others with the same code; tests hold them against the installed version."""

CERTIFICATE_ALERTS: Final = frozenset(
    {
        AlertDescription.bad_certificate,
        AlertDescription.unsupported_certificate,
        AlertDescription.certificate_revoked,
        AlertDescription.certificate_expired,
        AlertDescription.certificate_unknown,
        AlertDescription.unknown_ca,
    }
)


class Fault(NamedTuple):
    """Why a connection whose handshake is complete is not to be used, and what the far end is told; `transport`: as a code of QUIC."""

    error: ConnectError
    code: int
    reason: str
    transport: bool


def handshake_fault(server: str, alpn: str | None, datagram_frame: int, mismatch: str | None) -> Fault | None:
    """What is wrong with a connection, or None.

    Args:
        server: The server in the user's words.
        alpn: What was agreed on.
        datagram_frame: Bytes of the largest DATAGRAM frame that the far end takes.
        mismatch: How the server's certificate differs from the pinned one.
    """
    alert = QuicErrorCode.CRYPTO_ERROR
    if alpn != ALPN:  # VS-3.1-1
        error = ConnectError(f"{server} does not speak {ALPN}")
        return Fault(error, alert + AlertDescription.no_application_protocol, "no common application protocol", True)
    if datagram_frame < MIN_DATAGRAM_FRAME:  # VS-3.2-1
        error = ConnectError(f"{server} takes no QUIC datagrams of {MIN_DATAGRAM_FRAME} bytes")
        return Fault(error, ErrorCode.INTERNAL_ERROR, f"DATAGRAM frames (RFC 9221) of {MIN_DATAGRAM_FRAME} bytes are needed", False)
    if mismatch is not None:  # VS-3.1-4
        return Fault(CertificateError(mismatch), alert + AlertDescription.bad_certificate, "not the pinned certificate", True)
    return None


def closed_of(end: QuicEnd) -> Closed:
    """The event for a session whose connection ended under it."""
    if end.frame_type is None and end.by_peer and end.code == ErrorCode.SUPERSEDED:
        # An earlier request to resume, of a dial that was given up, has overtaken the later one.
        return Closed(code=ErrorCode.SUPERSEDED, reason=end.reason, remote=True, may_resume=True)
    if end.frame_type is None and end.by_peer:
        return Closed(code=end.code, reason=end.reason, remote=True, may_resume=False)
    if end.silent and end.reason == IDLE_TIMEOUT:
        return Closed(code=ErrorCode.IDLE_TIMEOUT, reason="nothing was heard from the far end", remote=False, may_resume=True)
    if end.code == QuicErrorCode.NO_VIABLE_PATH:
        return Closed(code=ErrorCode.PATH_LOST, reason="no path to the far end is left", remote=False, may_resume=True)
    if end.code == QuicErrorCode.CONNECTION_REFUSED and end.by_peer:
        return Closed(code=ErrorCode.BUSY, reason=end.reason, remote=True, may_resume=False)
    if end.code == QuicErrorCode.NO_ERROR and end.by_peer:
        return Closed(code=ErrorCode.NO_ERROR, reason=end.reason, remote=True, may_resume=False)
    reason = f"QUIC: {transport_error_name(end.code)}{_words(end)}"
    return Closed(code=ErrorCode.INTERNAL_ERROR, reason=reason, remote=end.by_peer, may_resume=False)


def connect_error_of(end: QuicEnd, server: str) -> ConnectError:
    """The exception for a client whose connection ended before it was usable.

    Args:
        end: What happened.
        server: The server in the user's words.
    """
    if end.by_peer and end.frame_type is not None and end.code == QuicErrorCode.CONNECTION_REFUSED:
        return RejectedError(ErrorCode.BUSY, end.reason)
    if end.silent and end.reason == IDLE_TIMEOUT:
        return no_answer(server)
    if end.reason == NO_COMMON_VERSION:
        return ConnectError(f"{server} does not speak QUIC version 1")
    alert = _alert(end)
    if alert is AlertDescription.no_application_protocol:
        return ConnectError(f"{server} does not speak {ALPN}")
    if alert in CERTIFICATE_ALERTS and not end.by_peer:
        return CertificateError(f"the certificate of {server} could not be verified: {end.reason or alert.name}")
    if end.frame_type is None:
        # QUIC hides an application's code until the handshake is over; what is left says only who.
        return ConnectError(f"{server} closed the connection (code 0x{end.code:x}){_words(end)}")
    who = server if end.by_peer else "this end"
    return ConnectError(f"{who} broke off the handshake with {transport_error_name(end.code)}{_words(end)}")


def no_answer(server: str, seconds: float | None = None) -> ConnectError:
    """Nobody answered."""
    return ConnectError(f"{server} does not answer" + (f" within {seconds:.2g} s" if seconds else ""))


def transport_error_name(code: int) -> str:
    """Name of a QUIC transport error code, or of the TLS alert in it (RFC 9000 section 20.1)."""
    if QuicErrorCode.CRYPTO_ERROR <= code < QuicErrorCode.CRYPTO_ERROR + 256:
        try:
            return f"TLS alert {AlertDescription(code - QuicErrorCode.CRYPTO_ERROR).name}"
        except ValueError:
            return f"TLS alert {code - QuicErrorCode.CRYPTO_ERROR}"
    try:
        return QuicErrorCode(code).name
    except ValueError:
        return f"0x{code:x}"


def _alert(end: QuicEnd) -> AlertDescription | None:
    try:
        return AlertDescription(end.code - QuicErrorCode.CRYPTO_ERROR) if end.frame_type is not None else None
    except ValueError:
        return None


def _words(end: QuicEnd) -> str:
    return f": {end.reason}" if end.reason else ""
