"""The little that a server reads of a QUIC packet before it knows whose it is (RFC 8999, the invariants), and how it declines one."""

from __future__ import annotations

from dataclasses import dataclass

from aioquic._buffer import Buffer
from aioquic.quic.connection import TRANSPORT_CLOSE_FRAME_CAPACITY
from aioquic.quic.crypto import CryptoPair
from aioquic.quic.packet import QuicFrameType, QuicPacketType, pull_quic_header
from aioquic.quic.packet_builder import QuicPacketBuilder

__all__ = ["Preamble", "encode_initial_close", "initial_token", "read_preamble"]


@dataclass(slots=True)
class Preamble:
    """Attributes:
    version: Of a long header; None for a short one.
    destination_id: Connection id that the packet is for.
    source_id: Of a long header; empty for a short one.
    """

    version: int | None
    destination_id: bytes
    source_id: bytes


def read_preamble(data: bytes, id_length: int) -> Preamble | None:
    """What every version of QUIC has in common; None if that is not there.

    Args:
        data: A UDP payload.
        id_length: Bytes of this side's connection ids, which a short header does not tell.
    """
    if len(data) < 1 + id_length:
        return None
    if not data[0] & 0x80:
        return Preamble(None, data[1 : 1 + id_length], b"")
    if len(data) < 7:
        return None
    source_at = 6 + data[5]
    if len(data) <= source_at:
        return None
    end = source_at + 1 + data[source_at]
    if len(data) < end:
        return None
    return Preamble(int.from_bytes(data[1:5], "big"), data[6:source_at], data[source_at + 1 : end])


def initial_token(data: bytes) -> bytes | None:
    """The token of an Initial packet of a version that aioquic speaks; None if it is no such packet."""
    try:
        header = pull_quic_header(Buffer(data=data), host_cid_length=0)
    except ValueError:
        return None
    return header.token if header.packet_type is QuicPacketType.INITIAL else None


def encode_initial_close(*, version: int, destination_id: bytes, source_id: bytes, code: int, reason: str = "") -> bytes:
    """A server's Initial packet that closes without any state kept.

    Args:
        version: QUIC version of the client's packet.
        destination_id: Destination connection id of the client's packet; the keys follow from it.
        source_id: Source connection id of the client's packet.
        code: Transport error code (RFC 9000 section 20.1).
        reason: At most 200 bytes.
    """
    crypto = CryptoPair()
    crypto.setup_initial(cid=destination_id, is_client=False, version=version)
    builder = QuicPacketBuilder(host_cid=destination_id, is_client=False, max_datagram_size=1200, peer_cid=source_id, version=version)
    builder.start_packet(QuicPacketType.INITIAL, crypto)
    text = reason.encode("utf-8")[:200]
    buffer = builder.start_frame(QuicFrameType.TRANSPORT_CLOSE, capacity=TRANSPORT_CLOSE_FRAME_CAPACITY + len(text))
    buffer.push_uint_var(code)
    buffer.push_uint_var(QuicFrameType.PADDING)
    buffer.push_uint_var(len(text))
    buffer.push_bytes(text)
    packets, _ = builder.flush()
    return packets[0]
