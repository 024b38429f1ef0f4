"""One budget for all redundancy, in bytes on the wire, with each tool's part (specification section 9.6)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["ANSWERS", "MOST", "RedundancyBudget", "Tool", "answering"]

MAX_CREDIT: Final = 1500.0
"""Bytes that may be saved up."""

TIGHT_CREDIT: Final = 200.0
"""Bytes that are left of it when the rate has fallen."""

OVERDRAFT: Final = 900.0
"""Bytes by which retransmissions may run ahead of the measured loss: a burst is to be answered before it is measured."""

OVERDRAFT_TIME: Final = 0.2
MOST_OVERDRAFT: Final = 3000.0
"""The same in seconds of what the path carries, and at most: all frames of a long burst at a good rate, each with its echoes."""

ANSWERS: Final = 2.0
"""Wire bytes that answering a lost one takes: the answer in a packet of its own, and its echo."""

MOST: Final = 0.3
"""Part of the wire bytes that all redundancy together takes at most, answers to losses included, unless the application asks for more."""

MOST_USED: Final = 0.96
"""Part of that which is used, so that it holds for a short call as well, which begins with something saved up."""

MOST_SAVED: Final = 6000.0
SAVED_FIRST: Final = 4500.0
FOR_ANSWERS: Final = 2000.0
FOR_ECHOES: Final = 3500.0
"""Bytes that may be saved up of it, and are in the beginning; the last of them are for answers alone, and some more for their echoes:
where little is left, what is made in advance is worth the least."""

_LOSS_GAIN: Final = 1 / 64


def answering(echoes: int) -> float:
    """Wire bytes that answering a lost one takes when the answer rides so many times on later audio."""
    return ANSWERS + echoes - 1


class Tool(enum.Enum):
    """What redundancy is spent on."""

    REPAIR = "repair"
    RETRANSMISSION = "retransmission"
    COPY = "copy"
    INBAND = "inband"
    PAIR = "pair"


class RedundancyBudget:
    """Credit grows with what is sent: by `share` of the wire for any tool, and by what answering
    the measured loss takes for retransmissions alone.

    Args:
        share: Part of the wire bytes that redundancy may take, 0 to 0.5; with 0 there is none, retransmissions included.
        most: Part that it may never exceed for long.

    Attributes:
        share: The same; may be changed at any time.
        answers: Wire bytes that answering a lost one takes, see `answering`; may be changed at any time.
        loss: Smoothed share of datagrams lost.
        wire_bytes: Bytes on the wire so far, redundancy included.
    """

    __slots__ = ("_answers", "_credit", "_most", "_overdraft", "_spent", "_whole", "answers", "loss", "share", "wire_bytes")

    def __init__(self, share: float, most: float = MOST) -> None:
        self.share = share
        self.answers = ANSWERS
        self.loss = 0.0
        self.wire_bytes = 0
        self._credit = 0.0
        self._most = max(share, MOST_USED * most)
        self._whole = SAVED_FIRST
        self._answers = 0.0
        self._overdraft = OVERDRAFT
        self._spent = dict.fromkeys(Tool, 0)

    @property
    def spent(self) -> Mapping[Tool, int]:
        """Bytes by tool."""
        return MappingProxyType(self._spent)

    def path_carries(self, rate_bps: float) -> None:
        """So many bits per second on the wire: what runs ahead of the measured loss is to fill no queue for long."""
        self._overdraft = min(MOST_OVERDRAFT, max(OVERDRAFT, OVERDRAFT_TIME * rate_bps / 8))

    def outcome(self, acked: int, lost: int) -> None:
        """A report told of so many datagrams."""
        for value, count in ((0.0, acked), (1.0, lost)):
            for _ in range(count):
                self.loss += _LOSS_GAIN * (value - self.loss)

    def carried(self, wire_bytes: int) -> None:
        """A datagram leaves, with all that is in it."""
        self.wire_bytes += wire_bytes
        self._whole = min(MOST_SAVED, self._whole + self._most * wire_bytes)
        self._credit = min(MAX_CREDIT, self._credit + self.share * wire_bytes)
        self._answers = min(MAX_CREDIT, self._answers + self.answers * self.loss * wire_bytes)

    def tighten(self) -> None:
        """The path carries less: what was saved up before is worth little now."""
        self._credit = min(self._credit, TIGHT_CREDIT)
        self._answers = min(self._answers, TIGHT_CREDIT - self._overdraft)

    @property
    def is_scarce(self) -> bool:
        """Whether so little is left that answers should ride on audio, which saves their headers."""
        return self._whole < FOR_ECHOES

    def allows(self, tool: Tool, size: int, *, again: bool = False) -> bool:
        """Whether `size` bytes may be spent on `tool` now; `again`: on an answer that was given a moment ago."""
        kept = FOR_ECHOES if tool is not Tool.RETRANSMISSION else FOR_ANSWERS if again else 0.0
        if not self.share or self._whole - kept < size:
            return False
        return self._credit >= size or (tool is Tool.RETRANSMISSION and self._answers + self._overdraft >= size)

    def spend(self, tool: Tool, size: int) -> None:
        """So many bytes go to `tool`, with the headers that they cause."""
        self._spent[tool] += size
        self._whole -= size
        if tool is Tool.RETRANSMISSION and (self._answers >= size or self._credit < size):
            self._answers -= size
        else:
            self._credit -= size
