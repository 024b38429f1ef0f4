"""Development certificates and fingerprints."""

from __future__ import annotations

import datetime
import hashlib
import os
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from voicestream.quic.certificates import fingerprint, make_certificate, parse_fingerprint, write_certificate


def test_a_certificate_is_for_all_names_and_addresses_given() -> None:
    certificate = x509.load_pem_x509_certificate(make_certificate(["localhost", "127.0.0.1", "::1", "[2001:db8::1]", "müller.example"])[0])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "xn--mller-kva.example"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1", "2001:db8::1"]


def test_the_key_is_p256_and_the_certificate_short_enough_for_browsers() -> None:
    pem, key_pem, sha256 = make_certificate(["localhost"])
    certificate, key = x509.load_pem_x509_certificate(pem), load_pem_private_key(key_pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert isinstance(key.curve, ec.SECP256R1)
    assert certificate.public_key() == key.public_key()
    assert certificate.not_valid_after_utc - certificate.not_valid_before_utc <= datetime.timedelta(days=14)
    assert sha256 == hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()
    assert sha256 == fingerprint(certificate.public_bytes(Encoding.DER))


def test_every_certificate_has_a_key_of_its_own() -> None:
    assert make_certificate(["a"])[2] != make_certificate(["a"])[2]


@pytest.mark.parametrize(("names", "days"), [([], 10), ("localhost", 10), ([""], 10), (["a"], 0), (["a"], 4000)])
def test_bad_arguments_are_refused(names: list[str], days: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        make_certificate(names, days)


def test_a_fingerprint_may_be_written_with_colons_capitals_or_as_bytes() -> None:
    raw = bytes(range(32))
    colons = ":".join(f"{byte:02X}" for byte in raw)
    for form in (raw, raw.hex(), raw.hex().upper(), colons, colons.encode()):
        assert parse_fingerprint(form) == raw


@pytest.mark.parametrize("pin", ["", "ab", "zz" * 32, b"\xff" * 31, "00" * 33])
def test_what_is_no_sha256_is_refused(pin: str | bytes) -> None:
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        parse_fingerprint(pin)


@pytest.mark.skipif(os.name == "nt", reason="modes of files are POSIX")
def test_the_key_file_is_for_its_owner_only_also_when_it_replaces_an_open_one(tmp_path: Path) -> None:
    certificate, key, _ = make_certificate(["localhost"])
    keyfile = tmp_path / "key.pem"
    keyfile.write_text("old")
    keyfile.chmod(0o644)
    write_certificate(certificate, key, tmp_path / "cert.pem", keyfile)
    assert stat.S_IMODE(keyfile.stat().st_mode) == 0o600
    assert keyfile.read_bytes() == key
    assert (tmp_path / "cert.pem").read_bytes() == certificate
