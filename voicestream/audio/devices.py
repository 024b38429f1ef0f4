"""Microphone and loudspeaker, over the ``sounddevice`` package (extra ``devices``)."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicestream.errors import AudioError

__all__ = ["Microphone", "Speaker", "require_devices"]

Pcm = NDArray[np.int16]


def _sounddevice() -> Any:
    try:
        import sounddevice
    except ImportError as error:
        raise AudioError("sound devices need the sounddevice package: run `pip install voicestream[devices]`") from error
    except OSError as error:
        raise AudioError(f"sound devices need the PortAudio library (Debian: libportaudio2, Homebrew: portaudio): {error}") from error
    return sounddevice


def require_devices() -> None:
    """See that there is what sound devices need, before anything is begun that needs them.

    Raises:
        AudioError: There is not; the message says what to do.
    """
    _sounddevice()


class _Device:
    """A stream of the sound card that runs from `start`, or the start of the ``with`` block, to `close`.

    The stream's thread calls back; an exception there ends the stream and is kept in `error`.
    """

    def __init__(self, stream: Callable[[Any], Any]) -> None:
        library = _sounddevice()
        self.error: BaseException | None = None
        self.overruns = 0
        self._abort = library.CallbackAbort
        try:
            self._stream = stream(library)
        except (library.PortAudioError, ValueError) as error:
            raise AudioError(f"the sound device cannot be used: {error}") from error

    def start(self) -> None:
        """Begin to run."""
        self._stream.start()

    def close(self) -> None:
        """Stop and give the device back."""
        self._stream.close()

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.error = error
            raise self._abort from error

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Microphone(_Device):
    """Gives every block that the microphone records to `on_block`, in the sound card's thread.

    Args:
        on_block: Takes int16 of shape (n,) or (n, channels); must return at once, as a call's ``send_nowait`` does.
        sample_rate_hz: Rate to record at.
        channels: 1 or 2.
        block_ms: Length of a block.
        device: Name or number as sounddevice knows it; None is the default device.

    Raises:
        AudioError: No sounddevice, no PortAudio or no such device; the message says what to do.
    """

    def __init__(
        self,
        on_block: Callable[[Pcm], object],
        *,
        sample_rate_hz: int = 48000,
        channels: int = 1,
        block_ms: int = 10,
        device: int | str | None = None,
    ) -> None:
        self._on_block = on_block
        self._channels = channels
        super().__init__(
            lambda library: library.InputStream(
                samplerate=sample_rate_hz,
                channels=channels,
                blocksize=sample_rate_hz * block_ms // 1000,
                dtype="int16",
                device=device,
                latency="low",
                callback=self._callback,
            )
        )

    def _callback(self, indata: Pcm, frames: int, time: object, status: object) -> None:
        self.overruns += bool(status)
        # The buffer belongs to the sound card; it is overwritten after the return.
        block = indata[:, 0].copy() if self._channels == 1 else indata.copy()
        self._guard(lambda: self._deliver(block))

    def _deliver(self, block: Pcm) -> None:
        self._on_block(block)


class Speaker(_Device):
    """Plays what `read` gives, from the sound card's thread.

    Args:
        read: Called with n; returns exactly n samples, int16 (n,) or (n, channels), at once, as a call's ``read`` does.
        sample_rate_hz: Rate to play at.
        channels: 1 or 2.
        block_ms: Length of a block.
        device: Name or number as sounddevice knows it; None is the default device.

    Raises:
        AudioError: No sounddevice, no PortAudio or no such device; the message says what to do.
    """

    def __init__(
        self,
        read: Callable[[int], Pcm],
        *,
        sample_rate_hz: int = 48000,
        channels: int = 1,
        block_ms: int = 10,
        device: int | str | None = None,
    ) -> None:
        self._read = read
        super().__init__(
            lambda library: library.OutputStream(
                samplerate=sample_rate_hz,
                channels=channels,
                blocksize=sample_rate_hz * block_ms // 1000,
                dtype="int16",
                device=device,
                latency="low",
                callback=self._callback,
            )
        )

    @property
    def latency(self) -> float:
        """Seconds from `read` to the loudspeaker, as the sound card tells; for a call's ``device_latency``."""
        return float(self._stream.latency)

    def _callback(self, outdata: Pcm, frames: int, time: object, status: object) -> None:
        self.overruns += bool(status)
        # Whatever happens in read(), the buffer must not play what it held before.
        outdata.fill(0)
        self._guard(lambda: self._fill(outdata, frames))

    def _fill(self, outdata: Pcm, frames: int) -> None:
        block = self._read(frames)
        outdata[:] = block.reshape(frames, -1)
