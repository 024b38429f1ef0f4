"""G.711: µ-law and A-law, by table (ITU-T G.711)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["alaw_decode", "alaw_encode", "ulaw_decode", "ulaw_encode"]

Pcm = NDArray[np.int16]
Codes = NDArray[np.uint8]

_ULAW_BIAS: Final = 0x84


def _ulaw_expand(codes: NDArray[np.int32]) -> NDArray[np.int32]:
    inverted = codes ^ 0xFF
    magnitude = ((((inverted & 0x0F) << 3) + _ULAW_BIAS) << ((inverted >> 4) & 7)) - _ULAW_BIAS
    pcm: NDArray[np.int32] = np.where(inverted & 0x80, -magnitude, magnitude)
    return pcm


def _ulaw_compress(pcm: NDArray[np.int32]) -> NDArray[np.int32]:
    # µ-law knows 14 bits; negative values are counted from -1 so that both signs have the same number of steps.
    biased = np.minimum((np.where(pcm >= 0, pcm, -pcm - 1) >> 2) + _ULAW_BIAS // 4, 0x1FFF)
    exponent = np.floor(np.log2(biased)).astype(np.int32) - 5
    mantissa = (biased >> (exponent + 1)) & 0x0F
    codes: NDArray[np.int32] = (np.where(pcm < 0, 0x80, 0) | (exponent << 4) | mantissa) ^ 0xFF
    return codes


def _alaw_expand(codes: NDArray[np.int32]) -> NDArray[np.int32]:
    plain = codes ^ 0x55
    exponent = (plain >> 4) & 7
    mantissa = ((plain & 0x0F) << 4) + 8
    magnitude = np.where(exponent == 0, mantissa, (mantissa + 0x100) << np.maximum(exponent - 1, 0))
    pcm: NDArray[np.int32] = np.where(plain & 0x80, magnitude, -magnitude)
    return pcm


def _alaw_compress(pcm: NDArray[np.int32]) -> NDArray[np.int32]:
    # A-law knows 13 bits; negative values are counted from -1 so that both signs have the same number of steps.
    magnitude = np.where(pcm >= 0, pcm, -pcm - 1) >> 3
    exponent = np.floor(np.log2(np.maximum(magnitude, 1))).astype(np.int32) - 4
    exponent = np.maximum(exponent, 0)
    mantissa = (magnitude >> np.maximum(exponent, 1)) & 0x0F
    codes: NDArray[np.int32] = (np.where(pcm >= 0, 0x80, 0) | (exponent << 4) | mantissa) ^ 0x55
    return codes


_ALL_CODES = np.arange(256, dtype=np.int32)
_ALL_PCM = np.arange(-32768, 32768, dtype=np.int32)

_ULAW_TO_PCM: Pcm = _ulaw_expand(_ALL_CODES).astype(np.int16)
_ALAW_TO_PCM: Pcm = _alaw_expand(_ALL_CODES).astype(np.int16)
# Indexed by the sample's 16 bits read as unsigned.
_PCM_TO_ULAW: Codes = np.roll(_ulaw_compress(_ALL_PCM), 32768).astype(np.uint8)
_PCM_TO_ALAW: Codes = np.roll(_alaw_compress(_ALL_PCM), 32768).astype(np.uint8)


def ulaw_encode(pcm: Pcm) -> bytes:
    """µ-law codes of int16 samples, one byte each, interleaved as they come."""
    return _PCM_TO_ULAW[np.ascontiguousarray(pcm).reshape(-1).view(np.uint16)].tobytes()


def ulaw_decode(data: bytes) -> Pcm:
    """int16 samples of µ-law codes."""
    return _ULAW_TO_PCM[np.frombuffer(data, dtype=np.uint8)]


def alaw_encode(pcm: Pcm) -> bytes:
    """A-law codes of int16 samples, one byte each, interleaved as they come."""
    return _PCM_TO_ALAW[np.ascontiguousarray(pcm).reshape(-1).view(np.uint16)].tobytes()


def alaw_decode(data: bytes) -> Pcm:
    """int16 samples of A-law codes."""
    return _ALAW_TO_PCM[np.frombuffer(data, dtype=np.uint8)]
