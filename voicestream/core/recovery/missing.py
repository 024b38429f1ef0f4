"""Which media of a track is missing, still worth asking for, and when to ask (specification section 9.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from voicestream.config import UNITS_PER_SECOND

__all__ = ["MAX_PIECES", "MissingTracker"]

MAX_PIECES: Final = 32
"""Pieces watched at most, which is what one MISSING names at most; the oldest goes first."""

REORDER_PATIENCE: Final = 0.002
"""Seconds before the first question: datagrams that merely overtook each other come by themselves."""

ECHO_AFTER: Final = 0.008
"""Seconds after which a question is asked once more, lest it be lost: the far end answers within a round trip only once."""

ANSWER_SLACK: Final = 0.02
"""Seconds beyond the round trip before the next question: the answer may have waited for a datagram to ride on."""

SAFETY: Final = 0.005
"""Seconds before its playout time at which an answer must have come to be of use."""


@dataclass(slots=True)
class _Piece:
    first: int
    units: int
    since: float
    deadline: float
    questions: int = 0  # every second one is an echo
    asked_at: float = 0.0  # the latest one that is none
    closed: bool = False  # asked for, and too late to ask again


class MissingTracker:
    """Watches the holes of one track.

    Attributes:
        asked: Pieces asked for, repeats and echoes included.
        given_up: Pieces that could not have come in time any more.
    """

    __slots__ = ("_pieces", "asked", "given_up")

    def __init__(self) -> None:
        self._pieces: list[_Piece] = []
        self.asked = 0
        self.given_up = 0

    def __len__(self) -> int:
        return len(self._pieces)

    def hole(self, first: int, units: int, now: float, deadline: float) -> None:
        """Media should have come and has not.

        Args:
            first: Full pts at which it begins.
            units: Its length.
            now: Monotonic seconds.
            deadline: When its first unit will be played.
        """
        self._pieces.append(_Piece(first, units, now, deadline))
        if len(self._pieces) > MAX_PIECES:
            self._pieces.pop(0)
            self.given_up += 1

    def missed_still(self, first: int, units: int, now: float, deadline: float) -> None:
        """What has been missing for a while is worth asking for anew; see `hole`."""
        self.arrived(first, units)
        self.hole(first, units, now, deadline)

    def arrived(self, pts: int, units: int) -> None:
        """Media has come, in whatever way."""
        end = pts + units
        if not self._pieces or not any(piece.first < end and pts < piece.first + piece.units for piece in self._pieces):
            return
        kept: list[_Piece] = []
        for piece in self._pieces:
            piece_end = piece.first + piece.units
            if piece.first >= end or pts >= piece_end:
                kept.append(piece)
                continue
            if piece.first < pts:
                kept.append(replace(piece, units=pts - piece.first))
            if end < piece_end:
                kept.append(_rest(piece, end))
        self._pieces = kept[-MAX_PIECES:]

    def clear(self, before_pts: int) -> None:
        """What lies before a pts is void; the rest of a piece that reaches beyond it is missed as before."""
        self._pieces = [
            piece if piece.first >= before_pts else _rest(piece, before_pts)
            for piece in self._pieces
            if piece.first + piece.units > before_pts
        ]

    def due(self, now: float, rtt: float) -> tuple[tuple[int, int], ...]:
        """(first pts, units) of what to ask for now. What cannot come in time any more is given up."""
        asking: list[tuple[int, int]] = []
        for piece in self._pieces:
            if piece.closed or now < self._ask_at(piece, rtt):
                continue
            # Each unit is played after the one before it: the end of a long piece may be in time when its beginning is not.
            late = max(0, math.ceil((now + rtt + SAFETY - piece.deadline) * UNITS_PER_SECOND - 1e-6))
            if late >= piece.units:
                self.given_up += not piece.questions
                piece.closed = True  # the answer to an earlier question may still be under way
            else:
                piece.questions += 1
                if piece.questions % 2:
                    piece.asked_at = now
                asking.append((piece.first + late, piece.units - late))
        self._pieces = [piece for piece in self._pieces if not piece.closed or now < piece.deadline + piece.units / UNITS_PER_SECOND]
        self.asked += len(asking)
        return tuple(asking)

    def next_timer(self, rtt: float) -> float | None:
        """When something will be due, or None."""
        return min((self._ask_at(piece, rtt) for piece in self._pieces if not piece.closed), default=None)

    @staticmethod
    def _ask_at(piece: _Piece, rtt: float) -> float:
        if not piece.questions:
            return piece.since + REORDER_PATIENCE
        return piece.asked_at + (ECHO_AFTER if piece.questions % 2 else max(rtt, ECHO_AFTER) + ANSWER_SLACK)


def _rest(piece: _Piece, first: int) -> _Piece:
    """What is left of a piece from a pts on, which is played that much later."""
    later = first - piece.first
    return replace(piece, first=first, units=piece.units - later, deadline=piece.deadline + later / UNITS_PER_SECOND)
