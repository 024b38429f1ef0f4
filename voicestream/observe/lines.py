"""Lines for the log that people and programs can read: a word for what happened, then key=value."""

from __future__ import annotations

import json
from typing import Final

__all__ = ["MAX_TEXT", "line"]

MAX_TEXT: Final = 200
"""Characters of a text at most: some are the far end's words."""

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/[]+%")


def line(what: str, **values: object) -> str:
    """One line; values that are None are left out.

    Numbers with a fraction get one digit of it, text that is more than a plain word is quoted as in JSON, in ASCII, and cut off.

        >>> line("call_closed", session="5f0c", reason="good bye", rtt_ms=31.26)
        'call_closed session=5f0c reason="good bye" rtt_ms=31.3'
    """
    return " ".join([what, *(f"{key}={_text(value)}" for key, value in values.items() if value is not None)])


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.1f}"
    text = str(value)
    if len(text) > MAX_TEXT:
        text = text[:MAX_TEXT] + "..."
    return text if text and _PLAIN.issuperset(text) else json.dumps(text)
