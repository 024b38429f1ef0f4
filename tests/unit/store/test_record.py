"""Bounds of what is kept of a session."""

from __future__ import annotations

from typing import Any

import pytest

from voicestream.store import MAX_CONTEXT, SessionRecord
from voicestream.store.record import decode_record, encode_record


@pytest.mark.parametrize(
    "changes",
    [{"session_id": bytes(15)}, {"identity": bytes(257)}, {"generation": -1}, {"processed_pts": -1}, {"context": bytes(MAX_CONTEXT + 1)},
     {"generation": 1, "confirmed": 2}, {"generation": 1 << 52}, {"owner": bytes(33)}, {"state": bytes(32769)}],
)
def test_a_value_out_of_its_range_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|needs"):
        SessionRecord(**{"session_id": bytes(16), **changes})


@pytest.mark.parametrize("cut", [0, 1, 30, -1])
def test_what_is_no_record_is_refused(cut: int) -> None:
    whole = SessionRecord(session_id=bytes(16), owner=b"o", identity=b"i", generation=2, confirmed=1, context=b"c", state=b"s")
    data = encode_record(whole)
    assert decode_record(bytes(16), b"o", data) == whole
    with pytest.raises(ValueError, match=r"short|length"):
        decode_record(bytes(16), b"o", data[:cut])
    with pytest.raises(ValueError, match="form"):
        decode_record(bytes(16), b"o", b"\x02" + data[1:])
