"""What TLS and QUIC are set up with: certificates to show or to check, ALPN, limits (specification section 3; VS-3.1-1, VS-3.1-4)."""

from __future__ import annotations

import ssl
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.packet import QuicProtocolVersion
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from voicestream.codepoints import ALPN
from voicestream.config import Limits
from voicestream.errors import InsecureWarning
from voicestream.quic import congestion
from voicestream.quic.certificates import certificates_of, parse_fingerprint
from voicestream.quic.values import Windows

__all__ = ["ClientTls", "ServerTls", "client_configuration", "server_configuration", "windows_for"]

MAX_DATAGRAM_FRAME_SIZE: Final = 65536
"""Transport parameter; as large as aioquic takes, for the bound that matters is the session's."""

EVENT_SLACK: Final = 4096
"""Bytes that an event stream may carry beyond the largest event, so that a longer one is seen and named, not just stalled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerTls:
    """The server's certificate.

    Attributes:
        certfile: PEM file with the certificate, followed by the rest of its chain.
        keyfile: PEM file with the private key.
        password: Of an encrypted key.
    """

    certfile: str | Path
    keyfile: str | Path
    password: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientTls:
    """How the server's certificate is checked. One way only: certifi's authorities (the default), `cafile`, `pin` or `insecure`.

    Attributes:
        server_name: Host name or IP address that the certificate must be for.
        cafile: PEM file of authorities (or of the server's own certificate) to trust instead.
        pin: SHA-256 of the certificate's DER; 32 bytes, or hexadecimal with or without colons. The name is not checked then.
        insecure: Check nothing, and warn each time.
    """

    server_name: str
    cafile: str | Path | None = None
    pin: str | bytes | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        if not self.server_name:
            raise ValueError("server_name must not be empty")
        if sum((self.cafile is not None, self.pin is not None, self.insecure)) > 1:
            raise ValueError("give one of cafile, pin and insecure, not several")
        if self.pin is not None:
            parse_fingerprint(self.pin)

    @property
    def pin_bytes(self) -> bytes | None:
        """The pin's 32 bytes."""
        return None if self.pin is None else parse_fingerprint(self.pin)


def windows_for(limits: Limits) -> Windows:
    """Flow control windows that let the largest event through beside the control stream."""
    return Windows(connection=limits.max_event_size + 256 * 1024, unidirectional_streams=limits.max_event_streams)


def _configuration(limits: Limits, *, is_client: bool, id_length: int) -> QuicConfiguration:
    congestion.register()
    return QuicConfiguration(
        alpn_protocols=[ALPN],
        congestion_control_algorithm=congestion.ALGORITHM,
        connection_id_length=id_length,
        idle_timeout=limits.idle_timeout,
        is_client=is_client,
        max_data=windows_for(limits).connection,
        max_datagram_frame_size=MAX_DATAGRAM_FRAME_SIZE,
        max_stream_data=limits.max_event_size + EVENT_SLACK,
        supported_versions=[QuicProtocolVersion.VERSION_1],
    )


def client_configuration(tls: ClientTls, limits: Limits, *, id_length: int) -> QuicConfiguration:
    """Configuration of one client connection.

    Raises:
        OSError: `cafile` cannot be read.
        ValueError: `cafile` holds no certificate.
    """
    configuration = _configuration(limits, is_client=True, id_length=id_length)
    configuration.server_name = tls.server_name
    if tls.insecure:
        warnings.warn(f"the certificate of {tls.server_name} is not checked (insecure=True)", InsecureWarning, stacklevel=2)
    if tls.insecure or tls.pin is not None:
        configuration.verify_mode = ssl.CERT_NONE
    if tls.cafile is not None:
        # Read here and not in the middle of a handshake, so that a missing file is the caller's error.
        data = Path(tls.cafile).read_bytes()
        certificates_of(data, tls.cafile)
        configuration.cadata = data
    return configuration


def server_configuration(tls: ServerTls, limits: Limits, *, id_length: int) -> QuicConfiguration:
    """Configuration that all connections of a server share.

    Raises:
        OSError: A file cannot be read.
        ValueError: A file does not hold what it should, or key and certificate do not belong together.
    """
    configuration = _configuration(limits, is_client=False, id_length=id_length)
    chain = certificates_of(Path(tls.certfile).read_bytes(), tls.certfile)
    key = _private_key(Path(tls.keyfile).read_bytes(), tls)
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    if key.public_key().public_bytes(*form) != chain[0].public_key().public_bytes(*form):
        raise ValueError(f"the key in {tls.keyfile} does not belong to the certificate in {tls.certfile}")
    configuration.certificate = chain[0]
    configuration.certificate_chain = chain[1:]
    configuration.private_key = key
    return configuration


def _private_key(data: bytes, tls: ServerTls) -> PrivateKeyTypes:
    try:
        return serialization.load_pem_private_key(data, password=tls.password)
    except TypeError as exc:
        # Encrypted without a password, or the other way round.
        needs = "needs a password" if tls.password is None else "is not encrypted, and a password was given"
        raise ValueError(f"the private key in {tls.keyfile} {needs}") from exc
    except (ValueError, UnsupportedAlgorithm) as exc:
        what = "no PEM private key that can be read" if tls.password is None else "no PEM private key that can be read with this password"
        raise ValueError(f"{tls.keyfile} holds {what}") from exc
