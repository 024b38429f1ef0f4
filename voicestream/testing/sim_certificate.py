"""The certificate of simulated servers."""

from __future__ import annotations

import datetime
import functools
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import NameOID

from voicestream.quic.certificates import fingerprint
from voicestream.quic.configuration import ClientTls, ServerTls

__all__ = ["SERVER_NAME", "sim_certificate"]

SERVER_NAME = "server.example"


@functools.cache
def sim_certificate() -> tuple[tempfile.TemporaryDirectory[str], ServerTls, ClientTls]:
    """One certificate for all simulations of the process; the folder lives as long as the process.

    Its key is Ed25519, whose signatures have one length, so that packets have the same sizes in every run.
    """
    key = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SERVER_NAME)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1)
    valid = builder.not_valid_before(datetime.datetime(2020, 1, 1)).not_valid_after(datetime.datetime(2120, 1, 1))
    certificate = valid.sign(key, None)
    folder = tempfile.TemporaryDirectory(prefix="voicestream-sim-")
    certfile, keyfile = Path(folder.name) / "cert.pem", Path(folder.name) / "key.pem"
    certfile.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    keyfile.write_bytes(key.private_bytes(*form))
    pin = fingerprint(certificate.public_bytes(serialization.Encoding.DER))
    return folder, ServerTls(certfile=certfile, keyfile=keyfile), ClientTls(server_name=SERVER_NAME, pin=pin)
