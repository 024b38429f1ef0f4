"""What a reader in order gets over paths that lose, in virtual time. Every failure message carries the seed."""

from __future__ import annotations

import random

import pytest

from voicestream.testing.stateful import HostileCall


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("one_way", [0.1, 0.25])
def test_who_reads_in_order_over_a_far_path_gets_what_was_lost(one_way: float, seed: int) -> None:
    """The round trip is longer than the lookahead: answers are waited for all the same."""
    call = HostileCall(random.Random(seed))
    call.fates.delay = one_way
    call.open()
    call.fates.loss = 0.08
    for number in range(250):
        call.send(call.client, b"\x08" + number.to_bytes(4, "big") + bytes(20), 8, start=number == 0)
        call.wait(0.02)
    call.fates.loss = 0
    call.wait(3)
    account = call.server.reader.account
    assert account.gaps == 0, f"seed {seed}, {one_way} s one way: {account}"
    assert account.frames_delivered >= 249, f"seed {seed}, {one_way} s one way: {account}"  # nothing tells of the last one
