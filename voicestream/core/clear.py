"""Clear (barge-in) at both ends of a track (specification section 8.1): numbers, crossing, and audio that overtakes it.

A clear voids the audio in [from, to) and raises the track's clear number by one. Audio carries the number modulo 4, so that audio and
clear may overtake each other. Either end may begin one; when both do at the same time (the same number), the higher `to` wins.
"""

from __future__ import annotations

from typing import Final

from voicestream.codepoints import ErrorCode
from voicestream.errors import ProtocolError
from voicestream.wire.message_values import Clear

__all__ = ["MAX_LEAD_UNITS", "MAX_STEP", "ReceiverClears", "SenderClears"]

MAX_LEAD_UNITS: Final = 4000
"""How far beyond the audio sent so far a receiver's clear may reach, in pts units (10 s)."""

MAX_STEP: Final = 1024
"""By how much one message may raise a clear number."""

MAX_CONFIRMED: Final = 64
"""Clears that one confirmation settles, at most; older ones have been forgotten by everybody."""

MAX_UNANSWERED: Final = 2
"""Clears that a receiver may have under way: two bits could not tell more apart."""


class SenderClears:
    """Clears of one track at the end that sends it.

    Attributes:
        number: Clears so far.
        to_pts: Where the newest one ends.
        confirmed: Highest number that the far end has done.
    """

    __slots__ = ("confirmed", "number", "to_pts", "track")

    def __init__(self, track: int) -> None:
        self.track = track
        self.number = 0
        self.to_pts = 0
        self.confirmed = 0

    def begin(self, from_pts: int, to_pts: int) -> Clear:
        """This end voids what it sent in [from_pts, to_pts). VS-8.1-1"""
        self.number += 1
        self.to_pts = to_pts
        return Clear(track=self.track, number=self.number, from_pts=min(from_pts, to_pts), to_pts=to_pts)

    def requested(self, clear: Clear, next_pts: int) -> Clear | None:
        """The receiver asks for a clear.

        Args:
            clear: Its message.
            next_pts: Pts of the next frame of this end.

        Returns:
            The clear to answer with when this one is new or reaches further than ours of the same number; its `to_pts` is where the
            next frame starts. None when there is nothing to do.

        Raises:
            ProtocolError: PARAMETER_ERROR, for a number or a pts that no receiver could mean (VS-8.1-10).
        """
        if clear.number < self.number:
            return None  # VS-8.1-5: a newer clear of ours is on its way there and voids all that this one could mean
        if clear.number > self.number + MAX_STEP or clear.to_pts > next_pts + MAX_LEAD_UNITS:
            raise ProtocolError(ErrorCode.PARAMETER_ERROR, f"clear {clear.number} to pts {clear.to_pts} is beyond what was sent")
        if clear.number == self.number and clear.to_pts <= self.to_pts:
            return None
        self.number = clear.number
        self.to_pts = max(clear.to_pts, next_pts)  # VS-8.1-4
        return Clear(track=self.track, number=self.number, from_pts=clear.from_pts, to_pts=self.to_pts)

    def done(self, number: int) -> range:
        """The far end has done this clear, and with it all before; the numbers of which that is news."""
        if not self.confirmed < number <= self.number:
            return range(0)
        news = range(max(self.confirmed + 1, number - MAX_CONFIRMED + 1), number + 1)
        self.confirmed = number
        return news


class ReceiverClears:
    """Clears of one track at the end that receives it.

    Attributes:
        number: Highest number known here.
        to_pts: Where that clear ends: audio before it is void.
    """

    __slots__ = ("_known", "number", "to_pts", "track")

    def __init__(self, track: int) -> None:
        self.track = track
        self.number = 0
        self.to_pts = 0
        self._known = 0  # highest number that the sender is known to have reached

    def request(self, from_pts: int, to_pts: int) -> Clear:
        """This end asks the sender to stop talking. With two requests unanswered the newer of them is extended instead (VS-8.1-3)."""
        if self.number - self._known < MAX_UNANSWERED:
            self.number += 1
        self.to_pts = max(self.to_pts, to_pts)
        return Clear(track=self.track, number=self.number, from_receiver=True, from_pts=min(from_pts, self.to_pts), to_pts=self.to_pts)

    def received(self, clear: Clear) -> bool:
        """The sender voids audio, by itself or in answer; whether that changes anything here.

        Raises:
            ProtocolError: PARAMETER_ERROR, for a number that leads too far.
        """
        if clear.number > self.number + MAX_STEP:
            raise ProtocolError(ErrorCode.PARAMETER_ERROR, f"clear number {clear.number} after {self.number}")
        self._known = max(self._known, clear.number)
        if clear.number < self.number or (clear.number == self.number and clear.to_pts <= self.to_pts):
            return False
        self.number = clear.number
        self.to_pts = max(self.to_pts, clear.to_pts)
        return True

    @property
    def known(self) -> tuple[int, int]:
        """Highest number that the sender is known to have reached, and where the newest clear ends."""
        return self._known, self.to_pts

    def restore(self, number: int, to_pts: int) -> None:
        """Another server had come this far. What it had asked for and not been answered is not asked for again."""
        self.number = self._known = number
        self.to_pts = to_pts

    @property
    def answered(self) -> bool:
        """Whether the sender is known to have done every clear that is known here."""
        return self._known >= self.number

    def number_of(self, bits: int, pts: int, received_end: int) -> int:
        """The full clear number of audio: from one below the sender's to two above it, and never newer than its pts allows. VS-8.1-8

        Args:
            bits: The two bits that it carries.
            pts: Its full pts.
            received_end: End of the latest audio received before it. What is newer than a clear comes after all that is older.
        """
        oldest = max(0, self._known - 1)
        number = oldest + ((bits - oldest) & 3)
        if number > self.number and pts < max(received_end, self.to_pts):
            number -= 4  # so late that two clears have passed it
        return max(0, number)

    def is_stale(self, number: int, pts: int) -> bool:
        """Whether a clear has voided the audio with this full number and pts. VS-8.1-6"""
        return number < self.number or (number == self.number and pts < self.to_pts)

    def overtaken(self, number: int, received_end: int) -> bool:
        """Audio of this full number has come. True when it overtook its clear, which is then done here without it (VS-8.1-7).

        Args:
            number: From `number_of`.
            received_end: End of the latest audio received before it: the clear, still to come, ends there or later.
        """
        self._known = max(self._known, number)
        if number <= self.number:
            return False
        self.number = number
        self.to_pts = max(self.to_pts, received_end)
        return True
