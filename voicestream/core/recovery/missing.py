"""Which media of a track is missing, still worth asking for, and when to ask (specification section 9.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from voicestream.config import UNITS_PER_SECOND

__all__ = ["MAX_PIECES", "REORDER_PATIENCE", "MissingTracker"]

MAX_PIECES: Final = 32
"""Pieces watched at most, which is what one MISSING names at most; the oldest goes first."""

REORDER_PATIENCE: Final = 0.002
"""Seconds before the first question: datagrams that merely overtook each other come by themselves."""

ECHO_AFTER: Final = 0.008
"""Seconds after which a question is asked once more, lest it be lost: the far end answers within a round trip only once."""

LATER: Final = 0.02
"""Seconds after which a second echo leaves, unless it could ride on another question before: questions may meet a burst, too. A third one
leaves as much later."""

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
    asked_at: float | None = None
    echoes: int = 0  # of the latest question
    said_at: float = -math.inf  # it, or its latest echo
    closed: bool = False  # asked for, and too late to ask again


class MissingTracker:
    """Watches the holes of one track.

    Attributes:
        asked: Pieces asked for, repeats and echoes included.
        echoes: How many times a question is asked once more at once: 1, 2 where losses are usual, 3 in bursts.
        given_up: Pieces that could not have come in time any more.
    """

    __slots__ = ("_pieces", "asked", "echoes", "given_up")

    def __init__(self) -> None:
        self._pieces: list[_Piece] = []
        self.asked = 0
        self.echoes = 1
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
            late = _late_units(piece, now, rtt)
            if late >= piece.units:
                self.given_up += piece.asked_at is None
                piece.closed = True  # the answer to an earlier question may still be under way
            else:
                if piece.asked_at is None or piece.echoes >= self.echoes:
                    piece.asked_at, piece.echoes = now, 0
                else:
                    piece.echoes += 1
                piece.said_at = now
                asking.append((piece.first + late, piece.units - late))
        if asking:
            asking += self._riding(now, rtt)
        self._pieces = [piece for piece in self._pieces if not piece.closed or now < piece.deadline + piece.units / UNITS_PER_SECOND]
        self.asked += len(asking)
        return tuple(asking)

    def _riding(self, now: float, rtt: float) -> list[tuple[int, int]]:
        """What was asked for a moment ago and may be asked for once more now that something else is: it costs three bytes."""
        found: list[tuple[int, int]] = []
        for piece in self._pieces:
            echoed = not piece.closed and 0 < piece.echoes < self.echoes and piece.said_at < now
            late = _late_units(piece, now, rtt)
            if echoed and piece.asked_at is not None and now - piece.asked_at > ECHO_AFTER + REORDER_PATIENCE and late < piece.units:
                piece.echoes, piece.said_at = piece.echoes + 1, now
                found.append((piece.first + late, piece.units - late))
        return found

    def next_timer(self, rtt: float) -> float | None:
        """When something will be due, or None."""
        return min((self._ask_at(piece, rtt) for piece in self._pieces if not piece.closed), default=None)

    def _ask_at(self, piece: _Piece, rtt: float) -> float:
        if piece.asked_at is None:
            return piece.since + REORDER_PATIENCE
        if piece.echoes >= self.echoes:
            return piece.asked_at + max(rtt, ECHO_AFTER) + ANSWER_SLACK
        return piece.asked_at + (LATER * piece.echoes or ECHO_AFTER)


def _late_units(piece: _Piece, now: float, rtt: float) -> int:
    """Units at its beginning whose answer would be late. Each is played after the one before it: the end of a long piece may be in time."""
    return max(0, math.ceil((now + rtt + SAFETY - piece.deadline) * UNITS_PER_SECOND - 1e-6))


def _rest(piece: _Piece, first: int) -> _Piece:
    """What is left of a piece from a pts on, which is played that much later."""
    later = first - piece.first
    return replace(piece, first=first, units=piece.units - later, deadline=piece.deadline + later / UNITS_PER_SECOND)
