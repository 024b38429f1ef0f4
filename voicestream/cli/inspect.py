"""``voicestream inspect``: what went over the wire, or a call's trace, in words."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from voicestream.cli.errors import CommandError
from voicestream.cli.options import Commands, bounded
from voicestream.codepoints import CodecId
from voicestream.config import Track
from voicestream.observe.qlog import parse_trace
from voicestream.observe.words import Sender, Words, control_words, datagram_words, event_words, parameter_words
from voicestream.observe.words_trace import header_words, record_words

__all__ = ["add_command", "run"]

FORMS: Final = ("datagram", "control", "event", "parameters")
MAX_VARINT: Final = (1 << 62) - 1
SENDERS: Final[dict[str, Sender]] = {"client": "client", "server": "server"}
CODECS: Final = {
    "opus": (CodecId.OPUS, 48000),
    "pcmu": (CodecId.PCMU, 8000),
    "pcma": (CodecId.PCMA, 8000),
    "l16": (CodecId.L16, 48000),
}


def add_command(commands: Commands) -> None:
    """Add ``inspect`` to the command line."""
    parser = commands.add_parser(
        "inspect",
        help="say a datagram, control messages, an event or a trace in words",
        description="Say every field of what went over the wire, with units, names and the section of the specification, or each record of "
        "a trace. Lines of hexadecimal are an input each; a line may begin with words that hold for it: client or server, and datagram, "
        'control, event or parameters; "#" begins a remark. Control messages of one side may go on from line to line. What breaks the '
        "protocol is named with its error code and the byte at which it does, and the status is 1.",
    )
    parser.add_argument("input", nargs="*", metavar="INPUT", help="hexadecimal, or a file of it or of a trace; stdin if absent or -")
    parser.add_argument("--as", dest="form", choices=FORMS, default="datagram", help="what lines are that do not say so (datagram)")
    parser.add_argument("--from", dest="sender", choices=sorted(SENDERS), help="who sent lines that do not say so")
    parser.add_argument("--codec", choices=sorted(CODECS), help="check coded frames as this codec's, mono")
    parser.add_argument("--max-event-size", type=bounded(0, MAX_VARINT), metavar="BYTES", help="hold events to this MAX_EVENT_SIZE")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the words; returns 1 when something breaks the protocol."""
    data, name = _read(options.input)
    if data.startswith(b"\x1e"):
        return _trace(data, name)
    text = data.decode("ascii", errors="replace")
    inspector = _Inspector(options)
    inputs = 0
    for number, line in enumerate(text.splitlines(), 1):
        content = line.split("#", 1)[0].split()
        if content:
            inputs += 1
            print(inspector.line(content, f"{name}, line {number}").text())
    if not inputs:
        raise CommandError(f"{name} holds no hexadecimal and no trace")
    inspector.end()
    return 1 if inspector.faults else 0


def _read(words: list[str]) -> tuple[bytes, str]:
    if not words or words == ["-"]:
        return sys.stdin.buffer.read(), "stdin"
    if len(words) == 1 and not _is_hexadecimal(words[0]):
        path = Path(words[0])
        if not path.is_file():
            raise CommandError(f"{words[0][:80]} is neither hexadecimal nor a file")
        return path.read_bytes(), str(path)
    return " ".join(words).encode(errors="replace"), "the input"


def _is_hexadecimal(text: str) -> bool:
    words = [word for word in text.lower().split() if word not in (*FORMS, *SENDERS)]
    return all(not set(word.removeprefix("0x")) - set("0123456789abcdef:") for word in words)


class _Inspector:
    """Goes through lines of input; control streams go on from line to line.

    Attributes:
        faults: Inputs that broke a rule.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._form: str = options.form
        self._sender: str | None = options.sender
        self._max_event_size: int | None = options.max_event_size
        self._tracks: dict[int, Track] = {}
        if options.codec is not None:
            codec, rate = CODECS[options.codec]
            self._tracks = {track: Track(track_id=track, codec=codec, clock_rate_hz=rate) for track in range(4)}
        self._rest: dict[str | None, bytes] = {}
        self.faults = 0

    def line(self, content: list[str], where: str) -> Words:
        """One input in words."""
        form, sender = self._form, self._sender
        while content and content[0] in (*FORMS, *SENDERS):
            word = content.pop(0)
            form, sender = (word, sender) if word in FORMS else (form, word)
        digits = "".join(word.lower().removeprefix("0x") for word in content).replace(":", "")
        try:
            data = bytes.fromhex(digits)
        except ValueError:
            at = next((index for index, digit in enumerate(digits) if digit not in "0123456789abcdef"), len(digits))
            what = f"{digits[at]!r} at digit {at} is not hexadecimal" if at < len(digits) else "half a byte is left over"
            raise CommandError(f"{where}: {what}") from None
        words = self._words(form, None if sender is None else SENDERS[sender], data)
        self.faults += words.fault is not None
        return words

    def _words(self, form: str, sender: Sender | None, data: bytes) -> Words:
        if form == "control":
            data = self._rest.pop(sender, b"") + data
            words = control_words(data, sender=sender)
            if words.unread:
                self._rest[sender] = data[-words.unread :]
            return words
        if form == "event":
            return event_words(data, sender=sender, max_size=self._max_event_size)
        if form == "parameters":
            return parameter_words(data)
        return datagram_words(data, sender=sender, tracks=self._tracks)

    def end(self) -> None:
        """The input is over: a message that has begun is a fault."""
        for sender, rest in self._rest.items():
            words = control_words(rest, sender=None if sender is None else SENDERS[sender], fin=True)
            self.faults += 1
            print(f"{words.what}{f' of the {sender}' if sender else ''} ends: {words.fault.text() if words.fault else ''}")


def _trace(data: bytes, name: str) -> int:
    try:
        header, records = parse_trace(data, name)
    except ValueError as error:
        raise CommandError(str(error)) from error
    print(header_words(header))
    for record in records:
        print(record_words(record))
    return 0
