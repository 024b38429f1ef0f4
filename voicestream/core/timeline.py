"""The pts of a track that this end sends (specification section 6.1): never reused, never going back."""

from __future__ import annotations

from typing import Final

from voicestream.errors import StateError

__all__ = ["ANCHOR_AFTER", "ANCHOR_AFTER_UNITS", "MAX_PTS", "Anchor", "Anchors", "Timeline"]

MAX_PTS: Final = 1 << 60  # VS-6.1-3
"""Bound of a pts on both sides, in units: 90 million years, and far from the end of a 62-bit integer."""

ANCHOR_AFTER: Final = 30.0
"""Seconds without audio after which the full pts is sent."""

ANCHOR_AFTER_UNITS: Final = 12000
"""The same in pts units: a jump of the media time calls for the full pts as well."""

_ANCHOR_REACH: Final = 16384
"""An anchor serves frames up to this many units later; 16 bits name no more than 32767."""


class Timeline:
    """Counts the media time of one track, never back and never twice (VS-6.1-1, VS-6.1-2).

    Attributes:
        next_pts: Pts of the next frame.
        finished: No frame follows.
    """

    __slots__ = ("_start_due", "finished", "next_pts")

    def __init__(self) -> None:
        self.next_pts = 0
        self.finished = False
        self._start_due = True

    def place(self, units: int, pts: int | None = None) -> tuple[int, bool]:
        """Give the next frame its place.

        Args:
            units: Length of the frame, at least 1.
            pts: Where the caller wants it, at least `next_pts`; None for right there.

        Returns:
            Its pts, and whether it has to start a talkspurt: the first one of all, and the one after a clear (VS-6.5-2).

        Raises:
            StateError: The track is finished.
            ValueError: `pts` was passed already or is absurd.
        """
        if self.finished:
            raise StateError("the track is finished: no audio may follow")
        place = self.next_pts if pts is None else pts
        if not self.next_pts <= place < MAX_PTS:
            raise ValueError(f"pts must be at least {self.next_pts}, for a pts is never reused; not {place}")
        self.next_pts = place + units
        start, self._start_due = self._start_due, False
        return place, start

    def skip(self, units: int) -> None:
        """Let media time pass without a frame (VS-6.1-4).

        Raises:
            StateError: The track is finished.
            ValueError: `units` is negative or absurd.
        """
        if self.finished:
            raise StateError("the track is finished")
        if not 0 <= units < MAX_PTS - self.next_pts:
            raise ValueError(f"units must not be negative, nor lead beyond the largest pts, not {units}")
        self.next_pts += units

    def clear(self, to_pts: int = 0) -> int:
        """What was sent is void: the next frame starts a talkspurt, at `to_pts` at least. Returns its pts."""
        self.next_pts = max(self.next_pts, to_pts)
        self._start_due = True
        return self.next_pts


class Anchor:
    """A full pts that accompanies audio until the far end is known to have it (VS-4.8-3).

    Attributes:
        pts: Full pts.
        ahead: The talkspurt from here on is sent faster than real time.
    """

    __slots__ = ("ahead", "pts")

    def __init__(self, pts: int, ahead: bool) -> None:
        self.pts = pts
        self.ahead = ahead


class Anchors:
    """Decides which audio of a track needs an anchor beside it (VS-4.8-2, VS-6.2-3).

    One is needed after a long silence or a jump of the pts, at the start of each talkspurt that is sent ahead, and when the track
    goes back to live. It accompanies every frame until one that carried it is reported.
    """

    __slots__ = ("_ahead", "_current", "_last_at", "_last_pts", "_version")

    def __init__(self) -> None:
        self._current: Anchor | None = None
        self._version = 0
        self._ahead = False
        self._last_at: float | None = None
        self._last_pts = 0

    def accompany(self, pts: int, now: float, *, ahead: bool, talkspurt_start: bool) -> tuple[Anchor, int] | None:
        """Audio with this pts is about to leave: what goes with it?

        Returns:
            The anchor and the version to give to `confirm` when a datagram with it is reported; None when there is no need.
        """
        silent = self._last_at is not None and now - self._last_at >= ANCHOR_AFTER
        if silent or abs(pts - self._last_pts) >= ANCHOR_AFTER_UNITS or ahead != self._ahead or (ahead and talkspurt_start):
            self._set(Anchor(pts, ahead))
        elif self._current is not None and pts - self._current.pts > _ANCHOR_REACH:
            self._set(Anchor(pts, self._current.ahead))
        self._ahead = ahead
        self._last_at = now
        self._last_pts = pts
        return None if self._current is None else (self._current, self._version)

    @property
    def current(self) -> tuple[Anchor, int] | None:
        """The anchor that the far end is not known to have, and its version."""
        return None if self._current is None else (self._current, self._version)

    def renew(self, pts: int) -> None:
        """The far end may have lost its reference (a new connection): send the full pts again from `pts` on."""
        self._set(Anchor(pts, self._ahead))

    def confirm(self, version: int) -> None:
        """A datagram that carried this version has arrived."""
        if version == self._version:
            self._current = None

    def _set(self, anchor: Anchor) -> None:
        self._current = anchor
        self._version += 1
