"""Addresses of calls."""

from __future__ import annotations

import pytest

from voicestream.uri import DEFAULT_PORT, CallUri, parse_uri


@pytest.mark.parametrize(
    ("text", "host", "port", "path", "authority"),
    [
        ("voicestream://example.org", "example.org", DEFAULT_PORT, "/", "example.org"),
        ("voicestream://example.org/", "example.org", DEFAULT_PORT, "/", "example.org"),
        ("voicestream://Example.org:5000/agent", "example.org", 5000, "/agent", "example.org:5000"),
        ("voicestream://example.org:4433/a/b?lang=de", "example.org", DEFAULT_PORT, "/a/b?lang=de", "example.org"),
        ("voicestream://[::1]/echo", "::1", DEFAULT_PORT, "/echo", "[::1]"),
        ("voicestream://[2001:db8::1]:9/", "2001:db8::1", 9, "/", "[2001:db8::1]:9"),
        ("voicestream://127.0.0.1:1?x=1", "127.0.0.1", 1, "/?x=1", "127.0.0.1:1"),
    ],
)
def test_a_uri_is_taken_apart(text: str, host: str, port: int, path: str, authority: str) -> None:
    uri = parse_uri(text)
    assert uri == CallUri(host=host, port=port, path=path)
    assert uri.authority == authority
    assert parse_uri(str(uri)) == uri


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("https://example.org/", "must begin with voicestream://"),
        ("example.org:4433", "must begin with voicestream://"),
        ("voicestream:///path", "must name a host"),
        ("voicestream://user:secret@example.org/", "user name"),
        ("voicestream://example.org/#part", "fragment"),
        ("voicestream://example.org:0/", "port"),
        ("voicestream://example.org:70000/", "is not a URI"),
        ("voicestream://example.org:http/", "is not a URI"),
        ("voicestream://[::1/", "is not a URI"),
        ("voicestream://example.org/a b", "spaces"),
        ("voicestream://example.org/a\nb", "spaces"),
        ("voicestream://" + "a" * 300 + "/", "at most 255 bytes"),
        ("voicestream://example.org/" + "a" * 2048, "at most 2048 bytes"),
    ],
)
def test_a_bad_uri_is_refused_with_the_reason(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_uri(text)


def test_the_secret_of_a_refused_uri_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="token=") as caught:
        parse_uri("voicestream://user:secret@example.org/")
    assert "secret" not in str(caught.value)


def test_a_uri_must_be_text() -> None:
    with pytest.raises(TypeError, match="str"):
        parse_uri(b"voicestream://example.org/")  # type: ignore[arg-type]
