"""How late the loop is."""

from __future__ import annotations

import asyncio

import pytest

from voicestream.observe.lag import late_by


@pytest.mark.parametrize(("back", "late"), [(10.25, 0.25), (10.0, 0.0), (9.9, 0.0)])
async def test_it_is_what_passed_beyond_the_sleep(back: float, late: float, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    times = iter([10.0])
    with monkeypatch.context() as clock:
        clock.setattr(loop, "time", lambda: next(times, back))
        measured = await late_by(0.0)
    assert measured == pytest.approx(late)
