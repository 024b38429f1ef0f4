"""Reads what two implementations said to each other: packets of the relay, opened with the keys that an endpoint logs (SSLKEYLOGFILE)."""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from aioquic.buffer import Buffer, BufferReadError
from aioquic.quic.crypto import CryptoContext, CryptoError
from aioquic.quic.packet import QuicPacketType, QuicProtocolVersion, pull_quic_header
from aioquic.tls import CipherSuite

from interop.peers.words import datagram_words, event_words, message_words
from interop.proxy import Packet
from voicestream.codepoints import error_name
from voicestream.errors import ProtocolError
from voicestream.wire import EventParser, MessageParser, decode_datagram

__all__ = ["Said", "observe"]

T = TypeVar("T")

_SUITES: Final = {32: (CipherSuite.AES_128_GCM_SHA256, CipherSuite.CHACHA20_POLY1305_SHA256), 48: (CipherSuite.AES_256_GCM_SHA384,)}
_LABELS: Final = {"CLIENT_TRAFFIC_SECRET_0": True, "SERVER_TRAFFIC_SECRET_0": False}


@dataclass(frozen=True, slots=True)
class Said:
    """Something that one side said: when, who, on which flow, and a frame, a message, an event header or an end."""

    at: float
    from_client: bool
    flow: int
    value: Any
    words: str
    lost: bool

    def line(self) -> str:
        """It in a line of a trace."""
        who = "client" if self.from_client else "server"
        return f"{self.at * 1000:8.1f} ms {who}{' (lost)' if self.lost else ''}: {self.words}"


@dataclass(slots=True)
class _Direction:
    """One direction of a flow."""

    id_length: int | None = None
    crypto: CryptoContext | None = None
    expected: int = 0
    streams: dict[int, _Stream] = field(default_factory=dict)


@dataclass(slots=True)
class _Stream:
    """Bytes of a stream in order."""

    parser: Any
    parts: dict[int, bytes] = field(default_factory=dict)
    at: int = 0
    end: int | None = None
    ended: bool = False
    broken: bool = False

    def put(self, offset: int, data: bytes, fin: bool) -> tuple[bytes, bool]:
        """What is new and in order, and whether the end is there."""
        self.parts[offset] = max(self.parts.get(offset, b""), data, key=len)
        if fin:
            self.end = offset + len(data)
        ready = b""
        while True:
            found = next((o for o in sorted(self.parts) if o <= self.at < o + len(self.parts[o])), None)
            if found is None:
                break
            piece = self.parts.pop(found)[self.at - found :]
            ready += piece
            self.at += len(piece)
        fresh_end = self.end is not None and self.at >= self.end and not self.ended
        self.ended = self.ended or fresh_end
        return ready, fresh_end


def _secrets(files: Iterable[Path]) -> dict[bool, list[bytes]]:
    found: dict[bool, list[bytes]] = {True: [], False: []}
    for path in files:
        for line in path.read_text(encoding="ascii", errors="replace").splitlines() if path.exists() else ():
            parts = line.split()
            if len(parts) == 3 and parts[0] in _LABELS:
                secret = binascii.unhexlify(parts[2])
                if secret not in found[_LABELS[parts[0]]]:
                    found[_LABELS[parts[0]]].append(secret)
    return found


def observe(packets: Iterable[Packet], keys: Iterable[Path]) -> list[Said]:
    """All that can be read; empty where no endpoint has logged its keys."""
    secrets = _secrets(keys)
    directions: dict[tuple[int, bool], _Direction] = {}
    said: list[Said] = []
    if not any(secrets.values()):
        return said
    for packet in packets:
        own = directions.setdefault((packet.flow, packet.from_client), _Direction())
        other = directions.setdefault((packet.flow, not packet.from_client), _Direction())
        for payload in _open(packet.data, own, other, secrets[packet.from_client]):
            for value, words in _frames(payload, own):
                said.append(Said(packet.at, packet.from_client, packet.flow, value, words, packet.lost))
    return said


def _open(data: bytes, own: _Direction, other: _Direction, secrets: list[bytes]) -> Iterator[bytes]:
    """Plain payloads of the 1-RTT packets in a UDP payload."""
    position = 0
    while position < len(data):
        try:
            header = pull_quic_header(Buffer(data=data[position:]), host_cid_length=own.id_length or 0)
        except (ValueError, BufferReadError):
            return
        if header.packet_type != QuicPacketType.ONE_RTT:
            # Whoever sends a long header says how long the ids are that it is called by.
            other.id_length = len(header.source_cid)
            position += max(1, header.packet_length)
            continue
        if own.id_length is not None:
            payload = _decrypt(data[position:], own, secrets)
            if payload is not None:
                yield payload
        return


def _decrypt(packet: bytes, own: _Direction, secrets: list[bytes]) -> bytes | None:
    tried = [own.crypto] if own.crypto is not None else [_context(suite, secret) for secret in secrets for suite in _SUITES[len(secret)]]
    for crypto in tried:
        try:
            _, payload, number, _ = crypto.decrypt_packet(packet, 1 + (own.id_length or 0), own.expected)
        except (CryptoError, ValueError, IndexError):
            continue
        own.crypto, own.expected = crypto, max(own.expected, number + 1)
        return bytes(payload)
    return None


def _context(suite: CipherSuite, secret: bytes) -> CryptoContext:
    crypto = CryptoContext()
    crypto.setup(cipher_suite=suite, secret=secret, version=QuicProtocolVersion.VERSION_1)
    return crypto


def _frames(payload: bytes, own: _Direction) -> Iterator[tuple[Any, str]]:
    """What VoiceStream says in the QUIC frames of a packet."""
    buffer = Buffer(data=payload)
    try:
        while not buffer.eof():
            kind = buffer.pull_uint_var()
            if 0x08 <= kind <= 0x0F:
                yield from _stream(buffer, kind, own)
            elif kind in (0x30, 0x31):
                size = buffer.pull_uint_var() if kind == 0x31 else buffer.capacity - buffer.tell()
                yield from _datagram(buffer.pull_bytes(size))
            elif kind in (0x1C, 0x1D):
                code = buffer.pull_uint_var()
                _ = buffer.pull_uint_var() if kind == 0x1C else 0
                reason = buffer.pull_bytes(buffer.pull_uint_var()).decode(errors="replace")
                yield (
                    ("closed", code),
                    f"CONNECTION_CLOSE {error_name(code) if kind == 0x1D else f'transport 0x{code:x}'} {reason}".rstrip(),
                )
            else:
                _skip(buffer, kind)
    except (BufferReadError, KeyError):
        return


_FIELDS: Final = {
    0x00: 0, 0x01: 0, 0x04: 3, 0x05: 2, 0x10: 1, 0x11: 2, 0x12: 1, 0x13: 1, 0x14: 1, 0x15: 2, 0x16: 1, 0x17: 1, 0x19: 1, 0x1E: 0,
}  # fmt: skip
"""QUIC frames that consist of so many integers."""


def _skip(buffer: Buffer, kind: int) -> None:
    """Pass over a QUIC frame that carries nothing of VoiceStream."""
    if kind in (0x02, 0x03):
        buffer.pull_uint_var(), buffer.pull_uint_var()
        ranges = buffer.pull_uint_var()
        for _ in range(1 + 2 * ranges + (3 if kind == 0x03 else 0)):
            buffer.pull_uint_var()
    elif kind in (0x06, 0x07):
        if kind == 0x06:
            buffer.pull_uint_var()
        buffer.pull_bytes(buffer.pull_uint_var())
    elif kind == 0x18:
        buffer.pull_uint_var(), buffer.pull_uint_var()
        buffer.pull_bytes(buffer.pull_uint8() + 16)
    elif kind in (0x1A, 0x1B):
        buffer.pull_bytes(8)
    else:
        for _ in range(_FIELDS[kind]):
            buffer.pull_uint_var()


def _datagram(data: bytes) -> Iterator[tuple[Any, str]]:
    try:
        datagram = decode_datagram(data)
    except ProtocolError as error:
        yield ("broken", error.reason), datagram_words(data)
        return
    yield datagram, datagram_words(data)


def _stream(buffer: Buffer, kind: int, own: _Direction) -> Iterator[tuple[Any, str]]:
    stream_id = buffer.pull_uint_var()
    offset = buffer.pull_uint_var() if kind & 4 else 0
    size = buffer.pull_uint_var() if kind & 2 else buffer.capacity - buffer.tell()
    stream = own.streams.setdefault(stream_id, _Stream(EventParser(1 << 24) if stream_id & 2 else MessageParser()))
    data, fin = stream.put(offset, buffer.pull_bytes(size), bool(kind & 1))
    if stream.broken or not (data or fin):
        return
    try:
        if stream_id & 2:
            found = stream.parser.feed(data, fin)
            if found is not None:
                header, content = found
                yield header, event_words(header.kind, header.event_id, header.order, len(content))
        else:
            for message in stream.parser.feed(data):
                yield message, message_words(message)
    except ProtocolError as error:
        stream.broken = True
        yield ("broken", error.reason), f"this breaks the format: {error.reason}"
