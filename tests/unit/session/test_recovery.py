"""Recovery inside a session: what counts in the budget."""

from __future__ import annotations

import dataclasses

from voicestream.core.recovery.budget import Tool
from voicestream.media import MediaFrame
from voicestream.session.sender import Bundle


def test_the_codecs_in_band_copies_count_in_the_budget(pair, kit) -> None:
    allocator = pair.client._planner.allocator
    allocator.plan = dataclasses.replace(allocator.plan, inband_fec_percent=5)
    bundle = Bundle(sources=[MediaFrame(pts=0, units=8, payload=bytes((9 << 3,)) + bytes(59))])
    recovery = pair.client._tracks.recovery
    recovery.ride(bundle, pair.now, allocator.plan)
    assert recovery.budget.spent[Tool.INBAND] == 12
    celt = Bundle(sources=[MediaFrame(pts=8, units=8, payload=bytes((31 << 3,)) + bytes(59))])
    recovery.ride(celt, pair.now, allocator.plan)
    assert recovery.budget.spent[Tool.INBAND] == 12
