"""Which packets an emulated link loses: independently, in bursts, or as a recorded trace says."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["BurstLoss", "GilbertElliott", "IndependentLoss", "LossProcess", "TraceLoss"]


class LossProcess(Protocol):
    """Decides packet after packet."""

    def lost(self) -> bool:
        """Whether the next packet is lost."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BurstLoss:
    """Losses that come in runs (the Gilbert-Elliott model with a lossless good state and a bad state that loses all).

    Attributes:
        loss: Share of packets lost in the long run, 0 to below 1.
        burst: Mean length of a run of lost packets, in packets, at least 1 and long enough that `loss` can be reached.
    """

    loss: float
    burst: float

    def __post_init__(self) -> None:
        if not 0 <= self.loss < 1:
            raise ValueError(f"loss must be 0 to below 1, not {self.loss}")
        if self.burst < 1:
            raise ValueError(f"burst must be at least 1 packet, not {self.burst}")
        if self.to_bad > 1:
            raise ValueError(f"a loss of {self.loss} needs bursts longer than {self.burst} packets")

    @property
    def to_bad(self) -> float:
        """Probability that a packet after a delivered one is lost."""
        return self.loss / (1 - self.loss) / self.burst

    @property
    def to_good(self) -> float:
        """Probability that a packet after a lost one is delivered."""
        return 1 / self.burst


class IndependentLoss:
    """Every packet is lost with the same probability, whatever became of the others."""

    __slots__ = ("_probability", "_rng")

    def __init__(self, probability: float, rng: random.Random) -> None:
        self._probability = probability
        self._rng = rng

    def lost(self) -> bool:
        """Whether the next packet is lost."""
        return self._rng.random() < self._probability


class GilbertElliott:
    """Two states with geometric stays; begins in the good one."""

    __slots__ = ("_bad", "_rng", "_to_bad", "_to_good")

    def __init__(self, model: BurstLoss, rng: random.Random) -> None:
        self._to_bad = model.to_bad
        self._to_good = model.to_good
        self._bad = False
        self._rng = rng

    def lost(self) -> bool:
        """Whether the next packet is lost."""
        draw = self._rng.random()
        self._bad = draw >= self._to_good if self._bad else draw < self._to_bad
        return self._bad


class TraceLoss:
    """The recorded fate of one packet after the other, from the beginning again when the record ends."""

    __slots__ = ("_index", "_trace")

    def __init__(self, trace: Sequence[int]) -> None:
        self._trace = tuple(trace)
        self._index = 0

    def lost(self) -> bool:
        """Whether the next packet is lost."""
        fate = self._trace[self._index]
        self._index = (self._index + 1) % len(self._trace)
        return fate == 1
