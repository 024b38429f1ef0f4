"""What ``voicestream serve`` tells callers to type."""

from __future__ import annotations

import shlex

import pytest

from voicestream.cli.entry import build_parser
from voicestream.cli.serve import client_command
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


def test_a_certificate_of_ones_own_is_not_pinned() -> None:
    assert "--pin" not in client_command("voice.example", 4433, "")
