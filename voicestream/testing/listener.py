"""A recogniser without a model: takes every frame of a track in order, as fast as it comes, and notes the gaps."""

from __future__ import annotations

from collections.abc import Callable

from voicestream.core.playout import Gap, OrderedReader
from voicestream.media import MediaFrame
from voicestream.testing.sim import Simulation

__all__ = ["OrderedListener"]

LOOK_S = 0.01
"""How often it looks whether something has come."""


class OrderedListener:
    """A node that reads one track.

    Args:
        sim: The engine.
        reader: Puts the frames in order.
        on_progress: Called with the pts up to which it has read.

    Attributes:
        pieces: (virtual time, frame or gap) in the order in which they were given out.
    """

    def __init__(self, sim: Simulation, reader: OrderedReader, *, on_progress: Callable[[int], None] | None = None) -> None:
        self.pieces: list[tuple[float, MediaFrame | Gap]] = []
        self._sim = sim
        self._reader = reader
        self._on_progress = on_progress
        self._next_look = sim.now
        sim.update(self)

    @property
    def frames(self) -> list[MediaFrame]:
        """The frames among the pieces."""
        return [piece for _, piece in self.pieces if isinstance(piece, MediaFrame)]

    @property
    def gaps(self) -> list[Gap]:
        """The gaps among the pieces."""
        return [piece for _, piece in self.pieces if isinstance(piece, Gap)]

    def next_timer(self) -> float | None:
        """When it looks again."""
        return self._next_look

    def handle_timer(self, now: float) -> None:
        """Take what is there."""
        self._next_look = now + LOOK_S
        before = len(self.pieces)
        while (piece := self._reader.next(now)) is not None:
            self.pieces.append((now, piece))
        if len(self.pieces) > before and self._on_progress is not None:
            self._on_progress(self._reader.next_pts)
