"""What can be fuzzed: each decoder, and sessions in every state. A target takes bytes and raises only when a promise is broken."""

from __future__ import annotations

import contextlib
import io
import json
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from voicestream import wire
from voicestream.audio.files import _read_chunks, _samples
from voicestream.codepoints import CodecId
from voicestream.config import Track
from voicestream.core.resume import KEY_SIZE, ResumeToken, TokenSealer, _parse
from voicestream.errors import AudioError, ProtocolError
from voicestream.observe.qlog import encode_event, encode_header, parse_trace
from voicestream.testing.fake_codec import FakeCodec
from voicestream.testing.fuzz_inputs import CHANNELS, FuzzInput, InputMaker
from voicestream.testing.fuzz_victim import CLIENT_STATES, MAX_HELD_BYTES, SERVER_STATES, FuzzFailure, Victim, held_bytes
from voicestream.uri import parse_uri

__all__ = ["TARGETS", "Target"]

MAX_EVENT: Final = 4096

STATES: Final = tuple([("client", state) for state in CLIENT_STATES] + [("server", state) for state in SERVER_STATES])


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One of them.

    Attributes:
        run: Takes one input.
        seeds: Makes inputs to begin with.
        watched: Modules, or packages ending in a dot, whose lines are counted.
        weight: Its part of the time.
    """

    run: Callable[[bytes], None]
    seeds: Callable[[random.Random], list[bytes]]
    watched: tuple[str, ...]
    weight: float = 1.0


def _same(one: Any, other: Any) -> None:
    if one != other:
        raise FuzzFailure(f"decoded {one!r}, and after another encoding {other!r}")


def _datagram(data: bytes) -> None:
    try:
        found = wire.decode_datagram(data)
    except ProtocolError:
        return
    try:
        again = wire.encode_datagram(found)
    except ValueError as error:
        # A number may have been written longer than it needs, never shorter: what was decoded fits.
        raise FuzzFailure(f"what was decoded cannot be encoded: {error}") from error
    _same(found, wire.decode_datagram(again))


def _messages(data: bytes) -> None:
    whole, parts = wire.MessageParser(), wire.MessageParser()
    cut = data[0] if data else 0
    try:
        found = whole.feed(data)
    except ProtocolError as error:
        code: int | None = error.code
        found = []
    else:
        code = None
    try:
        in_parts = [*parts.feed(data[:cut]), *parts.feed(data[cut:])]
    except ProtocolError as error:
        if error.code != code:
            raise FuzzFailure(f"in parts {error.code}, at once {code}") from error
        return
    if code is not None:
        raise FuzzFailure(f"accepted in parts, refused with {code} at once")
    _same(found, in_parts)
    for message in found:
        encoded = wire.MessageParser().feed(wire.encode_message(message))
        _same([message], encoded)


def _parameters(data: bytes) -> None:
    try:
        found = wire.decode_parameters(data)
    except ProtocolError:
        return
    _same(found, wire.decode_parameters(wire.encode_parameters(found)))


def _events(data: bytes) -> None:
    if not data:
        return
    cut, data = data[0], data[1:]
    results: list[Any] = []
    for pieces in ((data,), (data[:cut], data[cut:])):
        parser, result = wire.EventParser(MAX_EVENT), None
        try:
            for index, piece in enumerate(pieces):
                result = parser.feed(piece, index == len(pieces) - 1)
        except ProtocolError as error:
            result = error.code  # type: ignore[assignment]
        results.append(result)
    _same(*results)


_SEALER: Final = TokenSealer(bytes(range(KEY_SIZE)))


def _tokens(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        _SEALER.open(data)
    try:
        token = _parse(data)
    except ProtocolError:
        return
    if len(token.identity) <= 256:
        _same(token, _SEALER.open(_SEALER.seal(token, lambda count: bytes(count))))


_CODED: Final = (
    Track(),
    Track(channels=2),
    Track(codec=CodecId.PCMU, clock_rate_hz=8000),
    Track(codec=CodecId.PCMA, clock_rate_hz=8000),
    Track(codec=CodecId.L16, clock_rate_hz=16000),
)


def _opus(data: bytes) -> None:
    for track in _CODED:
        try:
            units = wire.frame_units(track, data)
        except ProtocolError:
            continue
        if not 1 <= units <= 48:
            raise FuzzFailure(f"a frame of {units} units")
    try:
        wire.opus_is_celt(data)
        wire.opus_channels(data)
    except ProtocolError:
        pass


def _traces(data: bytes) -> None:
    try:
        header, events = parse_trace(data, "the trace")
    except ValueError:
        return
    if not isinstance(header, dict) or not all(isinstance(event, dict) for event in events):
        raise FuzzFailure("a trace whose records are no objects")


def _wav(data: bytes) -> None:
    try:
        form, samples, _ = _read_chunks(io.BytesIO(data), "a.wav")
        with np.errstate(all="raise"):
            pcm = _samples(form, samples, "a.wav")
    except AudioError:
        return
    if not np.isfinite(pcm).all():
        raise FuzzFailure("samples that are no numbers")


def _uris(data: bytes) -> None:
    try:
        found = parse_uri(data.decode("utf-8", "replace"))
    except ValueError:
        return
    _same(found, parse_uri(str(found)))


def _sessions(data: bytes) -> None:
    """The first byte says who and in which state; then pieces: where to and how long (2 bytes), and the bytes."""
    if not data:
        return
    role, state = STATES[data[0] % len(STATES)]
    victim = Victim(role, state, random.Random(data[0]))
    at = 1
    while at + 2 <= len(data):
        head = data[at]
        size = (head >> 4) << 8 | data[at + 1]
        piece = data[at + 2 : at + 2 + size]
        victim.feed(FuzzInput(channel=CHANNELS[(head & 3) % 3], origin="guided", data=piece, fin=bool(head & 4)))
        at += 2 + size
    if (held := held_bytes(victim.session)) > MAX_HELD_BYTES:
        raise FuzzFailure(f"the session holds {held} bytes")


# What to begin with


def _of_channel(channel: str) -> Callable[[random.Random], list[bytes]]:
    def make(rng: random.Random) -> list[bytes]:
        maker = InputMaker(rng)
        return [maker.valid(channel) for _ in range(150)]

    return make


def _some_parameters(rng: random.Random) -> list[bytes]:
    found = []
    for data in _of_channel("control")(rng):
        for message in wire.MessageParser().feed(data):
            parameters = getattr(message, "parameters", None)
            if isinstance(parameters, wire.Parameters):
                found.append(wire.encode_parameters(parameters))
    return found


def _some_events(rng: random.Random) -> list[bytes]:
    return [bytes([rng.randrange(20)]) + data for data in _of_channel("stream")(rng)]


def _some_tokens(rng: random.Random) -> list[bytes]:
    found = []
    for _ in range(20):
        token = ResumeToken(
            session_id=rng.randbytes(16), generation=rng.getrandbits(10), expires_at=rng.getrandbits(32), identity=rng.randbytes(32)
        )
        found += [_SEALER.seal(token, rng.randbytes), token.session_id + b"\x05\x40\x50" + token.identity]
    return found


def _some_packets(rng: random.Random) -> list[bytes]:
    codec = FakeCodec(seed=1)
    found = [codec.encode(index, rng.choice((4, 8, 16, 24))) for index in range(20)]
    # Each configuration with each framing: one, two equal, two different, and a count with and without padding.
    for toc in range(0, 256, 4):
        for code, rest in ((0, "0102"), (1, "0102"), (2, "010908"), (3, "020707"), (3, "c20101050600")):
            found.append(bytes([toc | code]) + bytes.fromhex(rest))
    return found


def _some_traces(rng: random.Random) -> list[bytes]:
    header = encode_header(vantage="client", group_id="5f", wall_clock_time="2026-01-01T00:00:00Z")
    event = encode_event(1.5, "send:finish", {"track": 0, "pts": rng.randrange(1000)})
    return [header, header + event, header + event + event[:-3], b"\x1e" + json.dumps([1, {}]).encode() + b"\n"]


def _some_wavs(rng: random.Random) -> list[bytes]:
    found = []
    forms = ((1, 8, 1), (1, 16, 1), (1, 16, 2), (1, 24, 1), (1, 32, 1), (3, 32, 1), (3, 64, 2), (6, 8, 1), (7, 8, 1), (0xFFFE, 16, 1))
    for kind, bits, channels in forms:
        width = bits // 8 * channels
        form = struct.pack("<HHIIHH", kind, channels, 8000, 8000 * width, width, bits)
        form += b"\x16\0\x10\0\4\0\0\0\1\0" if kind == 0xFFFE else b""
        data = rng.randbytes(width * 5)
        chunks = struct.pack("<4sI", b"fmt ", len(form)) + form + struct.pack("<4sI", b"LIST", 3) + b"abc\0"
        chunks += struct.pack("<4sI", b"data", len(data)) + data
        found.append(struct.pack("<4sI4s", b"RIFF", len(chunks) + 4, b"WAVE") + chunks)
    return found


def _some_uris(_rng: random.Random) -> list[bytes]:
    return [b"voicestream://example.org/agent?x=1", b"voicestream://[::1]:4433/", b"voicestream://127.0.0.1", b"voicestream://h:1/%20"]


def _some_lives(rng: random.Random) -> list[bytes]:
    maker, found = InputMaker(rng), []
    for index in range(4 * len(STATES)):
        life = bytearray([index])
        for _ in range(rng.choice((1, 2, 4, 8))):
            channel = rng.randrange(3)
            piece = maker.valid(CHANNELS[channel])[:4000]
            fin = 4 if channel == 2 and rng.random() < 0.7 else 0
            life += bytes([(len(piece) >> 8) << 4 | fin | channel, len(piece) & 0xFF]) + piece
        found.append(bytes(life))
    return found


TARGETS: Final[dict[str, Target]] = {
    "datagram": Target(
        run=_datagram,
        seeds=_of_channel("datagram"),
        weight=2,
        watched=("voicestream.wire.datagram", "voicestream.wire.frames", "voicestream.wire.buffer"),
    ),
    "messages": Target(
        run=_messages,
        seeds=_of_channel("control"),
        weight=2,
        watched=("voicestream.wire.messages", "voicestream.wire.parameters", "voicestream.wire.buffer"),
    ),
    "parameters": Target(run=_parameters, seeds=_some_parameters, watched=("voicestream.wire.parameters",)),
    "events": Target(run=_events, seeds=_some_events, watched=("voicestream.wire.event_stream",)),
    "tokens": Target(run=_tokens, seeds=_some_tokens, watched=("voicestream.core.resume",), weight=0.5),
    "opus": Target(run=_opus, seeds=_some_packets, watched=("voicestream.wire.opus_toc",)),
    "traces": Target(run=_traces, seeds=_some_traces, watched=("voicestream.observe.qlog",), weight=0.5),
    "wav": Target(run=_wav, seeds=_some_wavs, watched=("voicestream.audio.files",)),
    "uris": Target(run=_uris, seeds=_some_uris, watched=("voicestream.uri",), weight=0.5),
    "sessions": Target(run=_sessions, seeds=_some_lives, watched=("voicestream.session.", "voicestream.core."), weight=5),
}
