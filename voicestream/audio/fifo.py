"""A queue of samples: blocks go in as they come, any number of samples comes out."""

from __future__ import annotations

from collections import deque
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["SampleFifo"]

Scalar = TypeVar("Scalar", bound=np.generic)


class SampleFifo(Generic[Scalar]):
    """First in, first out, for blocks of shape (n,) or (n, channels); all of one shape."""

    __slots__ = ("_blocks", "_empty", "_length")

    def __init__(self, channels: int, dtype: type[Scalar]) -> None:
        self._blocks: deque[NDArray[Scalar]] = deque()
        self._empty: NDArray[Any] = np.zeros((0,) if channels == 1 else (0, channels), dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def push(self, block: NDArray[Scalar]) -> None:
        """Append a block, which must not be changed afterwards."""
        if len(block):
            self._blocks.append(block)
            self._length += len(block)

    def clear(self) -> None:
        """Drop everything."""
        self._blocks.clear()
        self._length = 0

    def take(self, samples: int) -> NDArray[Scalar]:
        """The oldest `samples`, or all that is there if it is less. The result may share memory with what was pushed."""
        parts = []
        left = min(samples, self._length)
        self._length -= left
        while left > 0:
            block = self._blocks[0]
            if len(block) <= left:
                self._blocks.popleft()
            else:
                self._blocks[0] = block[left:]
                block = block[:left]
            parts.append(block)
            left -= len(block)
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else self._empty.copy()
