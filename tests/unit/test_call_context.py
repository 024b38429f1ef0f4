"""What an application keeps with its session."""

from __future__ import annotations

from typing import Any

import pytest

from voicestream.call_context import CallContext


def test_changes_are_told() -> None:
    context, told = CallContext(), []
    context.on_change = lambda: told.append((context.data, context.processed_pts))
    context.data = bytearray(b"a")
    context.processed_pts = 400
    context.processed_pts = 400
    assert told == [(b"a", 0), (b"a", 400), (b"a", 400)]


@pytest.mark.parametrize(("value", "error"), [("text", TypeError), (bytes(65537), ValueError)])
def test_only_bytes_and_not_too_many(value: Any, error: type[Exception]) -> None:
    context = CallContext()
    with pytest.raises(error, match="context"):
        context.data = value
    assert context.data == b""


def test_what_has_been_processed_stays_so() -> None:
    context = CallContext()
    context.processed_pts = 10
    with pytest.raises(ValueError, match=r"before 0\.025 s"):
        context.processed_pts = 9
