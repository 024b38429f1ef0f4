"""WAV files: reads all common forms of PCM, writes 16 bits as it comes."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from io import FileIO
from types import TracebackType
from typing import Any, BinaryIO, Final, Literal

import numpy as np
from numpy.typing import NDArray

from voicestream.audio.g711 import alaw_decode, ulaw_decode
from voicestream.audio.resample import resample, to_channels, to_int16
from voicestream.errors import AudioError

__all__ = ["WavAudio", "WavWriter", "load_wav", "read_wav", "write_wav"]

_FORMAT_PCM: Final = 1
_FORMAT_FLOAT: Final = 3
_FORMAT_ALAW: Final = 6
_FORMAT_ULAW: Final = 7
_FORMAT_EXTENSIBLE: Final = 0xFFFE
_TO_THE_END: Final = 0xFFFFFFFF
_LEFT_OPEN: Final = 0x7FFFF000
"""Programs that write into a pipe leave a size of 0, or one from here on, that nothing keeps to: then the audio goes to the end."""

_POSSIBLE_BITS: Final = {_FORMAT_PCM: (8, 16, 24, 32), _FORMAT_FLOAT: (32, 64), _FORMAT_ALAW: (8,), _FORMAT_ULAW: (8,)}

RATES_HZ: Final = range(8000, 384001)
"""Rates that a file may have; what claims another one is broken, or no speech."""

Path = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class WavAudio:
    """A sound file's content.

    Attributes:
        pcm: float32 -1 to 1, shape (n,) for one channel, (n, channels) for more.
        sample_rate_hz: Its rate.
        missing: Seconds that its header names and that are not there, as in a file that was not copied to its end.
    """

    pcm: NDArray[Any]
    sample_rate_hz: int
    missing: float = 0.0

    @property
    def channels(self) -> int:
        """Number of channels."""
        return 1 if self.pcm.ndim == 1 else int(self.pcm.shape[1])

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return len(self.pcm) / self.sample_rate_hz

    def converted(self, *, sample_rate_hz: int = 48000, channels: int = 1, dtype: Literal["int16", "float32"] = "int16") -> NDArray[Any]:
        """In the form that a call takes; see `read_wav`."""
        pcm = to_channels(self.pcm, channels)
        if self.sample_rate_hz != sample_rate_hz:
            pcm = resample(pcm, self.sample_rate_hz, sample_rate_hz)
        return to_int16(pcm) if dtype == "int16" else pcm


@dataclass(frozen=True, slots=True)
class _Format:
    kind: int
    channels: int
    sample_rate_hz: int
    bits: int


def read_wav(
    path: Path, *, sample_rate_hz: int = 48000, channels: int = 1, dtype: Literal["int16", "float32"] = "int16"
) -> NDArray[Any]:
    """The audio of a WAV file in the form that a call takes.

    Args:
        path: The file; see `load_wav` for the forms it may have.
        sample_rate_hz: Rate of the result.
        channels: 1 or 2: others are mixed or copied.
        dtype: "int16", or "float32" from -1 to 1.

    Returns:
        Shape (n,) for one channel, (n, 2) for two.

    Raises:
        AudioError: The file is missing, empty or no WAV file; one sentence that names it.
    """
    return load_wav(path).converted(sample_rate_hz=sample_rate_hz, channels=channels, dtype=dtype)


def load_wav(path: Path) -> WavAudio:
    """A WAV file as it is: 8, 16, 24 or 32-bit integers, 32 or 64-bit floats, µ-law or A-law, 8 to 384 kHz, any number of channels.

    Raises:
        AudioError: The file is missing, empty or no WAV file; one sentence that names it.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            form, data, missing = _read_chunks(file, name)
    except OSError as error:
        raise AudioError(f"{name} cannot be read: {error.strerror or error}") from error
    pcm = _samples(form, data, name)
    if not len(pcm):
        raise AudioError(f"{name} holds no audio")
    return WavAudio(pcm=pcm, sample_rate_hz=form.sample_rate_hz, missing=missing * 8 / form.bits / form.channels / form.sample_rate_hz)


def write_wav(path: Path, pcm: NDArray[Any], sample_rate_hz: int = 48000) -> None:
    """Write a whole recording as 16-bit WAV.

    Args:
        path: The file; what is there is overwritten.
        pcm: int16, or floats -1 to 1, of shape (n,) or (n, channels).
        sample_rate_hz: Its rate.

    Raises:
        AudioError: The file cannot be written.
    """
    with WavWriter(path, sample_rate_hz, 1 if pcm.ndim == 1 else pcm.shape[1]) as wav:
        wav.write(pcm)


def _read_chunks(file: BinaryIO, name: str) -> tuple[_Format, bytes, int]:
    """Form and audio of a file, and how many bytes of the audio are missing."""
    head = file.read(12)
    if not head:
        raise AudioError(f"{name} is empty")
    if len(head) < 12 or head[:4] not in (b"RIFF", b"RF64") or head[8:] != b"WAVE":
        raise AudioError(f"{name} is not a WAV file")
    form: _Format | None = None
    while len(header := file.read(8)) == 8:
        tag, size = struct.unpack("<4sI", header)
        if tag == b"data":
            if form is None:
                raise AudioError(f"{name} is not a usable WAV file: its audio comes before its format")
            data = file.read() if size in (0, _TO_THE_END) else file.read(size)
            return form, data, size - len(data) if 0 < size < _LEFT_OPEN else 0
        if tag == b"fmt ":
            form = _parse_format(file.read(size), name)
            file.read(size & 1)
        else:
            file.seek(size + (size & 1), os.SEEK_CUR)
    raise AudioError(f"{name} holds no audio")


def _parse_format(body: bytes, name: str) -> _Format:
    if len(body) < 16:
        raise AudioError(f"{name} is not a usable WAV file: its format chunk is cut off")
    kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", body[:16])
    if kind == _FORMAT_EXTENSIBLE and len(body) >= 26:
        kind = struct.unpack("<H", body[24:26])[0]
    if bits not in _POSSIBLE_BITS.get(kind, ()):
        raise AudioError(f"{name} holds samples of a form that is not supported (format {kind}, {bits} bits): convert it to 16-bit PCM")
    if channels < 1:
        raise AudioError(f"{name} is not a usable WAV file: it says that it has 0 channels")
    if rate not in RATES_HZ:
        raise AudioError(f"{name} is not a usable WAV file: its rate must be 8000 to 384000 Hz, not {rate}")
    return _Format(kind, channels, rate, bits)


def _samples(form: _Format, data: bytes, name: str) -> NDArray[np.float32]:
    """float32 of shape (n,) or (n, channels); a last incomplete sample is dropped."""
    width = form.bits // 8 * form.channels
    data = data[: len(data) // width * width]
    if form.kind == _FORMAT_FLOAT:
        with np.errstate(all="ignore"):
            values = np.frombuffer(data, dtype=f"<f{form.bits // 8}").astype(np.float32)
        if not np.isfinite(values).all():
            raise AudioError(f"{name} is not a usable WAV file: some of its samples are no numbers")
    elif form.kind in (_FORMAT_ALAW, _FORMAT_ULAW):
        decode = alaw_decode if form.kind == _FORMAT_ALAW else ulaw_decode
        values = decode(data).astype(np.float32) / np.float32(32768.0)
    elif form.bits == 8:
        values = (np.frombuffer(data, dtype=np.uint8).astype(np.float32) - 128.0) / np.float32(128.0)
    elif form.bits == 16:
        values = np.frombuffer(data, dtype="<i2").astype(np.float32) / np.float32(32768.0)
    elif form.bits == 24:
        parts = np.frombuffer(data, dtype=np.uint8).reshape(-1, 3).astype(np.int32)
        whole = (parts[:, 0] << 8) | (parts[:, 1] << 16) | (parts[:, 2] << 24)
        values = whole.astype(np.float32) / np.float32(2147483648.0)
    else:
        values = np.frombuffer(data, dtype="<i4").astype(np.float32) / np.float32(2147483648.0)
    return values if form.channels == 1 else values.reshape(-1, form.channels)


def _write_all(file: FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) or 0 :]


class WavWriter:
    """Writes 16-bit PCM to a WAV file as it comes. The header is right after `close`, or at the end of the ``with`` block.

    Args:
        path: The file; what is there is overwritten.
        sample_rate_hz: 1 to 384000.
        channels: 1 or more.

    Raises:
        AudioError: The file cannot be written.
    """

    def __init__(self, path: Path, sample_rate_hz: int, channels: int = 1) -> None:
        self._name = os.fspath(path)
        self._channels = channels
        self._sample_rate_hz = sample_rate_hz
        self._samples = 0
        self._file: FileIO | None = None
        try:
            # Unbuffered: nothing is left to be written, and to fail, when the object goes.
            self._file = FileIO(path, "wb")
            # Until close() the sizes say "to the end", so that an unfinished recording can be read.
            _write_all(self._file, self._header(_TO_THE_END))
        except OSError as error:
            if self._file is not None:
                self._file.close()
            raise self._trouble(error) from error

    @property
    def duration_s(self) -> float:
        """Seconds of audio written so far."""
        return self._samples / self._sample_rate_hz

    def write(self, pcm: NDArray[Any]) -> None:
        """Append int16, or floats -1 to 1, of shape (n,) or (n, channels).

        Raises:
            AudioError: The disk is full or gone, or the writer is closed.
        """
        if self._file is None:
            raise AudioError(f"{self._name} is closed")
        block = to_channels(pcm if pcm.dtype == np.int16 else to_int16(pcm), self._channels)
        try:
            _write_all(self._file, block.astype("<i2").tobytes())
        except OSError as error:
            raise self._trouble(error) from error
        self._samples += len(block)

    def close(self) -> None:
        """Finish the file. Further calls do nothing.

        Raises:
            AudioError: The disk is full or gone.
        """
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            if file.seekable():
                file.seek(0)
                _write_all(file, self._header(min(self._samples * self._channels * 2, _TO_THE_END)))
        except OSError as error:
            raise self._trouble(error) from error
        finally:
            file.close()

    def _header(self, size: int) -> bytes:
        width = 2 * self._channels
        form = struct.pack("<HHIIHH", _FORMAT_PCM, self._channels, self._sample_rate_hz, self._sample_rate_hz * width, width, 16)
        whole = min(size + 36, _TO_THE_END)
        return struct.pack("<4sI4s4sI", b"RIFF", whole, b"WAVE", b"fmt ", len(form)) + form + struct.pack("<4sI", b"data", size)

    def _trouble(self, error: OSError) -> AudioError:
        return AudioError(f"{self._name} cannot be written: {error.strerror or error}")

    def __enter__(self) -> WavWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
