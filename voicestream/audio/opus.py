"""Opus encoder and decoder over opuslib's declarations of libopus (RFC 6716).

opuslib's own classes are not used: their setters lose values, they do not pass NULL for a lost packet, and they build a Python
list of every sample. Here libopus reads and writes numpy buffers that are made once.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from voicestream.audio.library import OpusApi, PacketError, load_opus
from voicestream.errors import AudioError
from voicestream.wire.opus_toc import has_inband_copy

__all__ = ["OPUS_RATES_HZ", "OpusDecoder", "OpusEncoder", "has_inband_copy"]

OPUS_RATES_HZ: Final = (8000, 12000, 16000, 24000, 48000)
"""Sampling rates at which libopus takes and gives PCM. The coded stream is the same whichever is used."""

MAX_PACKET_SIZE: Final = 1100
"""Bytes that one packet may have: it must fit a datagram with its frame header."""

_MAX_PACKET_MS: Final = 120
_FRAMES_PER_SECOND: Final = (400, 200, 100, 50, 25)
_APPLICATIONS: Final = {"voip": 2048, "audio": 2049, "lowdelay": 2051}

_AMPLE_BPS: Final = 48000
_AMPLE_COMPLEXITY: Final = 5
"""From so many bits a channel on more effort is not heard (PESQ-WB of three voices within 0.04) and costs two thirds more."""

# Numbers of libopus' ctl requests.
_SET_BITRATE: Final = 4002
_SET_MAX_BANDWIDTH: Final = 4004
_SET_BANDWIDTH: Final = 4008
_SET_COMPLEXITY: Final = 4010
_SET_INBAND_FEC: Final = 4012
_SET_PACKET_LOSS_PERC: Final = 4014
_SET_DTX: Final = 4016
_GET_LOOKAHEAD: Final = 4027
_RESET_STATE: Final = 4028

_AUTO: Final = -1000
_BANDWIDTHS: Final = {"narrow": 1101, "medium": 1102, "wide": 1103, "superwide": 1104, "full": 1105}

Pcm = NDArray[np.int16]


def _check_form(sample_rate_hz: int, channels: int) -> None:
    if sample_rate_hz not in OPUS_RATES_HZ:
        raise ValueError(f"sample_rate_hz must be one of {OPUS_RATES_HZ} for Opus, not {sample_rate_hz}")
    if channels not in (1, 2):
        raise ValueError(f"channels must be 1 or 2 for Opus, not {channels}")


class _Buffer:
    """Interleaved int16 samples at a fixed address, which libopus reads and writes."""

    __slots__ = ("flat", "pointer", "shaped")

    def __init__(self, api: OpusApi, samples: int, channels: int) -> None:
        self.flat: Pcm = np.zeros(samples * channels, dtype=np.int16)
        self.shaped: Pcm = self.flat if channels == 1 else self.flat.reshape(-1, channels)
        self.pointer: Any = self.flat.ctypes.data_as(api.int16_pointer)


class OpusEncoder:
    """One Opus encoder.

    Args:
        sample_rate_hz: 8000, 12000, 16000, 24000 or 48000.
        channels: 1 or 2.
        application: "voip", "audio" or "lowdelay".
        bitrate_bps: 8000 to 64000.
        dtx: In silence produce packets of at most 2 bytes, which need not be sent.
        complexity: 0 to 10; at 48 kbps a channel and above at most 5 is used, which nobody can tell from more.

    Raises:
        AudioError: libopus is missing or refuses.
    """

    def __init__(
        self,
        sample_rate_hz: int = 48000,
        channels: int = 1,
        application: Literal["voip", "audio", "lowdelay"] = "voip",
        bitrate_bps: int = 40000,
        *,
        dtx: bool = False,
        complexity: int = 9,
    ) -> None:
        _check_form(sample_rate_hz, channels)
        if application not in _APPLICATIONS:
            raise ValueError(f"application must be voip, audio or lowdelay, not {application!r}")
        self.sample_rate_hz = sample_rate_hz
        self.channels = channels
        api = load_opus()
        error = ctypes.c_int()
        self._state = api.encoder.libopus_create(sample_rate_hz, channels, _APPLICATIONS[application], ctypes.byref(error))
        if error.value != 0 or not self._state:
            raise AudioError(f"libopus could not make an encoder (error {error.value})")
        weakref.finalize(self, api.encoder.destroy, self._state).atexit = False
        self._encode = api.encoder.libopus_encode
        self._ctl = api.encoder.libopus_ctl
        self._input = _Buffer(api, sample_rate_hz * 60 // 1000, channels)
        self._output = ctypes.create_string_buffer(MAX_PACKET_SIZE)
        self._lengths = {sample_rate_hz // per_second for per_second in _FRAMES_PER_SECOND} | {sample_rate_hz * 3 // 50}
        self._set(_SET_COMPLEXITY, complexity)
        self._complexity = complexity
        self.set_bitrate(bitrate_bps)
        self._set(_SET_DTX, int(dtx))

    def _set(self, request: int, value: int) -> None:
        result = self._ctl(self._state, request, ctypes.c_int(value))
        if result != 0:
            raise ValueError(f"libopus refuses {value} for its setting {request} (error {result})")

    @property
    def lookahead(self) -> int:
        """Samples by which the encoder delays the signal."""
        value = ctypes.c_int()
        self._ctl(self._state, _GET_LOOKAHEAD, ctypes.byref(value))
        return value.value

    def set_bitrate(self, bitrate_bps: int) -> None:
        """Bits per second, 8000 to 64000, from the next frame on."""
        if not 8000 <= bitrate_bps <= 64000:
            raise ValueError(f"bitrate_bps must be 8000 to 64000, not {bitrate_bps}")
        self._set(_SET_BITRATE, bitrate_bps)
        ample = bitrate_bps >= _AMPLE_BPS * self.channels
        self._set(_SET_COMPLEXITY, min(self._complexity, _AMPLE_COMPLEXITY) if ample else self._complexity)

    def set_inband_fec(self, percent: int) -> None:
        """Spend bits on a coarse copy of the frame before, for `percent` (0 to 100) expected loss; 0 switches it off."""
        if not 0 <= percent <= 100:
            raise ValueError(f"percent must be 0 to 100, not {percent}")
        self.set_expected_loss(percent)
        self._set(_SET_INBAND_FEC, int(percent > 0))

    def set_expected_loss(self, percent: int) -> None:
        """The same without switching in-band FEC itself: with 0 the next frames have no copies, and the coding mode stays."""
        self._set(_SET_PACKET_LOSS_PERC, percent)

    def set_max_bandwidth(self, name: Literal["narrow", "medium", "wide", "superwide", "full"]) -> None:
        """Widest audio band that may be coded: 4, 6, 8, 12 or 20 kHz."""
        self._set(_SET_MAX_BANDWIDTH, _BANDWIDTHS[name])

    def set_bandwidth(self, name: Literal["narrow", "medium", "wide", "superwide", "full"]) -> None:
        """Audio band that is coded whatever the bitrate."""
        self._set(_SET_BANDWIDTH, _BANDWIDTHS[name])

    def free_bandwidth(self) -> None:
        """The codec chooses the audio band by the bitrate again."""
        self._set(_SET_BANDWIDTH, _AUTO)

    def reset(self) -> None:
        """Forget the signal so far; settings stay."""
        self._ctl(self._state, _RESET_STATE)

    def encode(self, pcm: Pcm) -> bytes:
        """Code one frame.

        Args:
            pcm: int16 of shape (n,) or (n, channels), where n is 2.5, 5, 10, 20, 40 or 60 ms.

        Raises:
            ValueError: The block has another length or shape.
            AudioError: libopus fails.
        """
        samples = len(pcm)
        if samples not in self._lengths:
            raise ValueError(f"a frame must have 2.5, 5, 10, 20, 40 or 60 ms at {self.sample_rate_hz} Hz, not {samples} samples")
        self._input.shaped[:samples] = pcm
        size = self._encode(self._state, self._input.pointer, samples, self._output, MAX_PACKET_SIZE)
        if size <= 0:
            raise AudioError(f"libopus could not encode a frame (error {size})")
        return ctypes.string_at(self._output, size)


class OpusDecoder:
    """One Opus decoder. Packets of either channel count are decoded to `channels`.

    Args:
        sample_rate_hz: 8000, 12000, 16000, 24000 or 48000.
        channels: 1 or 2, of the PCM that comes out.

    Raises:
        AudioError: libopus is missing or refuses.
    """

    def __init__(self, sample_rate_hz: int = 48000, channels: int = 1) -> None:
        _check_form(sample_rate_hz, channels)
        self.sample_rate_hz = sample_rate_hz
        self.channels = channels
        api = load_opus()
        error = ctypes.c_int()
        self._state = api.decoder.libopus_create(sample_rate_hz, channels, ctypes.byref(error))
        if error.value != 0 or not self._state:
            raise AudioError(f"libopus could not make a decoder (error {error.value})")
        weakref.finalize(self, api.decoder.destroy, self._state).atexit = False
        self._decode = api.decoder.libopus_decode
        self._ctl = api.decoder.libopus_ctl
        self._marked = ctypes.create_string_buffer(api.decoder.libopus_get_size(channels))
        # A step of concealment, and whether it may be twice as long: packets were at least that long.
        self._step = sample_rate_hz // 100
        self._long = True
        self._max_samples = sample_rate_hz * _MAX_PACKET_MS // 1000
        self._output = _Buffer(api, self._max_samples, channels)
        self._surplus = self._output.shaped[:0].copy()
        self.mark()

    def _run(self, packet: bytes | None, samples: int, fec: bool) -> Pcm:
        size = 0 if packet is None else len(packet)
        made = self._decode(self._state, packet, size, self._output.pointer, samples, int(fec))
        if made < 0:
            raise PacketError(f"libopus cannot decode a packet of {size} bytes (error {made})")
        return self._output.shaped[:made].copy()

    def _decoded(self, samples: int) -> None:
        self._surplus = self._surplus[:0]
        self._step = min(samples, self.sample_rate_hz // 100)
        self._long = samples >= self.sample_rate_hz // 50

    def decode(self, packet: bytes) -> Pcm:
        """PCM of one packet.

        Raises:
            PacketError: The packet is corrupt.
        """
        if not packet:
            raise PacketError("an Opus packet must not be empty")
        pcm = self._run(packet, self._max_samples, False)
        self._decoded(len(pcm))
        return pcm

    def conceal(self, samples: int) -> Pcm:
        """PCM in place of lost audio, exactly `samples` of it.

        libopus conceals in steps of 10 ms; a shorter one breaks the signal. What a step makes too much is kept for the next
        call, until something is decoded.
        """
        parts = [self._surplus[:samples]]
        self._surplus = self._surplus[samples:]
        left = samples - len(parts[0])
        while left > 0:
            made = self._run(None, self._step * 2 if left >= self._step * 2 and self._long else self._step, False)
            parts.append(made[:left])
            self._surplus = made[left:]
            left -= len(made)
        return np.concatenate(parts)

    def has_inband_copy(self, packet: bytes) -> bool:
        """See the function of this name."""
        return has_inband_copy(packet)

    def decode_fec(self, packet: bytes, samples: int) -> Pcm:
        """PCM of the `samples` before `packet` out of its in-band copy.

        Args:
            packet: The packet that follows the lost one.
            samples: Length of what was lost, a multiple of 2.5 ms and at most 120 ms.

        Raises:
            PacketError: The packet is corrupt or has no copy.
        """
        if samples % (self.sample_rate_hz // 400) or not 0 < samples <= self._max_samples:
            raise ValueError(f"samples must be a multiple of 2.5 ms up to 120 ms at {self.sample_rate_hz} Hz, not {samples}")
        if not has_inband_copy(packet):
            raise PacketError(f"a packet of {len(packet)} bytes carries no in-band copy")
        pcm = self._run(packet, samples, True)
        self._surplus = self._surplus[:0]
        return pcm

    def mark(self) -> None:
        """Remember the present state."""
        # The state is one piece of memory, and a plain copy of it is a copy of the decoder (opus.h says so).
        ctypes.memmove(self._marked, self._state, len(self._marked))
        self._marked_surplus = self._surplus

    def back_to_mark(self) -> None:
        """Return to the state that was marked last, as if nothing had been decoded or concealed since."""
        ctypes.memmove(self._state, self._marked, len(self._marked))
        self._surplus = self._marked_surplus

    def new(self) -> OpusDecoder:
        """Another decoder of the same form, fresh."""
        return OpusDecoder(self.sample_rate_hz, self.channels)

    def reset(self) -> None:
        """Forget the signal so far."""
        self._ctl(self._state, _RESET_STATE)
        self._surplus = self._surplus[:0]
