"""A loudspeaker without sound: pulls blocks at its own clock's pace and does what the playout decides."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from voicestream.core.playout import Accelerate, Conceal, Decision, Decode, Expand, Merge, Playout, Repair, Silence
from voicestream.media import MediaFrame, SourceKind
from voicestream.testing.sim import Simulation

__all__ = ["PlayedFrame", "SimulatedDevice", "execute_without_sound"]

UNIT_S = 0.0025

_REMEMBERED = 50
"""Pieces of concealment, for `own_count`."""


def execute_without_sound(playout: Playout, now: float, held_units: float) -> float:
    """Ask for one decision and do it to the letter; returns the units made."""
    decision = playout.next(now, held_units)
    match decision:
        case Decode(frame=frame) | Merge(frame=frame) | Repair(frame=frame):
            made_units = float(frame.units)
        case Expand(frame=frame, units=units):
            made_units = units + (frame.units if frame is not None else 0)
        case Accelerate(frame=frame, units=units):
            made_units = frame.units - units
        case Conceal(units=units) | Silence(units=units):
            made_units = units
    playout.done(made_units)
    return made_units


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedFrame:
    """A frame that the device played.

    Attributes:
        frame: What was played.
        at: When its first sample left the device, in virtual seconds.
        how: Name of the decision: "decode", "merge", "repair", "copy", "expand" or "accelerate".
        made_units: How long it sounded, after stretching.
        position: Units that the device was given before its first sample.
    """

    frame: MediaFrame
    at: float
    how: str
    made_units: float
    position: float

    @property
    def is_copy(self) -> bool:
        """Whether it was played from its low-rate copy."""
        return self.how == "copy"


class SimulatedDevice:
    """A node that plays one track.

    Args:
        sim: The engine.
        playout: Decides.
        on_block: Called after each block with the pts of the sample that is about to leave the device.
        block_units: Units of 2.5 ms that the device takes at once.
        drift_ppm: By how much its clock is slow, in parts per million.
        start: When it takes the first block, in virtual seconds.
        name: For its own random numbers.
    """

    def __init__(
        self,
        sim: Simulation,
        playout: Playout,
        *,
        on_block: Callable[[int], None] | None = None,
        block_units: int = 8,
        drift_ppm: float = 0.0,
        start: float = 0.0,
        name: str = "device",
    ) -> None:
        self.played: list[PlayedFrame] = []
        self.units = {"silence": 0.0, "conceal": 0.0, "waiting": 0.0}
        """Units made by other means than frames: silence, concealment of what is lost, and of what is late."""
        self.given_units = 0.0
        """Units that the device was given."""
        self.digest = hashlib.blake2b(digest_size=16)
        self._sim = sim
        self._playout = playout
        self._on_block = on_block
        self._block_units = block_units
        self._step_s = block_units * UNIT_S * (1 + drift_ppm / 1e6)
        self._next_block = start
        self._held_units = 0.0
        self.cut_short: dict[int, float] = {}
        """Frames of which only a part was played, and the media time at which they were cut off."""
        self._rng = sim.rng(name)
        # Where concealment was put, and how much of it.
        self._concealed: list[tuple[float, float]] = []
        playout.unheard = lambda: self._held_units
        sim.update(self)

    def next_timer(self) -> float | None:
        """When the next block is due."""
        return self._next_block

    def handle_timer(self, now: float) -> None:
        """Take one block."""
        if self._playout.take_void(self._held_units):
            self._cut()
        silent_rounds = 0
        while self._held_units < self._block_units:
            decision = self._playout.next(now, self._held_units)
            made_units = self._execute(decision, now + self._held_units * UNIT_S)
            self._playout.done(made_units)
            self._held_units += made_units
            silent_rounds = 0 if made_units else silent_rounds + 1
            if silent_rounds > 100:
                self._sim.fail(f"the playout makes no progress: {decision!r}")
        self._held_units -= self._block_units
        self.given_units += self._block_units
        self._next_block += self._step_s
        if self._on_block is not None:
            self._on_block(self._playout.heard_pts(self._held_units))

    def own_count(self) -> tuple[float, float]:
        """By what was given to the device alone: the media time of its last sample, at least and at most.

        The two differ only while a lost frame is concealed: what that stands for is the playout's opinion.
        """
        given = self.given_units
        for entry in reversed(self.played):
            if entry.position < given:
                part = min(1.0, (given - entry.position) / entry.made_units)
                least = self.cut_short.get(entry.frame.pts, entry.frame.pts + part * entry.frame.units)
                concealed = sum(
                    min(units, given - at) for at, units in self._concealed if entry.position <= at < given
                )
                return least, least + concealed
        return 0.0, 0.0

    def _cut(self) -> None:
        """A clear has voided what is held."""
        given = self.given_units
        self._held_units = 0.0
        while self.played and self.played[-1].position >= given:
            self.played.pop()
        if self.played and self.played[-1].position + self.played[-1].made_units > given:
            last = self.played[-1]
            part = (given - last.position) / last.made_units
            self.cut_short[last.frame.pts] = last.frame.pts + part * last.frame.units
        self._concealed = [(at, min(units, given - at)) for at, units in self._concealed if at < given]

    def _execute(self, decision: Decision, at: float) -> float:
        match decision:
            case Decode(frame=frame):
                return self._play(frame, at, "decode", frame.units)
            case Merge(frame=frame):
                return self._play(frame, at, "merge", frame.units)
            case Repair(frame=frame, kind=kind):
                return self._play(frame, at, "copy" if kind is SourceKind.COPY else "repair", frame.units)
            case Expand(frame=None, units=units):
                self.units["waiting"] += units
                return units
            case Expand(frame=MediaFrame() as frame, units=units):
                return self._play(frame, at, "expand", frame.units + units * self._match())
            case Accelerate(frame=frame, units=units):
                return self._play(frame, at, "accelerate", frame.units - units * min(1.0, self._match()))
            case Conceal(units=units):
                self.units["conceal"] += units
                self._concealed.append((self.given_units + self._held_units, units))
                del self._concealed[:-_REMEMBERED]
                return units
            case Silence(units=units):
                self.units["silence"] += units
                return units
        self._sim.fail(f"unknown decision {decision!r}")

    def _match(self) -> float:
        """How much of a wanted change the waveform allows: whole pitch periods, at times none."""
        return 0.0 if self._rng.random() < 0.2 else self._rng.uniform(0.6, 1.4)

    def _play(self, frame: MediaFrame, at: float, how: str, made_units: float) -> float:
        self.played.append(PlayedFrame(frame=frame, at=at, how=how, made_units=made_units, position=self.given_units + self._held_units))
        self.digest.update(b"%d %.6f %b %.4f %b" % (frame.pts, at, how.encode(), made_units, frame.payload))
        return made_units
