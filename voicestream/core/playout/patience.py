"""Whether a change of the delay can wait for a pause: in a pause nobody hears it, in a word it shifts what follows."""

from __future__ import annotations

from typing import Final

__all__ = ["Patience"]

FAR_UNITS: Final = 32.0
"""From this on (80 ms too long) the wait for a pause to shorten in is the least."""

LEAST_PATIENCE_UNITS: Final = 1600.0
"""Most who speak pause within this (4 s)."""

CUT_PAUSE_UNITS: Final = 400.0
"""Where nobody pauses, one cut a second: what is cut in one go in the middle of a word is heard."""

TOO_FAR_UNITS: Final = 100.0
"""More than this too long (250 ms), and the talk suffers: no time for a pause."""

CATCH_UP: Final = 0.15
"""Even then no more than this part of the time is cut out within words: what is played faster is not understood."""

CUT_PATIENCE_UNITS: Final = 1600.0
"""Wait for a pause to shorten in, at half of that distance (4 s at 40 ms). Twice as near three times as long: a little delay
more is heard by nobody, a cut in a word is."""

EXPANSION_PATIENCE_UNITS: Final = 2400.0
"""Wait for a pause to lengthen in (6 s)."""

PRESSING_LATE: Final = 3
"""So many times late within two seconds, and it goes on: worse than lengthening in a word. What comes late once or twice has
lengthened the delay by itself."""

FORGET_UNITS: Final = 100.0
"""A wish that was not repeated for so long (250 ms) was no lasting one."""


class Patience:
    """Remembers since when a change has been wanted."""

    __slots__ = ("_last_at", "_longer", "_no_cut_before", "_since")

    def __init__(self) -> None:
        self._longer = False
        self._since = 0.0
        self._no_cut_before = float("-inf")
        self._last_at = float("-inf")

    def urgent(self, now: float, change: float, distance: float, late: int) -> bool:
        """Whether the change must be made now, in the middle of a word if need be.

        Args:
            now: Time, in pts units.
            change: Units to add (positive) or to take away.
            distance: How far the delay is from where it should be, in units.
            late: How many times within two seconds something came later than the present delay allows.
        """
        longer = change > 0
        if longer != self._longer or now - self._last_at > FORGET_UNITS:
            self._longer, self._since = longer, now
        self._last_at = now
        waited = now - self._since
        if longer:
            return late >= PRESSING_LATE or waited >= EXPANSION_PATIENCE_UNITS
        if distance <= 0:
            return False
        patience = CUT_PATIENCE_UNITS * (FAR_UNITS / distance - 1)
        if distance > TOO_FAR_UNITS:
            if waited < patience or now < self._no_cut_before:
                return False
            self._no_cut_before = now + abs(change) / CATCH_UP
            return True
        if waited < max(patience, LEAST_PATIENCE_UNITS) or now < self._no_cut_before:
            return False
        self._no_cut_before = now + CUT_PAUSE_UNITS
        return True
