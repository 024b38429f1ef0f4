"""Requirements of the specification, read once."""

from __future__ import annotations

from functools import cache

from spec.tools.requirements import Sentence
from spec.tools.requirements import requirements as read

__all__ = ["requirements"]


@cache
def requirements() -> dict[str, Sentence]:
    """All of them by id, in the order of the text."""
    return read()
