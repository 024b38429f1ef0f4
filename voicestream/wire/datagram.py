"""Datagrams: a header and frames (specification section 4.1).

Most datagrams carry one AUDIO frame, fifty a second and direction: that one is read and written without any intermediate object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from voicestream.codepoints import ErrorCode
from voicestream.errors import ProtocolError
from voicestream.wire.buffer import peek_varint
from voicestream.wire.frames import LENGTH_BIT, AudioFrame, Frame, PaddingFrame, decode_typed_frame, encode_audio, encode_frame

__all__ = ["HEADER_SIZE", "MAX_FRAMES", "MAX_SIZE", "Datagram", "decode_datagram", "encode_datagram"]

HEADER_SIZE: Final = 4
MAX_FRAMES: Final = 64
MAX_SIZE: Final = 1200  # VS-3.2-3
"""Bytes of the largest datagram that is accepted. What is sent stays within the peer's MAX_DATAGRAM_SIZE."""

_AUDIO_HEADER: Final = 3


@dataclass(kw_only=True, slots=True)
class Datagram:
    """One datagram.

    Attributes:
        number: 16 low bits of how many datagrams were sent before it.
        send_tick: The sender's tick when it was sent, 0 to 65535.
        frames: At most 64; none at all keeps the path open.
    """

    number: int
    send_tick: int
    frames: tuple[Frame, ...] = ()


def _error(reason: str) -> ProtocolError:
    return ProtocolError(ErrorCode.FRAME_ENCODING_ERROR, reason)


def encode_datagram(datagram: Datagram) -> bytes:
    """A datagram in wire form.

    Raises:
        ValueError: A value is out of its range, or the frames are too many or too large.
    """
    number, send_tick, frames = datagram.number, datagram.send_tick, datagram.frames
    if number >> 16 or send_tick >> 16:
        raise ValueError(f"number and send_tick must be 0 to 65535, not {number} and {send_tick}")
    header = (number << 16 | send_tick).to_bytes(HEADER_SIZE, "big")
    if len(frames) == 1:
        only = frames[0]
        encoded = header + (encode_audio(only, True) if type(only) is AudioFrame else encode_frame(only))
    else:
        if len(frames) > MAX_FRAMES:
            raise ValueError(f"a datagram must have at most {MAX_FRAMES} frames, not {len(frames)}")
        last = len(frames) - 1  # VS-4.2-2
        encoded = header + b"".join([encode_frame(frame, index == last) for index, frame in enumerate(frames)])
    if len(encoded) > MAX_SIZE:
        raise ValueError(f"a datagram must have at most {MAX_SIZE} bytes, not {len(encoded)}")
    return encoded


def decode_datagram(data: bytes) -> Datagram:
    """The datagram in `data`.

    Raises:
        ProtocolError: FRAME_ENCODING_ERROR.
    """
    size = len(data)
    if not HEADER_SIZE <= size <= MAX_SIZE:
        raise _error(f"datagram of {size} bytes")  # VS-4.1-2
    number = data[0] << 8 | data[1]
    send_tick = data[2] << 8 | data[3]
    if size > 7 and data[4] & 0x90 == 0x80:
        return Datagram(number=number, send_tick=send_tick, frames=(_audio(data, 4, data[7:]),))
    frames: list[Frame] = []
    position = HEADER_SIZE
    while position < size:
        frame, position = _decode_frame(data, position)
        frames.append(frame)
        if len(frames) > MAX_FRAMES:  # VS-4.1-2
            raise _error(f"more than {MAX_FRAMES} frames")
    return Datagram(number=number, send_tick=send_tick, frames=tuple(frames))


def _audio(data: bytes, position: int, payload: bytes) -> AudioFrame:
    head = data[position]
    return AudioFrame(
        track=head >> 5 & 3,
        pts=data[position + 1] << 8 | data[position + 2],
        payload=payload,
        clear_number=head & 3,
        talkspurt_start=head & 8 != 0,
        talkspurt_end=head & 4 != 0,
    )


def _decode_frame(data: bytes, position: int) -> tuple[Frame, int]:
    head = data[position]
    if head == 0:
        rest = data[position:]
        run = len(rest) - len(rest.lstrip(b"\x00"))
        return PaddingFrame(size=run), position + run
    if head < 0x80:
        return decode_typed_frame(data, position)
    start = position + _AUDIO_HEADER
    end = len(data)
    if head & LENGTH_BIT:
        length = peek_varint(data, start)
        if length is None or length[1] + length[0] > end:
            raise _error("audio frame ends after its datagram")  # VS-4.1-3
        start = length[1]
        end = start + length[0]
    if end <= start:
        raise _error("audio frame without payload")  # VS-4.2-1
    return _audio(data, position, data[start:end]), end
