"""Bounds of what is kept of a session."""

from __future__ import annotations

from typing import Any

import pytest

from voicestream.store import MAX_CONTEXT, SessionRecord


@pytest.mark.parametrize(
    "changes",
    [{"session_id": bytes(15)}, {"identity": bytes(257)}, {"generation": -1}, {"processed_pts": -1}, {"context": bytes(MAX_CONTEXT + 1)}],
)
def test_a_value_out_of_its_range_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|needs"):
        SessionRecord(**{"session_id": bytes(16), **changes})
