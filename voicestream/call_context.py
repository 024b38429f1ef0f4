"""What an application keeps with its session, so that after a break it need not begin again."""

from __future__ import annotations

from collections.abc import Callable

from voicestream.config import UNITS_PER_SECOND
from voicestream.store import MAX_CONTEXT

__all__ = ["CallContext"]


class CallContext:
    """Bytes and a media time of the application's choice.

    Attributes:
        on_change: Called after each change.
    """

    __slots__ = ("_data", "_processed_pts", "on_change")

    def __init__(self) -> None:
        self._data = b""
        self._processed_pts = 0
        self.on_change: Callable[[], None] = lambda: None

    def restore(self, data: bytes, processed_pts: int) -> None:
        """What the application had left with another server."""
        self._data, self._processed_pts = data, processed_pts

    @property
    def data(self) -> bytes:
        """The bytes."""
        return self._data

    @data.setter
    def data(self, value: bytes) -> None:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"context must be bytes, not {type(value).__name__}")
        data = bytes(value)
        if len(data) > MAX_CONTEXT:
            raise ValueError(f"context must have at most {MAX_CONTEXT} bytes, not {len(data)}")
        self._data = data
        self.on_change()

    @property
    def processed_pts(self) -> int:
        """Media time in units of 2.5 ms."""
        return self._processed_pts

    @processed_pts.setter
    def processed_pts(self, value: int) -> None:
        if value < self._processed_pts:
            at, before = value / UNITS_PER_SECOND, self._processed_pts / UNITS_PER_SECOND
            raise ValueError(f"what has been processed stays so: {at:g} s lies before {before:g} s")
        self._processed_pts = value
        self.on_change()
