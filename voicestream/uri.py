"""Addresses of calls: ``voicestream://host[:port]/path``, with IPv6 addresses in brackets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

__all__ = ["DEFAULT_PORT", "CallUri", "parse_uri"]

SCHEME: Final = "voicestream"

DEFAULT_PORT: Final = 4433
"""UDP port of a URI that names none."""

MAX_AUTHORITY: Final = 255
MAX_PATH: Final = 2048


@dataclass(frozen=True, kw_only=True, slots=True)
class CallUri:
    """A parsed address.

    Attributes:
        host: Name or address to resolve, without brackets.
        port: UDP port, 1 to 65535.
        path: Path with its query, always beginning with "/"; what the server chooses a handler by.
    """

    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Host and port as HELLO carries them: the port left out where it is the default, IPv6 in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORT else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{SCHEME}://{self.authority}{self.path}"


def parse_uri(uri: str) -> CallUri:
    """Take a URI apart.

    Args:
        uri: ``voicestream://host[:port][/path][?query]``.

    Raises:
        TypeError: `uri` is not text.
        ValueError: It has another scheme, no host, a user name, a fragment, or a part that is too long for HELLO.
    """
    if not isinstance(uri, str):
        raise TypeError(f"uri must be str, not {type(uri).__name__}")
    # urlsplit drops line ends and tabs without a word; a URI that holds them was glued together wrongly.
    if any(character.isspace() or not character.isprintable() for character in uri):
        raise ValueError(f"uri must not hold spaces or control characters: {uri!r}")
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{uri!r} is not a URI: {error}") from None
    if parts.scheme != SCHEME:
        raise ValueError(f"uri must begin with {SCHEME}://, not {uri!r}")
    if not parts.hostname:
        raise ValueError(f"uri must name a host: {uri!r}")
    if "@" in parts.netloc:
        raise ValueError("uri must not hold a user name; pass token= instead")
    if parts.fragment:
        raise ValueError(f"uri must not hold a fragment: {uri!r}")
    if port == 0:
        raise ValueError(f"port must be 1 to 65535: {uri!r}")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    result = CallUri(host=parts.hostname, port=DEFAULT_PORT if port is None else port, path=path)
    if len(result.authority.encode()) > MAX_AUTHORITY:
        raise ValueError(f"host must have at most {MAX_AUTHORITY} bytes")
    if len(path.encode()) > MAX_PATH:
        raise ValueError(f"path must have at most {MAX_PATH} bytes, not {len(path.encode())}")
    return result
