"""Reading and writing of the integers and byte strings that every structure is made of (specification section 1.3)."""

from __future__ import annotations

import builtins
from typing import Final

from voicestream.codepoints import ErrorCode
from voicestream.errors import ProtocolError

__all__ = ["MAX_VARINT", "Reader", "Writer", "encode_varint", "peek_varint", "varint_size"]

MAX_VARINT: Final = (1 << 62) - 1
"""Largest value of a variable-length integer (RFC 9000 section 16)."""

_VARINT_BOUNDS: Final = ((1 << 6, 1, 0), (1 << 14, 2, 0x4000), (1 << 30, 4, 0x80000000), (1 << 62, 8, 0xC000000000000000))
_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(64))
_VALUE_MASK: Final = {2: 0x3FFF, 4: 0x3FFFFFFF, 8: MAX_VARINT}


def varint_size(value: int) -> int:
    """Bytes of the shortest encoding of `value`: 1, 2, 4 or 8.

    Raises:
        ValueError: `value` is negative or does not fit 62 bits.
    """
    if value >= 0:
        for bound, size, _ in _VARINT_BOUNDS:
            if value < bound:
                return size
    raise ValueError(f"a variable-length integer must be 0 to 2^62-1, not {value}")


def encode_varint(value: int) -> bytes:
    """The shortest encoding of `value`. VS-1.3-1

    Raises:
        ValueError: `value` is negative or does not fit 62 bits.
    """
    if value >= 0:
        if value < 64:
            return _ONE_BYTE[value]
        for bound, size, prefix in _VARINT_BOUNDS:
            if value < bound:
                return (value | prefix).to_bytes(size, "big")
    raise ValueError(f"a variable-length integer must be 0 to 2^62-1, not {value}")


def peek_varint(data: bytes | bytearray, position: int) -> tuple[int, int] | None:
    """The variable-length integer at `position` and the position after it, or None when it has not all come yet."""
    if position >= len(data):
        return None
    head = data[position]
    if head < 64:
        return head, position + 1
    size = 1 << (head >> 6)
    end = position + size
    if end > len(data):
        return None
    return int.from_bytes(data[position:end], "big") & _VALUE_MASK[size], end


class Reader:
    """Takes values from the front of a byte string.

    Every method raises `ProtocolError` with the code given here when the bytes end too early, and nothing else (VS-15-4).
    """

    __slots__ = ("_code", "_data", "_position")

    def __init__(self, data: builtins.bytes, code: ErrorCode = ErrorCode.FRAME_ENCODING_ERROR) -> None:
        self._data = data
        self._code = code
        self._position = 0

    @property
    def remaining(self) -> int:
        """Bytes not yet taken."""
        return len(self._data) - self._position

    @property
    def at_end(self) -> bool:
        """Whether everything has been taken."""
        return self._position >= len(self._data)

    def error(self, reason: str) -> ProtocolError:
        """The exception for a fault found by whoever reads; to be raised by the caller."""
        return ProtocolError(self._code, reason)

    def require(self, condition: bool, reason: str) -> None:
        """Raise `ProtocolError` with `reason` unless `condition` holds."""
        if not condition:
            raise ProtocolError(self._code, reason)

    def bytes(self, size: int) -> builtins.bytes:
        """Take `size` bytes."""
        end = self._position + size
        if end > len(self._data):
            raise ProtocolError(self._code, f"{size} bytes announced, {self.remaining} there")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def rest(self) -> builtins.bytes:
        """Take everything that is left."""
        taken = self._data[self._position :]
        self._position = len(self._data)
        return taken

    def u8(self) -> int:
        """Take one byte."""
        position = self._position
        if position >= len(self._data):
            raise ProtocolError(self._code, "1 bytes announced, 0 there")
        self._position = position + 1
        return self._data[position]

    def u16(self) -> int:
        """Take a 16-bit integer in network order."""
        data, position = self._data, self._position
        if position + 2 > len(data):
            raise ProtocolError(self._code, f"2 bytes announced, {self.remaining} there")
        self._position = position + 2
        return data[position] << 8 | data[position + 1]

    def varint(self) -> int:
        """Take a variable-length integer; any of its lengths is accepted. VS-1.3-2"""
        data, position = self._data, self._position
        if position < len(data) and data[position] < 64:  # most are of one byte
            self._position = position + 1
            return data[position]
        taken = peek_varint(data, position)
        if taken is None:
            raise ProtocolError(self._code, "bytes end inside an integer")
        value, self._position = taken
        return value

    def end(self, what: str) -> None:
        """Raise `ProtocolError` unless everything has been taken."""
        if not self.at_end:
            raise ProtocolError(self._code, f"{self.remaining} bytes too many in {what}")


class Writer:
    """Collects values in wire form. Every method raises ValueError for a value that its form cannot hold."""

    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = bytearray()

    def u8(self, value: int) -> None:
        """Append one byte."""
        if not 0 <= value <= 0xFF:
            raise ValueError(f"an 8-bit integer must be 0 to 255, not {value}")
        self._data.append(value)

    def u16(self, value: int) -> None:
        """Append a 16-bit integer in network order."""
        if not 0 <= value <= 0xFFFF:
            raise ValueError(f"a 16-bit integer must be 0 to 65535, not {value}")
        self._data += value.to_bytes(2, "big")

    def varint(self, value: int) -> None:
        """Append a variable-length integer in its shortest form."""
        if 0 <= value < 64:
            self._data.append(value)
        else:
            self._data += encode_varint(value)

    def bytes(self, value: builtins.bytes) -> None:
        """Append bytes as they are."""
        self._data += value

    def data(self) -> builtins.bytes:
        """Everything appended so far."""
        return builtins.bytes(self._data)
