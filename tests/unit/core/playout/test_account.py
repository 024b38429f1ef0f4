"""The playout's books."""

from __future__ import annotations

import pytest

from voicestream.core.playout.account import ConcealmentRun, PlayoutAccount


def test_a_snapshot_does_not_change() -> None:
    account = PlayoutAccount()
    copy = account.snapshot()
    account.frames_late += 1
    assert (copy.frames_late, account.frames_late) == (0, 1)


def test_the_mean_delay_is_taken_over_emitted_units() -> None:
    account = PlayoutAccount()
    assert account.mean_delay == 0
    account.jitter_buffer_delay, account.jitter_buffer_emitted_units = 0.4, 8
    assert account.mean_delay == pytest.approx(0.05)


def test_concealment_beyond_120_ms_is_silent_and_150_ms_are_an_interruption() -> None:
    account = PlayoutAccount()
    run = ConcealmentRun(account)
    run.add(40)
    assert (account.concealed_units, account.silent_concealed_units, account.interruptions) == (40, 0, 0)
    run.add(12)
    assert (account.concealed_units, account.silent_concealed_units, account.interruptions) == (52, 4, 0)
    run.add(8)
    run.add(100)
    assert (account.concealed_units, account.silent_concealed_units, account.interruptions) == (160, 112, 1)
    assert account.concealment_events == 1
    assert run.end() == 160


def test_each_run_is_one_event() -> None:
    account = PlayoutAccount()
    run = ConcealmentRun(account)
    for _ in range(3):
        run.add(0)
        run.add(4)
        run.add(4)
        run.end()
    assert account.concealment_events == 3
    assert account.silent_concealed_units == 0
