"""How long a coded frame is: the framing of Opus packets (RFC 6716 section 3) and the sizes of PCM (specification section 6.4)."""

from __future__ import annotations

from typing import Final

from voicestream.codepoints import CodecId, ErrorCode
from voicestream.config import UNITS_PER_SECOND, Track
from voicestream.errors import ProtocolError

__all__ = ["MAX_FRAME_UNITS", "frame_units", "has_inband_copy", "opus_channels", "opus_duration_units", "opus_is_celt"]

MAX_FRAME_UNITS: Final = 48
"""120 ms."""

MAX_OPUS_FRAME: Final = 1275

_SILK_UNITS: Final = (4, 8, 16, 24)
_HYBRID_UNITS: Final = (4, 8)
_CELT_UNITS: Final = (1, 2, 4, 8)
_UNITS_BY_CONFIG: Final = _SILK_UNITS * 3 + _HYBRID_UNITS * 2 + _CELT_UNITS * 4

_BYTES_PER_SAMPLE: Final[dict[int, int]] = {CodecId.PCMU: 1, CodecId.PCMA: 1, CodecId.L16: 2}


def _error(reason: str) -> ProtocolError:
    return ProtocolError(ErrorCode.MEDIA_ERROR, reason)


def _toc(packet: bytes) -> int:
    if not packet:
        raise _error("Opus packet without bytes")  # RFC 6716 R1
    return packet[0]


def opus_is_celt(packet: bytes) -> bool:
    """Whether the packet is of the CELT mode, which has no in-band FEC. Raises ProtocolError (MEDIA_ERROR) when it is empty."""
    return _toc(packet) >> 3 >= 16


def opus_channels(packet: bytes) -> int:
    """Coded channels, 1 or 2. Raises ProtocolError (MEDIA_ERROR) when the packet is empty."""
    return 2 if _toc(packet) & 4 else 1


def opus_duration_units(packet: bytes) -> int:
    """Duration of an Opus packet in pts units, 1 to 48; its framing is checked in full.

    Raises:
        ProtocolError: MEDIA_ERROR, for a packet that breaks one of the rules R1 to R7 of RFC 6716 section 3.4 (VS-6.4-1).
    """
    toc = _toc(packet)
    units = _UNITS_BY_CONFIG[toc >> 3]
    code = toc & 3
    if code == 0:
        _require_frame_size(len(packet) - 1)
        return units
    if code == 1:
        if len(packet) % 2 == 0:
            raise _error("Opus packet of two equal frames has an odd number of bytes")  # R3
        _require_frame_size(len(packet) // 2)
        return 2 * units
    if code == 2:
        first, start = _frame_length(packet, 1, len(packet))
        if start + first > len(packet):
            raise _error("Opus packet ends inside its first frame")  # R4
        _require_frame_size(len(packet) - start - first)
        return 2 * units
    return units * _frame_count(packet, units)


def has_inband_copy(packet: bytes) -> bool:
    """Whether an Opus packet carries a coarse copy of the audio before it (LBRR, RFC 6716 section 4.2.4)."""
    try:
        if opus_is_celt(packet):
            return False
        opus_duration_units(packet)
    except ProtocolError:
        return False
    start = _first_frame_at(packet)
    if start >= len(packet):
        return False
    # A SILK frame begins with one activity bit for each 20 ms and then the flag of the copy, for one channel and the other.
    config = packet[0] >> 3
    activity_bits = max(1, config & 3) if config < 12 else 1
    bits = packet[start]
    found = bits >> (7 - activity_bits) & 1
    if opus_channels(packet) == 2:
        found |= bits >> (6 - 2 * activity_bits) & 1
    return bool(found)


def _first_frame_at(packet: bytes) -> int:
    """Where the first frame of a well-formed packet begins (RFC 6716 section 3.2)."""
    code = packet[0] & 3
    if code < 2:
        return 1
    if code == 2:
        return 2 if packet[1] < 252 else 3
    position = 2
    if packet[1] & 0x40:
        while packet[position] == 255:
            position += 1
        position += 1
    if packet[1] & 0x80:
        for _ in range((packet[1] & 0x3F) - 1):
            position += 1 if packet[position] < 252 else 2
    return position


def _frame_count(packet: bytes, units: int) -> int:
    """Frames of a packet of code 3, after checking its padding and the lengths of its frames."""
    if len(packet) < 2:
        raise _error("Opus packet without frame count")
    variable, padded, count = packet[1] & 0x80, packet[1] & 0x40, packet[1] & 0x3F
    if not count or count * units > MAX_FRAME_UNITS:
        raise _error(f"Opus packet of {count} frames of {units * 2.5} ms")  # R5
    start, end = 2, len(packet)
    if padded:
        padding, start = _padding(packet)
        end -= padding
        if end < start:
            raise _error("Opus padding is larger than its packet")
    if not variable:
        if (end - start) % count:
            raise _error("Opus packet does not divide into equal frames")  # R6
        _require_frame_size((end - start) // count)
        return count
    total = 0
    for _ in range(count - 1):
        size, start = _frame_length(packet, start, end)
        total += size
    if start + total > end:
        raise _error("Opus packet ends inside its frames")  # R7
    _require_frame_size(end - start - total)
    return count


def _padding(packet: bytes) -> tuple[int, int]:
    """Bytes of padding at the end of a packet of code 3, and the position after the bytes that say so."""
    padding = 0
    for position in range(2, len(packet)):
        padding += packet[position] if packet[position] < 255 else 254
        if packet[position] < 255:
            return padding, position + 1
    raise _error("Opus packet ends inside its padding length")


def _frame_length(packet: bytes, position: int, end: int) -> tuple[int, int]:
    """A frame length of one or two bytes at `position`, and the position after it."""
    if position < end and packet[position] < 252:
        return packet[position], position + 1
    if position + 1 >= end:
        raise _error("Opus packet ends inside a frame length")
    return packet[position] + 4 * packet[position + 1], position + 2


def _require_frame_size(size: int) -> None:
    if size > MAX_OPUS_FRAME:
        raise _error(f"Opus frame of {size} bytes")  # R2


def frame_units(track: Track, payload: bytes) -> int:
    """Duration of a coded frame of `track` in pts units, 1 to 48.

    Raises:
        ProtocolError: MEDIA_ERROR, for a payload that the codec does not allow or that does not fill whole units.
    """
    if track.codec == CodecId.OPUS:
        units = opus_duration_units(payload)
    elif track.codec in _BYTES_PER_SAMPLE:
        sample_size = _BYTES_PER_SAMPLE[track.codec] * track.channels
        units, partial = divmod(len(payload) * UNITS_PER_SECOND, sample_size * track.clock_rate_hz)
        if partial or len(payload) % sample_size or not 1 <= units <= MAX_FRAME_UNITS:
            raise _error(f"{len(payload)} bytes of PCM are not 1 to {MAX_FRAME_UNITS} units of 2.5 ms")  # VS-6.4-3
    else:
        units = track.frame_units
    if units != (track.frame_units or units) or not units:
        raise _error(f"frame of {units} units on a track of {track.frame_units}")  # VS-6.4-4
    return units
