"""Trace records: what a call did and why, for whoever observes it. The core writes them and never reads a clock for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

__all__ = ["Observer"]


class Observer(Protocol):
    """Takes trace records. An observer must return at once and must not raise."""

    def record(self, now: float, name: str, data: Mapping[str, object]) -> None:
        """Take one record.

        Args:
            now: Monotonic seconds, the clock of the session.
            name: "category:event", for example "playout:concealed".
            data: Values of JSON types, units in the keys.
        """
