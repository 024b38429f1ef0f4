"""Connection ids of this side. A generator is any callable without arguments that gives ids of one fixed length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["CLIENT_ID_LENGTH", "MAX_ID_LENGTH", "SERVER_ID_LENGTH", "ConnectionIds", "random_ids"]

MAX_ID_LENGTH: Final = 20
"""RFC 9000 section 17.2."""

SERVER_ID_LENGTH: Final = 8

CLIENT_ID_LENGTH: Final = 4
"""A client has a socket of its own and routes nothing, so its ids may be short: every packet toward it carries one."""


@dataclass(frozen=True, slots=True)
class ConnectionIds:
    """Where new connection ids come from.

    Attributes:
        length: Bytes of every id, 1 to 20. Packets with short headers are parsed with it.
        generate: Gives an id that has not been given before (or is unlikely to have been).
    """

    length: int
    generate: Callable[[], bytes]

    def __post_init__(self) -> None:
        if not 1 <= self.length <= MAX_ID_LENGTH:
            raise ValueError(f"length of connection ids must be 1 to {MAX_ID_LENGTH}, not {self.length}")

    def next(self) -> bytes:
        """A new id.

        Raises:
            ValueError: The generator gave an id of another length.
        """
        cid = self.generate()
        if len(cid) != self.length:
            raise ValueError(f"the connection id generator promised {self.length} bytes and gave {len(cid)}")
        return cid


def random_ids(entropy: Callable[[int], bytes], length: int = SERVER_ID_LENGTH) -> ConnectionIds:
    """Ids without meaning, `length` bytes from `entropy`."""
    return ConnectionIds(length, lambda: entropy(length))
