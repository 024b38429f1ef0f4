"""Recovery inside a session: what counts in the budget."""

from __future__ import annotations

import dataclasses

from voicestream.core.recovery.budget import Tool
from voicestream.media import MediaFrame
from voicestream.session.sender import Bundle
from voicestream.wire import AudioFrame, Clear, ClearFrame, RepairFrame


def test_the_codecs_in_band_copies_count_in_the_budget(pair, kit) -> None:
    allocator = pair.client._planner.allocator
    allocator.plan = dataclasses.replace(allocator.plan, inband_fec_percent=5)
    bundle = Bundle(sources=[MediaFrame(pts=0, units=8, payload=bytes((9 << 3, 0x40)) + bytes(58))])
    recovery = pair.client._tracks.recovery
    recovery.ride(bundle, pair.now, allocator.plan)
    assert recovery.budget.spent[Tool.INBAND] == 18
    for number, head in enumerate(((31 << 3, 0x40), (9 << 3, 0x80)), 1):  # CELT has none, and silence has none
        without = Bundle(sources=[MediaFrame(pts=8 * number, units=8, payload=bytes(head) + bytes(58))])
        recovery.ride(without, pair.now, allocator.plan)
    assert recovery.budget.spent[Tool.INBAND] == 18


def test_a_frame_that_was_computed_counts_as_the_frame_itself_also_where_a_clear_has_voided_it(pair, kit) -> None:
    """VS-10.3-2: "MUST be treated like the frame itself, in the clear and duplicate rules also"."""
    payload = bytes((9 << 3,)) + bytes(20)
    symbol = bytes(2) + bytes((len(payload),)) + payload  # with key 0 a repair of one source is the source

    def repaired(number: int, pts: int) -> int:
        frame = RepairFrame(track=0, key=0, newest_pts=pts, runs=(), symbol=symbol)
        pair.server.receive_datagram(kit.datagram(frame, number=number), pair.now)
        return int(pair.server.stats(pair.now).tracks[0].frames_received)

    def received(number: int, pts: int) -> int:
        pair.server.receive_datagram(kit.datagram(AudioFrame(pts=pts, payload=payload), number=number), pair.now)
        return int(pair.server.stats(pair.now).tracks[0].frames_received)

    assert received(0, 0) == 1
    assert repaired(1, 8) == 2
    assert received(2, 8) == 2, "the frame itself comes after it was computed"
    assert repaired(3, 0) == 2, "a repair of what has come"
    pair.server.receive_datagram(kit.datagram(ClearFrame(message=Clear(number=1, from_pts=0, to_pts=24)), number=4), pair.now)
    assert repaired(5, 16) == 2, "void"
