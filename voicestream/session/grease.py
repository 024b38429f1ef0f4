"""Reserved values sent now and then, so that the far end's skipping of unknown ones stays alive (specification section 12.1, VS-12.1-2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from voicestream.codepoints import GREASE_BASE, GREASE_STEP
from voicestream.wire.frame_values import UnknownFrame
from voicestream.wire.messages import UnknownMessage

__all__ = ["Grease"]

_FRAME_TYPES: Final = (0x3D, 0x5C, 0x7B)
_MEAN_GAP: Final = 256
"""Datagrams between two that carry grease, in the mean."""


class Grease:
    """Decides what is greased and with what. Every choice comes from the session's entropy.

    Args:
        entropy: Gives so many random bytes.
        enabled: False never greases anything.
    """

    __slots__ = ("_countdown", "_entropy")

    def __init__(self, entropy: Callable[[int], bytes], *, enabled: bool) -> None:
        self._entropy = entropy
        self._countdown = self._gap() if enabled else -1

    def frame(self) -> UnknownFrame | None:
        """A frame for the datagram that leaves now, seldom."""
        if self._countdown < 0:
            return None
        if self._countdown:
            self._countdown -= 1
            return None
        self._countdown = self._gap()
        choice, size, *payload = self._entropy(5)
        return UnknownFrame(type=_FRAME_TYPES[choice % len(_FRAME_TYPES)], payload=bytes(payload[: size % 4]))

    def message(self) -> UnknownMessage | None:
        """A control message to follow the handshake, or None."""
        if self._countdown < 0:
            return None
        choice, size, *payload = self._entropy(10)
        return UnknownMessage(type=_reserved(choice), payload=bytes(payload[: size % 9]))

    def parameters(self) -> tuple[tuple[int, bytes], ...]:
        """Parameters to stand beside the real ones of the handshake."""
        if self._countdown < 0:
            return ()
        choice, size, *value = self._entropy(6)
        return ((_reserved(choice), bytes(value[: size % 5])),)

    def _gap(self) -> int:
        return int.from_bytes(self._entropy(2), "big") % (2 * _MEAN_GAP)


def _reserved(choice: int) -> int:
    """One of the reserved numbers, with one or two bytes on the wire."""
    return GREASE_BASE + GREASE_STEP * choice
