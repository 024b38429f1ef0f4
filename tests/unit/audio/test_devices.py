from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from voicestream.audio.devices import Microphone, Speaker
from voicestream.errors import AudioError


class Aborted(Exception):
    pass


class PortAudioTrouble(Exception):
    pass


class FakeStream:
    made: ClassVar[list[FakeStream]] = []

    def __init__(self, **settings: Any) -> None:
        if settings["device"] == "none":
            raise PortAudioTrouble("No such device")
        self.settings = settings
        self.running = False
        self.latency = 0.025
        FakeStream.made.append(self)

    def start(self) -> None:
        self.running = True

    def close(self) -> None:
        self.running = False


@pytest.fixture(autouse=True)
def sounddevice(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeStream.made = []
    fake = SimpleNamespace(InputStream=FakeStream, OutputStream=FakeStream, CallbackAbort=Aborted, PortAudioError=PortAudioTrouble)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)  # type: ignore[arg-type]


def callback() -> Callable[..., None]:
    return FakeStream.made[0].settings["callback"]  # type: ignore[no-any-return]


def test_the_microphone_gives_copies_of_its_blocks_while_it_runs() -> None:
    blocks: list[np.ndarray] = []
    with Microphone(blocks.append, sample_rate_hz=16000, block_ms=20):
        stream = FakeStream.made[0]
        assert stream.running
        assert (stream.settings["samplerate"], stream.settings["blocksize"], stream.settings["dtype"]) == (16000, 320, "int16")
        buffer = np.arange(320, dtype=np.int16).reshape(-1, 1)
        callback()(buffer, 320, None, "")
        buffer.fill(7)
    assert not stream.running
    assert blocks[0].tolist() == list(range(320))


def test_a_stereo_microphone_gives_two_columns() -> None:
    blocks: list[np.ndarray] = []
    Microphone(blocks.append, channels=2)
    callback()(np.ones((480, 2), dtype=np.int16), 480, None, "")
    assert blocks[0].shape == (480, 2)


@pytest.mark.parametrize("channels", [1, 2])
def test_the_speaker_plays_what_it_reads(channels: int) -> None:
    asked: list[int] = []

    def read(n: int) -> np.ndarray:
        asked.append(n)
        return np.full(n if channels == 1 else (n, 2), 5, dtype=np.int16)

    Speaker(read, channels=channels)
    out = np.zeros((480, channels), dtype=np.int16)
    callback()(out, 480, None, "")
    assert asked == [480]
    assert (out == 5).all()


def test_an_error_in_the_speakers_source_plays_silence_ends_the_stream_and_is_kept() -> None:
    def read(n: int) -> np.ndarray:
        raise RuntimeError("call over")

    speaker = Speaker(read)
    assert speaker.latency == 0.025
    out = np.full((480, 1), 99, dtype=np.int16)
    with pytest.raises(Aborted):
        callback()(out, 480, None, "")
    assert not out.any()
    assert isinstance(speaker.error, RuntimeError)


def test_an_error_of_who_takes_the_microphones_blocks_ends_the_stream_and_is_kept() -> None:
    def refuse(block: np.ndarray) -> None:
        raise RuntimeError("call over")

    microphone = Microphone(refuse)
    with pytest.raises(Aborted):
        callback()(np.zeros((480, 1), dtype=np.int16), 480, None, "")
    assert isinstance(microphone.error, RuntimeError)


def test_overruns_that_the_sound_card_reports_are_counted() -> None:
    microphone = Microphone(lambda block: None)
    for status in ("", "input overflow", "input overflow"):
        callback()(np.zeros((480, 1), dtype=np.int16), 480, None, status)
    assert microphone.overruns == 2


def test_a_device_that_does_not_exist_is_an_audio_error() -> None:
    with pytest.raises(AudioError, match="cannot be used: No such device"):
        Speaker(lambda n: np.zeros(n, dtype=np.int16), device="none")


@pytest.mark.parametrize(
    ("trouble", "words"), [(ImportError("nothing"), r"pip install voicestream\[devices\]"), (OSError("no lib"), "PortAudio library")]
)
def test_a_missing_package_or_library_is_told_with_its_remedy(monkeypatch: pytest.MonkeyPatch, trouble: Exception, words: str) -> None:
    real = builtins.__import__

    def fails(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "sounddevice":
            raise trouble
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", fails)
    with pytest.raises(AudioError, match=words):
        Microphone(lambda block: None)
