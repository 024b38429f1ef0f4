"""A peer that holds the keys and sends whatever it likes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from aioquic.quic.packet import QuicPacketType
from aioquic.quic.packet_builder import QuicPacketBuilder
from aioquic.tls import Epoch

from voicestream.quic.endpoint import Connection

SERVER = ("192.0.2.1", 4433)
FRAME_TYPES = [*range(0x1F), 0x30, 0x31, 0x40, 0x7F]


def forge(hostile: Connection, payload: bytes) -> bytes:
    """An authentic packet of `hostile` with any payload."""
    quic = hostile._quic
    builder = QuicPacketBuilder(
        host_cid=quic.host_cid,
        peer_cid=quic._peer_cid.cid,
        version=1,
        is_client=quic._is_client,
        max_datagram_size=1200,
        packet_number=quic._packet_number,
    )
    builder.start_packet(QuicPacketType.ONE_RTT, quic._cryptos[Epoch.ONE_RTT])
    builder.start_frame(payload[0] & 0x3F).push_bytes(payload[1:])
    packets, _ = builder.flush()
    quic._packet_number = builder.packet_number
    return packets[0]


def nonsense(rng: random.Random) -> bytes:
    """A frame type followed by numbers that are small, huge, or whatever."""
    out = bytearray([rng.choice(FRAME_TYPES)])
    for _ in range(rng.randrange(12)):
        kind = rng.random()
        if kind < 0.5:
            out.append(rng.randrange(64))
        elif kind < 0.8:
            out += (0xC0 << 56 | rng.getrandbits(62)).to_bytes(8, "big")
        else:
            out += rng.randbytes(rng.randrange(20))
    return bytes(out)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_an_authentic_client_sends_escapes_or_harms_others(world: Any, seed: int) -> None:
    rng = random.Random(seed)
    good, good_side = world.connect()
    for n in range(40):
        endpoint = world.client()
        endpoint.connect(SERVER, world.now)
        world.run(0.1)
        world.server.next_connection()
        address = world.clients[-1][1]
        for _ in range(rng.randrange(1, 8)):
            for payload in (nonsense(rng), nonsense(rng) + nonsense(rng)):
                world.server.receive_datagram(forge(endpoint.connection, payload), address, world.now)
            world.flush()
        good.connection.session.out_datagrams.append(bytes([n]))
        world.run(0.05)
        world.clients.pop()
    assert [data[0] for data in good_side.session.datagrams] == list(range(40)), seed
    assert not good_side.is_closed


@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_an_authentic_server_sends_escapes(world: Any, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        endpoint, server_side = world.connect()
        for _ in range(rng.randrange(1, 12)):
            endpoint.receive_datagram(forge(server_side, nonsense(rng)), SERVER, world.now)
            world.flush()
        world.run(0.2)
        server_side.abort(world.now)
        world.run(0.2)
        world.clients.clear()
