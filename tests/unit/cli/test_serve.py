"""What ``voicestream serve`` tells callers to type."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from voicestream.cli.entry import build_parser, main
from voicestream.cli.serve import _identity, client_command
from voicestream.quic.certificates import make_certificate_files
from voicestream.uri import parse_uri

SHA256 = "ab" * 32


@pytest.mark.parametrize(
    ("host", "shown"),
    [("::", "localhost"), ("0.0.0.0", "localhost"), ("::1", "::1"), ("192.0.2.7", "192.0.2.7"), ("voice.example", "voice.example")],
)
def test_the_client_line_is_one_that_the_command_line_takes(host: str, shown: str) -> None:
    words = shlex.split(client_command(host, 4434, SHA256))
    assert words[0] == "voicestream"
    options = build_parser().parse_args(words[1:])
    uri = parse_uri(options.url)
    assert (uri.host, uri.port, uri.path) == (shown, 4434, "/")
    assert options.pin == bytes.fromhex(SHA256)


def test_a_certificate_of_ones_own_is_pinned_as_well(tmp_path: Path) -> None:
    certfile, keyfile, pin = make_certificate_files(tmp_path, ["voice.example"])
    with _identity(SimpleNamespace(cert=certfile, key=keyfile)) as identity:
        assert (identity.certfile, identity.keyfile, identity.sha256) == (certfile, keyfile, pin)


def test_a_certificate_that_is_none_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cert.pem").write_text("nothing")
    words = ["serve", "--echo", "--port", "0", "--cert", str(tmp_path / "cert.pem"), "--key"]
    assert main([*words, str(tmp_path / "key.pem")]) == 1
    assert capsys.readouterr().err == f"voicestream: {tmp_path / 'cert.pem'} holds no PEM certificate that can be read\n"
    words[-2] = str(tmp_path / "missing.pem")
    assert main([*words, str(tmp_path / "key.pem")]) == 1
    assert "missing.pem: no such file" in capsys.readouterr().err


def test_a_slip_in_the_path_of_recordings_makes_no_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--record", str(tmp_path / "a" / "b"), "--port", "0"]) == 1
    assert capsys.readouterr().err == f"voicestream: there is no folder {tmp_path / 'a'} to make b in\n"
    assert list(tmp_path.iterdir()) == []


def test_a_store_needs_keys(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["serve", "--echo", "--store", "redis://127.0.0.1:1/0"])
    assert caught.value.code == 2
    assert "--store needs --key-file" in capsys.readouterr().err


def test_traces_need_a_folder_that_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["serve", "--echo", "--trace", str(tmp_path / "a")])
    assert caught.value.code == 2
    assert f"there is no folder {tmp_path / 'a'}" in capsys.readouterr().err
