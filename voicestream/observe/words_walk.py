"""Reads bytes field by field and says each in words; where the bytes break a rule, it knows at which of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from voicestream.codepoints import ErrorCode, error_name, is_grease
from voicestream.config import PTS_UNIT_MS
from voicestream.errors import ProtocolError
from voicestream.wire.buffer import peek_varint

__all__ = ["Item", "Walk", "code_words", "milliseconds", "named", "pts16_words", "pts_words", "shown", "units_words"]

MAX_SHOWN: int = 16
"""Bytes of a payload that are shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One field or structure.

    Attributes:
        offset: Its first byte in the input.
        size: Its bytes; 0 for one that follows from the bits of another.
        depth: 0 for what stands by itself, 1 for its fields, and so on.
        name: As in the specification.
        value: In words, with units.
        section: Of the specification, where it is not that of the structure around it; else "".
    """

    offset: int
    size: int
    depth: int
    name: str
    value: str
    section: str = ""


class Walk:
    """A position in the input, and what has been read so far.

    Args:
        data: The input.
        code: Error code of bytes that end too early.
        cut: Requirement that they break.

    Attributes:
        at: The next byte.
        end: Where the structure ends that is being read.
        items: What was read.
        fault_at: The byte at which a rule is broken, after a `ProtocolError`.
        rule: Id of that rule, or "".
    """

    def __init__(self, data: bytes, code: ErrorCode, cut: str) -> None:
        self.data = data
        self.at = 0
        self.end = len(data)
        self.items: list[Item] = []
        self.fault_at = 0
        self.rule = ""
        self._depth = 0
        self._code = code
        self._cut = cut

    @property
    def left(self) -> int:
        """Bytes up to the end of the structure."""
        return self.end - self.at

    def say(self, offset: int, name: str, value: str, section: str = "") -> None:
        """Add an item that reaches from `offset` to here."""
        self.items.append(Item(offset=offset, size=self.at - offset, depth=self._depth, name=name, value=value, section=section))

    def fail(self, reason: str, rule: str, *, at: int | None = None, code: ErrorCode | None = None) -> ProtocolError:
        """The error of a broken rule, to be raised: at the byte `at`, by default the next one."""
        self.fault_at = self.at if at is None else at
        self.rule = rule
        return ProtocolError(self._code if code is None else code, reason)

    @contextlib.contextmanager
    def inside(self, size: int | None = None, *, code: ErrorCode | None = None, cut: str = "") -> Iterator[None]:
        """A structure of so many bytes (those up to the end around it) whose fields are one deeper."""
        before = self.end, self._code, self._cut
        self.end = self.end if size is None else self.at + size
        self._code, self._cut = code or self._code, cut or self._cut
        self._depth += 1
        yield
        self._depth -= 1
        self.end, self._code, self._cut = before

    def close(self, what: str) -> None:
        """The structure must end here."""
        if self.left:
            raise self.fail(f"{self.left} bytes too many in {what}", self._cut)

    def _need(self, size: int, name: str) -> None:
        if self.left < size:
            raise self.fail(f"the bytes end in {name}: {size} wanted, {self.left} there", self._cut, at=self.end)

    def fixed(self, size: int, name: str, words: Callable[[int], str] = str) -> int:
        """An integer of so many bytes."""
        self._need(size, name)
        start = self.at
        self.at += size
        value = int.from_bytes(self.data[start : self.at], "big")
        self.say(start, name, words(value))
        return value

    def varint(self, name: str, words: Callable[[int], str] | None = str) -> int:
        """A variable-length integer; without `words` nothing is said of it."""
        taken = peek_varint(self.data[: self.end], self.at)
        if taken is None:
            raise self.fail(f"the bytes end in {name}", self._cut, at=self.end)
        start = self.at
        value, self.at = taken
        if words is not None:
            self.say(start, name, words(value))
        return value

    def bytes(self, size: int, name: str, words: Callable[[bytes], str]) -> bytes:
        """So many bytes."""
        self._need(size, name)
        start = self.at
        self.at += size
        value = self.data[start : self.at]
        self.say(start, name, words(value))
        return value

    def text(self, size: int, name: str, rule: str) -> str:
        """So many bytes that must be UTF-8."""
        self._need(size, name)
        start = self.at
        try:
            value = self.data[start : start + size].decode()
        except UnicodeDecodeError as error:
            raise self.fail(f"{name} is not UTF-8", rule, at=start + error.start) from error
        self.at += size
        self.say(start, name, quoted(value))
        return value


def quoted(text: str) -> str:
    """A text of the far end, on one line and harmless."""
    shown_text = text if len(text) <= 200 else text[:200] + "..."
    return '"' + shown_text.encode("unicode_escape").decode().replace('"', '\\"') + '"'


def shown(data: bytes) -> str:
    """How many bytes, and the first of them."""
    count = "1 byte" if len(data) == 1 else f"{len(data)} bytes"
    return count + (f": {data[:MAX_SHOWN].hex()}{'...' if len(data) > MAX_SHOWN else ''}" if data else "")


def milliseconds(units: int) -> str:
    """Media time of so many pts units."""
    duration = units * PTS_UNIT_MS
    return f"{duration:g} ms" if duration < 10_000 else f"{duration / 1000:.10g} s"


def pts_words(pts: int) -> str:
    """A full pts."""
    return f"{pts} ({milliseconds(pts)})"


def pts16_words(pts: int) -> str:
    """The 16 low bits of a pts: a multiple of 163.84 s may have to be added."""
    return f"{pts} (16 low bits; {milliseconds(pts)} + n * 163.84 s)"


def units_words(units: int) -> str:
    """A duration."""
    return f"{units} {'unit' if units == 1 else 'units'} ({milliseconds(units)})"


def named(value: int, name: str | None, otherwise: str) -> str:
    """A code point: its registered name, or what is to be done without one."""
    if name is not None:
        return f"0x{value:02x} {name}"
    return f"0x{value:02x}, {'reserved for greasing (section 12.1)' if is_grease(value) else 'not registered'}: {otherwise}"


def code_words(code: int) -> str:
    """An error code."""
    name = error_name(code)
    return named(code, None if name.startswith("0x") else name, "counts as INTERNAL_ERROR")
