"""What goes over the wire, in words: every field with its unit, its registered name and the section of the specification.

    from voicestream.observe.words import datagram_words

    print(datagram_words(bytes.fromhex("01020fa0880008480102"), sender="client").text())

A peer's bytes may be anything: what breaks a rule is said with its error code, the byte at which it does, and the requirement. This
reading is independent of the decoders of `voicestream.wire`; a test holds that both refuse the same with the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from voicestream.codepoints import ErrorCode
from voicestream.config import Track
from voicestream.errors import ProtocolError
from voicestream.observe.words_control import Sender, walk_control, walk_event, walk_parameters
from voicestream.observe.words_frames import walk_datagram
from voicestream.observe.words_walk import Item, Walk

__all__ = ["Fault", "Item", "Sender", "Words", "control_words", "datagram_words", "event_words", "parameter_words"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """The rule that the input breaks first.

    Attributes:
        code: Error code with which a receiver closes.
        reason: What is wrong.
        offset: The byte at which it is.
        rule: Id of the requirement, "VS-4.2-1" for example.
    """

    code: ErrorCode
    reason: str
    offset: int
    rule: str

    def text(self) -> str:
        """In one line."""
        section = self.rule.removeprefix("VS-").rsplit("-", 1)[0]
        return f"{self.code.name} (0x{self.code:02x}) at byte {self.offset}: {self.reason}; breaks {self.rule} (section {section})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """An input in words.

    Attributes:
        what: "datagram", "control stream", "event stream" or "parameters".
        sender: "client" or "server", if that is known.
        size: Bytes of the input.
        items: Its fields, up to the fault if there is one.
        fault: What is wrong with it, if anything.
        unread: Bytes at the end that begin something of which more has to come.
    """

    what: str
    sender: Sender | None
    size: int
    items: tuple[Item, ...]
    fault: Fault | None
    unread: int = 0

    def lines(self) -> list[str]:
        """A headline, a line for each field (its first byte before it), and the fault."""
        of = f" of the {self.sender}" if self.sender else ""
        width = len(str(self.size))
        found = [f"{self.what}{of}, {self.size} bytes (section {_SECTIONS[self.what]})"]
        for item in self.items:
            section = f" (section {item.section})" if item.section else ""
            colon = "" if item.value.startswith("(") else ":"
            found.append(f"  {item.offset:{width}}  {'  ' * item.depth}{item.name}{colon} {item.value}{section}")
        if self.unread:
            found.append(f"  {self.size - self.unread:{width}}  the last {self.unread} bytes begin something that is not complete")
        if self.fault is not None:
            found.append(f"  {self.fault.offset:{width}}  {self.fault.text()}")
        return found

    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines())

    def brief(self) -> str:
        """One line: frames or messages with their fields, and the fault."""
        parts: list[str] = []
        for item in self.items:
            if item.depth == 0:
                parts.append(f"{item.name} {item.value}" if item.value.startswith("(") else f"{item.name}: {item.value}")
            elif parts:
                parts[-1] += f", {item.name} {item.value}"
        if self.unread:
            parts.append(f"{self.unread} bytes of something that is not complete")
        if self.fault is not None:
            parts.append(self.fault.text())
        return "; ".join(parts)


_SECTIONS: Final = {"datagram": "4.1", "control stream": "5.1", "event stream": "7.1", "parameters": "5.3"}


def _words(
    what: str, data: bytes, sender: Sender | None, code: ErrorCode, cut: str, act: Callable[[Walk], bool | None]
) -> Words:
    walk, fault, is_cut = Walk(data, code, cut), None, False
    try:
        is_cut = bool(act(walk))
    except ProtocolError as error:
        fault = Fault(code=error.code, reason=error.reason, offset=walk.fault_at, rule=walk.rule)
    unread = len(data) - walk.at if is_cut else 0
    return Words(what=what, sender=sender, size=len(data), items=tuple(walk.items), fault=fault, unread=unread)


def datagram_words(data: bytes, *, sender: Sender | None = None, tracks: Mapping[int, Track] | None = None) -> Words:
    """A datagram.

    Args:
        data: Its bytes.
        sender: Who sent it, for the headline.
        tracks: What is known of tracks by id, so that their coded frames are checked.
    """
    return _words(
        "datagram", data, sender, ErrorCode.FRAME_ENCODING_ERROR, "VS-4.1-2", lambda walk: walk_datagram(walk, dict(tracks or {}))
    )


def control_words(data: bytes, *, sender: Sender | None = None, fin: bool = False) -> Words:
    """Messages of a control stream, from the beginning of one on.

    Args:
        data: The bytes; what begins a message that is not complete counts as `unread`.
        sender: Who sent them; a message that only the other side may send is a fault.
        fin: The stream ends with them, which it must not do inside a message.
    """

    def act(walk: Walk) -> bool:
        is_cut = walk_control(walk, sender)
        if is_cut and fin:
            raise walk.fail("the stream ends inside a message", "VS-5.1-5", at=walk.end, code=ErrorCode.CONTROL_STREAM_ERROR)
        return is_cut

    return _words("control stream", data, sender, ErrorCode.MESSAGE_ENCODING_ERROR, "VS-5.1-4", act)


def event_words(data: bytes, *, sender: Sender | None = None, fin: bool = True, max_size: int | None = None) -> Words:
    """A unidirectional stream from its beginning on.

    Args:
        data: The bytes.
        sender: Who sent them, for the headline.
        fin: The stream ends with them.
        max_size: MAX_EVENT_SIZE of the receiver, if it is to be checked.
    """

    def act(walk: Walk) -> bool:
        walk_event(walk, fin=fin, max_size=max_size)
        return walk.left > 0

    return _words("event stream", data, sender, ErrorCode.EVENT_ENCODING_ERROR, "VS-7.1-2", act)


def parameter_words(data: bytes) -> Words:
    """A list of parameters, of no particular message."""
    return _words("parameters", data, None, ErrorCode.PARAMETER_ERROR, "VS-5.3-5", walk_parameters)
