"""Whether a change of the delay can wait for a pause: in a pause nobody hears it, in a word it shifts what follows."""

from __future__ import annotations

from typing import Final

__all__ = ["Patience"]

CUT_PATIENCE_UNITS: Final = 1600.0
"""Wait for a pause to shorten in (4 s): too much delay is a nuisance, not a danger."""

EXPANSION_PATIENCE_UNITS: Final = 800.0
"""Wait for a pause to lengthen in (2 s): too little delay may make the next frame late."""

SHORT_UNITS: Final = 12.0
"""More than this too short (30 ms), and the next frame is likely to come late: no time for a pause."""

FAR_UNITS: Final = 32.0
"""More than this too long (80 ms), and the talk suffers: no time for a pause either."""

FORGET_UNITS: Final = 40.0
"""A wish that was not repeated for so long (100 ms) was no lasting one."""


class Patience:
    """Remembers since when a change has been wanted."""

    __slots__ = ("_last_at", "_longer", "_since")

    def __init__(self) -> None:
        self._longer = False
        self._since = 0.0
        self._last_at = float("-inf")

    def urgent(self, now: float, change: float, distance: float) -> bool:
        """Whether the change must be made now, in the middle of a word if need be.

        Args:
            now: Time, in pts units.
            change: Units to add (positive) or to take away.
            distance: How far the delay is from where it should be, in units.
        """
        longer = change > 0
        if longer != self._longer or now - self._last_at > FORGET_UNITS:
            self._longer, self._since = longer, now
        self._last_at = now
        patience, far = (EXPANSION_PATIENCE_UNITS, SHORT_UNITS) if longer else (CUT_PATIENCE_UNITS, FAR_UNITS)
        return now - self._since >= patience or distance >= far
