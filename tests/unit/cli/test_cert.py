"""``voicestream cert``."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from voicestream.cli.entry import main


def test_it_writes_a_certificate_and_a_private_key_and_prints_the_fingerprint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cert", "--out", str(tmp_path / "new"), "--name", "voice.example", "192.0.2.7", "--days", "3"]) == 0
    certificate = x509.load_pem_x509_certificate((tmp_path / "new/cert.pem").read_bytes())
    der = certificate.public_bytes(serialization.Encoding.DER)
    assert capsys.readouterr().out == hashlib.sha256(der).hexdigest() + "\n"
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["voice.example"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["192.0.2.7"]
    assert stat.S_IMODE((tmp_path / "new/key.pem").stat().st_mode) == 0o600


def test_it_never_overwrites_a_key_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key.pem").write_text("precious")
    assert main(["cert", "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"voicestream: {tmp_path / 'key.pem'} exists; --force overwrites it\n"
    assert (tmp_path / "key.pem").read_text() == "precious"
    assert not (tmp_path / "cert.pem").exists()
    assert main(["cert", "--out", str(tmp_path), "--force"]) == 0
    assert "PRIVATE KEY" in (tmp_path / "key.pem").read_text()


def test_a_name_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cert", "--out", str(tmp_path), "--name", ""]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_slip_in_a_path_makes_no_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cert", "--out", str(tmp_path / "a" / "b")]) == 1
    assert capsys.readouterr().err == f"voicestream: there is no folder {tmp_path / 'a'} to make b in\n"
    (tmp_path / "file").touch()
    assert main(["cert", "--out", str(tmp_path / "file")]) == 1
    assert "file" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
