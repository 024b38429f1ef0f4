"""What a server takes of a client whose handshake is not complete: one request to resume (0-RTT, specification section 11.5).

A recorded first packet can be sent again by anybody. So all else waits for the end of the handshake, which a recording never reaches,
and the request itself is looked at only where a ticket was used up for it; see `voicestream.quic.tickets`.
"""

from __future__ import annotations

from voicestream.codepoints import MessageType
from voicestream.wire.buffer import peek_varint

__all__ = ["EarlyGate"]


class EarlyGate:
    """Holds the control stream of such a client; flow control bounds how much that is.

    Attributes:
        is_used: A request has been let through.
    """

    __slots__ = ("_fin", "_held", "is_used")

    def __init__(self) -> None:
        self._held = bytearray()
        self._fin = False
        self.is_used = False

    def take(self, data: bytes, fin: bool) -> bytes:
        """The next bytes of the stream; returns the RESUME with which it begins, as soon as that is whole. VS-11.5-4"""
        self._held += data
        self._fin |= fin
        if self.is_used:
            return b""
        kind = peek_varint(self._held, 0)
        size = None if kind is None or kind[0] != MessageType.RESUME else peek_varint(self._held, kind[1])
        if size is None or size[1] + size[0] > len(self._held):
            return b""
        end = size[1] + size[0]
        request = bytes(self._held[:end])
        del self._held[:end]
        self.is_used = True
        return request

    def rest(self) -> tuple[bytes, bool]:
        """What has waited for the end of the handshake, and whether nothing follows it."""
        rest, self._held = bytes(self._held), bytearray()
        return rest, self._fin
