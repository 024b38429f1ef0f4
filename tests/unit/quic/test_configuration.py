"""TLS and QUIC settings; mistakes are told where they are made."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from voicestream.config import Limits
from voicestream.errors import InsecureWarning
from voicestream.quic.certificates import make_certificate, write_certificate
from voicestream.quic.configuration import ClientTls, ServerTls, client_configuration, server_configuration, windows_for

Certificate = tuple[Path, Path, str]


def test_a_client_checks_certificates_unless_told_otherwise() -> None:
    configuration = client_configuration(ClientTls(server_name="a.example"), Limits(), id_length=4)
    assert configuration.verify_mode is None
    assert configuration.cadata is None
    assert configuration.server_name == "a.example"
    assert configuration.alpn_protocols == ["voicestream/1"]
    assert configuration.session_ticket is None


def test_an_unchecked_certificate_warns_each_time() -> None:
    for _ in range(2):
        with pytest.warns(InsecureWarning, match="certificate of a.example is not checked"):
            configuration = client_configuration(ClientTls(server_name="a.example", insecure=True), Limits(), id_length=4)
        assert configuration.verify_mode == ssl.CERT_NONE


def test_there_is_one_way_of_checking_only(certificate: Certificate) -> None:
    with pytest.raises(ValueError, match="not several"):
        ClientTls(server_name="a", cafile=certificate[0], pin="00" * 32)
    with pytest.raises(ValueError, match="not several"):
        ClientTls(server_name="a", pin="00" * 32, insecure=True)
    with pytest.raises(ValueError, match="SHA-256"):
        ClientTls(server_name="a", pin="00")
    with pytest.raises(ValueError, match="server_name"):
        ClientTls(server_name="")


def test_files_that_cannot_be_used_are_told_before_any_packet(tmp_path: Path, certificate: Certificate) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    with pytest.raises(ValueError, match=r"empty\.pem holds no PEM certificate"):
        client_configuration(ClientTls(server_name="a", cafile=empty), Limits(), id_length=4)
    with pytest.raises(FileNotFoundError):
        client_configuration(ClientTls(server_name="a", cafile=tmp_path / "missing.pem"), Limits(), id_length=4)
    with pytest.raises(ValueError, match=r"empty\.pem holds no PEM certificate"):
        server_configuration(ServerTls(certfile=empty, keyfile=certificate[1]), Limits(), id_length=8)
    with pytest.raises(ValueError, match=r"empty\.pem holds no PEM private key that can be read$"):
        server_configuration(ServerTls(certfile=certificate[0], keyfile=empty), Limits(), id_length=8)


def test_a_key_with_a_password_is_told_from_a_broken_one(tmp_path: Path, certificate: Certificate) -> None:
    key = serialization.load_pem_private_key(certificate[1].read_bytes(), None)
    locked = tmp_path / "locked.pem"
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"right")
    locked.write_bytes(key.private_bytes(*form))
    broken = tmp_path / "broken.pem"
    broken.write_bytes(certificate[1].read_bytes()[:60] + b"-----END PRIVATE KEY-----")
    cases = [
        (locked, None, r"^the private key in .*locked\.pem needs a password$"),
        (locked, b"wrong", r"^.*locked\.pem holds no PEM private key that can be read with this password$"),
        (certificate[1], b"right", "^the private key in .* is not encrypted, and a password was given$"),
        (broken, None, r"^.*broken\.pem holds no PEM private key that can be read$"),
    ]
    for keyfile, password, words in cases:
        with pytest.raises(ValueError, match=words):
            server_configuration(ServerTls(certfile=certificate[0], keyfile=keyfile, password=password), Limits(), id_length=8)
    server_configuration(ServerTls(certfile=certificate[0], keyfile=locked, password=b"right"), Limits(), id_length=8)


def test_a_key_of_another_certificate_is_refused(tmp_path: Path, certificate: Certificate) -> None:
    other, key, _ = make_certificate(["other"])
    write_certificate(other, key, tmp_path / "cert.pem", tmp_path / "key.pem")
    with pytest.raises(ValueError, match="does not belong"):
        server_configuration(ServerTls(certfile=certificate[0], keyfile=tmp_path / "key.pem"), Limits(), id_length=8)


def test_the_chain_follows_the_certificate(tmp_path: Path, certificate: Certificate) -> None:
    other, _, _ = make_certificate(["authority"])
    both = tmp_path / "chain.pem"
    both.write_bytes(certificate[0].read_bytes() + other)
    configuration = server_configuration(ServerTls(certfile=both, keyfile=certificate[1]), Limits(), id_length=8)
    assert len(configuration.certificate_chain) == 1
    assert configuration.session_ticket is None


def test_windows_have_room_for_the_largest_event_and_show_one_too_large() -> None:
    limits = Limits(max_event_size=5000, max_event_streams=3)
    windows = windows_for(limits)
    configuration = client_configuration(ClientTls(server_name="a"), limits, id_length=4)
    assert windows.unidirectional_streams == 3
    assert windows.connection > 5000 + windows.control
    assert 5000 + 64 < configuration.max_stream_data < windows.connection
    assert configuration.max_data == windows.connection
