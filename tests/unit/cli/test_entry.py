"""The command line as a whole: statuses, one sentence on stderr, no traceback."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from voicestream import cli
from voicestream.cli import cert
from voicestream.cli.entry import build_parser, main
from voicestream.cli.version import version


def test_the_version_is_printed_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["version"]) == 0
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"voicestream {version()}\n" * 2


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["dial"],
        ["call", "voicestream://host/"],
        ["call", "voicestream://host/", "--in", "a.wav", "--mic"],
        ["call", "voicestream://host/", "--in", "a.wav", "--pin", "12"],
        ["call", "voicestream://host/", "--in", "a.wav", "--insecure", "--cafile", "x"],
        ["call", "voicestream://host/", "--in", "a.wav", "--lookahead-ms", "5"],
        ["serve"],
        ["serve", "--echo", "--play", "a.wav"],
        ["serve", "--echo", "--cert", "cert.pem"],
        ["serve", "--echo", "--port", "65536"],
        ["demo", "--seconds", "0"],
        ["cert", "--days", "many"],
    ],
)
def test_wrong_usage_is_status_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "usage: voicestream" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["call", "serve", "demo"])
@pytest.mark.parametrize(("content", "text"), [(b"", "is empty"), (b"ID3 not a wav at all", "is not a WAV file"), (None, "cannot be read")])
def test_a_file_that_is_no_speech_is_one_sentence(
    command: str, content: bytes | None, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "speech.wav"
    if content is not None:
        path.write_bytes(content)
    words = {
        "call": ["call", "voicestream://127.0.0.1:9/", "--in", str(path)],
        "serve": ["serve", "--play", str(path)],
        "demo": ["demo", "--wav", str(path), "--out", str(tmp_path / "out")],
    }
    assert main(words[command]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"voicestream: {path} {text}")
    assert error.count("\n") == 1


@pytest.mark.parametrize("url", ["https://host/", "host", "voicestream://", "voicestream://user@host/", "voicestream://host:0/"])
def test_a_bad_address_is_one_sentence(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", url, "--in", "missing.wav"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("voicestream: ")
    assert "missing.wav" not in error
    assert error.count("\n") == 1


def test_an_interrupt_is_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_names: object, **_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cert, "make_certificate", interrupted)
    assert cli.main(["cert", "--out", "nowhere-at-all"]) == 130


def test_so_is_one_while_modules_are_still_being_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "voicestream.cli.entry", Interrupted())
    assert cli.main(["version"]) == 130


def test_a_bug_is_not_dressed_up_as_the_users_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_names: object, **_more: object) -> None:
        raise KeyError("bug")

    monkeypatch.setattr(cert, "make_certificate", broken)
    with pytest.raises(KeyError):
        main(["cert", "--out", "nowhere-at-all"])


def test_every_command_explains_itself() -> None:
    text = build_parser().format_help()
    for command in ("serve", "call", "demo", "cert", "version"):
        assert command in text


def test_the_dashboard_and_the_alerts_can_be_had(capsys) -> None:
    assert main(["dashboard"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "VoiceStream"
    assert main(["dashboard", "--alerts"]) == 0
    assert "VoiceStreamTurnLatencyP95" in capsys.readouterr().out
    assert main(["dashboard", "--path"]) == 0
    assert capsys.readouterr().out.strip().endswith("dashboard.json")
