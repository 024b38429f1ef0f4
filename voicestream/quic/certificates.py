"""Self-signed certificates for development, and fingerprints for pinning."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = [
    "certificates_of",
    "fingerprint",
    "make_certificate",
    "make_certificate_files",
    "parse_fingerprint",
    "pin_of_file",
    "write_certificate",
]

CLOCK_SKEW: Final = datetime.timedelta(hours=1)
"""The certificate is valid from this long ago, for clients whose clock is behind."""


def make_certificate(names: Sequence[str], days: int = 10) -> tuple[bytes, bytes, str]:
    """Make an ECDSA P-256 key and a certificate for it, signed by itself.

    Args:
        names: DNS names and IP addresses of the server; the first is the subject.
        days: How long it is valid, 1 to 3650. Browsers take pinned certificates of at most 14 days.

    Returns:
        Certificate (PEM), private key (PEM, PKCS #8, not encrypted) and the SHA-256 of the certificate's DER in hexadecimal.

    Raises:
        ValueError: No name, or `days` out of range.
    """
    if isinstance(names, str) or not names or not all(names):
        raise ValueError("names must be a sequence of one or more host names or addresses")
    if not 1 <= days <= 3650:
        raise ValueError(f"days must be 1 to 3650, not {days}")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    start = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - CLOCK_SKEW)
        .not_valid_after(start + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(serialization.Encoding.PEM), key_pem, fingerprint(certificate.public_bytes(serialization.Encoding.DER))


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return x509.DNSName(name.encode("idna").decode("ascii") if not name.isascii() else name)


def pin_mismatch(server: str, certificate: bytes | None, pin: bytes | None) -> str | None:
    """What is wrong with a server's certificate (DER), if it must have the SHA-256 `pin`; None for nothing."""
    if pin is None:
        return None
    if certificate is None:
        return f"{server} showed no certificate"
    if hashlib.sha256(certificate).digest() == pin:
        return None
    return f"{server} has another certificate than the pinned one: its SHA-256 is {fingerprint(certificate)}"


def fingerprint(der: bytes) -> str:
    """SHA-256 of a certificate's DER, 64 hexadecimal digits."""
    return hashlib.sha256(der).hexdigest()


def certificates_of(data: bytes, source: str | Path) -> list[x509.Certificate]:
    """The certificates of a PEM file, in order.

    Args:
        data: Its content.
        source: Its name, for the error.

    Raises:
        ValueError: There is none that can be read.
    """
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError as exc:
        raise ValueError(f"{source} holds no PEM certificate that can be read") from exc


def pin_of_file(certfile: str | Path) -> str:
    """SHA-256 of the DER of a file's first certificate, which is the one that a server shows: 64 hexadecimal digits.

    Raises:
        OSError: The file cannot be read.
        ValueError: It holds no PEM certificate.
    """
    return fingerprint(certificates_of(Path(certfile).read_bytes(), certfile)[0].public_bytes(serialization.Encoding.DER))


def parse_fingerprint(pin: str | bytes) -> bytes:
    """The 32 bytes of a SHA-256 fingerprint, given as such or in hexadecimal with or without colons.

    Raises:
        ValueError: It is not a SHA-256.
    """
    if isinstance(pin, bytes) and len(pin) == hashlib.sha256().digest_size:
        return pin
    text = pin.decode("ascii", "replace") if isinstance(pin, bytes) else pin
    try:
        value = bytes.fromhex(text.replace(":", ""))
    except ValueError:
        value = b""
    if len(value) != hashlib.sha256().digest_size:
        raise ValueError("pin must be the SHA-256 of the certificate: 64 hexadecimal digits, with or without colons")
    return value


def make_certificate_files(folder: Path, names: Sequence[str]) -> tuple[Path, Path, str]:
    """A certificate made for `names` (see `make_certificate`) in a folder that there is: its file, that of its key, and its pin.

    Raises:
        OSError: A file cannot be written.
    """
    certificate, key, pin = make_certificate(names)
    certfile, keyfile = folder / "cert.pem", folder / "key.pem"
    write_certificate(certificate, key, certfile, keyfile)
    return certfile, keyfile, pin


def write_certificate(certificate: bytes, key: bytes, certfile: str | Path, keyfile: str | Path) -> None:
    """Write both files; the key's is readable by its owner only from the moment it exists.

    Raises:
        OSError: A file cannot be written.
    """
    keypath = Path(keyfile)
    keypath.unlink(missing_ok=True)
    with os.fdopen(os.open(keypath, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
    Path(certfile).write_bytes(certificate)
