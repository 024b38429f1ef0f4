from __future__ import annotations

import io
import os
import struct
import threading
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voicestream.audio import g711
from voicestream.audio.files import WavWriter, load_wav, read_wav, write_wav
from voicestream.errors import AudioError

VALUES = np.array([[0.0, 0.5], [-0.5, 0.25], [0.75, -1.0]])


def riff(kind: int, bits: int, body: bytes, *, channels: int = 2, rate: int = 16000, before: bytes = b"", extensible: bool = False,
         size: int | None = None) -> bytes:  # fmt: skip
    width = bits // 8 * channels
    form = struct.pack("<HHIIHH", 0xFFFE if extensible else kind, channels, rate, rate * width, width, bits)
    if extensible:
        form += struct.pack("<HHIH", 22, bits, 3, kind) + bytes(14)
    chunks = before + b"fmt " + struct.pack("<I", len(form)) + form
    chunks += b"data" + struct.pack("<I", len(body) if size is None else size) + body
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def packed(kind: int, bits: int) -> bytes:
    flat = VALUES.reshape(-1)
    if kind == 3:
        return flat.astype(f"<f{bits // 8}").tobytes()
    if bits == 8:
        return (flat * 128 + 128).clip(0, 255).astype(np.uint8).tobytes()
    whole = (flat * 2 ** (bits - 1)).clip(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1).astype(np.int64)
    return b"".join(int(value).to_bytes(bits // 8, "little", signed=True) for value in whole)


@pytest.mark.parametrize("extensible", [False, True])
@pytest.mark.parametrize(("kind", "bits"), [(1, 8), (1, 16), (1, 24), (1, 32), (3, 32), (3, 64)])
def test_every_common_form_of_pcm_is_read(tmp_path: Path, kind: int, bits: int, extensible: bool) -> None:
    path = tmp_path / "sound.wav"
    path.write_bytes(riff(kind, bits, packed(kind, bits), extensible=extensible))
    wav = load_wav(path)
    assert (wav.sample_rate_hz, wav.channels, wav.pcm.dtype) == (16000, 2, np.float32)
    assert wav.duration == 3 / 16000
    assert np.abs(wav.pcm - VALUES).max() < 0.01
    assert np.abs(read_wav(path, sample_rate_hz=16000, channels=2) - VALUES * 32768).max() <= 1


def test_chunks_that_are_not_known_and_padding_bytes_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    before = b"LIST" + struct.pack("<I", 3) + b"abc\0" + b"bext" + struct.pack("<I", 2) + b"xy"
    path.write_bytes(riff(1, 16, packed(1, 16), before=before))
    assert len(load_wav(path).pcm) == 3


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 10_000])
def test_a_file_from_a_pipe_or_cut_off_gives_what_is_there(tmp_path: Path, size: int) -> None:
    path = tmp_path / "sound.wav"
    path.write_bytes(riff(1, 16, packed(1, 16) + b"\x01", size=size))
    wav = load_wav(path)
    assert len(wav.pcm) == 3
    assert wav.missing == pytest.approx((10_000 - 13) / 64000 if size == 10_000 else 0.0)


def test_nothing_is_missing_of_a_whole_file_or_of_one_whose_size_was_left_open(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    for size in (None, 0x7FFFF000):
        path.write_bytes(riff(1, 16, packed(1, 16), size=size))
        assert load_wav(path).missing == 0.0


FORM = b"RIFF\0\0\0\0WAVEfmt "


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"RIFF", "is not a WAV file"),
        (b"ID3\x04 this is an mp3 file", "is not a WAV file"),
        (riff(1, 16, b""), "holds no audio"),
        (riff(1, 16, b"\0\0", channels=1)[:44], "holds no audio"),
        (FORM + struct.pack("<I", 4) + b"\1\0\1\0", "format chunk is cut off"),
        (riff(2, 4, b"\0\0"), "form that is not supported"),
        (riff(1, 12, b"\0\0"), "form that is not supported"),
        (riff(1, 16, b"\0\0", channels=0), "0 channels"),
        (b"RIFF\0\0\0\0WAVEdata\2\0\0\0\0\0", "audio comes before its format"),
        (b"RIFF\0\0\0\0WAVE", "holds no audio"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_one_sentence_that_names_it(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.wav"
    path.write_bytes(content)
    with pytest.raises(AudioError, match=words) as caught:
        read_wav(path)
    assert "bad.wav" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_told_in_one_sentence(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.wav", tmp_path):
        with pytest.raises(AudioError, match="cannot be read") as caught:
            read_wav(path)
        assert path.name in str(caught.value)


def test_reading_converts_rate_channels_and_type(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    tone = (8000 * np.sin(np.arange(4410) / 20)).astype(np.int16)
    write_wav(path, np.stack((tone, tone), axis=1), 44100)
    mono = read_wav(path)
    assert mono.shape == (4800,)
    assert mono.dtype == np.int16
    assert np.abs(mono.astype(int)).max() == pytest.approx(8000, rel=0.05)
    assert read_wav(path, channels=2, sample_rate_hz=8000, dtype="float32").shape == (800, 2)


def test_even_rates_that_no_call_has_are_read_and_converted(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    path.write_bytes(riff(1, 16, bytes(40000), rate=384000))
    assert load_wav(path).sample_rate_hz == 384000
    assert read_wav(path, sample_rate_hz=192000).shape == (5000,)


def test_what_is_written_is_read_by_the_standard_library_and_by_us(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    pcm = np.arange(-1000, 1000).astype(np.int16)
    with WavWriter(path, sample_rate_hz=16000) as writer:
        writer.write(pcm[:300])
        writer.write(pcm[300:300])
        writer.write(pcm[300:])
        assert writer.duration_s == 2000 / 16000
    with wave.open(str(path)) as standard:
        assert (standard.getframerate(), standard.getnchannels(), standard.getnframes()) == (16000, 1, 2000)
    assert np.array_equal(read_wav(path, sample_rate_hz=16000), pcm)


def test_a_recording_without_audio_is_still_a_wav_file(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    WavWriter(path, 48000).close()
    with wave.open(str(path)) as standard:
        assert standard.getnframes() == 0


def test_floats_and_other_channel_counts_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    with WavWriter(path, 48000, channels=2) as writer:
        writer.write(np.array([0.5, 2.0], dtype=np.float32))
    assert read_wav(path, channels=2).tolist() == [[16384, 16384], [32767, 32767]]


def test_a_file_that_cannot_be_written_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match=r"sound\.wav cannot be written"):
        WavWriter(tmp_path / "no" / "sound.wav", 48000)
    writer = WavWriter(tmp_path / "sound.wav", 48000)
    writer.close()
    writer.close()
    with pytest.raises(AudioError, match="is closed"):
        writer.write(np.zeros(1, dtype=np.int16))


def test_a_full_disk_is_an_audio_error(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with pytest.raises(AudioError, match="/dev/full cannot be written"):
        WavWriter("/dev/full", 48000)


def test_a_disk_that_fails_while_recording_is_told_and_the_file_is_closed(tmp_path: Path) -> None:
    class Failing(io.FileIO):
        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

    path = tmp_path / "sound.wav"
    writer = WavWriter(path, 48000)
    assert writer._file is not None
    writer._file.close()
    failing = Failing(path, "wb")
    writer._file = failing
    with pytest.raises(AudioError, match="No space left"):
        writer.write(np.zeros(10, dtype=np.int16))
    with pytest.raises(AudioError, match="No space left"):
        writer.close()
    assert failing.closed


def test_a_recording_into_a_pipe_needs_no_seeking(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    with WavWriter(path, 48000) as writer:
        writer.write(np.arange(100, dtype=np.int16))
    reader.join(10)
    assert len(got[0]) == 44 + 200


def test_a_recording_that_was_not_closed_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    writer = WavWriter(path, 48000)
    writer.write(np.arange(100, dtype=np.int16))
    assert read_wav(path).tolist() == list(range(100))
    writer.close()


@pytest.mark.parametrize(("kind", "encode", "decode"), [(7, g711.ulaw_encode, g711.ulaw_decode), (6, g711.alaw_encode, g711.alaw_decode)])
@pytest.mark.parametrize("channels", [1, 2])
def test_telephone_recordings_are_read(kind: int, encode: Any, decode: Any, channels: int, tmp_path: Path) -> None:
    pcm = (20000 * np.sin(np.arange(800 * channels) * 0.1)).astype(np.int16)
    (tmp_path / "a.wav").write_bytes(riff(kind, 8, encode(pcm), channels=channels, rate=8000))
    wav = load_wav(tmp_path / "a.wav")
    assert (wav.sample_rate_hz, wav.channels) == (8000, channels)
    assert np.array_equal(np.rint(wav.pcm.reshape(-1) * 32768), decode(encode(pcm)))


@pytest.mark.parametrize("rate", [0, 1, 7999, 384001, 4294967295])
def test_a_rate_that_no_speech_has_is_refused_in_one_sentence(rate: int, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(riff(1, 16, bytes(100), rate=8000).replace(struct.pack("<I", 8000), struct.pack("<I", rate), 1))
    with pytest.raises(AudioError, match=f"its rate must be 8000 to 384000 Hz, not {rate}"):
        load_wav(tmp_path / "a.wav")


@pytest.mark.parametrize("rate", [8000, 384000])
def test_the_rates_at_both_ends_are_read(rate: int, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(riff(1, 16, bytes(100), rate=rate))
    assert load_wav(tmp_path / "a.wav").sample_rate_hz == rate
