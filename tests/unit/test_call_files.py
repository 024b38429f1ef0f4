"""A recording through a call."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from voicestream import call_files
from voicestream.audio.files import read_wav


class NotingCall:
    """Takes blocks and notes when they came; gives blocks."""

    def __init__(self, heard: list[np.ndarray] | None = None) -> None:
        self.audio = SimpleNamespace(sample_rate_hz=8000, channels=1)
        self.said: list[tuple[float, int]] = []
        self.done: list[str] = []
        self.heard = heard or []
        self.now = 0.0

    async def send(self, block: Any) -> bool:
        self.said.append((self.now, len(block)))
        self.now += 0.003  # coding takes time
        return True

    def flush(self) -> None:
        self.done.append("flush")

    async def finish(self) -> float:
        self.done.append("finish")
        return 1.0

    async def __aiter__(self) -> Any:
        for block in self.heard:
            yield block


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Any:
    call = NotingCall()

    async def sleep(seconds: float) -> None:
        call.now += seconds

    monkeypatch.setattr(call_files.asyncio, "get_running_loop", lambda: SimpleNamespace(time=lambda: call.now))
    monkeypatch.setattr(call_files.asyncio, "sleep", sleep)
    return call


async def test_speech_is_said_at_the_speed_of_a_microphone_without_drift(call: Any) -> None:
    assert await call_files.speak(call, np.zeros(8000 + 40, np.int16), finish=True) == 1.0
    assert [length for _, length in call.said] == [160] * 50 + [40]
    assert [at for at, _ in call.said] == pytest.approx([number * 0.02 for number in range(51)])
    assert call.done == ["finish"]


async def test_speech_that_goes_on_later_is_flushed_and_not_finished(call: Any) -> None:
    assert await call_files.speak(call, bytes(640), finish=False) == 0.0
    assert call.done == ["flush"]


async def test_what_is_heard_is_written(tmp_path: Path) -> None:
    blocks = [np.full(160, number * 100, np.int16) for number in range(5)]
    seconds = await call_files.record(NotingCall(blocks), tmp_path / "heard.wav")  # type: ignore[arg-type]
    assert seconds == pytest.approx(0.1)
    assert np.array_equal(read_wav(tmp_path / "heard.wav", sample_rate_hz=8000), np.concatenate(blocks))


async def test_a_recording_keeps_what_came_before_a_failure(tmp_path: Path) -> None:
    class Broken(NotingCall):
        async def __aiter__(self) -> Any:
            yield np.ones(160, np.int16)
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await call_files.record(Broken(), tmp_path / "heard.wav")  # type: ignore[arg-type]
    assert len(read_wav(tmp_path / "heard.wav", sample_rate_hz=8000)) == 160
