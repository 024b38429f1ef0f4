"""How often servers may send a client from one to another."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import pytest

from voicestream.client_keeper import MAX_MOVES, MOVES_WITHIN, Keeper


def test_servers_that_send_a_client_in_circles_are_followed_five_times(caplog: pytest.LogCaptureFixture) -> None:
    """VS-5.2.3-1: "it MUST NOT follow more than 5 in a row"."""
    clock = SimpleNamespace(at=0.0)
    keeper = Keeper.__new__(Keeper)
    keeper._link = SimpleNamespace(now=lambda: clock.at)  # type: ignore[assignment]
    keeper._sent, keeper._others = deque(maxlen=MAX_MOVES), []
    followed = []
    for turn in range(8):
        clock.at += 1.0
        followed.append(keeper._sent_to(f"voicestream://server{turn % 2}/") is not None)
    assert followed == [True] * 5 + [False] * 3
    assert "from one to another" in caplog.text
    clock.at += MOVES_WITHIN
    assert keeper._sent_to("voicestream://server9/") is not None
    assert keeper._sent_to("no place") is None
