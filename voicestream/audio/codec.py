"""One form for all codecs: what makes payloads out of PCM, and PCM out of payloads."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from voicestream.audio import g711
from voicestream.audio.level import LoudPart, VoiceDetector
from voicestream.audio.library import PacketError
from voicestream.audio.opus import MAX_PACKET_SIZE, OPUS_RATES_HZ, OpusDecoder, OpusEncoder
from voicestream.audio.resample import to_channels
from voicestream.codepoints import CodecId
from voicestream.config import UNITS_PER_SECOND, AudioConfig, Track
from voicestream.errors import AudioError

__all__ = ["Decoder", "Encoder", "make_decoder", "make_encoder"]

Pcm = NDArray[np.int16]

_OPUS_FRAME_UNITS: Final = (24, 16, 8, 4)
COPY_COMPLEXITY: Final = 5

NARROW_BPS: Final = 9000
"""Below this bitrate, for each channel, Opus codes a narrower band."""

STAYS_WIDE_S: Final = 10.0
"""Seconds for which the band stays as it was all the same: a change of it is heard more than coarser speech for a moment."""

_DTX_SIZE: Final = 2
"""An Opus packet of at most this many bytes says only that there is silence."""


class Encoder(Protocol):
    """Makes one payload of one frame."""

    @property
    def sample_rate_hz(self) -> int:
        """Rate of the PCM that it takes."""

    @property
    def channels(self) -> int:
        """Channels of the PCM that it takes."""

    @property
    def lookahead(self) -> int:
        """Samples by which the coded signal is delayed."""

    def frame_units(self, frame_ms: int) -> int:
        """Length in pts units (2.5 ms) of the longest frame up to `frame_ms` that it can make and a datagram can carry."""

    def encode(self, pcm: Pcm) -> tuple[bytes, bool]:
        """The payload, and whether it is silence that need not be sent."""

    def encode_copy(self, pcm: Pcm) -> bytes | None:
        """A coarse encoding of the frame that `encode` was given last; None when no copies are made."""

    def apply(self, bitrate_bps: int, inband_fec_percent: int, copy_bps: int = 0, inband_part: float = 1.0) -> None:
        """Settings from the next frame on. Codecs of a fixed rate ignore them.

        Args:
            bitrate_bps: Bits per second.
            inband_fec_percent: Loss that the in-band copy is made for; 0 for none.
            copy_bps: Bits per second of separate copies; 0 for none.
            inband_part: Part of the frames, the louder ones, that the in-band copy is made for.
        """

    def reset(self) -> None:
        """Forget the signal so far; settings stay."""


class Decoder(Protocol):
    """Makes PCM of payloads."""

    @property
    def sample_rate_hz(self) -> int:
        """Rate of the PCM that it makes."""

    @property
    def channels(self) -> int:
        """Channels of the PCM that it makes."""

    def decode(self, payload: bytes) -> Pcm:
        """PCM of one frame; raises `PacketError` for a corrupt one."""

    def conceal(self, samples: int) -> Pcm | None:
        """PCM in place of lost audio; None when the codec has no concealment."""

    def has_inband_copy(self, payload: bytes) -> bool:
        """Whether `payload` carries a coarse copy of the audio before it."""

    def decode_fec(self, payload: bytes, samples: int) -> Pcm:
        """PCM of the `samples` before `payload` from its in-band copy; raises `PacketError` where it has none."""

    def reset(self) -> None:
        """Forget the signal so far."""

    def mark(self) -> None:
        """Remember the present state."""

    def back_to_mark(self) -> None:
        """Return to the state that was marked last, as if nothing had been decoded or concealed since."""

    def new(self) -> Decoder:
        """Another decoder of the same form, fresh."""


class _OpusTrackEncoder:
    def __init__(self, track: Track, audio: AudioConfig) -> None:
        # Opus takes the common rates as they are, whatever the track's clock; other rates are converted to 48 kHz.
        rate = audio.sample_rate_hz if audio.sample_rate_hz in OPUS_RATES_HZ else 48000
        self.sample_rate_hz = rate
        self.channels = track.channels
        self._opus = OpusEncoder(
            rate, track.channels, audio.application, audio.bitrate_bps, dtx=audio.dtx, complexity=audio.complexity
        )
        self.lookahead = self._opus.lookahead
        self._dtx = audio.dtx
        self._copy_complexity = min(audio.complexity, COPY_COMPLEXITY)
        self._copies: OpusEncoder | None = None
        self._applied: tuple[float, ...] = (audio.bitrate_bps, 0, 0, 1.0)
        self._loud: LoudPart | None = None
        self._wide_left = 0  # samples for which the band is kept wide

    def frame_units(self, frame_ms: int) -> int:
        for units in _OPUS_FRAME_UNITS:
            if units * 2.5 <= frame_ms:
                return units
        return _OPUS_FRAME_UNITS[-1]

    def encode(self, pcm: Pcm) -> tuple[bytes, bool]:
        if self._loud is not None:
            self._opus.set_expected_loss(round(self._applied[1]) if self._loud.push(pcm) else 0)
        payload = self._opus.encode(pcm)
        if self._wide_left > 0:
            self._wide_left -= len(pcm)
            if self._wide_left <= 0:
                self._opus.free_bandwidth()
        return payload, self._dtx and len(payload) <= _DTX_SIZE

    def encode_copy(self, pcm: Pcm) -> bytes | None:
        return None if self._copies is None else self._copies.encode(pcm)

    def apply(self, bitrate_bps: int, inband_fec_percent: int, copy_bps: int = 0, inband_part: float = 1.0) -> None:
        if (bitrate_bps, inband_fec_percent, copy_bps, inband_part) == self._applied:
            return
        self._opus.set_bitrate(bitrate_bps)
        self._keep_band(int(self._applied[0]), bitrate_bps)
        self._opus.set_inband_fec(inband_fec_percent)
        self._loud = LoudPart(inband_part) if inband_fec_percent and inband_part < 1.0 else None
        self._copies = self._copier(copy_bps) if copy_bps else None
        self._applied = (bitrate_bps, inband_fec_percent, copy_bps, inband_part)

    def _keep_band(self, before_bps: int, bitrate_bps: int) -> None:
        narrow = NARROW_BPS * self.channels
        if bitrate_bps < narrow <= before_bps:
            self._wide_left = round(STAYS_WIDE_S * self.sample_rate_hz)
            self._opus.set_bandwidth("wide")
        elif before_bps < narrow <= bitrate_bps and self._wide_left > 0:
            self._wide_left = 0
            self._opus.free_bandwidth()

    def _copier(self, copy_bps: int) -> OpusEncoder:
        copies = self._copies
        if copies is None:
            copies = OpusEncoder(self.sample_rate_hz, self.channels, "voip", copy_bps, complexity=self._copy_complexity)
            # As wide as speech of the main encoder: a switch to a narrower band is heard more than the coarseness of a few frames.
            copies.set_bandwidth("wide")
        copies.set_bitrate(copy_bps)
        return copies

    def reset(self) -> None:
        self._opus.reset()


class _PcmTrackEncoder:
    """G.711 and L16: samples of a fixed size."""

    lookahead = 0

    def __init__(self, track: Track, audio: AudioConfig) -> None:
        self.sample_rate_hz = track.clock_rate_hz
        self.channels = track.channels
        self._codec = track.codec
        self._fixed_units = track.frame_units
        self._bytes_per_sample = track.channels * (2 if track.codec == CodecId.L16 else 1)
        self._detector = VoiceDetector() if audio.dtx else None
        if not self._possible_units():
            raise ValueError(f"no whole frame of {track.clock_rate_hz} Hz, {track.channels} channels fits a datagram: choose another codec")

    def _possible_units(self) -> list[int]:
        rate = self.sample_rate_hz
        return [
            units
            for units in range(1, 25)
            if rate * units % UNITS_PER_SECOND == 0 and rate * units // UNITS_PER_SECOND * self._bytes_per_sample <= MAX_PACKET_SIZE
        ]

    def frame_units(self, frame_ms: int) -> int:
        if self._fixed_units:
            return self._fixed_units
        possible = self._possible_units()
        return max((units for units in possible if units * 2.5 <= frame_ms), default=possible[0])

    def encode(self, pcm: Pcm) -> tuple[bytes, bool]:
        silent = self._detector is not None and not self._detector.push(pcm, len(pcm) / self.sample_rate_hz * 1000)
        if self._codec == CodecId.PCMU:
            return g711.ulaw_encode(pcm), silent
        if self._codec == CodecId.PCMA:
            return g711.alaw_encode(pcm), silent
        return pcm.astype(">i2").tobytes(), silent

    def encode_copy(self, pcm: Pcm) -> bytes | None:
        return None

    def apply(self, bitrate_bps: int, inband_fec_percent: int, copy_bps: int = 0, inband_part: float = 1.0) -> None:
        return None

    def reset(self) -> None:
        if self._detector is not None:
            self._detector = VoiceDetector()


class _PcmTrackDecoder:
    def __init__(self, track: Track, channels: int) -> None:
        self.sample_rate_hz = track.clock_rate_hz
        self.channels = channels
        self._track = track
        self._codec = track.codec
        self._coded_channels = track.channels

    def decode(self, payload: bytes) -> Pcm:
        bytes_per_frame = self._coded_channels * (2 if self._codec == CodecId.L16 else 1)
        if not payload or len(payload) % bytes_per_frame:
            raise PacketError(f"a frame of {len(payload)} bytes is no whole number of samples")
        if self._codec == CodecId.PCMU:
            pcm = g711.ulaw_decode(payload)
        elif self._codec == CodecId.PCMA:
            pcm = g711.alaw_decode(payload)
        else:
            pcm = np.frombuffer(payload, dtype=">i2").astype(np.int16)
        if self._coded_channels > 1:
            pcm = pcm.reshape(-1, self._coded_channels)
        return to_channels(pcm, self.channels)

    def conceal(self, samples: int) -> Pcm | None:
        return None

    def has_inband_copy(self, payload: bytes) -> bool:
        return False

    def decode_fec(self, payload: bytes, samples: int) -> Pcm:
        raise PacketError("PCM carries no in-band copy")

    def reset(self) -> None:
        return None

    def mark(self) -> None:
        return None

    def back_to_mark(self) -> None:
        return None

    def new(self) -> Decoder:
        return _PcmTrackDecoder(self._track, self.channels)


_PCM_CODECS: Final = (CodecId.PCMU, CodecId.PCMA, CodecId.L16)


def _check_codec(track: Track) -> None:
    if track.codec != CodecId.OPUS and track.codec not in _PCM_CODECS:
        raise AudioError(f"codec {track.codec} has no built-in encoder or decoder: send and take its coded frames yourself")


def make_encoder(track: Track, audio: AudioConfig) -> Encoder:
    """The encoder of a track.

    Raises:
        AudioError: libopus is missing, or the codec is a private one.
        ValueError: The codec cannot code the track's form.
    """
    _check_codec(track)
    return _OpusTrackEncoder(track, audio) if track.codec == CodecId.OPUS else _PcmTrackEncoder(track, audio)


def make_decoder(track: Track, sample_rate_hz: int = 48000, channels: int = 1) -> Decoder:
    """The decoder of a track, for an application that wants `sample_rate_hz` and `channels`.

    Opus is decoded at that rate where it can be; otherwise the decoder's own rate is to be converted by the caller.

    Raises:
        AudioError: libopus is missing, or the codec is a private one.
        ValueError: channels is not 1 or 2.
    """
    _check_codec(track)
    if channels not in (1, 2):
        raise ValueError(f"channels must be 1 or 2, not {channels}")
    if track.codec == CodecId.OPUS:
        return OpusDecoder(sample_rate_hz if sample_rate_hz in OPUS_RATES_HZ else 48000, channels)
    return _PcmTrackDecoder(track, channels)
