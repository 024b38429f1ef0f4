"""Repair over a sliding window of frames (specification section 10): a random-linear code in the sense of RFC 8681.

A repair is a sum of the last frames with coefficients of its own: each repair that arrives brings back one lost frame of its
window, any two bring back any two. Frames of a window may be of different lengths.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from voicestream.core.recovery.gf256 import coefficient, divide, product, row, scale

__all__ = ["MAX_SOURCES", "Repair", "RepairDecoder", "RepairEncoder", "Source", "runs_of", "window_of"]

MAX_SOURCES: Final = 64
"""Frames that one repair may cover, and that either side remembers for it."""

MAX_EQUATIONS: Final = 16
"""Repairs kept unsolved at most (VS-10.3-4)."""

MAX_UNKNOWN: Final = 16
"""A repair that misses more of its window than this will not be solved in time, and costs too much to keep (VS-10.3-4)."""

HEADER: Final = 3
"""Bytes of a source symbol before the payload: flags and a 16-bit length."""


@dataclass(slots=True, kw_only=True)
class Source:
    """One frame as the code sees it.

    Attributes:
        pts: Full pts, in units.
        flags: Low nibble of its AUDIO type byte: talkspurt start and end, clear number.
        payload: Coded bytes.
    """

    pts: int
    flags: int
    payload: bytes

    def symbol(self) -> bytes:
        """Flags, length and payload."""
        return bytes((self.flags,)) + len(self.payload).to_bytes(2, "big") + self.payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One repair symbol.

    Attributes:
        key: 0 to 255, selects the coefficients.
        window: Full pts of the frames it covers, newest first.
        symbol: Their weighted sum, as long as the longest of them.
    """

    key: int
    window: tuple[int, ...]
    symbol: bytes


def runs_of(window: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """The (count, step) runs that describe a window, newest first, after its newest pts."""
    runs: list[tuple[int, int]] = []
    for newer, older in pairwise(window):
        step = newer - older
        if runs and runs[-1][1] == step:
            runs[-1] = (runs[-1][0] + 1, step)
        else:
            runs.append((1, step))
    return tuple(runs)


def window_of(newest: int, runs: tuple[tuple[int, int], ...]) -> tuple[int, ...] | None:
    """The window that `runs` describe, newest first; None when it reaches below pts 0, where no frame is (VS-10.3-3)."""
    window = [newest]
    for count, step in runs:
        for _ in range(count):
            window.append(window[-1] - step)
    return tuple(window) if window[-1] >= 0 else None


class RepairEncoder:
    """Makes repairs for one track of a sender."""

    __slots__ = ("_key", "_sources")

    def __init__(self) -> None:
        self._sources: deque[Source] = deque(maxlen=MAX_SOURCES)
        self._key = 0

    def add(self, source: Source) -> None:
        """A frame leaves. Pts rise."""
        self._sources.append(source)

    def clear(self) -> None:
        """What was sent is void and not worth a repair."""
        self._sources.clear()

    def repair(self, count: int, *, oldest_pts: int = 0) -> Repair | None:
        """A repair of the newest `count` frames not older than `oldest_pts`; None when there is none.

        Args:
            count: 1 to 64.
            oldest_pts: Frames before it are past their playout time.
        """
        if not 1 <= count <= MAX_SOURCES:
            raise ValueError(f"count must be 1 to {MAX_SOURCES}, not {count}")
        covered = [source for source in list(self._sources)[-count:] if source.pts >= oldest_pts]
        if not covered:
            return None
        key, self._key = self._key, (self._key + 1) & 0xFF  # VS-10.2-2
        symbols = [source.symbol() for source in covered]
        size = max(map(len, symbols))  # VS-10.1-1
        total = 0
        for source, symbol in zip(covered, symbols, strict=True):
            total ^= int.from_bytes(scale(symbol, coefficient(key, source.pts)).ljust(size, b"\0"), "big")
        return Repair(key=key, window=tuple(source.pts for source in reversed(covered)), symbol=total.to_bytes(size, "big"))


class _Equation:
    """What is left of a repair: a sum of frames that are not known yet."""

    __slots__ = ("size", "terms", "value")

    def __init__(self, terms: dict[int, int], value: int, size: int) -> None:
        self.terms = terms
        self.value = value
        self.size = size

    def remove(self, pts: int, symbol: bytes) -> bool:
        """Take a known frame out; False when it does not fit into the symbol."""
        factor = self.terms.pop(pts, 0)
        if not factor:
            return True
        if len(symbol) > self.size:
            return False
        self.value ^= int.from_bytes(scale(symbol, factor).ljust(self.size, b"\0"), "big")
        return True

    def subtract(self, other: _Equation, pts: int) -> None:
        """Eliminate `pts` with the help of another equation that has it."""
        factor = divide(self.terms[pts], other.terms[pts])
        size = max(self.size, other.size)
        value = self.value << 8 * (size - self.size)
        self.value = value ^ product(other.value << 8 * (size - other.size), factor, size)
        self.size = size
        times = row(factor)
        for term, weight in other.terms.items():
            left = self.terms.get(term, 0) ^ times[weight]
            if left:
                self.terms[term] = left
            else:
                self.terms.pop(term, None)


class RepairDecoder:
    """Brings back lost frames of one track of a receiver, in bounded memory.

    Attributes:
        recovered: Frames brought back.
        unusable: Repairs, or what they were solved for, that contradict what is known: damaged or hostile.
        unneeded: Repairs that came when nothing of their window was missing.
    """

    __slots__ = ("_equations", "_known", "recovered", "unneeded", "unusable")

    def __init__(self) -> None:
        self._known: OrderedDict[int, bytes] = OrderedDict()
        self._equations: list[_Equation] = []
        self.recovered = 0
        self.unusable = 0
        self.unneeded = 0

    def __len__(self) -> int:
        return len(self._equations)

    def source(self, source: Source) -> list[Source]:
        """A frame has come by any other way. Returns the frames that it helps to bring back."""
        if source.pts in self._known:
            return []
        self._learn(source.pts, source.symbol())
        return self._solve()

    def repair(self, repair: Repair) -> list[Source]:
        """A repair has come. Returns the frames that it brings back."""
        equation = _Equation(
            {pts: coefficient(repair.key, pts) for pts in repair.window}, int.from_bytes(repair.symbol, "big"), len(repair.symbol)
        )
        for pts in repair.window:
            symbol = self._known.get(pts)
            if symbol is not None and not equation.remove(pts, symbol):
                self.unusable += 1
                return []
        if not equation.terms:
            self.unneeded += 1
            return []
        if len(equation.terms) > MAX_UNKNOWN:
            self.unusable += 1
            return []
        self._insert(equation)
        return self._solve()

    def forget(self, before_pts: int) -> None:
        """Frames before `before_pts` are past their playout time: what still asks for them cannot be solved in time."""
        self._equations = [equation for equation in self._equations if max(equation.terms) >= before_pts]

    def clear(self) -> None:
        """What was sent is void."""
        self._known.clear()
        self._equations.clear()

    def _learn(self, pts: int, symbol: bytes) -> None:
        self._known[pts] = symbol
        if len(self._known) > 2 * MAX_SOURCES:
            self._known.popitem(last=False)
        touched = [equation for equation in self._equations if pts in equation.terms]
        if not touched:
            return
        for equation in touched:
            self._equations.remove(equation)
        for equation in touched:
            if equation.remove(pts, symbol):
                self._insert(equation)
            else:
                self.unusable += 1

    def _insert(self, fresh: _Equation) -> None:
        self._reduce(fresh)
        if fresh.terms:
            self._equations.append(fresh)
            if len(self._equations) > MAX_EQUATIONS:
                self._equations.pop(0)

    def _reduce(self, fresh: _Equation) -> None:
        """Gauss-Jordan: each equation owns its newest pts, which no other one has."""
        for owner in self._equations:
            pivot = max(owner.terms)
            if pivot in fresh.terms:
                fresh.subtract(owner, pivot)
        if not fresh.terms:
            return
        pivot = max(fresh.terms)
        for owner in self._equations:
            if pivot in owner.terms:
                owner.subtract(fresh, pivot)

    def _solve(self) -> list[Source]:
        found: list[Source] = []
        while (ready := next((equation for equation in self._equations if len(equation.terms) == 1), None)) is not None:
            self._equations.remove(ready)
            ((pts, factor),) = ready.terms.items()
            symbol = product(ready.value, divide(1, factor), ready.size).to_bytes(ready.size, "big")
            source = _source_of(pts, symbol)
            if source is None:
                self.unusable += 1
                continue
            self.recovered += 1
            found.append(source)
            self._learn(pts, source.symbol())
        return found


def _source_of(pts: int, symbol: bytes) -> Source | None:
    """The frame in a solved symbol; None when it is none (VS-10.3-1)."""
    if len(symbol) <= HEADER or symbol[0] > 0x0F:
        return None
    length = int.from_bytes(symbol[1:HEADER], "big")
    payload = symbol[HEADER : HEADER + length]
    if not length or len(payload) != length or symbol[HEADER + length :].strip(b"\0"):
        return None
    return Source(pts=pts, flags=symbol[0], payload=payload)
