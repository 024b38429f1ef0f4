"""A growing set of numbers and its percentiles."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator

__all__ = ["Samples"]


class Samples:
    """Numbers in the order in which they came. Percentiles are over all of them; an empty set answers 0."""

    __slots__ = ("_values",)

    def __init__(self, values: Iterable[float] = ()) -> None:
        self._values = array("d", values)

    def add(self, value: float) -> None:
        """Take one more."""
        self._values.append(value)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[float]:
        return iter(self._values)

    def percentile(self, percent: float) -> float:
        """The smallest value that at least `percent` (0 to 100) of all do not exceed.

        Raises:
            ValueError: `percent` is outside 0 to 100.
        """
        if not 0 <= percent <= 100:
            raise ValueError(f"percent must be 0 to 100, not {percent}")
        if not self._values:
            return 0.0
        ordered = sorted(self._values)
        return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]

    @property
    def median(self) -> float:
        """The 50th percentile."""
        return self.percentile(50)

    @property
    def mean(self) -> float:
        """The arithmetic mean."""
        return math.fsum(self._values) / len(self._values) if self._values else 0.0

    @property
    def maximum(self) -> float:
        """The largest value."""
        return max(self._values, default=0.0)

    @property
    def minimum(self) -> float:
        """The smallest value."""
        return min(self._values, default=0.0)

    def __repr__(self) -> str:
        if not self._values:
            return "Samples(none)"
        return f"Samples({len(self)}: P50 {self.median:.1f}, P95 {self.percentile(95):.1f}, max {self.maximum:.1f})"
