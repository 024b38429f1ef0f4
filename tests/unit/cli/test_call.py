"""The live halves of ``voicestream call``, with a sound card that the test plays."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from voicestream import read_wav
from voicestream.audio.files import WavWriter, write_wav
from voicestream.call_events import CallEvent
from voicestream.call_stats import CallStats, OrderedStats, PathStats, PlayoutStats, ReceivedStats, SentStats
from voicestream.cli import call as command
from voicestream.cli.conversation import Pcm
from voicestream.cli.errors import CommandError
from voicestream.codepoints import ErrorCode
from voicestream.config import AudioConfig, RateConfig
from voicestream.errors import CallClosedError, ConnectError

EMPTY = CallStats(
    duration_s=0.0,
    close_code=None,
    close_reason="",
    path=PathStats(),
    sent=SentStats(),
    received=ReceivedStats(),
    playout=PlayoutStats(),
    ordered=OrderedStats(),
)


class FakeCall:
    """Plays 100 ms a read; the far end has finished at 0.2 s."""

    def __init__(self) -> None:
        self.audio = AudioConfig()
        self.closed = False
        self.played_ms = 0.0
        self.said: list[Pcm] = []
        self.finished = False
        self.over = asyncio.Event()

    def send_nowait(self, pcm: Pcm) -> None:
        self.said.append(pcm)

    async def finish(self, timeout: float | None) -> None:
        self.finished = True

    async def wait_closed(self) -> None:
        await self.over.wait()

    def read(self, n: int) -> Pcm:
        self.played_ms += 100.0
        return np.full(n, 7, np.int16)

    def stats(self) -> CallStats:
        return replace(EMPTY, received=ReceivedStats(played_ms=self.played_ms))

    async def events(self) -> AsyncIterator[CallEvent]:
        yield CallEvent(kind="json", data={})
        yield CallEvent(kind="finish", at=0.2)
        raise AssertionError("nobody asks for more")


class Card:
    """Stands for both devices: its callback runs on a timer of the loop."""

    def __init__(self, tick: Callable[[], object]) -> None:
        self.tick, self.ticks = tick, 0
        self.latency = 0.01
        self.task: asyncio.Task[None] | None = None

    def __enter__(self) -> Card:
        self.task = asyncio.ensure_future(self.run())
        return self

    def __exit__(self, *_error: object) -> None:
        assert self.task is not None
        self.task.cancel()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.tick()


async def test_the_loudspeaker_plays_until_the_far_ends_last_sample(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "Speaker", lambda read, **_form: Card(lambda: read(480)))
    call: Any = FakeCall()
    with WavWriter(tmp_path / "heard.wav", 48000) as wav:
        await asyncio.wait_for(command._listen_live(call, wav), 10)
    assert call.played_ms >= 200.0
    heard = read_wav(tmp_path / "heard.wav")
    assert len(heard) == 480 * call.played_ms / 100
    assert set(heard.tolist()) == {7}


async def test_a_call_that_ends_does_not_keep_the_loudspeaker_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    call: Any = FakeCall()
    call.closed = True
    monkeypatch.setattr(command, "Speaker", lambda read, **_form: Card(lambda: None))
    await asyncio.wait_for(command._listen_live(call, None), 10)


async def test_the_microphone_is_heard_until_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    call: Any = FakeCall()
    stop = asyncio.Event()

    def microphone(on_block: Callable[[Pcm], None], **_form: object) -> Card:
        def tick() -> None:
            on_block(np.zeros(480, np.int16))
            if len(call.said) == 3:
                stop.set()

        return Card(tick)

    monkeypatch.setattr(command, "Microphone", microphone)
    await asyncio.wait_for(command._talk_live(call, stop), 10)
    assert len(call.said) >= 3
    assert call.finished


async def test_the_microphone_stops_when_the_far_end_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    call: Any = FakeCall()
    call.closed = True
    call.over.set()
    monkeypatch.setattr(command, "Microphone", lambda on_block, **_form: Card(lambda: None))
    await asyncio.wait_for(command._talk_live(call, asyncio.Event()), 10)
    assert not call.finished


@pytest.mark.parametrize(("rate", "used"), [(8000, 8000), (16000, 16000), (44100, 44100), (11025, 48000), (22050, 22050)])
def test_a_file_keeps_its_rate_where_20_ms_are_whole_samples(rate: int, used: int, tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", np.zeros(rate // 10, np.int16), rate)
    pcm, found = command._read(tmp_path / "a.wav")
    assert found == used
    assert len(pcm) == pytest.approx(used / 10, abs=5)


def test_trust_options_reach_the_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Everything that is said about trust, coding and buffer is passed on under its own name."""
    write_wav(tmp_path / "a.wav", np.zeros(160, np.int16), 16000)
    given: dict[str, Any] = {}

    def connect(url: str, **options: Any) -> Any:
        given.update(options, url=url)
        raise OSError("far enough")

    monkeypatch.setattr(command, "voicestream", SimpleNamespace(connect=connect))
    from voicestream.cli.entry import main

    words = ["call", "voicestream://h/p", "--in", str(tmp_path / "a.wav"), "--pin", "ab" * 32, "--token", "t"]
    words += ["--bitrate", "12000", "--frame-ms", "60", "--lookahead-ms", "300", "--dtx"]
    assert main(words) == 1
    assert given == {
        "url": "voicestream://h/p",
        "token": "t",
        "cafile": None,
        "pin": bytes([0xAB] * 32),
        "insecure": False,
        "sample_rate_hz": 16000,
        "bitrate_bps": 12000,
        "rate": RateConfig(max_bitrate_bps=12000),
        "frame_ms": 60,
        "lookahead_ms": 300,
        "dtx": True,
        "trace": None,
    }


@pytest.mark.parametrize("words", [["--mic"], ["--in", "a.wav", "--speaker"]])
def test_without_sound_devices_nobody_is_called(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from voicestream.cli.entry import main

    monkeypatch.chdir(tmp_path)
    write_wav("a.wav", np.zeros(160, np.int16), 16000)
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    monkeypatch.setattr(command, "voicestream", SimpleNamespace())
    assert main(["call", "voicestream://h/p", *words]) == 1
    assert "pip install voicestream[devices]" in capsys.readouterr().err


def test_a_recording_needs_a_folder_that_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from voicestream.cli.entry import main

    async def opened() -> None:
        raise AssertionError("it has dialled")

    made = []

    def connect(*_words: Any, **_options: Any) -> Any:
        made.append(opened())
        return made[-1]

    monkeypatch.chdir(tmp_path)
    write_wav("a.wav", np.zeros(160, np.int16), 16000)
    monkeypatch.setattr(command, "voicestream", SimpleNamespace(connect=connect))
    assert main(["call", "voicestream://h/p", "--in", "a.wav", "--out", "b/c/heard.wav"]) == 1
    made[0].close()
    assert capsys.readouterr().err == "voicestream: b/c/heard.wav cannot be written: there is no folder b/c\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.wav"]


def test_a_recording_never_takes_the_place_of_what_is_said(tmp_path: Path) -> None:
    path = tmp_path / "speech.wav"
    write_wav(path, np.zeros(160, np.int16), 16000)
    options = SimpleNamespace(url="voicestream://x/", mic=False, speaker=False, input=path, out=tmp_path / "." / "speech.wav")
    with pytest.raises(CommandError, match=r"--out is the file of --in"):
        command.run(options)


def test_a_file_that_is_cut_off_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "speech.wav"
    write_wav(path, np.zeros(16000, np.int16), 16000)
    path.write_bytes(path.read_bytes()[:-24000])
    assert len(command._read(path)[0]) == 4000
    assert capsys.readouterr().err == f"voicestream: {path} is cut off: 0.2 s of 1.0 s are there\n"


class Failing:
    """A call that the far end ends badly as soon as something is said; with `begins` unset it does not even begin."""

    def __init__(self, *, begins: bool) -> None:
        self.begins = begins

    def __await__(self) -> Any:
        if not self.begins:
            raise ConnectError("nobody answers")
        yield from asyncio.sleep(0).__await__()
        return self

    async def __aenter__(self) -> Failing:
        return self

    async def __aexit__(self, *_error: object) -> None:
        pass

    async def send(self, pcm: Pcm) -> None:
        if len(pcm):
            raise CallClosedError(ErrorCode.PATH_LOST, "nobody answers any more", remote=False)

    def read(self, count: int) -> Pcm:
        return np.zeros(count, np.int16)

    async def __aiter__(self) -> AsyncIterator[Pcm]:
        await asyncio.sleep(10)
        yield np.zeros(0, np.int16)

    def stats(self) -> CallStats:
        return replace(EMPTY, duration_s=3.0, close_code=ErrorCode.PATH_LOST)


@pytest.mark.parametrize("begins", [True, False])
def test_figures_are_printed_also_of_a_call_that_ends_badly(
    begins: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from voicestream.cli.entry import main

    write_wav(tmp_path / "a.wav", np.zeros(1600, np.int16), 16000)
    monkeypatch.setattr(command, "voicestream", SimpleNamespace(connect=lambda *_words, **_options: Failing(begins=begins)))
    assert main(["call", "voicestream://h/p", "--in", str(tmp_path / "a.wav"), "--json"]) == 1
    told = capsys.readouterr()
    figures = json.loads(told.out)
    assert "nobody answers" in figures["error"]
    assert told.err.splitlines()[-1] == f"voicestream: {figures['error']}"
    assert figures.get("duration_s") == (3.0 if begins else None)
