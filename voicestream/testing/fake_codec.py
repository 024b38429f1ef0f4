"""A codec without audio: packets that are well-formed Opus, carry their own media time, and can be told from one another.

A packet begins with an Opus table-of-contents byte of the right frame length (RFC 6716 section 3.1, one frame a packet), so it
passes every structural check, and its other bytes are a hash of where it stands. So a test sees what reached the far end.
"""

from __future__ import annotations

import hashlib
import random

__all__ = ["FakeCodec"]

_CELT_CONFIG = {1: 28, 2: 29, 4: 30, 8: 31}
"""Opus configuration of CELT, fullband, by length in units of 2.5 ms."""
_SILK_CONFIG = {4: 8, 8: 9, 16: 10, 24: 11}
"""The same of SILK, wideband."""


class FakeCodec:
    """Makes and recognises packets.

    Args:
        bitrate_bps: From which the packets' size follows, 6000 to 510000.
        seed: Packets of different seeds differ.
        celt: Whether packets claim to be CELT (10 and 20 ms) or SILK (10 to 60 ms); frames over 20 ms are always SILK.
        size_jitter: Relative standard deviation of the size, as a codec of variable bitrate has.
    """

    def __init__(self, *, bitrate_bps: int = 24000, seed: int = 0, celt: bool = False, size_jitter: float = 0.0) -> None:
        if not 6000 <= bitrate_bps <= 510000:
            raise ValueError(f"bitrate_bps must be 6000 to 510000, not {bitrate_bps}")
        self.bitrate_bps = bitrate_bps
        self._seed = seed
        self._celt = celt
        self._size_jitter = size_jitter
        self._rng = random.Random(f"{seed}/codec")

    def encode(self, pts: int, units: int = 8, *, track: int = 0, size_bytes: int | None = None) -> bytes:
        """The packet of the frame at `pts` (in 2.5 ms units) that lasts `units`.

        Raises:
            ValueError: No Opus frame has that length.
        """
        configs = _CELT_CONFIG if self._celt and units in _CELT_CONFIG else _SILK_CONFIG
        if units not in configs:
            raise ValueError(f"an Opus frame lasts {sorted(_CELT_CONFIG | _SILK_CONFIG)} units, not {units}")
        if size_bytes is None:
            size = self.bitrate_bps * units / 400 / 8
            if self._size_jitter:
                size *= max(0.2, self._rng.gauss(1.0, self._size_jitter))
            size_bytes = round(size)
        body = self._body(track, pts, units)
        room = min(max(size_bytes, 9), 1276) - 1
        body = body[:room] if room <= len(body) else (body * (room // len(body) + 1))[:room]
        return bytes((configs[units] << 3,)) + body

    def is_own(self, payload: bytes, pts: int, units: int, *, track: int = 0) -> bool:
        """Whether `payload` is what `encode` made of that frame (whatever its size)."""
        body = self._body(track, pts, units)
        return len(payload) >= 9 and payload[1:9] == body[:8]

    def _body(self, track: int, pts: int, units: int) -> bytes:
        return hashlib.blake2b(b"%d/%d/%d/%d" % (self._seed, track, pts, units), digest_size=32).digest()
